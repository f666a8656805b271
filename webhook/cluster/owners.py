"""Owners in a cluster: followed hop by hop, from what is remembered, read when missed.

An owner that is remembered costs no I/O. One that is not is read once, however many pods wait for it, under a rate
limit and within the admission's own deadline; whatever goes wrong is a reason, never an exception.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from catalog.definition import GroupVersionKind, JsonObject
from catalog.expressions import Outcome
from catalog.library import NOTHING_ISOLATED, Catalog, CompiledDefinition
from catalog.structure import Structure
from webhook.cluster.client import ApiError, ApiServer, ConnectionFault
from webhook.cluster.discovery import Discovery
from webhook.cluster.owner_cache import OwnerCache, Remembered, definition_of
from webhook.cluster.rates import TokenBucket
from webhook.cluster.supervision import Supervision
from webhook.cluster.telemetry import ClusterMetrics
from webhook.cluster.views import readable_version
from webhook.isolation import Isolated
from webhook.lineage import MAX_OWNERS, Lineage, Owner, OwnerReference, next_owner

READ_TIMEOUT = 10.0
"""Seconds for one read: longer than any admission waits, so that the next one finds it remembered."""

MOST_READS = 64
"""Owners read at the same time; further reads wait their turn."""

FORBIDDEN_FOR = 2.0
"""Seconds for which a kind that we may not read is not asked for again; a new framework's rights come within them."""

ANSWER_RESERVE = 0.1
"""Seconds of an admission's time that are kept from waiting for owners, so that there is an answer with a reason."""


@dataclass(frozen=True, slots=True)
class Broken:
    """Why an owner could not be followed: a class for metrics, a sentence for people."""

    reason: str
    sentence: str


