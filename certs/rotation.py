"""What has to be made next: an authority, a serving certificate, or nothing. The policy of rotation, and no I/O.

An authority is replaced long before it ends. The old one stays trusted beside the new one, and the serving certificate
is changed only after clients have been told of both, so that whoever trusts either is served (open-policy-agent/
cert-controller#13 shows what happens otherwise).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from certs.authority import Authority, CertificateError, KeyPair
from certs.expiry import authority_trouble, bundle, expires, single_certificates, trouble, trusted_by

PROPAGATION = timedelta(seconds=15)
"""How long after both authorities were published a certificate of the new one may be served."""

OVERLAP = timedelta(days=1)
"""How long the old authority stays trusted after the new one was made: far longer than any replica lags."""


MOST_PREVIOUS = 3
"""Old authorities that stay trusted at most, however often they are lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What there is: `previous` are old authorities' certificates (PEM, may be empty), replaced at `rotated_at`.

    `trusted` is what the serving certificate was stored with: it still knows an authority that was lost since.
    """

    authority: KeyPair | None = None
    previous: bytes = b""
    rotated_at: datetime | None = None
    serving: KeyPair | None = None
    trusted: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What there should be. `reasons` say what changes and why; none of them, nothing has to be written."""

    authority: KeyPair
    previous: bytes
    rotated_at: datetime | None
    serving: KeyPair
    reasons: tuple[str, ...] = ()

    @property
    def trusted(self) -> bytes:
        """What clients must trust: the authority, and the old one while it may still be served (PEM)."""
        return bundle(self.authority.certificate, self.previous)

    @property
    def is_changing(self) -> bool:
        """Whether an old authority's certificate is still served: the next step only waits for clients to know."""
        return not trusted_by(self.serving, self.authority.certificate)


def plan(stored: Stored, names: Sequence[str], at: datetime, *, published: bool) -> Plan:
    """The next state. `names` are the server's; `published` says that clients know the stored authorities."""
    authority, previous, rotated_at, authority_reason = _authority(stored, at)
    may_switch = authority is stored.authority and published and _has_propagated(rotated_at, at)
    fault = _serving_fault(stored.serving, authority.certificate, b"" if may_switch else previous, names, at)
    serving = stored.serving
    if fault is not None or serving is None:
        serving = Authority.from_pair(authority).issue_serving(names, at)
    return Plan(
        authority=authority,
        previous=previous,
        rotated_at=rotated_at,
        serving=serving,
        reasons=tuple(reason for reason in (authority_reason, fault and f"new serving certificate: {fault}") if reason),
    )


def _authority(stored: Stored, at: datetime) -> tuple[KeyPair, bytes, datetime | None, str | None]:
    fault = "there is none" if stored.authority is None else authority_trouble(stored.authority, at)
    if fault is not None or stored.authority is None:
        return Authority.create(at).pair, _outgoing(stored, at), at, f"new authority: {fault}"
    if stored.previous and (stored.rotated_at is None or at >= stored.rotated_at + OVERLAP):
        return stored.authority, b"", stored.rotated_at, "the old authority is no longer trusted"
    return stored.authority, stored.previous, stored.rotated_at, None


def _outgoing(stored: Stored, at: datetime) -> bytes:
    """The authorities under which somebody may still be served (PEM), the signer of the present certificate first."""
    parts = (stored.authority.certificate if stored.authority is not None else b"", stored.previous, stored.trusted)
    certificates = [certificate for part in parts for certificate in _still_valid(part, at)]
    if stored.serving is not None:
        serving = stored.serving
        certificates.sort(key=lambda certificate: not trusted_by(serving, certificate))
    return bundle(*tuple(dict.fromkeys(certificates))[:MOST_PREVIOUS])


def _still_valid(pem: bytes, at: datetime) -> list[bytes]:
    """Each certificate of a bundle that has not ended; none of what can't be read."""
    try:
        certificates = single_certificates(pem) if pem.strip() else ()
    except CertificateError:
        return []
    return [certificate for certificate in certificates if expires(certificate) > at]


def _has_propagated(rotated_at: datetime | None, at: datetime) -> bool:
    return rotated_at is None or at >= rotated_at + PROPAGATION


def _serving_fault(
    serving: KeyPair | None, authority: bytes, previous: bytes, names: Sequence[str], at: datetime
) -> str | None:
    """Why another certificate has to be served; one of the `previous` authority (when given) is good for now."""
    if serving is None:
        return "there is none"
    fault = trouble(serving, authority, names, at)
    if fault is not None and previous and trouble(serving, previous, names, at) is None:
        return None
    return fault
