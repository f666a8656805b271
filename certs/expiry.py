"""Judge certificates: does this one need to be renewed, and who trusts it.

Pure functions over PEM values; time is an argument. This module makes no certificate and knows no file.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding

from certs.authority import (
    CertificateError,
    KeyPair,
    may_sign,
    read_certificates,
    read_key,
    same_key,
    stated_names,
    subject_alternatives,
)

RENEWAL_SHARE = 3
"""A certificate is renewed when less than one third of its life is left."""


def trouble(pair: KeyPair, ca: bytes, names: Sequence[str], at: datetime) -> str | None:
    """Why a serving certificate must be renewed, or None when it is good.

    `ca` is the authority's certificate (PEM; several make a bundle, of which one must have signed it).
    """
    try:
        leaf = _matching_leaf(pair)
        authorities = read_certificates(ca)
        return next(_serving_faults(leaf, authorities, names, at), None)
    except CertificateError as error:
        return str(error)


def authority_trouble(pair: KeyPair, at: datetime) -> str | None:
    """Why an authority must be renewed, or None when it is good."""
    try:
        leaf = _matching_leaf(pair)
    except CertificateError as error:
        return str(error)
    if not may_sign(leaf):
        return "the certificate is not an authority's: it may not sign certificates"
    return next(_time_faults(leaf, at), None)


def unusable(pair: KeyPair, at: datetime) -> str | None:
    """Why a server must not serve this pair, whoever signed it: unreadable, mismatched, not valid now; or None."""
    try:
        leaf = _matching_leaf(pair)
    except CertificateError as error:
        return str(error)
    return next(_validity_faults(leaf, at), None)


def expires(certificate: bytes) -> datetime:
    """When the (first) certificate in `certificate` ends, in UTC; raises CertificateError."""
    return read_certificates(certificate)[0].not_valid_after_utc


def bundle(*parts: bytes) -> bytes:
    """Every certificate of `parts` once, in order, as one PEM text; empty parts are passed over.

    `bundle(new, old)` is what clients trust while an authority is being replaced. Raises CertificateError.
    """
    certificates = [certificate for part in parts if part.strip() for certificate in read_certificates(part)]
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in dict.fromkeys(certificates))


def single_certificates(pem: bytes) -> tuple[bytes, ...]:
    """Each certificate of a bundle by itself, in order. Raises CertificateError."""
    return tuple(certificate.public_bytes(Encoding.PEM) for certificate in read_certificates(pem))


def trusted_by(pair: KeyPair, trusted: bytes) -> bool:
    """Whether a client that trusts the bundle `trusted` trusts the pair's certificate, time aside."""
    try:
        leaf = read_certificates(pair.certificate)[0]
        return any(_signed(leaf, authority) for authority in read_certificates(trusted))
    except CertificateError:
        return False


def _matching_leaf(pair: KeyPair) -> x509.Certificate:
    leaf = read_certificates(pair.certificate)[0]
    if not same_key(leaf, read_key(pair.key)):
        raise CertificateError("the private key belongs to another certificate")
    return leaf


def _serving_faults(
    leaf: x509.Certificate, authorities: Sequence[x509.Certificate], names: Sequence[str], at: datetime
) -> Iterator[str]:
    signers = [authority for authority in authorities if _signed(leaf, authority)]
    if not signers:
        yield "the certificate is not signed by the authority"
    for signer in signers:
        yield from (f"its authority: {fault}" for fault in _validity_faults(signer, at))
    yield from _time_faults(leaf, at)
    wanted = zip(names, subject_alternatives(names) if names else (), strict=True)
    stated = stated_names(leaf)
    missing = [name for name, alternative in wanted if alternative not in stated]
    if missing:
        yield f"the certificate is not for {', '.join(missing)}"


def _time_faults(leaf: x509.Certificate, at: datetime) -> Iterator[str]:
    yield from _validity_faults(leaf, at)
    start, end = leaf.not_valid_before_utc, leaf.not_valid_after_utc
    if end - at < (end - start) / RENEWAL_SHARE:
        yield f"less than a third of its life is left: {_days(end - at)}, it expires at {end.isoformat()}"


def _validity_faults(leaf: x509.Certificate, at: datetime) -> Iterator[str]:
    if at < leaf.not_valid_before_utc:
        yield f"the certificate is not valid before {leaf.not_valid_before_utc.isoformat()}, it is {at.isoformat()}"
    if at > leaf.not_valid_after_utc:
        yield f"the certificate expired at {leaf.not_valid_after_utc.isoformat()}, it is {at.isoformat()}"


def _signed(leaf: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):  # another name, a key it can't verify with, a false signature
        return False
    return True


def _days(span: timedelta) -> str:
    return f"{span / timedelta(days=1):.1f} days"
