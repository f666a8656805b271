"""What has to be made next: an authority, a serving certificate, or nothing. The policy of rotation, and no I/O.

An authority is replaced long before it ends. The old one stays trusted beside the new one, and the serving certificate
is changed only after clients have been told of both, so that whoever trusts either is served (open-policy-agent/
cert-controller#13 shows what happens otherwise).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from certs.authority import Authority, CertificateError, KeyPair
from certs.expiry import authority_trouble, bundle, expires, trouble

PROPAGATION = timedelta(seconds=15)
"""How long after both authorities were published a certificate of the new one may be served."""

OVERLAP = timedelta(days=1)
"""How long the old authority stays trusted after the new one was made: far longer than any replica lags."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """What there is: `previous` is the old authority's certificate (PEM, may be empty), valid since `rotated_at`."""

    authority: KeyPair | None = None
    previous: bytes = b""
    rotated_at: datetime | None = None
    serving: KeyPair | None = None


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
    fault = "there is none yet" if stored.authority is None else authority_trouble(stored.authority, at)
    if fault is not None or stored.authority is None:
        return Authority.create(at).pair, _still_valid(stored.authority, at), at, f"new authority: {fault}"
    if stored.previous and (stored.rotated_at is None or at >= stored.rotated_at + OVERLAP):
        return stored.authority, b"", stored.rotated_at, "the old authority is no longer trusted"
    return stored.authority, stored.previous, stored.rotated_at, None


def _still_valid(authority: KeyPair | None, at: datetime) -> bytes:
    try:
        return authority.certificate if authority is not None and expires(authority.certificate) > at else b""
    except CertificateError:
        return b""


def _has_propagated(rotated_at: datetime | None, at: datetime) -> bool:
    return rotated_at is None or at >= rotated_at + PROPAGATION


def _serving_fault(
    serving: KeyPair | None, authority: bytes, previous: bytes, names: Sequence[str], at: datetime
) -> str | None:
    """Why another certificate has to be served; one of the `previous` authority (when given) is good for now."""
    if serving is None:
        return "there is none yet"
    fault = trouble(serving, authority, names, at)
    if fault is not None and previous and trouble(serving, previous, names, at) is None:
        return None
    return fault
