"""Keys and certificates for the processes of a test run. Knows nothing of who uses them; not the project's own `certs`.

Valid for a year. P-256 keys, which are made in no time, except where a controller insists on RSA.
"""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
SERVING_ADDRESSES = ("127.0.0.1", "10.0.0.1")  # loopback, and the Service `kubernetes`
VALID_DAYS = 365  # more than the 90 days below which training-operator's own upkeep would replace them


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, name: str) -> tuple[Path, Path]:
        """Write NAME.crt and NAME.key into the folder; their paths."""
        folder.mkdir(parents=True, exist_ok=True)
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        certificate.write_bytes(self.certificate)
        key.touch(mode=0o600)
        key.write_bytes(self.key)
        return certificate, key


class Authority:
    """A certificate authority that lives as long as the test run."""

    def __init__(self, name: str, *, key: PrivateKey | None = None) -> None:
        """`name` is its common name and its DNS name; give an RSA key to have one."""
        self._key = key or new_key()
        self._name = _name(name, ())
        certificate = (
            _builder(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        self.pair = KeyPair(certificate=certificate.public_bytes(serialization.Encoding.PEM), key=pem(self._key))

    def serving(self, *dns_names: str) -> KeyPair:
        """Certificate of a server on loopback, known by these names, too."""
        names = [
            *(x509.DNSName(name) for name in ("localhost", *dns_names)),
            *(x509.IPAddress(ipaddress.ip_address(address)) for address in SERVING_ADDRESSES),
        ]
        return self._issue(_name(dns_names[0], ()), ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, user: str, *groups: str) -> KeyPair:
        """Certificate of a user of the API server: common name and organisations are user name and groups."""
        return self._issue(_name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, [])

    def _issue(self, subject: x509.Name, purpose: x509.ObjectIdentifier, names: list[x509.GeneralName]) -> KeyPair:
        key = new_key()
        builder = (
            _builder(subject, self._name, key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return KeyPair(certificate=certificate.public_bytes(serialization.Encoding.PEM), key=pem(key))


def new_key() -> ec.EllipticCurvePrivateKey:
    """A P-256 key."""
    return ec.generate_private_key(ec.SECP256R1())


def new_rsa_key() -> rsa.RSAPrivateKey:
    """A key for those who read nothing but PKCS#1."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def pem(key: PrivateKey) -> bytes:
    """The private key in its traditional form: PKCS#1 for RSA, SEC 1 for P-256."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def public_pem(key: PrivateKey) -> bytes:
    """The public half."""
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def _name(common_name: str, organizations: tuple[str, ...]) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _builder(subject: x509.Name, issuer: x509.Name, key: PrivateKey) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=VALID_DAYS))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True, key_encipherment=True, key_cert_sign=signs_certificates, crl_sign=signs_certificates,
        content_commitment=False, data_encipherment=False, key_agreement=False, encipher_only=False,
        decipher_only=False,
    )  # fmt: skip
