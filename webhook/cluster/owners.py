"""Owners in a cluster: followed hop by hop, remembered by uid, read when missed.

An owner that is remembered costs no I/O. One that is not is read once, however many pods wait for it, under a rate
limit and within the admission's own deadline; whatever goes wrong is a reason, never an exception.
Only what admissions need is remembered: the next owner, and the resolved structure of a described object.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from catalog.definition import GroupVersionKind, JsonObject
from catalog.expressions import Outcome
from catalog.library import NOTHING_ISOLATED, Catalog, CompiledDefinition
from catalog.structure import Structure, resolve
from webhook.cluster.client import ApiError, ApiServer, ConnectionFault
from webhook.cluster.discovery import Discovery, Resource
from webhook.cluster.telemetry import ClusterMetrics
from webhook.isolation import Isolated
from webhook.lineage import (
    MAX_OWNERS,
    Lineage,
    Owner,
    OwnerReference,
    controller_reference,
    kind_named,
    next_owner,
)
from webhook.stamps import Policy

READ_TIMEOUT = 5.0
"""Seconds for one read: longer than any admission waits, so that the next one finds it remembered."""

FORBIDDEN_FOR = 30.0
"""Seconds for which a kind that we may not read is not asked for again."""

STALE_FOR = 5.0
"""Seconds after a review of an update during which an owner is read anew unless the watch has seen it."""


@dataclass(slots=True, kw_only=True)
class Remembered:
    """One owner: where it points, and its structure when its kind is described. `stale_until` is event-loop time."""

    kind: GroupVersionKind
    namespace: str
    name: str
    uid: str
    next: OwnerReference | None
    compiled: CompiledDefinition | None
    structure: Structure | None
    fingerprint: tuple[object, ...] = ()
    stale_since: float | None = None


@dataclass(frozen=True, slots=True)
class Broken:
    """Why an owner could not be followed: a class for metrics, a sentence for people."""

    reason: str
    sentence: str


class TokenBucket:
    """A rate with a burst. `delay` takes one token and says how long to wait for it, in seconds."""

    def __init__(self, rate: float, burst: int, now: float) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at = now

    def delay(self, now: float, patience: float) -> float | None:
        """Seconds until the token is there; `None`, and nothing taken, when that is longer than `patience`."""
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        wait = max(0.0, (1.0 - self._tokens) / self._rate)
        if wait > patience:
            return None
        self._tokens -= 1.0
        return wait


class ClusterOwners:
    """Follows owners through the cache and the API server; an `OwnerSource`, and a sink for watches of root kinds."""

    def __init__(
        self,
        server: ApiServer,
        discovery: Discovery,
        policy: Policy,
        isolated: Isolated,
        metrics: ClusterMetrics,
        *,
        cache_size: int,
        rate: float,
        burst: int,
    ) -> None:
        self._server = server
        self._discovery = discovery
        self._policy = policy
        self._isolated = isolated
        self._metrics = metrics
        self._cache_size = cache_size
        self._loop = asyncio.get_running_loop()
        self._bucket = TokenBucket(rate, burst, self._loop.time())
        self._owners: OrderedDict[str, Remembered] = OrderedDict()
        self._reading: dict[str, asyncio.Task[Remembered | Broken]] = {}
        self._forbidden: dict[tuple[str, str], float] = {}
        metrics.owners_remembered.set_function(lambda: len(self._owners))

    async def lineage(self, obj: JsonObject, namespace: str, catalog: Catalog, deadline: float) -> Lineage:
        """The owners of `obj`, nearest first, known before `deadline` (event-loop time, seconds)."""
        owners: list[Owner] = []
        seen: set[str] = set()
        reference = next_owner(obj, catalog)
        while reference is not None:
            if reference.uid in seen or len(owners) >= MAX_OWNERS:
                return self._broken(owners, _no_way_up(reference, seen))
            remembered = self._remembered(reference, catalog)
            found = remembered or await self._read_in_time(reference, namespace, catalog, deadline)
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

    def _remembered(self, reference: OwnerReference, catalog: Catalog) -> Remembered | None:
        """The owner from the cache, when it was resolved under the definition in force and is not stale."""
        found = self._owners.get(reference.uid)
        if found is None or (found.kind.group, found.kind.kind) != (reference.kind.group, reference.kind.kind):
            self._metrics.owner_lookups.labels("missed").inc()
            return None
        if found.stale_since is not None and self._loop.time() < found.stale_since + STALE_FOR:
            self._metrics.owner_lookups.labels("stale").inc()
            return None
        if found.compiled is not _definition(catalog, found.kind):
            self._metrics.owner_lookups.labels("redefined").inc()
            return None
        self._owners.move_to_end(reference.uid)
        self._metrics.owner_lookups.labels("remembered").inc()
        return found

    async def _read_in_time(
        self, reference: OwnerReference, namespace: str, catalog: Catalog, deadline: float
    ) -> Remembered | Broken:
        """One read for all who wait; each waits no longer than its own deadline, the read goes on."""
        task = self._reading.get(reference.uid)
        if task is None:
            refused = await self._admission_to_read(reference, deadline)
            if refused is not None:
                return refused
            task = self._reading.get(reference.uid) or self._start_reading(reference, namespace, catalog)
        try:
            async with asyncio.timeout_at(deadline):
                return await asyncio.shield(task)
        except TimeoutError:
            return Broken("deadline", f"owner {_named(reference)} could not be read in time")

    async def _admission_to_read(self, reference: OwnerReference, deadline: float) -> Broken | None:
        """Wait for the rate limit; the reason when that, or a missing right, forbids reading at all."""
        now = self._loop.time()
        kind = (reference.kind.group, reference.kind.kind)
        if self._forbidden.get(kind, now) > now:
            return Broken("forbidden", f"owner {_named(reference)} may not be read")
        wait = self._bucket.delay(now, max(0.0, deadline - now))
        if wait is None:
            return Broken("throttled", f"owner {_named(reference)} was not read: too many reads at once")
        if wait > 0:
            await asyncio.sleep(wait)
        return None

    def _start_reading(
        self, reference: OwnerReference, namespace: str, catalog: Catalog
    ) -> asyncio.Task[Remembered | Broken]:
        task = asyncio.create_task(self._read(reference, namespace, catalog))
        self._reading[reference.uid] = task
        task.add_done_callback(lambda _: self._reading.pop(reference.uid, None))
        return task

    async def _read(self, reference: OwnerReference, namespace: str, catalog: Catalog) -> Remembered | Broken:
        started = self._loop.time()
        try:
            async with asyncio.timeout(READ_TIMEOUT):
                found = await self._fetch(reference, namespace, catalog)
        except ApiError as error:
            found = self._api_fault(reference, error)
        except ConnectionFault as fault:
            found = Broken("unreachable", f"owner {_named(reference)} could not be read: {fault}")
        except TimeoutError:
            found = Broken("deadline", f"owner {_named(reference)} could not be read in time")
        self._metrics.owner_reads.labels(found.reason if isinstance(found, Broken) else "read").inc()
        self._metrics.owner_read_seconds.observe(self._loop.time() - started)
        return found

    async def _fetch(self, reference: OwnerReference, namespace: str, catalog: Catalog) -> Remembered | Broken:
        resource = await self._discovery.find(reference.kind.group, reference.kind.kind)
        if resource is None:
            return Broken("not-served", f"owner {_named(reference)} is of a kind that is not served")
        compiled = _definition(catalog, reference.kind)
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
        return self._keep(obj, kind, compiled, isolated)

    def _keep(
        self,
        obj: JsonObject,
        kind: GroupVersionKind,
        compiled: CompiledDefinition | None,
        isolated: Mapping[str, Outcome],
    ) -> Remembered:
        metadata = obj["metadata"]
        structure = None
        if compiled is not None:
            structure = resolve(
                compiled, obj, self._policy.accelerators, namespace=metadata.get("namespace", ""), isolated=isolated
            )
        remembered = Remembered(
            kind=kind,
            namespace=metadata.get("namespace", ""),
            name=metadata["name"],
            uid=metadata["uid"],
            next=controller_reference(obj),
            compiled=compiled,
            structure=structure,
            fingerprint=_fingerprint(obj),
        )
        self._owners[remembered.uid] = remembered
        self._owners.move_to_end(remembered.uid)
        while len(self._owners) > self._cache_size:
            self._owners.popitem(last=False)
        return remembered

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
        found = self._owners.get(structure.uid)
        if found is not None and found.structure is not None and differs(found.structure, structure):
            found.stale_since = self._loop.time()

    def seen(self, obj: JsonObject, kind: GroupVersionKind, catalog: Catalog) -> None:
        """A watch shows a described object as it is now; work is done only when what matters has changed."""
        metadata = obj.get("metadata") or {}
        uid, compiled = metadata.get("uid"), _definition(catalog, kind)
        if not uid or compiled is None:
            return
        found = self._owners.get(uid)
        if found is not None and found.compiled is compiled and found.fingerprint == _fingerprint(obj):
            return
        if found is not None and found.stale_since is not None:
            self._metrics.watch_lag_seconds.observe(self._loop.time() - found.stale_since)
        if compiled.structure.pending(obj) is not None:
            self.gone(uid)  # read through, where waiting for another process is possible
            return
        self._keep(obj, kind, compiled, NOTHING_ISOLATED)

    def gone(self, uid: str) -> None:
        """Forget an owner."""
        self._owners.pop(uid, None)

    @property
    def remembered(self) -> int:
        """Owners in the cache."""
        return len(self._owners)


def _definition(catalog: Catalog, kind: GroupVersionKind) -> CompiledDefinition | None:
    """The definition through which an owner is read: none for a pod that owns pods (contract, section 2)."""
    return None if kind.kind == "Pod" and not kind.group else catalog.find(kind)


def readable_version(resource: Resource, kind: GroupVersionKind, compiled: CompiledDefinition | None) -> str:
    """The version to read at: the definition's where it is served, else the reference's, else the preferred one."""
    wanted = (compiled.definition.describes.version if compiled is not None else "", kind.version)
    return next((version for version in wanted if version in resource.versions), resource.version)


def _owner(found: Remembered) -> Owner:
    return Owner(kind=found.kind, namespace=found.namespace, name=found.name, uid=found.uid, structure=found.structure)


def _fingerprint(obj: JsonObject) -> tuple[object, ...]:
    """What of an object's metadata changes whenever its structure may: status updates leave it as it is."""
    metadata = obj.get("metadata") or {}
    annotations = metadata.get("annotations") or {}
    generation = metadata.get("generation") or metadata.get("resourceVersion")
    return generation, tuple(sorted((str(key), str(value)) for key, value in annotations.items() if _may_matter(key)))


def _may_matter(annotation: str) -> bool:
    return not annotation.startswith(("kubectl.kubernetes.io/", "deployment.kubernetes.io/"))


def _named(reference: OwnerReference) -> str:
    return f"{reference.kind.kind} {reference.name}"


def _no_way_up(reference: OwnerReference, seen: set[str]) -> Broken:
    if reference.uid in seen:
        return Broken("cycle", f"owner {_named(reference)} owns itself in a circle")
    return Broken("depth", f"more than {MAX_OWNERS} owners")


def differs(one: Structure, other: Structure) -> bool:
    """Whether two structures of one object would stamp its pods differently."""
    return (one.leaves, one.gangs, one.gang_fault) != (other.leaves, other.gangs, other.gang_fault)


def watched_kind(obj: JsonObject, resource: Resource) -> GroupVersionKind:
    """The kind of a listed object; items of a list carry no apiVersion of their own."""
    named = kind_named(obj.get("apiVersion"), obj.get("kind"))
    return named or GroupVersionKind(resource.group, resource.version, resource.kind)
