"""When a certificate is judged to need renewal, and what a bundle makes clients trust."""

import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat
from hypothesis import given
from hypothesis import strategies as st

from certs.authority import BACKDATE, Authority, CertificateError, KeyPair
from certs.expiry import authority_trouble, bundle, expires, trouble, trusted_by, unusable
from tests.certs.handshakes import client_context, server_context, shake

AT = datetime(2026, 5, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
NAMES = ("stamp.system.svc", "127.0.0.1")
AUTHORITY = Authority.create(AT)
PAIR = AUTHORITY.issue_serving(NAMES, AT, lifetime=90 * DAY)


def locked_key() -> bytes:
    """A private key that needs a password."""
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"password"))


class TestTrouble:
    """Reasons to renew a serving certificate."""

    def test_is_none_for_a_fresh_certificate(self) -> None:
        """What was just issued needs no renewal."""
        assert trouble(PAIR, AUTHORITY.certificate, NAMES, AT) is None

    @pytest.mark.parametrize(
        "pair, names, at, expected",
        [
            (PAIR, NAMES, AT - 2 * BACKDATE, "its authority: the certificate is not valid before 2026-05-01T11:00:00"),
            (PAIR, NAMES, AT + 91 * DAY, "the certificate expired at 2026-07-30T12:00:00+00:00"),
            (PAIR, NAMES, AT + 61 * DAY, "less than a third of its life is left: 29.0 days"),
            (PAIR, (*NAMES, "b.example", "::1"), AT, "the certificate is not for b.example, ::1"),
            (PAIR, ("b_d",), AT, "neither a DNS name nor an IP address: 'b_d'"),
            (replace(PAIR, key=AUTHORITY.pair.key), NAMES, AT, "the private key belongs to another certificate"),
            (replace(PAIR, key=locked_key()), NAMES, AT, "the private key can't be read: it is encrypted"),
            (replace(PAIR, key=b"rubbish"), NAMES, AT, "the private key can't be read: it must be PEM"),
            (replace(PAIR, certificate=b"rubbish"), NAMES, AT, "the certificate can't be read: it must be PEM"),
            (replace(PAIR, certificate=b""), NAMES, AT, "the certificate can't be read: it must be PEM"),
        ],
    )
    def test_says_why(self, pair: KeyPair, names: tuple[str, ...], at: datetime, expected: str) -> None:
        """Each reason for renewal is told in a sentence that names what was found."""
        found = trouble(pair, AUTHORITY.certificate, names, at)

        assert found is not None
        assert found.startswith(expected)

    def test_is_a_foreign_signature(self) -> None:
        """A certificate of another authority has to be replaced."""
        stranger = Authority.create(AT)

        assert trouble(PAIR, stranger.certificate, NAMES, AT) == "the certificate is not signed by the authority"

    def test_is_an_expired_authority(self) -> None:
        """A good certificate under an expired authority is worth nothing."""
        short = Authority.create(AT, lifetime=30 * DAY)
        pair = short.issue_serving(NAMES, AT)

        found = trouble(pair, short.certificate, NAMES, AT + 31 * DAY)

        assert found is not None
        assert found.startswith("its authority: the certificate expired at 2026-05-31")

    def test_is_an_unreadable_authority(self) -> None:
        """A bundle that can't be read is reported, not raised."""
        assert (trouble(PAIR, b"rubbish", NAMES, AT) or "").startswith("the certificate can't be read")

    def test_accepts_any_authority_of_a_bundle(self) -> None:
        """While an authority is being replaced, a certificate of either one is good."""
        both = bundle(Authority.create(AT).certificate, AUTHORITY.certificate)

        assert trouble(PAIR, both, NAMES, AT) is None

    def test_ignores_names_that_nobody_asks_for(self) -> None:
        """A certificate for more names than needed is good."""
        assert trouble(PAIR, AUTHORITY.certificate, NAMES[:1], AT) is None
        assert trouble(PAIR, AUTHORITY.certificate, (), AT) is None

    @given(hours=st.integers(min_value=-48, max_value=100 * 24))
    def test_comes_after_two_thirds_of_life(self, hours: int) -> None:
        """A certificate is good in the first two thirds of its life, and at no other time."""
        at = AT + timedelta(hours=hours)
        life = 90 * DAY + BACKDATE
        good = AT - BACKDATE <= at <= AT + 90 * DAY - life / 3

        assert (trouble(PAIR, AUTHORITY.certificate, NAMES, at) is None) == good


