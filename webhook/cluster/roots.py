"""Watches of every described kind that is served, begun and ended as definitions and CRDs come and go."""

import asyncio
from collections.abc import Callable

from catalog.definition import JsonObject
from catalog.library import Catalog
from webhook.cluster.census import WorkloadCensus
from webhook.cluster.client import ApiError, ApiServer, ConnectionFault
from webhook.cluster.discovery import Discovery, Resource
from webhook.cluster.owner_cache import OwnerCache
from webhook.cluster.repair import Repair
from webhook.cluster.supervision import Supervision
from webhook.cluster.telemetry import ClusterMetrics
from webhook.cluster.views import fingerprint_number, readable_version, watched_kind
from webhook.cluster.watches import Watch

REDISCOVER = 60.0
"""Seconds between two looks at what is served without a reason; a CRD that appears is a reason."""

RETRY = 2.0
"""Seconds until the next look when the last one failed, or lacked a kind that was served before."""

SETTLE = 0.3
"""Seconds to let a new CRD be served, and several changes be one."""

AGAIN = (1.0, 3.0, 9.0)
"""Seconds between the looks that follow a reason: a busy API server serves a new CRD well after it shows it."""


class RootSink:
    """Feeds one kind's objects, read at `version`, to the owner cache, to repair, and to the census if there is one."""

    def __init__(
        self,
        resource: Resource,
        version: str,
        owners: OwnerCache,
        repair: Repair,
        catalog: Callable[[], Catalog],
        *,
        census: WorkloadCensus | None = None,
    ) -> None:
        self._census = census
        self._resource = resource
        self._version = version
        self._owners = owners
        self._repair = repair
        self._catalog = catalog
        self._known: dict[str, int] = {}

    def seen(self, obj: JsonObject) -> None:
        """An object as it is now. Most news of it is of its status, which concerns nobody here."""
        kind, uid = watched_kind(obj, self._resource, self._version), obj["metadata"]["uid"]
        self._owners.seen(obj, kind, self._catalog())
        if self._census is not None:
            self._census.seen(obj, kind)
        before, self._known[uid] = self._known.get(uid), fingerprint_number(obj)
        if before != self._known[uid]:
            self._repair.consider(obj, kind)

    def gone(self, obj: JsonObject) -> None:
        """An object was deleted."""
        self._gone(obj["metadata"]["uid"])

    def listed(self, uids: frozenset[str]) -> None:
        """What a list no longer has is gone."""
        for uid in self._known.keys() - uids:
            self._gone(uid)

    def _gone(self, uid: str) -> None:
        self._known.pop(uid, None)
        self._owners.gone(uid)
        if self._census is not None:
            self._census.gone(uid)

    def knows(self, uid: str) -> bool:
        """Whether the object is there as far as the watch has shown."""
        return uid in self._known


class RootWatches:
    """One watch for each described and served kind, pods aside.

    `wake` makes it look again: a definition or a CRD has come or gone. `on_kinds` is called when the served kinds may
    have changed.
    """

    def __init__(
        self,
        server: ApiServer,
        discovery: Discovery,
        owners: OwnerCache,
        repair: Repair,
        metrics: ClusterMetrics,
        *,
        supervision: Supervision,
        catalog: Callable[[], Catalog],
        on_kinds: Callable[[], None],
        census: WorkloadCensus | None = None,
    ) -> None:
        self._census = census
        self._sinks: dict[str, RootSink] = {}
        self._server = server
        self._discovery = discovery
        self._owners = owners
        self._repair = repair
        self._metrics = metrics
        self._catalog = catalog
        self._on_kinds = on_kinds
        self._supervision = supervision
        self._due = asyncio.Event()
        self._running: dict[str, tuple[Watch, asyncio.Task[None]]] = {}
        self._following: dict[tuple[str, str], Watch] = {}
        metrics.watches.set_function(lambda: len(self._running))
        metrics.watches_complete.set_function(lambda: sum(1 for watch, _ in self._running.values() if watch.is_current))

    def is_followed(self, group: str, kind: str) -> bool:
        """Whether what a watch has shown of this kind is current."""
        watch = self._following.get((group, kind))
        return watch is not None and watch.is_current

    def knows(self, uid: str) -> bool:
        """Whether a root is there, as far as the watches have shown."""
        return any(sink.knows(uid) for sink in self._sinks.values())

    def wake(self) -> None:
        """Definitions or served kinds may have changed."""
        self._due.set()

    async def run(self) -> None:
        """Keep the watches in step until cancelled."""
        again: tuple[float, ...] = AGAIN
        try:
            while True:
                self._due.clear()
                complete = await self._rediscover()
                self._adjust()
                self._on_kinds()
                pause, again = (again[0], again[1:]) if again else (REDISCOVER, again)
                try:
                    async with asyncio.timeout(pause if complete else min(pause, RETRY)):
                        await self._due.wait()
                    await asyncio.sleep(SETTLE)
                    again = AGAIN
                except TimeoutError:
                    continue
        finally:
            for path in list(self._running):
                self._stop(path)

    async def _rediscover(self) -> bool:
        """Read what is served; whether that leaves nothing to be looked at again soon."""
        try:
            await self._discovery.refresh()
        except (ApiError, ConnectionFault) as error:
            self._supervision.tell("discovery", f"what is served could not be read: {error}")
            return False
        return not any(self._catalog().describes(*kind) for kind in self._discovery.doubtful)

    def _adjust(self) -> None:
        wanted = {resource.path(version=version): (resource, version) for resource, version in self._wanted()}
        for path in self._running.keys() - wanted.keys():
            self._stop(path)
        for path in wanted.keys() - self._running.keys():
            resource, version = wanted[path]
            sink = RootSink(resource, version, self._owners, self._repair, self._catalog, census=self._census)
            self._sinks[path] = sink
            watch = Watch(self._server, path, sink, self._metrics, self._supervision)
            self._running[path] = (watch, asyncio.create_task(self._supervision.keep(path, watch.run)))
        self._following = {
            (resource.group, resource.kind): self._running[path][0] for path, (resource, _) in wanted.items()
        }

    def _wanted(self) -> list[tuple[Resource, str]]:
        """Each kind to watch, and the version that its definition reads."""
        found = []
        for (group, kind), definitions in self._catalog().by_kind.items():
            resource = self._discovery.known(group, kind)
            if resource is None or (group, kind) == ("", "Pod") or not {"list", "watch"} <= resource.verbs:
                continue
            found.append((resource, readable_version(resource, definitions[0].definition.describes, definitions[0])))
        return found

    def _stop(self, path: str) -> None:
        self._sinks.pop(path, None)
        _, task = self._running.pop(path)
        task.cancel()
