"""Which certificate a new connection gets, before and after it is replaced, and what happens to bad ones."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from certs.authority import Authority, CertificateError, KeyPair
from tests.certs.handshakes import client_context, shake
from tests.webhook.polling import until
from webhook.tls import CertificateFiles, ServingCertificate

NOW = datetime.now(UTC)
AUTHORITY = Authority.create(NOW)
STRANGER = Authority.create(NOW)
NAME = "stamp.system.svc"


def issue() -> KeyPair:
    """A good serving certificate, another one each time."""
    return AUTHORITY.issue_serving([NAME, "127.0.0.1"], NOW)


def expired() -> KeyPair:
    """A serving certificate of last year."""
    return AUTHORITY.issue_serving([NAME], NOW - timedelta(days=400), lifetime=timedelta(days=30))


def rsa_pair() -> KeyPair:
    """A self-signed serving certificate with a key of another type."""
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, NOW - timedelta(hours=1), NOW + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(NAME)]), critical=True)
        .sign(key, hashes.SHA256())
    )
    return KeyPair(
        certificate=certificate.public_bytes(Encoding.PEM),
        key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


@dataclass
class Door:
    """A client that asks a serving certificate's context for a handshake."""

    folder: Path

    def served(
        self, certificate: ServingCertificate, *, trusted: bytes = AUTHORITY.certificate, name: str = NAME
    ) -> bytes:
        """The certificate (DER) that a client gets; raises ssl.SSLError when it gets none that it likes."""
        return self.shaken(certificate, client_context(trusted, self.folder), name)

    def shaken(self, certificate: ServingCertificate, client: ssl.SSLContext, name: str = NAME) -> bytes:
        """The same for a client of one's own."""
        seen: list[bytes] = []

        class Watching(ssl.SSLObject):
            def do_handshake(self) -> None:
                super().do_handshake()
                if not self.server_side:
                    seen.append(self.getpeercert(binary_form=True) or b"")

        client.sslobject_class = Watching
        shake(client, certificate.context, name)
        return seen[-1]


def der(pair: KeyPair) -> bytes:
    """The pair's certificate as it goes over the wire."""
    return ssl.PEM_cert_to_DER_cert(pair.certificate.decode())


@pytest.fixture
def door(tmp_path: Path) -> Door:
    """A client."""
    return Door(tmp_path)


LOOKS: list[None] = []
"""One for each time that files were looked at."""


class CountedFiles(CertificateFiles):
    """Files that tell when they are looked at."""

    def read(self) -> tuple[KeyPair, bytes | None]:
        """What is there now."""
        LOOKS.append(None)
        return super().read()


@dataclass
class Mount:
    """A folder with a certificate's files, as a Secret is mounted, and what was reported while they were followed."""

    files: CertificateFiles
    reports: list[str | None]

    def write(self, pair: KeyPair) -> None:
        """Put another pair there."""
        self.files.certificate.write_bytes(pair.certificate)
        self.files.key.write_bytes(pair.key)

    @asynccontextmanager
    async def followed(self, certificate: ServingCertificate) -> AsyncIterator[None]:
        """Follow the files, often."""
        task = asyncio.ensure_future(certificate.follow(0.01, self.reports.append))
        yield
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    async def reported(self, number: int) -> str | None:
        """The last of `number` reports, waited for."""
        await until(lambda: len(self.reports) >= number)
        assert len(self.reports) == number
        return self.reports[-1]


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    """Files with a good pair."""
    made = Mount(CountedFiles(certificate=tmp_path / "tls.crt", key=tmp_path / "tls.key"), [])
    made.write(issue())
    return made


