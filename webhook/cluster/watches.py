"""Watches of collections: list in pages, follow, resume where it was cut, list again when the server has forgotten.

A watch feeds a `Sink` and never ends by itself; nothing waits for it to be complete.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Protocol

from catalog.definition import JsonObject
from webhook.cluster.client import BREATH, ApiError, ApiServer, ConnectionFault
from webhook.cluster.supervision import Supervision
from webhook.cluster.telemetry import ClusterMetrics

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
"""Seconds between attempts after faults: doubled each time, with jitter, up to the longest."""

LONGEST_FORBIDDEN_PAUSE = 60.0
"""The same where we may not read: a right that comes with a new framework comes within a second or two, or never."""

NOT_SERVED_PAUSE = 5.0
"""Seconds until a collection is tried again that is not served; `wake` says that it may be."""

CURRENT_FOR = 5.0
"""Seconds for which what a watch has shown still counts as current after it was cut."""


class Sink(Protocol):
    """Who is told about the objects of a collection."""

    def seen(self, obj: JsonObject) -> None:
        """An object as it is now: listed, added or changed."""
        ...

    def gone(self, obj: JsonObject) -> None:
        """An object was deleted; `obj` is its last state."""
        ...

    def listed(self, uids: frozenset[str]) -> None:
        """A list is complete: whatever was seen before and is not among these uids is gone."""
        ...


class Watch:
    """One collection, followed for as long as `run` runs.

    `complete` is set once a list has been read whole; `answered` also when the server said that there is none to be
    read: it is not served, or we may not.
    """

    def __init__(
        self,
        server: ApiServer,
        path: str,
        sink: Sink,
        metrics: ClusterMetrics,
        supervision: Supervision,
        *,
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> None:
        self._server = server
        self._sink = sink
        self._metrics = metrics
        self._supervision = supervision
        self._field_selector = field_selector
        self._metadata_only = metadata_only
        self._loop = asyncio.get_running_loop()
        self._version: str | None = None
        self._pause = FIRST_PAUSE
        self._not_served = 0
        self._lost_at: float | None = None
        self._woken = asyncio.Event()
        self.path = path
        self.complete = asyncio.Event()
        self.answered = asyncio.Event()

    @property
    def is_current(self) -> bool:
        """Whether what it has shown is what there is, but for the moment that news takes."""
        if not self.complete.is_set():
            return False
        return self._lost_at is None or self._loop.time() < self._lost_at + CURRENT_FOR

    def wake(self) -> None:
        """The collection may be served now: do not wait any longer before the next attempt."""
        self._woken.set()

    async def run(self) -> None:
        """List and follow until cancelled."""
        while True:
            self._woken.clear()
            try:
                reason, pause = await self._follow_on()
            except ApiError as error:
                reason, pause = self._after_error(error)
            except ConnectionFault as fault:
                self._supervision.tell(self.path, str(fault))
                reason, pause = "unreachable", self._longer(LONGEST_PAUSE)
            if self._lost_at is None:
                self._lost_at = self._loop.time()
            self._metrics.watch_restarts.labels(reason).inc()
            await self._rest(pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, no secret

    async def _follow_on(self) -> tuple[str, float]:
        """List unless there is a version to go on from, then follow until the server ends it, as it does in time."""
        if self._version is None:
            self._version = await self._list()
        async for event in self._server.watch(
            self.path,
            self._version,
            metadata_only=self._metadata_only,
            field_selector=self._field_selector,
            on_open=self._opened,
        ):
            self._metrics.watch_events.labels(event.type).inc()
            if event.type == "DELETED":
                self._guarded(self._sink.gone, event.obj)
            elif event.type != "BOOKMARK":
                self._guarded(self._sink.seen, event.obj)
            self._version = (event.obj.get("metadata") or {}).get("resourceVersion", self._version)
        return "ended", FIRST_PAUSE

    def _opened(self) -> None:
        self._lost_at, self._pause, self._not_served = None, FIRST_PAUSE, 0

    async def _list(self) -> str:
        uids: set[str] = set()
        version = ""
        async for page in self._server.pages(
            self.path, metadata_only=self._metadata_only, field_selector=self._field_selector
        ):
            for number, obj in enumerate(page.items):
                if number % BREATH == 0:
                    await asyncio.sleep(0)  # a long list must not keep admissions waiting
                self._guarded(self._sink.seen, obj)
                uids.add(str((obj.get("metadata") or {}).get("uid")))
            version = page.resource_version
        self._sink.listed(frozenset(uids))
        self.complete.set()
        self.answered.set()
        return version

    def _guarded(self, show: Callable[[JsonObject], None], obj: JsonObject) -> None:
        """Show one object; a fault of ours with it must not cost all others."""
        try:
            show(obj)
        except Exception:  # noqa: BLE001 - logged and counted
            metadata = obj.get("metadata") or {}
            name = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}".lstrip("/")
            self._supervision.survived("watch", path=self.path, name=name)

    def _after_error(self, error: ApiError) -> tuple[str, float]:
        if error.code == 410:
            self._version = None
            return "expired", FIRST_PAUSE
        if error.code == 404:
            self._missing()
            return "not-served", NOT_SERVED_PAUSE  # its CRD is not installed: no fault, and it may be at any time
        self._supervision.tell(self.path, str(error))
        if error.code == 403:
            self.answered.set()
            return "forbidden", self._longer(LONGEST_FORBIDDEN_PAUSE)
        return "refused", max(error.retry_after or 0.0, self._longer(LONGEST_PAUSE))

    def _missing(self) -> None:
        """Not served. Said twice it is believed, and nothing is left of what was there."""
        self._version = None
        self._not_served += 1
        self.answered.set()
        if self._not_served == 2 and self.complete.is_set():
            self.complete.clear()
            self._sink.listed(frozenset())

    def _longer(self, longest: float) -> float:
        """The pause after another fault in a row."""
        pause, self._pause = self._pause, min(self._pause * 2, longest)
        return pause

    async def _rest(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return
