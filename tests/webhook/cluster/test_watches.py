"""A watch shows what there is and what becomes of it, whatever happens to its connection."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.webhook.cluster.conftest import Witness
from tests.webhook.cluster.fake_api_server import FakeApiServer
from tests.webhook.polling import until
from webhook.cluster import client, watches
from webhook.cluster.client import ApiServer
from webhook.cluster.watches import Watch

JOBS = "/apis/batch/v1/jobs"
TEAM = "/apis/batch/v1/namespaces/team-a/jobs"


class Seen:
    """A sink that keeps what it is shown, as a cache would."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {}
        self.lists = 0
        self.odd = ""

    def seen(self, obj: dict[str, Any]) -> None:
        """Keep it, unless it is the odd one."""
        if obj["metadata"]["name"] == self.odd:
            raise KeyError("odd")
        self.objects[obj["metadata"]["uid"]] = obj

    def gone(self, obj: dict[str, Any]) -> None:
        """Drop it."""
        self.objects.pop(obj["metadata"]["uid"], None)

    def listed(self, uids: frozenset[str]) -> None:
        """Drop all others."""
        self.lists += 1
        self.objects = {uid: obj for uid, obj in self.objects.items() if uid in uids}

    @property
    def names(self) -> set[str]:
        """Names of what there is."""
        return {obj["metadata"]["name"] for obj in self.objects.values()}


Watching = Callable[..., Any]


@pytest.fixture
def watching(server: ApiServer, witness: Witness) -> Watching:
    """Runs a watch of Jobs with its sink, up to the end of the block."""

    @asynccontextmanager
    async def start() -> AsyncIterator[tuple[Watch, Seen]]:
        sink = Seen()
        watch = Watch(server, JOBS, sink, witness.metrics, witness.supervision)
        task = asyncio.create_task(watch.run())
        try:
            yield watch, sink
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    return start


async def test_what_there_is_and_what_becomes_of_it(fake: FakeApiServer, watching: Watching) -> None:
    """A list in pages, then every change."""
    fake.page = 2
    for number in range(5):
        fake.put(f"{TEAM}/job-{number}", {"spec": {}})

    async with watching() as (watch, sink):
        await until(lambda: fake.watches)
        assert sink.names == {f"job-{number}" for number in range(5)}
        assert fake.count("GET", "continue=") == 2
        fake.put(f"{TEAM}/later", {"spec": {}})
        fake.delete(f"{TEAM}/job-0")
        await until(lambda: "later" in sink.names and "job-0" not in sink.names)
        assert watch.is_current


async def test_a_cut_watch_goes_on_where_it_was(fake: FakeApiServer, watching: Watching) -> None:
    """What happened meanwhile is told, and nothing is listed again."""
    fake.put(f"{TEAM}/train", {"spec": {}})
    async with watching() as (_, sink):
        await until(lambda: fake.watches)
        fake.cut_watches()
        fake.delete(f"{TEAM}/train")
        fake.put(f"{TEAM}/other", {"spec": {}})

        await until(lambda: sink.names == {"other"})

        assert sink.lists == 1


async def test_a_version_that_was_forgotten_is_a_new_list(
    fake: FakeApiServer, watching: Watching, witness: Witness
) -> None:
    """410: what is no longer there is gone, though no event told so."""
    fake.put(f"{TEAM}/train", {"spec": {}})
    async with watching() as (_, sink):
        await until(lambda: fake.watches)
        fake.cut_watches()
        fake.delete(f"{TEAM}/train")
        fake.put(f"{TEAM}/other", {"spec": {}})
        fake.forget()

        await until(lambda: sink.lists == 2)

        assert sink.names == {"other"}
        assert witness.metric("watch_restarts_total", reason="expired") == 1


async def test_a_refused_watch_goes_on_where_it_was(fake: FakeApiServer, watching: Watching) -> None:
    """An API server that is overloaded for a moment is not asked for everything again."""
    async with watching() as (_, sink):
        await until(lambda: fake.watches)
        refuse = lambda _: (503, "ServiceUnavailable")  # noqa: E731
        fake.faults.append(refuse)
        fake.cut_watches()
        await until(lambda: fake.count("GET", "watch=true") >= 2)
        fake.put(f"{TEAM}/train", {"spec": {}})
        fake.faults.remove(refuse)

        await until(lambda: sink.names == {"train"})

        assert sink.lists == 1


async def test_silence_counts_as_cut(fake: FakeApiServer, watching: Watching, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that was lost without a word is made anew after a while without even a bookmark."""
    monkeypatch.setattr(client, "SILENCE", 0.2)
    async with watching():
        await until(lambda: fake.count("GET", "watch=true") >= 2)


async def test_an_object_that_cannot_be_understood_costs_no_other(
    fake: FakeApiServer, watching: Watching, witness: Witness
) -> None:
    """The fault is logged with the object's name and counted; the watch goes on."""
    fake.put(f"{TEAM}/first", {"spec": {}})
    async with watching() as (_, sink):
        sink.odd = "odd"
        await until(lambda: fake.watches)
        fake.put(f"{TEAM}/odd", {"spec": {}})
        fake.put(f"{TEAM}/last", {"spec": {}})

        await until(lambda: "last" in sink.names)

        assert witness.failures == ["cluster"]
        assert "team-a/odd" in witness.log


async def test_what_is_not_served_is_tried_at_once_when_it_may_be(fake: FakeApiServer, watching: Watching) -> None:
    """Without its CRD a collection is no fault; with it, it is read without waiting out the pause."""
    fake.not_served.add(JOBS)
    async with watching() as (watch, sink):
        await until(watch.answered.is_set)
        assert not watch.complete.is_set()
        fake.not_served.clear()
        fake.put(f"{TEAM}/train", {"spec": {}})

        watch.wake()

        await until(lambda: sink.names == {"train"}, seconds=1)


async def test_nothing_is_left_of_what_is_served_no_longer(
    fake: FakeApiServer, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Said twice, "not found" is believed: the definition's CRD was deleted, and all definitions with it."""
    monkeypatch.setattr(watches, "NOT_SERVED_PAUSE", 0.01)
    fake.put(f"{TEAM}/train", {"spec": {}})
    async with watching() as (watch, sink):
        await until(lambda: fake.watches)
        fake.not_served.add(JOBS)
        fake.cut_watches()

        await until(lambda: not sink.names)

        assert not watch.is_current


async def test_what_may_not_be_read_is_tried_again_soon(fake: FakeApiServer, watching: Watching) -> None:
    """A new framework's rights come a moment after its definition: the first pauses are short."""
    forbid = lambda _: (403, "Forbidden")  # noqa: E731
    fake.faults.append(forbid)
    fake.put(f"{TEAM}/train", {"spec": {}})
    async with watching() as (watch, sink):
        await until(watch.answered.is_set)
        fake.faults.remove(forbid)

        await until(lambda: sink.names == {"train"}, seconds=2)


async def test_what_a_cut_watch_has_shown_is_current_for_a_moment_only(
    fake: FakeApiServer, watching: Watching, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long enough to connect again; then it is not believed any more."""
    monkeypatch.setattr(watches, "CURRENT_FOR", 0.2)
    async with watching() as (watch, _):
        await until(lambda: fake.watches)
        assert watch.is_current
        fake.faults.append(lambda _: (500, "InternalError"))
        fake.cut_watches()
        assert watch.is_current
        await until(lambda: not watch.is_current)
        fake.faults.clear()
        await until(lambda: watch.is_current)
