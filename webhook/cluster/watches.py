"""Watches of collections: list in pages, follow, resume, and begin anew when the API server has forgotten.

A watch feeds a `Sink` and never ends by itself; nothing waits for it to be complete.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Protocol

from catalog.definition import JsonObject
from webhook.cluster.client import ApiError, ApiServer, ConnectionFault
from webhook.cluster.telemetry import ClusterMetrics

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 30.0
"""Seconds between attempts after faults: doubled each time, with jitter, up to the longest."""

FORBIDDEN_PAUSE = 60.0
"""Seconds until a collection is tried again that we may not read."""

NOT_SERVED_PAUSE = 5.0
"""Seconds until a collection is tried again that is not served."""


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

    `complete` is set when a list has been read whole; `fault` is the last reason why it could not be.
    """

    def __init__(
        self,
        server: ApiServer,
        path: str,
        sink: Sink,
        metrics: ClusterMetrics,
        *,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
        on_fault: Callable[[str, str], None] | None = None,
    ) -> None:
        self._server = server
        self._sink = sink
        self._metrics = metrics
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._metadata_only = metadata_only
        self._on_fault = on_fault
        self.path = path
        self.complete = asyncio.Event()
        self.fault: str | None = None

    async def run(self) -> None:
        """List and follow until cancelled."""
        pause = FIRST_PAUSE
        while True:
            try:
                version = await self._list()
                pause = FIRST_PAUSE
                await self._follow(version)
                reason = "expired"
            except ApiError as error:
                reason, pause = self._after_error(error, pause)
            except ConnectionFault as fault:
                reason, pause = "unreachable", min(pause * 2, LONGEST_PAUSE)
                self._report(str(fault))
            self._metrics.watch_restarts.labels(reason).inc()
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311 - jitter, no secret

    def _after_error(self, error: ApiError, pause: float) -> tuple[str, float]:
        if error.code == 410:
            return "expired", FIRST_PAUSE
        if error.code == 404:
            return "not-served", NOT_SERVED_PAUSE  # its CRD is not installed: no fault, and it may be at any time
        self._report(str(error))
        if error.code == 403:
            return "forbidden", FORBIDDEN_PAUSE
        return "refused", max(error.retry_after or 0, min(pause * 2, LONGEST_PAUSE))

    def _report(self, fault: str) -> None:
        if fault != self.fault and self._on_fault is not None:
            self._on_fault(self.path, fault)
        self.fault = fault

    async def _list(self) -> str:
        uids: set[str] = set()
        version = ""
        async for page in self._server.pages(
            self.path,
            metadata_only=self._metadata_only,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
        ):
            for obj in page.items:
                self._sink.seen(obj)
                uids.add(str((obj.get("metadata") or {}).get("uid")))
            version = page.resource_version
            await asyncio.sleep(0)  # a long list must not keep admissions waiting
        self._sink.listed(frozenset(uids))
        self.complete.set()
        self.fault = None
        return version

    async def _follow(self, version: str) -> None:
        """Follow from `version` until the API server has forgotten it (ApiError 410) or cannot be reached."""
        while True:
            async for event in self._server.watch(
                self.path,
                version,
                metadata_only=self._metadata_only,
                label_selector=self._label_selector,
                field_selector=self._field_selector,
            ):
                self._metrics.watch_events.labels(event.type).inc()
                version = (event.obj.get("metadata") or {}).get("resourceVersion", version)
                if event.type == "DELETED":
                    self._sink.gone(event.obj)
                elif event.type != "BOOKMARK":
                    self._sink.seen(event.obj)
            self._metrics.watch_restarts.labels("ended").inc()
            await asyncio.sleep(random.uniform(0, FIRST_PAUSE))  # noqa: S311 - jitter, no secret
