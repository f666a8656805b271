"""Definitions as cluster resources: WorkloadDefinition, and Karta where its CRD exists.

Every replica follows them; the leader alone writes what became of each into its status.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime

from catalog.definition import JsonObject
from webhook.cluster.client import MERGE, ApiError, ApiServer, ConnectionFault
from webhook.definitions import DefinitionsInForce, Source

COLLECTIONS = {
    Source.RESOURCE: (
        "workload-stamp.io",
        "WorkloadDefinition",
        "/apis/workload-stamp.io/v1alpha1/workloaddefinitions",
    ),
    Source.KARTA: ("run.ai", "Karta", "/apis/run.ai/v1alpha1/kartas"),
}
"""Group, kind and URL path of each source that lives in the cluster."""

MAX_PROBLEMS = 50
"""Problems written into one status."""

RECHECK = 30.0
"""Seconds between two looks at statuses without a reason."""


class DefinitionResources:
    """A sink for the watch of one collection; offers what it sees, in order."""

    def __init__(
        self, source: Source, definitions: DefinitionsInForce, on_change: Callable[[], None], log: Callable[..., None]
    ) -> None:
        self._source = source
        self._definitions = definitions
        self._on_change = on_change
        self._log = log
        self._queue: asyncio.Queue[tuple[str, JsonObject | None]] = asyncio.Queue()
        self._newest: dict[str, JsonObject] = {}

    def seen(self, obj: JsonObject) -> None:
        """A definition as it is now; a change of its status alone is none of ours."""
        uid = obj["metadata"]["uid"]
        before = self._newest.get(uid)
        self._newest[uid] = obj
        if before is None or before.get("spec") != obj.get("spec"):
            self._queue.put_nowait((uid, obj))

    def gone(self, obj: JsonObject) -> None:
        """A definition was deleted."""
        self._forget(obj["metadata"]["uid"])

    def listed(self, uids: frozenset[str]) -> None:
        """Whatever is not in the list is gone."""
        for uid in [uid for uid in self._newest if uid not in uids]:
            self._forget(uid)

    def _forget(self, uid: str) -> None:
        if self._newest.pop(uid, None) is not None:
            self._queue.put_nowait((uid, None))

    async def run(self) -> None:
        """Offer and withdraw, one at a time, in the order of events."""
        _, kind, _ = COLLECTIONS[self._source]
        while True:
            uid, obj = await self._queue.get()
            if obj is None:
                self._definitions.withdraw(self._source, uid)
                self._log("definition withdrawn", kind=kind)
            else:
                await self._offer(uid, obj, kind)
            self._on_change()

    async def _offer(self, uid: str, obj: JsonObject, kind: str) -> None:
        metadata = obj["metadata"]
        origin = f"{kind}/{metadata['name']}"
        problems = await self._definitions.offer(
            self._source, uid, obj, origin=origin, created=f"{metadata.get('creationTimestamp', '')} {metadata['name']}"
        )
        if problems:
            self._log("definition refused", definition=origin, problems=list(problems[:MAX_PROBLEMS]))
        else:
            self._log("definition in force", definition=origin)

    @property
    def objects(self) -> tuple[JsonObject, ...]:
        """Every definition as last seen."""
        return tuple(self._newest.values())


class DefinitionStatuses:
    """The leader's half: writes of each WorkloadDefinition whether it is accepted, with every problem."""

    def __init__(
        self,
        server: ApiServer,
        resources: DefinitionResources,
        definitions: DefinitionsInForce,
        report: Callable[[str, str], None],
    ) -> None:
        self._server = server
        self._resources = resources
        self._definitions = definitions
        self._report = report
        self._due = asyncio.Event()

    def wake(self) -> None:
        """A definition has changed."""
        self._due.set()

    async def keep(self) -> None:
        """Bring every status up to date, for as long as this replica leads."""
        while True:
            self._due.clear()
            for obj in self._resources.objects:
                await self._write(obj)
            try:
                async with asyncio.timeout(RECHECK):
                    await self._due.wait()
            except TimeoutError:
                continue

    async def _write(self, obj: JsonObject) -> None:
        status = self._status(obj)
        if status is None or not _says_something_else(obj.get("status") or {}, status):
            return
        _, _, collection = COLLECTIONS[Source.RESOURCE]
        path = f"{collection}/{obj['metadata']['name']}/status"
        body = {"metadata": {"resourceVersion": obj["metadata"]["resourceVersion"]}, "status": status}
        try:
            await self._server.request("PATCH", path, body=body, content_type=MERGE, within=5)
        except ApiError as error:
            if error.code not in (404, 409):
                self._report("definitions", f"the status of {obj['metadata']['name']} could not be written: {error}")
        except ConnectionFault as fault:
            self._report("definitions", str(fault))

    def _status(self, obj: JsonObject) -> JsonObject | None:
        uid = obj["metadata"]["uid"]
        entry = self._definitions.entry(Source.RESOURCE, uid)
        if entry is None:
            return None
        superseded = self._definitions.superseded_by(Source.RESOURCE, uid)
        describes = entry.good.definition.describes if entry.good is not None else None
        return {
            "observedGeneration": obj["metadata"].get("generation", 0),
            "describes": f"{describes.kind}.{describes.version}.{describes.group}" if describes is not None else "",
            "inForce": entry.good is not None and superseded is None,
            "problems": list(entry.problems[:MAX_PROBLEMS]),
            "conditions": [
                _condition(
                    "Accepted",
                    holds=not entry.problems,
                    reason="Valid" if not entry.problems else "Invalid",
                    message=_accepted_message(len(entry.problems), kept=entry.good is not None),
                ),
                _condition(
                    "InForce",
                    holds=entry.good is not None and superseded is None,
                    reason="InForce" if superseded is None else "Superseded",
                    message="" if superseded is None else f"{superseded} has this kind",
                ),
            ],
        }


def _accepted_message(problems: int, *, kept: bool) -> str:
    if not problems:
        return "the definition is valid"
    before = "; the version before it stays in force" if kept else ""
    return f"{problems} problem{'s' if problems > 1 else ''}, see status.problems{before}"


def _condition(kind: str, *, holds: bool, reason: str, message: str) -> JsonObject:
    return {
        "type": kind,
        "status": "True" if holds else "False",
        "reason": reason,
        "message": message,
        "lastTransitionTime": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
    }


def _says_something_else(present: JsonObject, wanted: JsonObject) -> bool:
    """Whether the statuses differ in more than the times of their conditions."""
    return _timeless(present) != _timeless(wanted)


def _timeless(status: JsonObject) -> JsonObject:
    conditions = [
        {key: value for key, value in condition.items() if key != "lastTransitionTime"}
        for condition in status.get("conditions") or ()
    ]
    return {**status, "conditions": conditions}
