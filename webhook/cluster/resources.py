"""Definitions as cluster resources: WorkloadDefinition, and Karta where its CRD exists.

Every replica follows them; the leader alone writes what became of each into its status.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from catalog.definition import JsonObject
from webhook.cluster.client import MERGE, ApiError, ApiServer, ConnectionFault
from webhook.cluster.supervision import Supervision
from webhook.definitions import DefinitionsInForce, Entry, Source
from webhook.log import Logger

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


AFTER_CONFLICT = 0.2
"""Seconds until a status is written again that somebody else has written to: the watch shows it by then."""


class DefinitionResources:
    """A sink for the watch of one collection; offers what it sees, in order."""

    def __init__(
        self,
        source: Source,
        definitions: DefinitionsInForce,
        on_change: Callable[[], None],
        logger: Logger,
        supervision: Supervision,
    ) -> None:
        self._source = source
        self._definitions = definitions
        self._on_change = on_change
        self._logger = logger
        self._supervision = supervision
        self._queue: asyncio.Queue[tuple[str, JsonObject | None]] = asyncio.Queue()
        self._newest: dict[str, JsonObject] = {}
        self._unfinished = 0

    @property
    def is_idle(self) -> bool:
        """Whether everything that was seen is in force, or refused."""
        return self._unfinished == 0

    def seen(self, obj: JsonObject) -> None:
        """A definition as it is now.

        A status that changed alone is judged again: it may be an answer of ours that another has overtaken.
        """
        uid = obj["metadata"]["uid"]
        before = self._newest.get(uid)
        self._newest[uid] = obj
        if before is None or _content(before) != _content(obj):
            self._take(uid, obj)
        elif before.get("status") != obj.get("status"):
            self._on_change()

    def gone(self, obj: JsonObject) -> None:
        """A definition was deleted."""
        self._forget(obj["metadata"]["uid"])

    def listed(self, uids: frozenset[str]) -> None:
        """Whatever is not in the list is gone."""
        for uid in [uid for uid in self._newest if uid not in uids]:
            self._forget(uid)

    def _forget(self, uid: str) -> None:
        if self._newest.pop(uid, None) is not None:
            self._take(uid, None)

    def _take(self, uid: str, obj: JsonObject | None) -> None:
        self._unfinished += 1
        self._queue.put_nowait((uid, obj))

    async def run(self) -> None:
        """Offer and withdraw, one at a time, in the order of events."""
        while True:
            uid, obj = await self._queue.get()
            try:
                await self._change(uid, obj)
            except Exception:  # noqa: BLE001 - logged and counted; the next definition's turn comes
                self._supervision.survived("definitions")
            finally:
                self._unfinished -= 1
            self._on_change()

    async def _change(self, uid: str, obj: JsonObject | None) -> None:
        _, kind, _ = COLLECTIONS[self._source]
        if obj is None:
            self._definitions.withdraw(self._source, uid)
            self._logger.info("definition withdrawn", kind=kind)
            return
        metadata = obj["metadata"]
        origin = f"{kind}/{metadata['name']}"
        created = f"{metadata.get('creationTimestamp', '')} {metadata['name']}"
        problems = await self._definitions.offer(
            self._source, uid, obj, origin=origin, created=created, digest=metadata.get("generation")
        )
        if problems:
            self._logger.warning("definition refused", definition=origin, problems=list(problems[:MAX_PROBLEMS]))
        else:
            self._logger.info("definition in force", definition=origin)

    @property
    def objects(self) -> tuple[JsonObject, ...]:
        """Every definition as last seen."""
        return tuple(self._newest.values())


def _content(obj: JsonObject) -> JsonObject:
    """What a definition says, and the generation of it counts."""
    return {key: value for key, value in obj.items() if key not in ("metadata", "status")}


class DefinitionStatuses:
    """The leader's half: writes of each WorkloadDefinition whether it is accepted, with every problem."""

    def __init__(
        self,
        server: ApiServer,
        resources: DefinitionResources,
        definitions: DefinitionsInForce,
        supervision: Supervision,
    ) -> None:
        self._server = server
        self._resources = resources
        self._definitions = definitions
        self._supervision = supervision
        self._due = asyncio.Event()

    def wake(self) -> None:
        """A definition has changed."""
        self._due.set()

    async def keep(self) -> None:
        """Bring every status up to date, for as long as this replica leads."""
        while True:
            self._due.clear()
            written = [await self._write(obj) for obj in self._resources.objects]
            try:
                async with asyncio.timeout(RECHECK if all(written) else AFTER_CONFLICT):
                    await self._due.wait()
            except TimeoutError:
                continue

    async def _write(self, obj: JsonObject) -> bool:
        """Bring one status up to date; false when somebody else has changed the definition meanwhile."""
        status = self._status(obj)
        if status is None or not _says_something_else(obj.get("status") or {}, status):
            return True
        _, _, collection = COLLECTIONS[Source.RESOURCE]
        name = obj["metadata"]["name"]
        body = {"metadata": {"resourceVersion": obj["metadata"]["resourceVersion"]}, "status": status}
        try:
            await self._server.request("PATCH", f"{collection}/{name}/status", body=body, content_type=MERGE, within=5)
        except ApiError as error:
            if error.code not in (404, 409):
                self._supervision.tell("definitions", f"the status of {name} could not be written: {error}")
            return error.code != 409
        except ConnectionFault as fault:
            self._supervision.tell("definitions", str(fault))
        return True

    def _status(self, obj: JsonObject) -> JsonObject | None:
        """What the status should say, None as long as the definition was not judged as it is now."""
        uid = obj["metadata"]["uid"]
        entry = self._definitions.entry(Source.RESOURCE, uid)
        generation = obj["metadata"].get("generation")
        if entry is None or entry.digest != generation:
            return None
        superseded = self._definitions.superseded_by(Source.RESOURCE, uid)
        describes = entry.good.definition.describes if entry.good is not None else None
        return {
            "observedGeneration": generation or 0,
            "describes": f"{describes.kind}.{describes.version}.{describes.group}" if describes is not None else "",
            "inForce": entry.good is not None and superseded is None,
            "problems": list(entry.problems[:MAX_PROBLEMS]),
            "conditions": _conditions(entry, superseded, (obj.get("status") or {}).get("conditions") or ()),
        }


def _conditions(entry: Entry, superseded: str | None, before: Sequence[JsonObject]) -> list[JsonObject]:
    is_valid, is_known = not entry.problems, entry.good is not None
    accepted = _condition(
        "Accepted",
        holds=is_valid,
        reason="Valid" if is_valid else "Invalid",
        message=_accepted_message(len(entry.problems), kept=is_known),
    )
    in_force = _condition(
        "InForce",
        holds=is_known and superseded is None,
        reason="Invalid" if not is_known else "InForce" if superseded is None else "Superseded",
        message="" if superseded is None else f"{superseded} has this kind",
    )
    since = {(each.get("type"), each.get("status")): each.get("lastTransitionTime") for each in before}
    return [
        {**each, "lastTransitionTime": since.get((each["type"], each["status"])) or each["lastTransitionTime"]}
        for each in (accepted, in_force)
    ]


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
