"""What `certs issue` writes, what it leaves alone, and what `certs check` finds."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from certs.authority import Authority, KeyPair, read_certificates, stated_names, subject_alternatives
from certs.expiry import trouble
from tests.webhook.cli.command import run

NOW = datetime.now(UTC)
FILES = ["ca.crt", "ca.key", "tls.crt", "tls.key"]


def put(folder: Path, name: str, pair: KeyPair) -> None:
    """A pair as files."""
    (folder / f"{name}.crt").write_bytes(pair.certificate)
    (folder / f"{name}.key").write_bytes(pair.key)


def content(folder: Path) -> dict[str, bytes]:
    """The files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_certificate_is_issued_with_its_authority(tmp_path: Path) -> None:
    """Four files that a server and its clients can use, for the Service's names and the given ones."""
    folder = tmp_path / "made" / "here"
    ended = run("certs", "issue", "--out", str(folder), "--name", "10.0.0.1", "--name", "stamps.example.com")
    assert ended.code == 0
    assert ended.out.startswith(f"{folder}/tls.crt: valid until ")
    assert sorted(content(folder)) == FILES
    pair = KeyPair(certificate=(folder / "tls.crt").read_bytes(), key=(folder / "tls.key").read_bytes())
    names = ("workload-stamp.workload-stamp-system.svc", "10.0.0.1", "stamps.example.com")
    assert trouble(pair, (folder / "ca.crt").read_bytes(), names, NOW) is None


def test_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    """Nobody else may read a private key, whatever the umask."""
    before = os.umask(0)
    try:
        run("certs", "issue", "--out", str(tmp_path))
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"ca.crt": 0o644, "ca.key": 0o600, "tls.crt": 0o644, "tls.key": 0o600}


def test_an_authority_that_is_there_signs_and_stays(tmp_path: Path) -> None:
    """A second certificate is trusted by who trusts the first."""
    run("certs", "issue", "--out", str(tmp_path))
    before = content(tmp_path)
    assert run("certs", "issue", "--out", str(tmp_path), "--days", "7").code == 0
    after = content(tmp_path)
    assert [name for name in FILES if before[name] != after[name]] == ["tls.crt", "tls.key"]
    (leaf,) = read_certificates(after["tls.crt"])
    assert leaf.not_valid_after_utc - NOW < timedelta(days=7, hours=1)
    assert run("certs", "check", str(tmp_path)).code == 0


def test_service_and_namespace_make_the_names(tmp_path: Path) -> None:
    """The API server asks for the name of the Service."""
    run("certs", "issue", "--out", str(tmp_path), "--service", "hook", "-n", "prod")
    (leaf,) = read_certificates((tmp_path / "tls.crt").read_bytes())
    assert stated_names(leaf) == frozenset(subject_alternatives(["hook.prod.svc", "hook.prod.svc.cluster.local"]))