class TestAuthorityTrouble:
    """Reasons to replace an authority."""

    def test_is_none_for_a_fresh_authority(self) -> None:
        """A new authority needs no renewal."""
        assert authority_trouble(AUTHORITY.pair, AT) is None

    @pytest.mark.parametrize(
        "pair, at, expected",
        [
            (AUTHORITY.pair, AT + 3000 * DAY, "less than a third of its life is left: 652.0 days"),
            (AUTHORITY.pair, AT + 3653 * DAY, "the certificate expired"),
            (AUTHORITY.pair, AT - DAY, "the certificate is not valid before"),
            (PAIR, AT, "the certificate is not an authority's"),
            (KeyPair(certificate=b"", key=b""), AT, "the certificate can't be read"),
        ],
    )
    def test_says_why(self, pair: KeyPair, at: datetime, expected: str) -> None:
        """Each reason to replace an authority is told in a sentence."""
        assert (authority_trouble(pair, at) or "").startswith(expected)


class TestUnusable:
    """Reasons not to serve a pair at all."""

    def test_is_none_to_the_last_moment(self) -> None:
        """A certificate that needs renewal can still be served."""
        assert unusable(PAIR, AT + 89 * DAY) is None

    @pytest.mark.parametrize(
        "pair, at, expected",
        [
            (PAIR, AT + 91 * DAY, "the certificate expired"),
            (PAIR, AT - DAY, "the certificate is not valid before"),
            (replace(PAIR, key=AUTHORITY.pair.key), AT, "the private key belongs to another certificate"),
        ],
    )
    def test_says_why(self, pair: KeyPair, at: datetime, expected: str) -> None:
        """What no client would accept is told in a sentence."""
        assert (unusable(pair, at) or "").startswith(expected)


class TestBundle:
    """What clients are given to trust."""

    def test_holds_each_certificate_once_in_order(self) -> None:
        """Bundling again what is bundled already changes nothing."""
        old, new = AUTHORITY.certificate, Authority.create(AT).certificate

        assert bundle(new, old) == new + old
        assert bundle(bundle(new, old), old, new) == new + old

    def test_passes_over_what_is_empty(self) -> None:
        """Before the first rotation there is no old authority."""
        assert bundle(AUTHORITY.certificate, b"", b"\n") == AUTHORITY.certificate
        assert bundle(b"") == b""

    def test_drops_what_is_not_a_certificate(self) -> None:
        """Comments and text around certificates, as some tools write them, don't reach clients."""
        assert bundle(b"# made by hand\n" + AUTHORITY.certificate + b"\n\n") == AUTHORITY.certificate

    def test_refuses_rubbish(self) -> None:
        """A bundle that clients couldn't read is not made."""
        with pytest.raises(CertificateError):
            bundle(AUTHORITY.certificate, b"rubbish")

    def test_makes_clients_trust_both_authorities(self, tmp_path: Path) -> None:
        """During a rotation servers under the old and under the new authority are reached alike."""
        now = datetime.now(UTC)
        old, new = Authority.create(now), Authority.create(now)
        client = client_context(bundle(new.certificate, old.certificate), tmp_path)

        for authority in (old, new):
            shake(client, server_context(authority.issue_serving(NAMES, now), tmp_path), NAMES[0])


class TestTrustedBy:
    """Who trusts a pair."""

    def test_agrees_with_a_handshake(self, tmp_path: Path) -> None:
        """Readiness may rely on it: it says the same as a client that trusts the bundle."""
        now = datetime.now(UTC)
        ours, stranger = Authority.create(now), Authority.create(now)
        pair = ours.issue_serving(NAMES, now)
        server = server_context(pair, tmp_path)

        assert trusted_by(pair, bundle(stranger.certificate, ours.certificate))
        shake(client_context(bundle(stranger.certificate, ours.certificate), tmp_path), server, NAMES[0])
        assert not trusted_by(pair, stranger.certificate)
        with pytest.raises(ssl.SSLCertVerificationError):
            shake(client_context(stranger.certificate, tmp_path), server, NAMES[0])

    @pytest.mark.parametrize("trusted", [b"", b"rubbish"])
    def test_is_false_for_rubbish(self, trusted: bytes) -> None:
        """Nobody trusts anything by a bundle that can't be read."""
        assert not trusted_by(PAIR, trusted)


def test_expires_tells_the_end_in_utc() -> None:
    """The end of a certificate is a moment with a time zone."""
    assert expires(PAIR.certificate) == AT + 90 * DAY