class ClusterOwners:
    """Follows owners through the cache and the API server: an `OwnerSource`. `cache` is the watches' to feed."""

    def __init__(
        self,
        server: ApiServer,
        discovery: Discovery,
        cache: OwnerCache,
        isolated: Isolated,
        metrics: ClusterMetrics,
        *,
        supervision: Supervision,
        rate: float,
        burst: int,
    ) -> None:
        self._server = server
        self._discovery = discovery
        self._isolated = isolated
        self._metrics = metrics
        self._supervision = supervision
        self._loop = asyncio.get_running_loop()
        self._bucket = TokenBucket(rate, burst, self._loop.time())
        self._turns = asyncio.Semaphore(MOST_READS)
        self._reading: dict[tuple[str, str, OwnerReference], asyncio.Task[Remembered | Broken]] = {}
        self._forbidden: dict[tuple[str, str], float] = {}
        self.cache = cache

    async def lineage(self, obj: JsonObject, namespace: str, catalog: Catalog, deadline: float) -> Lineage:
        """The owners of `obj`, nearest first, known before `deadline` (event-loop time, seconds)."""
        owners: list[Owner] = []
        seen: set[str] = set()
        reference = next_owner(obj, catalog)
        while reference is not None:
            if reference.uid in seen or len(owners) >= MAX_OWNERS:
                return self._broken(owners, _no_way_up(reference, seen))
            remembered = self.cache.find(reference, namespace, catalog)
            found = remembered or await self._read_in_time(reference, namespace, catalog, deadline - ANSWER_RESERVE)
            if isinstance(found, Broken):
                return self._broken(owners, found)
            seen.add(reference.uid)
            owners.append(_owner(found))
            following = found.next
            walks = following is not None and catalog.walks_through(following.kind.group, following.kind.kind)
            reference = following if walks else None
        return Lineage(owners=tuple(owners))

    def _broken(self, owners: list[Owner], broken: Broken) -> Lineage:
        self._metrics.lineages_broken.labels(broken.reason).inc()
        return Lineage(owners=tuple(owners), broken=broken.sentence)

    async def _read_in_time(
        self, reference: OwnerReference, namespace: str, catalog: Catalog, deadline: float
    ) -> Remembered | Broken:
        """One read for all who wait; each waits no longer than its own deadline, the read goes on."""
        # By all of the reference and the namespace: a forged one with the same uid must not answer for the true one.
        key = (reference.uid, namespace, reference)
        task = self._reading.get(key)
        if task is None:
            now = self._loop.time()
            if self._forbidden.get((reference.kind.group, reference.kind.kind), now) > now:
                return Broken("forbidden", f"owner {_named(reference)} may not be read")
            wait = self._bucket.delay(now, max(0.0, deadline - now))
            if wait is None:
                return Broken("throttled", f"owner {_named(reference)} was not read: too many reads at once")
            task = asyncio.create_task(self._read(reference, namespace, catalog, wait))
            self._reading[key] = task
            task.add_done_callback(lambda _: self._reading.pop(key, None))
        try:
            async with asyncio.timeout_at(deadline):
                return await asyncio.shield(task)
        except TimeoutError:
            return Broken("deadline", f"owner {_named(reference)} could not be read in time")

    async def _read(
        self, reference: OwnerReference, namespace: str, catalog: Catalog, wait: float
    ) -> Remembered | Broken:
        """Read after so many seconds, and when it is this read's turn. Never raises."""
        if wait > 0:
            await asyncio.sleep(wait)
        async with self._turns:
            started = self._loop.time()
            found = await self._fetched(reference, namespace, catalog)
        self._metrics.owner_reads.labels(found.reason if isinstance(found, Broken) else "read").inc()
        self._metrics.owner_read_seconds.observe(self._loop.time() - started)
        return found

    async def _fetched(self, reference: OwnerReference, namespace: str, catalog: Catalog) -> Remembered | Broken:
        try:
            async with asyncio.timeout(READ_TIMEOUT):
                return await self._fetch(reference, namespace, catalog)
        except ApiError as error:
            return self._api_fault(reference, error)
        except ConnectionFault:
            # What the library says names addresses; this sentence stands on an object for all to read.
            return Broken("unreachable", f"owner {_named(reference)} could not be read: the API server did not answer")
        except TimeoutError:
            return Broken("deadline", f"owner {_named(reference)} could not be read in time")
        except Exception:  # noqa: BLE001 - logged and counted; the pod still gets what it says itself
            self._supervision.survived("owners", kind=reference.kind.kind, namespace=namespace, name=reference.name)
            return Broken("failed", f"owner {_named(reference)} could not be understood")

    async def _fetch(self, reference: OwnerReference, namespace: str, catalog: Catalog) -> Remembered | Broken:
        resource = await self._discovery.find(reference.kind.group, reference.kind.kind)
        if resource is None:
            return Broken("not-served", f"owner {_named(reference)} is of a kind that is not served")
        compiled = definition_of(catalog, reference.kind)
        version = readable_version(resource, reference.kind, compiled)
        path = resource.path(namespace, reference.name, version)
        obj = await self._server.get(path, metadata_only=compiled is None)
        uid = (obj.get("metadata") or {}).get("uid")
        if uid != reference.uid:
            return Broken("other-uid", f"owner {_named(reference)} has another uid than the reference")
        return await self._remember(obj, GroupVersionKind(reference.kind.group, version, reference.kind.kind), compiled)

    async def _remember(
        self, obj: JsonObject, kind: GroupVersionKind, compiled: CompiledDefinition | None
    ) -> Remembered:
        isolated: Mapping[str, Outcome] = NOTHING_ISOLATED
        request = compiled.structure.pending(obj) if compiled is not None else None
        if compiled is not None and request is not None:
            isolated = await self._isolated(compiled, request)
        return self.cache.keep(obj, kind, compiled, isolated)

    def _api_fault(self, reference: OwnerReference, error: ApiError) -> Broken:
        if error.code == 404:
            return Broken("not-found", f"owner {_named(reference)} does not exist")
        if error.code in (401, 403):
            kind = (reference.kind.group, reference.kind.kind)
            self._forbidden[kind] = self._loop.time() + FORBIDDEN_FOR
            return Broken("forbidden", f"owner {_named(reference)} may not be read")
        return Broken("unreachable", f"owner {_named(reference)} could not be read: HTTP {error.code}")

    def updated(self, structure: Structure) -> None:
        """A review changes this object: until the watch has seen it, it is read anew when needed."""
        self.cache.updated(structure)


def _owner(found: Remembered) -> Owner:
    return Owner(kind=found.kind, namespace=found.namespace, name=found.name, uid=found.uid, structure=found.structure)


def _named(reference: OwnerReference) -> str:
    return f"{reference.kind.kind} {reference.name}"


def _no_way_up(reference: OwnerReference, seen: set[str]) -> Broken:
    if reference.uid in seen:
        return Broken("cycle", f"owner {_named(reference)} owns itself in a circle")
    return Broken("depth", f"more than {MAX_OWNERS} owners")