@pytest.mark.parametrize(
    "arguments",
    [
        ("--name", "bad name"),
        ("--name", ""),
        ("--name", "-x"),
        ("--name", "ünïcode.example"),
        ("--service", "UPPER"),
        ("--service", "a/b"),
        ("-n", ""),
        ("--days", "0"),
        ("--days", "4000"),
        ("--days", "x"),
    ],
)
def test_what_can_be_no_name_is_wrong_use_and_writes_nothing(arguments: tuple[str, str], tmp_path: Path) -> None:
    """Names are looked at before anything is made."""
    ended = run("certs", "issue", "--out", str(tmp_path / "out"), *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert not (tmp_path / "out").exists()


def test_every_bad_name_is_told(tmp_path: Path) -> None:
    """Not only the first."""
    ended = run("certs", "issue", "--out", str(tmp_path), "--name", "bad name", "--name", "a", "--name", "-x")
    assert ended.told == ["--name: neither a DNS name nor an IP address: 'bad name', '-x'"]


@pytest.mark.parametrize("name", ["ca.crt", "ca.key"])
def test_half_an_authority_is_never_replaced(name: str, tmp_path: Path) -> None:
    """Clients may trust a ca.crt whose key is kept elsewhere."""
    (tmp_path / name).write_text("precious")
    ended = run("certs", "issue", "--out", str(tmp_path))
    assert ended.code == 1
    assert ended.err.startswith(f"{tmp_path}/{name}: there is no ca.")
    assert content(tmp_path) == {name: b"precious"}


def test_an_authority_that_cannot_sign_is_told(tmp_path: Path) -> None:
    """Unreadable, with another's key, no authority at all, expired: nothing is written."""
    good, other = Authority.create(NOW), Authority.create(NOW)
    old = Authority.create(NOW - timedelta(days=10), lifetime=timedelta(days=1))
    cases = {
        "garbage": (KeyPair(certificate=b"garbage", key=b"garbage"), "the certificate can't be read: it must be PEM"),
        "another": (
            KeyPair(certificate=good.pair.certificate, key=other.pair.key),
            "the authority's key belongs to another certificate",
        ),
        "leaf": (good.issue_serving(("a",), NOW), "the certificate is not an authority's"),
        "expired": (old.pair, "the certificate expired at "),
    }
    for name, (pair, why) in cases.items():
        folder = tmp_path / name
        folder.mkdir()
        put(folder, "ca", pair)
        ended = run("certs", "issue", "--out", str(folder))
        assert ended.code == 1, name
        assert why in ended.err, name
        assert ended.err.startswith(f"{folder}/ca.crt"), name
        assert sorted(content(folder)) == ["ca.crt", "ca.key"], name


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    """The path and the reason, and nothing is left half written."""
    (tmp_path / "file").write_text("")
    assert run("certs", "issue", "--out", str(tmp_path / "file" / "below")).told == [
        f"{tmp_path}/file/below: Not a directory"
    ]
    assert run("certs", "issue", "--out", str(tmp_path / "file")).code == 2
    (tmp_path / "out" / "tls.crt").mkdir(parents=True)
    ended = run("certs", "issue", "--out", str(tmp_path / "out"))
    assert (ended.code, ended.told) == (1, [f"{tmp_path}/out/tls.crt: Is a directory"])
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["ca.crt", "ca.key", "tls.crt"]


def test_a_good_certificate_is_said_to_be_good(tmp_path: Path) -> None:
    """With the day until which it is, for the names that are asked for."""
    run("certs", "issue", "--out", str(tmp_path), "--name", "::1")
    ended = run("certs", "check", str(tmp_path), "--name", "::1")
    assert ended.code == 0
    assert ended.out.startswith(f"{tmp_path}/tls.crt: good until 20")


def test_a_bad_certificate_says_why(tmp_path: Path) -> None:
    """Another authority's, expired, near its end, with another's key, for other names, unreadable, missing."""
    authority = Authority.create(NOW - timedelta(days=100))
    put(tmp_path, "ca", authority.pair)
    good, other = (authority.issue_serving(("a",), NOW) for _ in range(2))
    then = NOW - timedelta(days=90)
    cases = [
        (Authority.create(NOW).issue_serving(("a",), NOW), "is not signed by the authority"),
        (authority.issue_serving(("a",), then, lifetime=timedelta(days=1)), "the certificate expired at "),
        (authority.issue_serving(("a",), then, lifetime=timedelta(days=91)), "less than a third of its life is left"),
        (KeyPair(certificate=good.certificate, key=other.key), "the private key belongs to another certificate"),
        (authority.issue_serving(("b",), NOW), "the certificate is not for a"),
        (KeyPair(certificate=b"garbage", key=good.key), "the certificate can't be read"),
    ]
    for pair, why in cases:
        put(tmp_path, "tls", pair)
        ended = run("certs", "check", str(tmp_path), "--name", "a")
        assert (ended.code, ended.out) == (1, ""), why
        assert ended.err.startswith(f"{tmp_path}/tls.crt: "), why
        assert why in ended.err
    (tmp_path / "tls.key").unlink()
    assert run("certs", "check", str(tmp_path)).told == [f"{tmp_path}/tls.key: No such file or directory"]
    assert run("certs", "check", str(tmp_path / "nowhere")).code == 2
