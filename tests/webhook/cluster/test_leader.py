"""At most one leads, somebody leads again soon, and whoever can't renew has stopped before another may begin."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.webhook.cluster.fake_api_server import FakeApiServer
from tests.webhook.polling import until
from webhook.cluster.client import ApiServer
from webhook.cluster.leader import Leadership, LeaseTerms

pytestmark = pytest.mark.slow

LEASE = "/apis/coordination.k8s.io/v1/namespaces/stamps/leases/upkeep"


class Candidate:
    """One replica: when its upkeep ran, and what it said."""

    def __init__(self, server: ApiServer, name: str, *, duration: float = 1.0, renewal: float = 0.1) -> None:
        terms = LeaseTerms(namespace="stamps", name="upkeep", identity=name, duration=duration, renewal=renewal)
        self.name = name
        self.works = False
        self.breaks = asyncio.Event()
        self.periods: list[list[float]] = []
        self.faults: list[str] = []
        self.leadership = Leadership(server, terms, self._upkeep, lambda *_: None, self.faults.append)

    async def _upkeep(self) -> None:
        time = asyncio.get_running_loop().time
        self.works = True
        self.periods.append([time(), float("inf")])
        try:
            await self.breaks.wait()
            self.breaks.clear()
            raise RuntimeError("broken")
        finally:
            self.works = False
            self.periods[-1][1] = time()


@asynccontextmanager
async def running(candidate: Candidate) -> AsyncIterator[Candidate]:
    """It stands for election until the end of the block."""
    task = asyncio.create_task(candidate.leadership.run())
    try:
        yield candidate
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_one_of_several_leads(fake: FakeApiServer, server: ApiServer) -> None:
    """Three that start together: the lease names the one that does upkeep."""
    async with AsyncExitStack() as stack:
        three = [await stack.enter_async_context(running(Candidate(server, f"replica-{n}"))) for n in range(3)]
        await until(lambda: fake.count("PUT", "upkeep") >= 3 and fake.count("GET", "upkeep") >= 12)
        (leader,) = (each for each in three if each.periods)
        assert len(leader.periods) == 1
        assert fake.objects[LEASE]["spec"]["holderIdentity"] == leader.name


async def test_who_leaves_gives_the_lease_back(fake: FakeApiServer, server: ApiServer) -> None:
    """The next leader need not wait the minute until it runs out."""
    async with running(Candidate(server, "first", duration=60)) as first:
        await until(lambda: first.works)
    assert fake.objects[LEASE]["spec"]["holderIdentity"] == ""
    assert not first.works

    async with running(Candidate(server, "second", duration=60)) as second:
        await until(lambda: second.works, seconds=5)


async def test_a_lease_that_is_not_renewed_is_taken_over(fake: FakeApiServer, server: ApiServer) -> None:
    """Its holder was killed: it counts for as long as it says, from when we first saw it."""
    fake.put(LEASE, {"spec": {"holderIdentity": "killed", "leaseDurationSeconds": 1, "leaseTransitions": 4}})
    loop = asyncio.get_running_loop()
    begun = loop.time()
    async with running(Candidate(server, "replica")) as candidate:
        await until(lambda: candidate.works)
        assert loop.time() >= begun + 1
        assert fake.objects[LEASE]["spec"]["leaseTransitions"] == 5


@pytest.mark.parametrize("fault", [(500, "InternalError"), 30.0], ids=["refused", "unanswered"])
async def test_who_cannot_renew_stops_in_time(fault: Any, fake: FakeApiServer, tmp_path: Path) -> None:
    """Cut off from the API server, it has stopped before the other, who is not, begins."""
    async with AsyncExitStack() as stack:
        cut_off = await stack.enter_async_context(fake.client(tmp_path, "one"))
        connected = await stack.enter_async_context(fake.client(tmp_path, "other"))
        one = await stack.enter_async_context(running(Candidate(cut_off, "one", duration=2.0, renewal=0.2)))
        await until(lambda: one.works)
        other = await stack.enter_async_context(running(Candidate(connected, "other", duration=2.0, renewal=0.2)))
        await until(lambda: fake.count("GET", "upkeep") > 4)

        fake.faults.append(lambda request: fault if request.headers["Impersonate-User"] == "one" else None)
        await until(lambda: other.works, seconds=20)

        assert not one.works
        assert one.periods[0][1] < other.periods[0][0]
        assert one.faults


async def test_a_short_interruption_costs_no_leadership(fake: FakeApiServer, server: ApiServer) -> None:
    """The API server restarts: upkeep goes on as long as nobody else may begin."""
    async with running(Candidate(server, "one", duration=3.0, renewal=0.1)) as one:
        await until(lambda: one.works)
        refuse = lambda _: (503, "ServiceUnavailable")  # noqa: E731
        fake.faults.append(refuse)
        await until(lambda: len(one.faults) > 3)
        fake.faults.remove(refuse)
        before = fake.count("PUT", "upkeep")
        await until(lambda: fake.count("PUT", "upkeep") > before)

        assert len(one.periods) == 1
        assert one.works


async def test_a_stolen_lease_ends_upkeep(fake: FakeApiServer, server: ApiServer) -> None:
    """Whoever is not named in the lease does nothing."""
    async with running(Candidate(server, "one")) as one:
        await until(lambda: one.works)
        fake.put(LEASE, {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 60}})

        await until(lambda: not one.works)


async def test_a_deleted_lease_is_made_again(fake: FakeApiServer, server: ApiServer) -> None:
    """Nothing depends on its having been there."""
    async with running(Candidate(server, "one")) as one:
        await until(lambda: one.works)
        fake.delete(LEASE)

        await until(lambda: LEASE in fake.objects)

        assert one.works


async def test_upkeep_that_breaks_is_begun_again(fake: FakeApiServer, server: ApiServer) -> None:
    """As long as the lease is ours somebody has to do it."""
    async with running(Candidate(server, "one")) as one:
        await until(lambda: one.works)
        one.breaks.set()

        await until(lambda: len(one.periods) == 2 and one.works)
        assert fake.objects[LEASE]["spec"]["holderIdentity"] == "one"


async def test_a_missing_right_is_told(fake: FakeApiServer, server: ApiServer) -> None:
    """Without it nobody ever leads, which would otherwise be seen by what is not done."""
    fake.faults.append(lambda _: (403, "Forbidden"))
    async with running(Candidate(server, "one")) as one:
        await until(lambda: one.faults)
        assert not one.works