class TestReplace:
    """Another certificate while serving."""

    def test_serves_the_new_one_at_once(self, door: Door) -> None:
        """The next handshake on the same listener's context gets the new certificate."""
        first, second = issue(), issue()
        certificate = ServingCertificate.from_pair(first)

        assert door.served(certificate) == der(first)
        certificate.replace(second)
        assert door.served(certificate) == der(second)

    def test_works_for_clients_that_name_nobody(self, door: Door) -> None:
        """A client that dials an address sends no server name, and is served as well."""
        pair = issue()

        assert door.served(ServingCertificate.from_pair(pair), name="127.0.0.1") == der(pair)

    def test_may_change_the_kind_of_key(self, door: Door) -> None:
        """After an RSA pair an elliptic one is served, and the other way round: none is kept beside the other."""
        elliptic, other = issue(), rsa_pair()
        certificate = ServingCertificate.from_pair(elliptic)
        certificate.replace(other)

        assert door.served(certificate, trusted=other.certificate) == der(other)
        certificate.replace(elliptic)
        assert door.served(certificate) == der(elliptic)

    @pytest.mark.parametrize(
        "bad, why",
        [
            (replace(issue(), key=issue().key), "the private key belongs to another certificate"),
            (replace(issue(), certificate=b"rubbish"), "the certificate can't be read"),
            (replace(issue(), key=b""), "the private key can't be read"),
            (expired(), "the certificate expired at"),
        ],
        ids=["mismatched", "no certificate", "no key", "expired"],
    )
    def test_keeps_the_last_good_one(self, door: Door, bad: KeyPair, why: str) -> None:
        """A pair that can't be served is refused with its reason, and the old one serves on."""
        good = issue()
        certificate = ServingCertificate.from_pair(good)

        with pytest.raises(CertificateError, match=why):
            certificate.replace(bad)
        assert door.served(certificate) == der(good)
        assert certificate.pair == good

    def test_is_needed_before_anyone_is_served(self, door: Door) -> None:
        """Without a certificate handshakes fail, and readiness says why; the first one mends it."""
        certificate = ServingCertificate()

        assert certificate.fault() == "there is no certificate yet"
        assert certificate.seconds_to_expiry() == 0
        with pytest.raises(ssl.SSLError):
            door.served(certificate)
        certificate.replace(issue())
        assert certificate.fault() is None
        assert door.served(certificate)


class TestContext:
    """What the listener insists on."""

    def test_refuses_old_protocols(self, door: Door) -> None:
        """TLS 1.1 is not spoken, TLS 1.2 is."""
        client = client_context(AUTHORITY.certificate, door.folder)
        client.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
        client.set_ciphers("ALL:@SECLEVEL=0")
        certificate = ServingCertificate.from_pair(issue())
        client.maximum_version = ssl.TLSVersion.TLSv1_2

        assert door.shaken(certificate, client)
        with pytest.warns(DeprecationWarning, match="TLSv1_1 is deprecated"):
            client.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises(ssl.SSLError):
            door.shaken(certificate, client)

    def test_tells_how_long_the_certificate_lasts(self) -> None:
        """Time to expiry is that of the certificate in force."""
        pair = AUTHORITY.issue_serving([NAME], NOW, lifetime=timedelta(days=2))

        left = ServingCertificate.from_pair(pair).seconds_to_expiry()

        assert 2 * 86400 - 600 < left <= 2 * 86400

    @pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
    def test_lets_in_only_clients_that_are_vouched_for(self, door: Door, version: ssl.TLSVersion) -> None:
        """With a client authority, a client needs a certificate of it, not of another one, and not none."""
        certificate = ServingCertificate.from_pair(issue(), client_ca=AUTHORITY.certificate)
        clients = [
            client_context(AUTHORITY.certificate, door.folder, pair=pair)
            for pair in (None, STRANGER.issue_client("api-server", NOW), AUTHORITY.issue_client("api-server", NOW))
        ]
        for client in clients:
            client.maximum_version = version

        for client in clients[:2]:
            with pytest.raises(ssl.SSLError):
                door.shaken(certificate, client)
        assert door.shaken(certificate, clients[2])

    def test_changes_the_authorities_of_clients(self, door: Door) -> None:
        """After a rotation the old authority's clients stay out, the new one's come in."""
        pair = issue()
        certificate = ServingCertificate.from_pair(pair, client_ca=STRANGER.certificate)
        client = client_context(AUTHORITY.certificate, door.folder, pair=AUTHORITY.issue_client("api-server", NOW))

        with pytest.raises(ssl.SSLError):
            door.shaken(certificate, client)
        certificate.replace(pair, client_ca=AUTHORITY.certificate)
        assert door.shaken(certificate, client) == der(pair)

    def test_refuses_unreadable_authorities_of_clients(self) -> None:
        """An authority that can't be read must not let anyone in, nor nobody."""
        with pytest.raises(CertificateError, match="the authorities of clients can't be read"):
            ServingCertificate.from_pair(issue(), client_ca=b"rubbish")


