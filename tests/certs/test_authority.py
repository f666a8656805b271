"""What the authority puts into certificates, read back, and whether TLS accepts it."""

import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from certs.authority import (
    AUTHORITY_LIFETIME,
    LOOPBACK_NAMES,
    SERVING_LIFETIME,
    Authority,
    CertificateError,
    KeyPair,
    read_certificates,
    service_names,
)
from tests.certs.handshakes import client_context, server_context, shake

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def certificate_of(pair: KeyPair) -> x509.Certificate:
    """The one certificate of a pair that we made."""
    (certificate,) = read_certificates(pair.certificate)
    return certificate


def foreign_authority(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> KeyPair:
    """An authority as a bare-bones tool would make it: no key usage, no key identifier."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "foreign")])
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, AT, AT + HOUR)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return KeyPair(
        certificate=certificate.public_bytes(Encoding.PEM),
        key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )


def identifier_of(certificate: x509.Certificate) -> bytes:
    """The subject key identifier."""
    return certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest


def allowed_uses(certificate: x509.Certificate) -> set[str]:
    """The names of the key usages that are set; the extension is critical."""
    extension = certificate.extensions.get_extension_for_class(x509.KeyUsage)
    names = ("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement")

    assert extension.critical

    return {name for name in (*names, "key_cert_sign", "crl_sign") if getattr(extension.value, name)}


def assert_is_authority(certificate: x509.Certificate) -> None:
    """It may sign leaves and revocation lists, nothing else, and no authority below it."""
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)

    assert constraints.critical
    assert (constraints.value.ca, constraints.value.path_length) == (True, 0)
    assert allowed_uses(certificate) == {"key_cert_sign", "crl_sign"}


def assert_is_leaf(certificate: x509.Certificate, issuer: x509.Certificate, usage: x509.ObjectIdentifier) -> None:
    """It may sign handshakes for one purpose, and its issuer is found by key identifier."""
    constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
    authority_key = certificate.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    extended = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value

    assert constraints.critical
    assert constraints.value.ca is False
    assert allowed_uses(certificate) == {"digital_signature"}
    assert list(extended) == [usage]
    assert authority_key.key_identifier == identifier_of(issuer)
    certificate.verify_directly_issued_by(issuer)


class TestAuthority:
    """A new authority, and one that was stored."""

    def test_is_a_p256_authority_for_ten_years(self) -> None:
        """A new authority has a P-256 key, may sign leaves only, and is valid from an hour ago."""
        certificate = certificate_of(Authority.create(AT).pair)
        key = certificate.public_key()

        assert isinstance(key, ec.EllipticCurvePublicKey)
        assert key.curve.name == "secp256r1"
        assert_is_authority(certificate)
        assert certificate.not_valid_before_utc == AT - HOUR
        assert certificate.not_valid_after_utc == AT + AUTHORITY_LIFETIME

    def test_two_have_different_names(self) -> None:
        """Authorities made at the same moment differ in name, so that a bundle can hold both."""
        first, second = (certificate_of(Authority.create(AT).pair) for _ in range(2))

        assert first.subject != second.subject

    def test_comes_back_from_its_pair(self) -> None:
        """An authority that was stored signs certificates that the original's certificate vouches for."""
        original = Authority.create(AT)
        restored = Authority.from_pair(original.pair)
        leaf = certificate_of(restored.issue_serving(["a.example"], AT))

        leaf.verify_directly_issued_by(certificate_of(original.pair))

    def test_is_not_made_of_a_leaf(self) -> None:
        """A serving certificate can't pass for an authority."""
        leaf = Authority.create(AT).issue_serving(["a.example"], AT)

        with pytest.raises(CertificateError, match="it may not sign certificates"):
            Authority.from_pair(leaf)

    def test_is_not_made_with_a_foreign_key(self) -> None:
        """A certificate with another authority's key is refused."""
        one, other = Authority.create(AT).pair, Authority.create(AT).pair

        with pytest.raises(CertificateError, match="belongs to another certificate"):
            Authority.from_pair(KeyPair(certificate=one.certificate, key=other.key))

    @pytest.mark.parametrize(
        "certificate, key, message",
        [
            (b"", None, "the certificate can't be read: it must be PEM"),
            (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", None, "the certificate can't be read"),
            (None, b"", "the private key can't be read: it must be PEM"),
            (None, b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "the private key can't be read"),
        ],
    )
    def test_is_not_made_of_rubbish(self, certificate: bytes | None, key: bytes | None, message: str) -> None:
        """What can't be read is an error of one line that says which half it is."""
        pair = Authority.create(AT).pair
        broken = KeyPair(
            certificate=pair.certificate if certificate is None else certificate, key=pair.key if key is None else key
        )

        with pytest.raises(CertificateError, match=message):
            Authority.from_pair(broken)

    def test_signs_though_it_states_no_key_identifier(self) -> None:
        """A stored authority that another tool made without that extension serves as well."""
        key = ec.generate_private_key(ec.SECP256R1())
        foreign = foreign_authority(key)
        leaf = certificate_of(Authority.from_pair(foreign).issue_serving(["a.example"], AT))

        leaf.verify_directly_issued_by(certificate_of(foreign))

    def test_has_an_elliptic_curve_key(self) -> None:
        """An RSA authority is refused: its handshakes would cost ten times as much."""
        with pytest.raises(CertificateError, match="must be an elliptic curve key"):
            Authority.from_pair(foreign_authority(rsa.generate_private_key(65537, 2048)))

    def test_states_no_extension_twice(self) -> None:
        """A certificate whose extensions can't be read is refused like any other rubbish."""
        pair = Authority.create(AT).pair
        der = certificate_of(pair).public_bytes(Encoding.DER)
        key_usage, authority_key = bytes.fromhex("0603551d0f"), bytes.fromhex("0603551d23")
        doubled = x509.load_der_x509_certificate(der.replace(authority_key, key_usage))
        broken = KeyPair(certificate=doubled.public_bytes(Encoding.PEM), key=pair.key)

        with pytest.raises(CertificateError, match="the certificate can't be read"):
            Authority.from_pair(broken)

    def test_needs_a_time_zone(self) -> None:
        """A naive time would mean another moment on another machine."""
        with pytest.raises(CertificateError, match="has no time zone"):
            Authority.create(AT.replace(tzinfo=None))

    def test_needs_a_future(self) -> None:
        """A lifetime of nothing is a mistake of the caller."""
        with pytest.raises(CertificateError, match="a lifetime must be positive"):
            Authority.create(AT, lifetime=timedelta(0))

    def test_hides_its_key(self) -> None:
        """Neither the pair's nor the authority's representation shows the key."""
        authority = Authority.create(AT)
        secret = authority.pair.key.splitlines()[1].decode()

        assert secret not in repr(authority)
        assert "PRIVATE" not in repr(authority)
        assert "PRIVATE" not in repr(authority.pair)


class TestServingCertificate:
    """What a server shows."""

    def test_says_what_it_is_for(self) -> None:
        """Service names and addresses stand in the alternative names, everything else is as a server needs it."""
        authority = Authority.create(AT)
        names = (*service_names("stamp", "system"), *LOOPBACK_NAMES)
        certificate = certificate_of(authority.issue_serving(names, AT))
        alternatives = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

        assert_is_leaf(certificate, certificate_of(authority.pair), ExtendedKeyUsageOID.SERVER_AUTH)
        assert alternatives.get_values_for_type(x509.DNSName) == [
            "stamp.system.svc",
            "stamp.system.svc.cluster.local",
            "localhost",
        ]
        assert alternatives.get_values_for_type(x509.IPAddress) == [
            ipaddress.ip_address("127.0.0.1"),
            ipaddress.ip_address("::1"),
        ]
        assert certificate.not_valid_before_utc == AT - HOUR
        assert certificate.not_valid_after_utc == AT + SERVING_LIFETIME

    def test_ends_with_its_authority(self) -> None:
        """A certificate that outlived its authority would be distrusted without looking expired."""
        authority = Authority.create(AT, lifetime=timedelta(days=3))
        certificate = certificate_of(authority.issue_serving(["a.example"], AT, lifetime=timedelta(days=9)))

        assert certificate.not_valid_after_utc == AT + timedelta(days=3)

    def test_has_a_new_key_each_time(self) -> None:
        """Renewal changes the key as well, not only the dates."""
        authority = Authority.create(AT)
        first, second = (authority.issue_serving(["a.example"], AT) for _ in range(2))

        assert first.key != second.key

    def test_names_everything_that_is_no_name(self) -> None:
        """All wrong names are reported at once, and only those."""
        names = ["good.example", "under_score", "spa ce", "300.1.1.1.", "x" * 64, "*.wild.example", ""]

        with pytest.raises(CertificateError) as caught:
            Authority.create(AT).issue_serving(names, AT)

        assert str(caught.value) == (
            f"neither a DNS name nor an IP address: 'under_score', 'spa ce', '300.1.1.1.', '{'x' * 64}', ''"
        )

    def test_needs_a_name(self) -> None:
        """Without a name no client would accept it."""
        with pytest.raises(CertificateError, match="at least one DNS name or IP address"):
            Authority.create(AT).issue_serving([], AT)

    @pytest.mark.parametrize("name", ["stamp.system.svc", "127.0.0.1", "::1"])
    def test_is_accepted_in_a_handshake(self, name: str, tmp_path: Path) -> None:
        """A client that trusts the authority reaches the server under each of its names."""
        now = datetime.now(UTC)
        authority = Authority.create(now)
        pair = authority.issue_serving([*service_names("stamp", "system"), *LOOPBACK_NAMES], now)

        shake(client_context(authority.certificate, tmp_path), server_context(pair, tmp_path), name)

    def test_is_refused_for_another_name(self, tmp_path: Path) -> None:
        """A client that asks for another name breaks off."""
        now = datetime.now(UTC)
        authority = Authority.create(now)
        pair = authority.issue_serving(["stamp.system.svc"], now)

        with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
            shake(client_context(authority.certificate, tmp_path), server_context(pair, tmp_path), "else.system.svc")

    def test_is_refused_by_who_trusts_another_authority(self, tmp_path: Path) -> None:
        """A client of another authority breaks off."""
        now = datetime.now(UTC)
        pair = Authority.create(now).issue_serving(["stamp.system.svc"], now)
        stranger = Authority.create(now)

        with pytest.raises(ssl.SSLCertVerificationError):
            shake(client_context(stranger.certificate, tmp_path), server_context(pair, tmp_path), "stamp.system.svc")


class TestClientCertificate:
    """What a client shows where the server asks for it."""

    def test_says_who_it_is(self) -> None:
        """The common name is the client's name, and a server can't be run with it."""
        authority = Authority.create(AT)
        certificate = certificate_of(authority.issue_client("api-server", AT))
        (name,) = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)

        assert name.value == "api-server"
        assert_is_leaf(certificate, certificate_of(authority.pair), ExtendedKeyUsageOID.CLIENT_AUTH)

    def test_lets_its_bearer_in(self, tmp_path: Path) -> None:
        """A server that requires client certificates accepts it."""
        now = datetime.now(UTC)
        authority = Authority.create(now)
        server = server_context(authority.issue_serving(["a.example"], now), tmp_path, client_ca=authority.certificate)
        client = client_context(authority.certificate, tmp_path, pair=authority.issue_client("api-server", now))

        shake(client, server, "a.example")

    def test_of_a_stranger_is_refused(self, tmp_path: Path) -> None:
        """A client certificate of another authority doesn't open the door."""
        now = datetime.now(UTC)
        authority, stranger = Authority.create(now), Authority.create(now)
        server = server_context(authority.issue_serving(["a.example"], now), tmp_path, client_ca=authority.certificate)
        client = client_context(authority.certificate, tmp_path, pair=stranger.issue_client("api-server", now))

        with pytest.raises(ssl.SSLCertVerificationError):
            shake(client, server, "a.example")

    @pytest.mark.parametrize("name", ["", "x" * 65])
    def test_has_a_name_that_fits(self, name: str) -> None:
        """X.520 allows 1 to 64 characters."""
        with pytest.raises(CertificateError, match="1 to 64 characters"):
            Authority.create(AT).issue_client(name, AT)
