"""The plan for certificates: made once, renewed in time, and changed so that whoever trusts the old is served."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from certs.authority import AUTHORITY_LIFETIME, SERVING_LIFETIME, Authority, KeyPair, read_certificates
from certs.expiry import trouble, trusted_by
from certs.rotation import MOST_PREVIOUS, OVERLAP, PROPAGATION, Plan, Stored, plan

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("stamps.team.svc", "127.0.0.1")
MINUTE = timedelta(minutes=1)


def stored(decided: Plan) -> Stored:
    """What there is once a plan has been carried out."""
    return Stored(
        authority=decided.authority,
        previous=decided.previous,
        rotated_at=decided.rotated_at,
        serving=decided.serving,
        trusted=decided.trusted,
    )


@pytest.fixture(scope="module")
def first() -> Plan:
    """The plan for nothing."""
    return plan(Stored(), NAMES, NOW, published=False)


def test_from_nothing_both_are_made(first: Plan) -> None:
    """An authority, and a certificate of it for these names; clients need trust nothing else."""
    assert trouble(first.serving, first.authority.certificate, NAMES, NOW) is None
    assert first.trusted == first.authority.certificate
    assert len(first.reasons) == 2
    assert not first.is_changing


def test_what_is_good_is_left_alone(first: Plan) -> None:
    """The same is planned again, without a reason to write."""
    again = plan(stored(first), NAMES, NOW + timedelta(days=20), published=True)
    assert (again.authority, again.serving, again.reasons) == (first.authority, first.serving, ())


def test_a_certificate_is_renewed_in_its_last_third(first: Plan) -> None:
    """By the same authority, so that nobody has to be told."""
    due = NOW + SERVING_LIFETIME * 2 / 3
    assert plan(stored(first), NAMES, due - timedelta(days=1), published=True).reasons == ()
    renewed = plan(stored(first), NAMES, due + timedelta(days=1), published=True)
    assert renewed.authority == first.authority
    assert renewed.serving != first.serving
    assert renewed.trusted == first.trusted


def test_another_name_is_another_certificate(first: Plan) -> None:
    """The Service was renamed."""
    renamed = plan(stored(first), ("other.team.svc",), NOW, published=True)
    assert trouble(renamed.serving, first.authority.certificate, ("other.team.svc",), NOW) is None


@pytest.mark.parametrize("minutes", [-61, -59, 0])
def test_a_clock_at_the_edge_of_validity(first: Plan, minutes: int) -> None:
    """A leader whose clock is up to an hour behind changes nothing; beyond that it can't believe what it sees."""
    behind = plan(stored(first), NAMES, NOW + minutes * MINUTE, published=True)
    assert (behind.reasons == ()) == (minutes > -60)


def test_an_authority_is_replaced_step_by_step(first: Plan) -> None:
    """Both are trusted; then, when all clients know, the new one's certificate is served; then the old one goes."""
    due = NOW + AUTHORITY_LIFETIME * 2 / 3 + timedelta(days=1)
    old = Authority.from_pair(first.authority)
    fresh_leaf = replace(stored(first), serving=old.issue_serving(NAMES, due))

    both = plan(fresh_leaf, NAMES, due, published=True)
    assert both.authority != first.authority
    assert both.serving == fresh_leaf.serving
    assert both.is_changing
    assert trusted_by(both.serving, both.trusted)

    unpublished = plan(stored(both), NAMES, due + PROPAGATION, published=False)
    early = plan(stored(both), NAMES, due + PROPAGATION / 2, published=True)
    assert unpublished.serving == early.serving == both.serving

    switched = plan(stored(both), NAMES, due + PROPAGATION, published=True)
    assert not switched.is_changing
    assert trusted_by(switched.serving, both.authority.certificate)
    assert switched.trusted == both.trusted

    alone = plan(stored(switched), NAMES, due + OVERLAP, published=True)
    assert alone.trusted == both.authority.certificate
    assert alone.serving == switched.serving


def test_a_lost_authority_stays_trusted(first: Plan) -> None:
    """Its Secret was deleted: what every replica still serves must not become worthless at once."""
    lost = plan(replace(stored(first), authority=None, previous=b"", rotated_at=None), NAMES, NOW, published=False)
    assert lost.authority != first.authority
    assert lost.serving == first.serving
    assert trusted_by(first.serving, lost.trusted)


def test_an_authority_whose_key_is_damaged_stays_trusted(first: Plan) -> None:
    """It can sign no more, yet what it has signed is served until clients know the next."""
    damaged = KeyPair(certificate=first.authority.certificate, key=b"nonsense")
    next_one = plan(replace(stored(first), authority=damaged), NAMES, NOW, published=False)
    assert next_one.serving == first.serving
    assert trusted_by(first.serving, next_one.trusted)


def test_what_cannot_be_read_is_made_anew() -> None:
    """Damaged altogether: nothing is served under it, so nothing is lost."""
    nonsense = KeyPair(certificate=b"nonsense", key=b"nonsense")
    decided = plan(Stored(authority=nonsense, previous=b"nonsense", serving=nonsense), NAMES, NOW, published=False)
    assert trouble(decided.serving, decided.authority.certificate, NAMES, NOW) is None
    assert decided.previous == b""


def test_old_authorities_do_not_pile_up(first: Plan) -> None:
    """However often one is lost, a few stay, and among them the one whose certificate is served."""
    state = stored(first)
    for _ in range(6):
        decided = plan(replace(state, authority=None), NAMES, NOW, published=False)
        state = stored(decided)
    assert len(read_certificates(state.trusted)) == 1 + MOST_PREVIOUS
    assert state.serving == first.serving
    assert trusted_by(first.serving, state.trusted)


Step = tuple[str, float]
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["wait", "publish", "lose-authority", "lose-serving", "damage-authority"]), st.floats(0, 400)
    ),
    max_size=12,
)


@pytest.mark.slow
@given(steps=STEPS)
def test_what_is_served_is_always_trusted_by_what_was_last_published(steps: list[Step]) -> None:
    """Whatever is lost and however long it takes: a client that knows the last published bundle is never refused.

    A lost serving certificate while an authority is being changed is the exception: its key is gone, and no old
    authority can sign another.
    """
    at = NOW
    state = stored(plan(Stored(), NAMES, at, published=False))
    published = state.trusted
    for what, days in steps:
        at += timedelta(days=days)
        if what == "lose-authority":
            state = replace(state, authority=None, previous=b"", rotated_at=None)
        elif what == "damage-authority" and state.authority is not None:
            state = replace(state, authority=KeyPair(certificate=state.authority.certificate, key=b"nonsense"))
        elif what == "lose-serving":
            state = replace(state, serving=None, trusted=b"")
        lost = state.serving is None
        known = state.authority is not None and state.authority.certificate in published
        decided = plan(state, NAMES, at, published=known)
        state = stored(decided)
        late = trouble(decided.serving, decided.trusted, NAMES, at) is not None
        assert not late
        if lost or days > OVERLAP / timedelta(days=1):
            published = decided.trusted
        assert trusted_by(decided.serving, published)
        if what == "publish":
            published = decided.trusted
