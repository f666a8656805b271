"""Make certificates: an authority, and the serving and client certificates that it signs, as PEM values.

Everything is ECDSA P-256: a handshake costs the server a tenth of what RSA costs it.
This module must not know files, the clock (time is an argument), or who uses the certificates.
"""

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Self, TypeVar

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFETIME = timedelta(days=3652)
"""Ten years: what OPA's cert-controller takes; renewed when a third of it is left, like everything here."""

SERVING_LIFETIME = timedelta(days=90)
"""Short enough that renewal is exercised, long enough that a month without upkeep does no harm."""

BACKDATE = timedelta(hours=1)
"""A certificate is valid from so long before it is made, for clients whose clock is behind."""

LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
"""Names under which a server on this machine is reached."""

_COMMON_NAME_LENGTH = 64
"""Characters; upper bound of X.520 for a common name."""

_DNS_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_DNS_NAME = re.compile(rf"(\*\.)?({_DNS_LABEL}\.)*{_DNS_LABEL}", re.IGNORECASE | re.ASCII)
_DNS_NAME_LENGTH = 253


class CertificateError(ValueError):
    """A certificate, key or name that can't be used; the message says which and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPair:
    """A certificate (PEM, leaf first, any intermediates after it) and its private key (PEM).

    `repr` leaves the key out, so that no log shows it.
    """

    certificate: bytes
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """A certificate authority: its own key pair, ready to sign. Made by `create` or `from_pair`."""

    pair: KeyPair
    _certificate: x509.Certificate = field(repr=False)
    _key: ec.EllipticCurvePrivateKey = field(repr=False)

    @classmethod
    def create(cls, at: datetime, *, lifetime: timedelta = AUTHORITY_LIFETIME) -> Self:
        """A new authority with a new key.

        Its name carries the start of its key's fingerprint, so that an old and a new authority in one bundle
        are told apart. Raises CertificateError when `at` has no time zone or `lifetime` isn't positive.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        identifier = _identifier(key)
        subject = _subject(f"workload-stamp CA {identifier.digest.hex()[:8]}")
        certificate = (
            _builder(subject, subject, key, _start(at), _end(at, lifetime))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(key_cert_sign=True, crl_sign=True), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
            .sign(key, hashes.SHA256())
        )
        return cls(pair=_pair(certificate, key), _certificate=certificate, _key=key)

    @classmethod
    def from_pair(cls, pair: KeyPair) -> Self:
        """The authority of a stored pair.

        Raises CertificateError when it can't be read, its key is another's, or it may not sign certificates.
        """
        certificate = read_certificates(pair.certificate)[0]
        key = read_key(pair.key)
        if not same_key(certificate, key):
            raise CertificateError("the authority's key belongs to another certificate")
        if not may_sign(certificate):
            raise CertificateError("the certificate is not an authority's: it may not sign certificates")
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise CertificateError(f"the authority's key is {type(key).__name__}, it must be an elliptic curve key")
        return cls(pair=pair, _certificate=certificate, _key=key)

    @property
    def certificate(self) -> bytes:
        """What clients trust: the authority's certificate, PEM, without its key."""
        return self.pair.certificate

    def issue_serving(self, names: Sequence[str], at: datetime, *, lifetime: timedelta = SERVING_LIFETIME) -> KeyPair:
        """A certificate for a server that is reached under `names`: DNS names and IP addresses.

        It ends with the authority at the latest. Raises CertificateError naming every name that is neither.
        """
        alternatives = x509.SubjectAlternativeName(subject_alternatives(names))
        return self._issue("workload-stamp", ExtendedKeyUsageOID.SERVER_AUTH, at, lifetime, alternatives)

    def issue_client(self, common_name: str, at: datetime, *, lifetime: timedelta = SERVING_LIFETIME) -> KeyPair:
        """A certificate with which a client, an API server for example, proves who it is.

        Raises CertificateError when the name is empty or longer than 64 characters.
        """
        return self._issue(common_name, ExtendedKeyUsageOID.CLIENT_AUTH, at, lifetime, None)

    def _issue(
        self,
        common_name: str,
        usage: x509.ObjectIdentifier,
        at: datetime,
        lifetime: timedelta,
        alternatives: x509.SubjectAlternativeName | None,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        end = min(_end(at, lifetime), self._certificate.not_valid_after_utc)
        identifier = _extension(self._certificate, x509.SubjectKeyIdentifier) or _identifier(self._key)
        builder = (
            _builder(_subject(common_name), self._certificate.subject, key, _start(at), end)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        )
        if alternatives is not None:
            builder = builder.add_extension(alternatives, critical=False)
        return _pair(builder.sign(self._key, hashes.SHA256()), key)


def service_names(service: str, namespace: str, *, cluster_domain: str = "cluster.local") -> tuple[str, ...]:
    """The names of a Service. The API server asks for the first one (`pkg/util/webhook/client.go`)."""
    return f"{service}.{namespace}.svc", f"{service}.{namespace}.svc.{cluster_domain}"


def subject_alternatives(names: Sequence[str]) -> tuple[x509.GeneralName, ...]:
    """`names` as a certificate states them; raises CertificateError naming every one that is no name."""
    if not names:
        raise CertificateError("a serving certificate needs at least one DNS name or IP address, none was given")
    found = {name: _alternative(name) for name in names}
    wrong = [name for name, alternative in found.items() if alternative is None]
    if wrong:
        listed = ", ".join(repr(name) for name in wrong)
        raise CertificateError(f"neither a DNS name nor an IP address: {listed}")
    return tuple(alternative for alternative in found.values() if alternative is not None)


def read_certificates(pem: bytes) -> tuple[x509.Certificate, ...]:
    """Every certificate in `pem`, in order, at least one, keys and extensions included; raises CertificateError."""
    try:
        certificates = tuple(x509.load_pem_x509_certificates(pem))
    except ValueError:
        raise CertificateError("the certificate can't be read: it must be PEM (-----BEGIN CERTIFICATE-----)") from None
    try:
        for (
            certificate
        ) in certificates:  # parsed when first asked for: here, so that nobody else need expect it to fail
            certificate.public_key()
            tuple(certificate.extensions)
    except (ValueError, x509.DuplicateExtension, UnsupportedAlgorithm) as error:
        raise CertificateError(f"the certificate can't be read: {error}") from None
    return certificates


def read_key(pem: bytes) -> PrivateKeyTypes:
    """The private key in `pem`; raises CertificateError, which never quotes it."""
    try:
        return load_pem_private_key(pem, password=None)
    except TypeError:
        raise CertificateError("the private key can't be read: it is encrypted, it must not be") from None
    except (ValueError, UnsupportedAlgorithm):
        raise CertificateError("the private key can't be read: it must be PEM (-----BEGIN PRIVATE KEY-----)") from None


def same_key(certificate: x509.Certificate, key: PrivateKeyTypes) -> bool:
    """Whether `key` is the private half of the certificate's key."""
    encoding = Encoding.DER, PublicFormat.SubjectPublicKeyInfo
    return certificate.public_key().public_bytes(*encoding) == key.public_key().public_bytes(*encoding)


def may_sign(certificate: x509.Certificate) -> bool:
    """Whether the certificate is an authority's: it says so, and its key usage, where stated, allows it."""
    constraints = _extension(certificate, x509.BasicConstraints)
    usage = _extension(certificate, x509.KeyUsage)
    return constraints is not None and constraints.ca and (usage is None or usage.key_cert_sign)


def stated_names(certificate: x509.Certificate) -> frozenset[x509.GeneralName]:
    """The names that the certificate is for."""
    return frozenset(_extension(certificate, x509.SubjectAlternativeName) or ())


_Extension = TypeVar("_Extension", bound=x509.ExtensionType)


def _extension(certificate: x509.Certificate, kind: type[_Extension]) -> _Extension | None:
    try:
        return certificate.extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None


def _alternative(name: str) -> x509.GeneralName | None:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    if len(name) <= _DNS_NAME_LENGTH and _DNS_NAME.fullmatch(name):
        return x509.DNSName(name.lower())
    return None


def _subject(common_name: str) -> x509.Name:
    if not 0 < len(common_name) <= _COMMON_NAME_LENGTH:
        raise CertificateError(f"a common name has 1 to {_COMMON_NAME_LENGTH} characters, found {common_name!r}")
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _start(at: datetime) -> datetime:
    if at.tzinfo is None:
        raise CertificateError(f"the time {at.isoformat()} has no time zone; give it one (UTC)")
    return at - BACKDATE


def _end(at: datetime, lifetime: timedelta) -> datetime:
    if lifetime <= timedelta(0):
        raise CertificateError(f"a lifetime must be positive, found {lifetime}")
    return at + lifetime


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, start: datetime, end: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(end)
        .add_extension(_identifier(key), critical=False)
    )


def _identifier(key: ec.EllipticCurvePrivateKey) -> x509.SubjectKeyIdentifier:
    return x509.SubjectKeyIdentifier.from_public_key(key.public_key())


def _key_usage(
    *, digital_signature: bool = False, key_cert_sign: bool = False, crl_sign: bool = False
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        encipher_only=False,
        decipher_only=False,
    )


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    return KeyPair(
        certificate=certificate.public_bytes(Encoding.PEM),
        key=key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
    )
