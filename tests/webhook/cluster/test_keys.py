"""The Secrets are made once by however many, kept by the plan, and left alone where they are not ours."""

import asyncio
from base64 import b64decode, b64encode
from datetime import UTC, datetime, timedelta

import pytest

from certs.authority import AUTHORITY_LIFETIME, KeyPair
from certs.expiry import trusted_by
from certs.rotation import PROPAGATION
from tests.webhook.cluster.fake_api_server import FakeApiServer
from tests.webhook.polling import until
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.keys import ForeignSecret, Keys, SecretNames, SecretWatch

NAMES = SecretNames(namespace="stamps", service="stamp", prefix="workload-stamp.io", further_names=("127.0.0.1",))
AUTHORITY = f"{NAMES.collection}/stamp-authority"
SERVING = f"{NAMES.collection}/stamp-serving"
NOW = datetime.now(UTC)
LABELS = {"labels": {"app.kubernetes.io/managed-by": "workload-stamp"}}


@pytest.fixture
def reports() -> list[str]:
    """What the keeper of the keys has said."""
    return []


@pytest.fixture
def keys(server: ApiServer, reports: list[str]) -> Keys:
    """A leader's keys."""
    return Keys(server, NAMES, lambda _, sentence: reports.append(sentence))


async def test_replicas_that_start_together_make_one_authority(fake: FakeApiServer, server: ApiServer) -> None:
    """Two that both believe that they lead: the second to write takes what the first has written."""
    fake.faults.append(lambda request: 0.02 if request.method == "GET" else None)
    several = [Keys(server, NAMES, lambda *_: None) for _ in range(5)]

    plans = await asyncio.gather(*(each.renew(NOW) for each in several))

    assert len({plan.authority.certificate for plan in plans}) == 1
    assert len({plan.serving.certificate for plan in plans}) == 1
    assert {each.trusted for each in several} == {plans[0].authority.certificate}
    assert b64decode(fake.objects[AUTHORITY]["data"]["ca.crt"]) == plans[0].authority.certificate


async def test_what_is_good_is_not_written_again(fake: FakeApiServer, keys: Keys) -> None:
    """A look every half minute costs two reads."""
    await keys.renew(NOW)
    written = fake.count("POST", "") + fake.count("PUT", "")
    await keys.renew(NOW)
    assert fake.count("POST", "") + fake.count("PUT", "") == written == 2


@pytest.mark.parametrize("path", [AUTHORITY, SERVING])
async def test_a_foreign_secret_is_reported_and_left_alone(
    path: str, fake: FakeApiServer, keys: Keys, reports: list[str]
) -> None:
    """A Secret of our name that somebody else made may be anything."""
    theirs = fake.put(path, {"data": {"password": "c2VjcmV0"}})

    with pytest.raises(ForeignSecret, match="is not ours"):
        await keys.renew(NOW)
    keeping = asyncio.create_task(keys.keep())
    await until(lambda: reports)
    keeping.cancel()

    assert fake.objects[path] == theirs
    assert "delete it" in reports[0]


@pytest.mark.parametrize(
    "data",
    [{}, {"tls.crt": "***", "tls.key": "***"}, {"tls.crt": "bm9uZQ==", "tls.key": "bm9uZQ=="}],
    ids=["empty", "no-base64", "no-certificate"],
)  # fmt: skip
async def test_a_damaged_secret_of_ours_is_replaced(data: dict[str, str], fake: FakeApiServer, keys: Keys) -> None:
    """The authority is still there, so nobody has to be told."""
    first = await keys.renew(NOW)
    fake.put(SERVING, {"metadata": LABELS, "type": "kubernetes.io/tls", "data": data})

    mended = await keys.renew(NOW)

    assert mended.authority == first.authority
    assert trusted_by(mended.serving, keys.trusted)
    assert b64decode(fake.objects[SERVING]["data"]["tls.crt"]) == mended.serving.certificate


async def test_an_authority_changes_only_as_it_is_published(fake: FakeApiServer, keys: Keys) -> None:
    """Both trusted, then both published, then the new one's certificate served."""
    first = await keys.renew(NOW)
    keys.published = keys.trusted
    due = NOW + AUTHORITY_LIFETIME * 2 / 3 + timedelta(days=1)
    leaf = await keys.renew(due - timedelta(days=2))
    assert leaf.authority == first.authority

    both = await keys.renew(due)
    assert first.authority.certificate in keys.trusted
    assert both.serving == leaf.serving
    waiting = await keys.renew(due + PROPAGATION)
    assert waiting.serving == leaf.serving
    keys.published = keys.trusted
    switched = await keys.renew(due + PROPAGATION)

    assert trusted_by(switched.serving, both.authority.certificate)
    assert b64decode(fake.objects[SERVING]["data"]["ca.crt"]) == keys.trusted


async def test_a_lost_authority_is_known_from_the_serving_secret(fake: FakeApiServer, keys: Keys) -> None:
    """What all replicas serve stays good until clients know the new authority."""
    first = await keys.renew(NOW)
    fake.delete(AUTHORITY)

    lost = await keys.renew(NOW)

    assert lost.serving == first.serving
    assert trusted_by(first.serving, keys.trusted)
    assert lost.authority.certificate in keys.trusted


async def test_a_missing_namespace_is_an_error(fake: FakeApiServer, keys: Keys) -> None:
    """Not a reason to try again without a pause."""
    fake.faults.append(lambda request: (404, "NotFound") if request.method == "POST" else None)
    with pytest.raises(ApiError):
        await keys.renew(NOW)
    assert fake.count("POST", "") == 1


async def test_conflicts_without_end_are_given_up(fake: FakeApiServer, keys: Keys) -> None:
    """Somebody else writes all the time: that is an error to be told, and tried again later."""
    fake.faults.append(lambda request: (409, "Conflict") if request.method == "POST" else None)
    with pytest.raises(ApiError, match="others do too"):
        await keys.renew(NOW)


async def test_a_deleted_secret_is_noticed(fake: FakeApiServer, keys: Keys) -> None:
    """Its watch wakes the keeper, who would look again only half a minute later."""
    keeping = asyncio.create_task(keys.keep())
    await until(lambda: SERVING in fake.objects)
    fake.delete(SERVING)

    SecretWatch("tls", lambda _: None, keys.wake).gone({})

    await until(lambda: SERVING in fake.objects, seconds=2)
    keeping.cancel()


async def test_a_pair_is_offered_until_it_is_taken() -> None:
    """A replica whose clock is behind refuses a new certificate, and must not wait for the next one."""
    offered: list[KeyPair] = []
    watch = SecretWatch("tls", offered.append, lambda: None)
    data = {"tls.crt": b64encode(b"certificate").decode(), "tls.key": b64encode(b"key").decode()}
    watch.seen({"metadata": {}, "data": data})
    watch.offer_again()
    assert offered == [KeyPair(certificate=b"certificate", key=b"key")] * 2
