"""Watches of every described kind that is served, begun and ended as definitions and CRDs come and go."""

import asyncio
from collections.abc import Callable

from catalog.definition import JsonObject
from catalog.library import Catalog
from webhook.cluster.client import ApiError, ApiServer, ConnectionFault
from webhook.cluster.discovery import Discovery, Resource
from webhook.cluster.owners import ClusterOwners, readable_version, watched_kind
from webhook.cluster.repair import Repair
from webhook.cluster.telemetry import ClusterMetrics
from webhook.cluster.watches import Watch

REDISCOVER = 60.0
"""Seconds between two looks at what is served without a reason; a CRD that appears is a reason."""

SETTLE = 0.3
"""Seconds to let a new CRD be served, and several changes be one."""


class RootSink:
    """Feeds one kind's objects to the owner cache and to repair."""

    def __init__(
        self, resource: Resource, owners: ClusterOwners, repair: Repair, catalog: Callable[[], Catalog]
    ) -> None:
        self._resource = resource
        self._owners = owners
        self._repair = repair
        self._catalog = catalog
        self._uids: set[str] = set()

    def seen(self, obj: JsonObject) -> None:
        """An object as it is now."""
        kind = watched_kind(obj, self._resource)
        self._uids.add(obj["metadata"]["uid"])
        self._owners.seen(obj, kind, self._catalog())
        self._repair.consider(obj, kind)

    def gone(self, obj: JsonObject) -> None:
        """An object was deleted."""
        self._uids.discard(obj["metadata"]["uid"])
        self._owners.gone(obj["metadata"]["uid"])

    def listed(self, uids: frozenset[str]) -> None:
        """What a list no longer has is gone."""
        for uid in self._uids - uids:
            self._owners.gone(uid)
        self._uids = set(uids)


class RootWatches:
    """One watch for each described and served kind, pods aside.

    `wake` makes it look again: a definition or a CRD has come or gone. `on_kinds` is called when the served kinds may
    have changed.
    """

    def __init__(
        self,
        server: ApiServer,
        discovery: Discovery,
        owners: ClusterOwners,
        repair: Repair,
        metrics: ClusterMetrics,
        *,
        catalog: Callable[[], Catalog],
        on_kinds: Callable[[], None],
        report: Callable[[str, str], None],
    ) -> None:
        self._server = server
        self._discovery = discovery
        self._owners = owners
        self._repair = repair
        self._metrics = metrics
        self._catalog = catalog
        self._on_kinds = on_kinds
        self._report = report
        self._due = asyncio.Event()
        self._running: dict[str, tuple[Watch, asyncio.Task[None]]] = {}
        metrics.watches.set_function(lambda: len(self._running))
        metrics.watches_complete.set_function(
            lambda: sum(1 for watch, _ in self._running.values() if watch.complete.is_set())
        )

    def wake(self) -> None:
        """Definitions or served kinds may have changed."""
        self._due.set()

    async def run(self) -> None:
        """Keep the watches in step until cancelled."""
        try:
            while True:
                self._due.clear()
                await self._rediscover()
                self._adjust()
                self._on_kinds()
                try:
                    async with asyncio.timeout(REDISCOVER):
                        await self._due.wait()
                    await asyncio.sleep(SETTLE)
                except TimeoutError:
                    continue
        finally:
            for path in list(self._running):
                self._stop(path)

    async def _rediscover(self) -> None:
        try:
            await self._discovery.refresh()
        except (ApiError, ConnectionFault) as error:
            self._report("discovery", f"what is served could not be read: {error}")

    def _adjust(self) -> None:
        wanted = dict(self._wanted())
        for path in self._running.keys() - wanted.keys():
            self._stop(path)
        for path in wanted.keys() - self._running.keys():
            sink = RootSink(wanted[path], self._owners, self._repair, self._catalog)
            watch = Watch(self._server, path, sink, self._metrics, on_fault=self._report)
            self._running[path] = (watch, asyncio.create_task(watch.run()))

    def _wanted(self) -> list[tuple[str, Resource]]:
        """URL path and resource of each kind to watch, at the version that its definition reads."""
        found = []
        for group, kind in self._catalog().by_kind:
            resource = self._discovery.known(group, kind)
            if resource is None or (group, kind) == ("", "Pod") or not {"list", "watch"} <= resource.verbs:
                continue
            first = self._catalog().by_kind[group, kind][0]
            version = readable_version(resource, first.definition.describes, first)
            found.append((resource.path(version=version), resource))
        return found

    def _stop(self, path: str) -> None:
        _, task = self._running.pop(path)
        task.cancel()

    def relist(self, group: str, kind: str) -> None:
        """Read a kind anew, because its definition has changed."""
        for path, resource in self._wanted():
            if (resource.group, resource.kind) == (group, kind) and path in self._running:
                self._stop(path)
        self.wake()
