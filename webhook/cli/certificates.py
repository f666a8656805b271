"""`workload-stamp certs`: a CA and a serving certificate in files."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from certs.authority import Authority, CertificateError, KeyPair, service_names
from certs.expiry import expires, trouble
from webhook.cli.failures import InputProblems


@click.group("certs")
def command() -> None:
    """Issue and check certificates."""


@command.command("issue")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path(), help="Folder to write to.")
@click.option("--name", "names", multiple=True, metavar="NAME", help="DNS name or IP address of the server.")
@click.option("--service", default="workload-stamp", show_default=True, help="The Service that leads to the server.")
@click.option("-n", "--namespace", default="workload-stamp-system", show_default=True, help="Its namespace.")
@click.option("--days", type=click.IntRange(1, 3650), default=365, show_default=True, help="How long it is valid.")
def issue(out: Path, names: tuple[str, ...], service: str, namespace: str, days: int) -> None:
    """Write ca.crt, ca.key, tls.crt and tls.key. A CA that is already in the folder signs; it is not replaced."""
    now = datetime.now(UTC)
    everything = (*service_names(service, namespace), *names)
    try:
        out.mkdir(parents=True, exist_ok=True)
        authority = _authority(out, now)
        pair = authority.issue_serving(everything, now, lifetime=timedelta(days=days))
        _write(out / "tls.crt", pair.certificate, 0o644)
        _write(out / "tls.key", pair.key, 0o600)
    except CertificateError as error:
        raise InputProblems((str(error),)) from None
    except OSError as error:
        raise InputProblems((f"{error.filename}: {error.strerror}",)) from None
    click.echo(f"{out / 'tls.crt'}: valid until {expires(pair.certificate):%Y-%m-%d} for {', '.join(everything)}")


def _authority(out: Path, now: datetime) -> Authority:
    certificate, key = out / "ca.crt", out / "ca.key"
    if certificate.exists() and key.exists():
        return Authority.from_pair(KeyPair(certificate=certificate.read_bytes(), key=key.read_bytes()))
    authority = Authority.create(now)
    _write(certificate, authority.pair.certificate, 0o644)
    _write(key, authority.pair.key, 0o600)
    return authority


def _write(path: Path, content: bytes, mode: int) -> None:
    """Whole or not at all, and never readable by others for a moment."""
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    part.replace(path)


@command.command("check")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path())
@click.option("--name", "names", multiple=True, metavar="NAME", help="A name that the certificate has to have.")
def check(folder: Path, names: tuple[str, ...]) -> None:
    """Say whether the certificate in FOLDER is good, and if not, why. Exit code 1 when it is not."""
    try:
        pair = KeyPair(certificate=(folder / "tls.crt").read_bytes(), key=(folder / "tls.key").read_bytes())
        fault = trouble(pair, (folder / "ca.crt").read_bytes(), names, datetime.now(UTC))
    except OSError as error:
        raise InputProblems((f"{error.filename}: {error.strerror}",)) from None
    if fault is not None:
        raise InputProblems((f"{folder / 'tls.crt'}: {fault}",))
    click.echo(f"{folder / 'tls.crt'}: good until {expires(pair.certificate):%Y-%m-%d}")