class TestFiles:
    """A certificate that is kept in files."""

    async def test_are_followed(self, door: Door, mount: Mount) -> None:
        """A new pair in the files is served without a restart, and reported."""
        certificate = ServingCertificate.from_files(mount.files)
        renewed = issue()

        async with mount.followed(certificate):
            mount.write(renewed)
            await until(lambda: door.served(certificate) == der(renewed))
        assert mount.reports[-1] is None

    async def test_with_a_bad_pair_are_reported_once(self, door: Door, mount: Mount) -> None:
        """A mismatched pair is reported once, the old one serves on; the next good one is served and reported."""
        certificate = ServingCertificate.from_files(mount.files)
        served = door.served(certificate)

        async with mount.followed(certificate):
            mount.files.key.write_bytes(issue().key)
            fault = await mount.reported(1)
            assert (
                fault == f"{mount.files.certificate}, {mount.files.key}: the private key belongs to another certificate"
            )
            looks = len(LOOKS)
            await until(lambda: len(LOOKS) >= looks + 5)
            assert len(mount.reports) == 1
            assert door.served(certificate) == served
            mount.files.key.write_bytes(certificate.pair.key if certificate.pair else b"")
            assert await mount.reported(2) is None

    async def test_that_vanish_leave_the_old_one(self, door: Door, mount: Mount) -> None:
        """While the files are away, what was read serves on."""
        certificate = ServingCertificate.from_files(mount.files)
        served = door.served(certificate)

        async with mount.followed(certificate):
            mount.files.certificate.unlink()
            assert await mount.reported(1) == f"{mount.files.certificate}: can't be read: No such file or directory"
            assert door.served(certificate) == served

    async def test_may_be_swapped_by_a_link(self, door: Door, tmp_path: Path) -> None:
        """A mounted Secret changes by a link being pointed elsewhere, which is seen."""
        old, new = issue(), issue()
        for name, pair in (("old", old), ("new", new)):
            (tmp_path / name).mkdir()
            (tmp_path / name / "tls.crt").write_bytes(pair.certificate)
            (tmp_path / name / "tls.key").write_bytes(pair.key)
        (tmp_path / "..data").symlink_to("old")
        mount = Mount(CertificateFiles(certificate=tmp_path / "..data/tls.crt", key=tmp_path / "..data/tls.key"), [])
        certificate = ServingCertificate.from_files(mount.files)

        assert door.served(certificate) == der(old)
        async with mount.followed(certificate):
            (tmp_path / "..next").symlink_to("new")
            (tmp_path / "..next").rename(tmp_path / "..data")
            assert await mount.reported(1) is None
        assert door.served(certificate) == der(new)

    async def test_hold_the_authorities_of_clients_too(self, door: Door, mount: Mount, tmp_path: Path) -> None:
        """The file of the clients' authorities is followed like the certificate."""
        client_ca = tmp_path / "client-ca.crt"
        client_ca.write_bytes(STRANGER.certificate)
        mount.files = replace(mount.files, client_ca=client_ca)
        certificate = ServingCertificate.from_files(mount.files)
        client = client_context(AUTHORITY.certificate, door.folder, pair=AUTHORITY.issue_client("api-server", NOW))

        with pytest.raises(ssl.SSLError):
            door.shaken(certificate, client)
        async with mount.followed(certificate):
            client_ca.write_bytes(AUTHORITY.certificate)
            assert await mount.reported(1) is None
        assert door.shaken(certificate, client)

    @pytest.mark.parametrize("missing", ["certificate", "key"])
    def test_must_be_there_at_the_start(self, mount: Mount, missing: str) -> None:
        """A missing file is an error that names it."""
        path: Path = getattr(mount.files, missing)
        path.unlink()

        with pytest.raises(CertificateError, match=f"{path}: can't be read: No such file or directory"):
            ServingCertificate.from_files(mount.files)

    async def test_are_not_needed(self) -> None:
        """A certificate without files has nothing to follow."""
        await ServingCertificate.from_pair(issue()).follow(0.01, print)
