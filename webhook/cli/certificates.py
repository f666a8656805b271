"""`workload-stamp certs`: a CA and a serving certificate in files."""

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click

from certs.authority import Authority, CertificateError, KeyPair, service_names, subject_alternatives
from certs.expiry import expires, trouble, unusable
from webhook.cli.failures import InputProblems
from webhook.options import subdomain
from webhook.settings import Settings

DEFAULTS = Settings()


@click.group("certs")
def command() -> None:
    """Issue and check certificates in files.

    In a cluster the webhook makes and renews its own; files are for trying things out, and for where it may not.
    """


def _subdomain(_: click.Context, parameter: click.Parameter, value: str) -> str:
    try:
        return subdomain(value)
    except ValueError:
        raise click.BadParameter(f"found {value!r}, expected a name such as {parameter.default}") from None


@command.command("issue")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    show_default="this folder",
    help="Folder to write to; made if missing.",
)
@click.option("--name", "names", multiple=True, metavar="NAME", help="Further DNS name or IP address. May be repeated.")
@click.option(
    "--service",
    default=DEFAULTS.service_name,
    show_default=True,
    callback=_subdomain,
    metavar="NAME",
    help="The Service that leads to the server.",
)
@click.option(
    "-n",
    "--namespace",
    default=DEFAULTS.namespace,
    show_default=True,
    callback=_subdomain,
    metavar="NAME",
    help="Its namespace.",
)
@click.option("--days", type=click.IntRange(1, 3650), default=365, show_default=True, help="How long it is valid.")
def issue(out: Path, names: tuple[str, ...], service: str, namespace: str, days: int) -> None:
    """Make a serving certificate and the authority that signs it.

    Writes ca.crt, ca.key, tls.crt and tls.key. An authority (ca.crt with ca.key) that is already in the folder signs;
    it is never replaced. A tls.crt is.
    """
    now = datetime.now(UTC)
    everything = (*service_names(service, namespace), *names)
    _check_names(everything)
    with _told(out):
        out.mkdir(parents=True, exist_ok=True)
        authority = _authority(out, now)
        pair = authority.issue_serving(everything, now, lifetime=timedelta(days=days))
        _write(out / "tls.crt", pair.certificate, 0o644)
        _write(out / "tls.key", pair.key, 0o600)
        click.echo(f"{out / 'tls.crt'}: valid until {expires(pair.certificate):%Y-%m-%d} for {', '.join(everything)}")


def _check_names(names: tuple[str, ...]) -> None:
    try:
        subject_alternatives(names)
    except CertificateError as error:
        raise InputProblems((f"--name: {error}",), exit_code=2) from None


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    """What goes wrong in the block, as one sentence for a person."""
    try:
        yield
    except CertificateError as error:
        raise InputProblems((f"{folder}: {error}",)) from None
    except OSError as error:
        raise InputProblems((f"{error.filename or folder}: {error.strerror or error}",)) from None


def _authority(out: Path, now: datetime) -> Authority:
    """The folder's authority, a new one where there is none. Raises InputProblems for one that can't sign."""
    certificate, key = out / "ca.crt", out / "ca.key"
    present = [path for path in (certificate, key) if os.path.lexists(path)]
    if not present:
        authority = Authority.create(now)
        _write(key, authority.pair.key, 0o600)
        _write(certificate, authority.pair.certificate, 0o644)
        return authority
    if len(present) == 1:
        missing = key if present == [certificate] else certificate
        raise InputProblems((f"{present[0]}: there is no {missing.name} beside it; add it, or take the file away",))
    pair = KeyPair(certificate=certificate.read_bytes(), key=key.read_bytes())
    try:
        found = Authority.from_pair(pair)
    except CertificateError as error:
        raise InputProblems((f"{certificate}, {key}: {error}",)) from None
    fault = unusable(pair, now)
    if fault is not None:
        raise InputProblems((f"{certificate}: {fault}; take {certificate.name} and {key.name} away for a new one",))
    return found


def _write(path: Path, content: bytes, mode: int) -> None:
    """Whole or not at all, and never readable by others for a moment."""
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from None


@command.command("check")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path), default=Path())
@click.option("--name", "names", multiple=True, metavar="NAME", help="A name that it has to have. May be repeated.")
def check(folder: Path, names: tuple[str, ...]) -> None:
    """Say whether a serving certificate is good, and if not, why.

    Looks at tls.crt, tls.key and ca.crt in FOLDER, by default this one. A certificate with less than a third of its
    life left is no longer good: it has to be renewed. The exit code is 1 when it is not good.
    """
    with _told(folder):
        pair = KeyPair(certificate=(folder / "tls.crt").read_bytes(), key=(folder / "tls.key").read_bytes())
        fault = trouble(pair, (folder / "ca.crt").read_bytes(), names, datetime.now(UTC))
        if fault is not None:
            raise InputProblems((f"{folder / 'tls.crt'}: {fault}",))
        click.echo(f"{folder / 'tls.crt'}: good until {expires(pair.certificate):%Y-%m-%d}")
