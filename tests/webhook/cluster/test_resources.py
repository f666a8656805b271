"""Definitions that are cluster resources: followed in order, judged, and told what became of them by the leader."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.webhook.cluster.conftest import Witness
from tests.webhook.cluster.fake_api_server import FakeApiServer
from tests.webhook.polling import until
from tests.webhook.test_definitions import BAD, RUN, definition, nothing_overruns
from webhook.cluster.client import ApiServer
from webhook.cluster.resources import COLLECTIONS, DefinitionResources, DefinitionStatuses
from webhook.cluster.watches import Watch
from webhook.definitions import DefinitionsInForce, Source

COLLECTION = COLLECTIONS[Source.RESOURCE][2]
RUNS = f"{COLLECTION}/runs"


class Replica:
    """What one replica makes of the cluster's definitions; `statuses` is the leader's part."""

    def __init__(self, server: ApiServer, witness: Witness) -> None:
        self.definitions = DefinitionsInForce(nothing_overruns)
        self.resources = DefinitionResources(
            Source.RESOURCE, self.definitions, self._changed, witness.logger, witness.supervision
        )
        self.statuses = DefinitionStatuses(server, self.resources, self.definitions, witness.supervision)
        watch = Watch(server, COLLECTION, self.resources, witness.metrics, witness.supervision)
        self.work: list[Callable[[], Any]] = [watch.run, self.resources.run, self.statuses.keep]

    def _changed(self) -> None:
        self.statuses.wake()

    @property
    def describes(self) -> bool:
        """Whether the made-up kind is described now."""
        return self.definitions.catalog.find(RUN) is not None


@pytest.fixture
async def replica(server: ApiServer, witness: Witness) -> AsyncIterator[Replica]:
    """A leader at work."""
    replica = Replica(server, witness)
    tasks = [asyncio.create_task(work()) for work in replica.work]
    yield replica
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def conditions(fake: FakeApiServer) -> dict[str, tuple[str, str]]:
    """Status and reason of each condition."""
    status = fake.objects[RUNS].get("status") or {}
    return {each["type"]: (each["status"], each["reason"]) for each in status.get("conditions", ())}


async def test_an_accepted_definition_says_so(fake: FakeApiServer, replica: Replica) -> None:
    """It is in force, for which kind, and as of which generation."""
    fake.put(RUNS, definition())
    await until(lambda: conditions(fake))

    status = fake.objects[RUNS]["status"]
    assert replica.describes
    assert (status["inForce"], status["describes"], status["problems"]) == (True, "Run.v1.example.com", [])
    assert status["observedGeneration"] == fake.objects[RUNS]["metadata"]["generation"]
    assert conditions(fake) == {"Accepted": ("True", "Valid"), "InForce": ("True", "InForce")}


async def test_a_bad_change_is_told_and_changes_nothing(fake: FakeApiServer, replica: Replica) -> None:
    """The version before it stays in force; the status has every problem with its path."""
    fake.put(RUNS, definition())
    await until(lambda: conditions(fake))
    fake.put(RUNS, {**BAD, "status": fake.objects[RUNS]["status"]})

    await until(lambda: conditions(fake)["Accepted"] == ("False", "Invalid"))

    status = fake.objects[RUNS]["status"]
    assert replica.describes
    assert status["inForce"]
    assert any("rootComponent.nonsense" in problem for problem in status["problems"])
    assert status["observedGeneration"] == 2


async def test_a_bad_definition_is_not_in_force(fake: FakeApiServer, replica: Replica) -> None:
    """There was no good one before."""
    fake.put(RUNS, BAD)
    await until(lambda: conditions(fake))

    assert conditions(fake) == {"Accepted": ("False", "Invalid"), "InForce": ("False", "Invalid")}
    assert not replica.describes


async def test_a_superseded_definition_says_by_what(fake: FakeApiServer, replica: Replica) -> None:
    """And that it is in force again once the other is gone."""
    fake.put(RUNS, definition())
    await until(lambda: conditions(fake))
    await replica.definitions.offer(Source.DIRECTORY, "file", definition(), origin="runs.yaml")
    replica.statuses.wake()
    await until(lambda: conditions(fake)["InForce"] == ("False", "Superseded"))
    assert "runs.yaml" in str(fake.objects[RUNS]["status"]["conditions"])

    replica.definitions.withdraw(Source.DIRECTORY, "file")
    replica.statuses.wake()
    await until(lambda: conditions(fake)["InForce"] == ("True", "InForce"))


async def test_a_condition_keeps_its_time_until_it_changes(fake: FakeApiServer, replica: Replica) -> None:
    """When something became true is what people look for."""
    before = "2001-01-01T00:00:00Z"
    accepted = {"type": "Accepted", "status": "True", "reason": "Valid", "message": "x", "lastTransitionTime": before}
    fake.put(RUNS, {**definition(), "status": {"conditions": [accepted]}})
    await until(lambda: "inForce" in fake.objects[RUNS]["status"])

    times = {each["type"]: each["lastTransitionTime"] for each in fake.objects[RUNS]["status"]["conditions"]}
    assert replica.describes
    assert times["Accepted"] == before
    assert times["InForce"] != before


async def test_a_status_is_written_once(fake: FakeApiServer, replica: Replica) -> None:
    """Our own write comes back through the watch, and must not lead to another."""
    fake.put(RUNS, definition())
    await until(lambda: conditions(fake))
    for _ in range(5):
        replica.statuses.wake()
        await asyncio.sleep(0.01)
    assert fake.count("PATCH", "/status") == 1


async def test_a_conflict_is_tried_again(fake: FakeApiServer, replica: Replica) -> None:
    """Somebody labelled the definition at the same moment."""
    conflicts = [(409, "Conflict")]
    fake.faults.append(lambda request: conflicts.pop() if request.method == "PATCH" and conflicts else None)
    fake.put(RUNS, definition())

    await until(lambda: conditions(fake))

    assert replica.describes
    assert fake.count("PATCH", "/status") == 2


async def test_a_deleted_definition_describes_nothing(fake: FakeApiServer, replica: Replica) -> None:
    """Whether the watch tells so, or a list after a cut."""
    fake.put(RUNS, definition())
    await until(lambda: replica.describes)
    fake.cut_watches()
    fake.delete(RUNS)
    fake.forget()

    await until(lambda: not replica.describes)


async def test_a_definition_that_breaks_us_costs_no_other(
    fake: FakeApiServer, replica: Replica, witness: Witness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of ours in judging one is counted; the next one's turn comes."""
    offer = replica.definitions.offer

    async def breaks(source: Source, key: str, document: Any, **rest: Any) -> tuple[str, ...]:
        if document["metadata"]["name"] == "odd":
            raise RuntimeError("odd")
        return await offer(source, key, document, **rest)

    monkeypatch.setattr(replica.definitions, "offer", breaks)
    fake.put(f"{COLLECTION}/odd", definition("odd"))
    fake.put(RUNS, definition())

    await until(lambda: replica.describes)

    assert witness.failures == ["cluster"]
    assert replica.resources.is_idle
