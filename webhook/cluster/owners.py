"""Owners in a cluster: followed hop by hop, remembered by uid, read when missed.

An owner that is remembered costs no I/O. One that is not is read once, however many pods wait for it, under a rate
limit and within the admission's own deadline; whatever goes wrong is a reason, never an exception.
What is remembered is believed as long as a watch of its kind would have told of a change, else for a few seconds.
Only what admissions need is remembered: the next owner, and the resolved structure of a described object.
"""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from catalog.definition import GroupVersionKind, JsonObject
from catalog.expressions import Outcome
from catalog.library import NOTHING_ISOLATED, Catalog, CompiledDefinition
from catalog.structure import Structure, resolve
from webhook.cluster.client import ApiError, ApiServer, ConnectionFault
from webhook.cluster.discovery import Discovery, Resource
from webhook.cluster.rates import TokenBucket
from webhook.cluster.supervision import Supervision
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

READ_TIMEOUT = 10.0
"""Seconds for one read: longer than any admission waits, so that the next one finds it remembered."""

MOST_READS = 64
"""Owners read at the same time; further reads wait their turn."""

FORBIDDEN_FOR = 2.0
"""Seconds for which a kind that we may not read is not asked for again; a new framework's rights come within them."""

STALE_FOR = 5.0
"""Seconds after a review of an update during which an owner is read anew unless the watch has seen it."""

BELIEVED_FOR = 5.0
"""Seconds for which a described object is believed that no watch follows."""

PASSED_THROUGH_BELIEVED_FOR = 60.0
"""The same for an object of which only the owner is asked: it changes when it is adopted, if ever."""

ANSWER_RESERVE = 0.1
"""Seconds of an admission's time that are kept from waiting for owners, so that there is an answer with a reason."""

_READS_STATUS = re.compile(r"(?<![\w\]])\.status\b|\[\s*\"status\"\s*\]")


@dataclass(slots=True, kw_only=True)
class Remembered:
    """One owner: where it points, and its structure when its kind is described.

    `read_at` and `stale_since` are event-loop times, `version` its resource version where that is a number.
    """

    kind: GroupVersionKind
    namespace: str
    name: str
    uid: str
    next: OwnerReference | None
    compiled: CompiledDefinition | None
    structure: Structure | None
    fingerprint: tuple[object, ...]
    version: int
    read_at: float
    stale_since: float | None = None


@dataclass(frozen=True, slots=True)
class Broken:
    """Why an owner could not be followed: a class for metrics, a sentence for people."""

    reason: str
    sentence: str


def nothing_followed(_group: str, _kind: str) -> bool:
    """For who has no watches."""
    return False


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
        supervision: Supervision,
        cache_size: int,
        rate: float,
        burst: int,
    ) -> None:
        self._server = server
        self._discovery = discovery
        self._policy = policy
        self._isolated = isolated
        self._metrics = metrics
        self._supervision = supervision
        self._cache_size = cache_size
        self._loop = asyncio.get_running_loop()
        self._bucket = TokenBucket(rate, burst, self._loop.time())
        self._turns = asyncio.Semaphore(MOST_READS)
        self._owners: OrderedDict[str, Remembered] = OrderedDict()
        self._reading: dict[tuple[str, str, OwnerReference], asyncio.Task[Remembered | Broken]] = {}
        self._forbidden: dict[tuple[str, str], float] = {}
        self.is_followed: Callable[[str, str], bool] = nothing_followed
        metrics.owners_remembered.set_function(lambda: len(self._owners))

    async def lineage(self, obj: JsonObject, namespace: str, catalog: Catalog, deadline: float) -> Lineage:
        """The owners of `obj`, nearest first, known before `deadline` (event-loop time, seconds)."""
        owners: list[Owner] = []
        seen: set[str] = set()
        reference = next_owner(obj, catalog)
        while reference is not None:
            if reference.uid in seen or len(owners) >= MAX_OWNERS:
                return self._broken(owners, _no_way_up(reference, seen))
            remembered = self._remembered(reference, namespace, catalog)
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

    def _remembered(self, reference: OwnerReference, namespace: str, catalog: Catalog) -> Remembered | None:
        """The owner from the cache, when it is what the reference means and can be believed."""
        found = self._owners.get(reference.uid)
        result = "missed" if found is None else self._doubt(found, reference, namespace, catalog) or "remembered"
        self._metrics.owner_lookups.labels(result).inc()
        if result != "remembered":
            return None
        self._owners.move_to_end(reference.uid)
        return found

    def _doubt(self, found: Remembered, reference: OwnerReference, namespace: str, catalog: Catalog) -> str | None:
        """Why what is remembered does not do, None when it does."""
        if (found.kind.group, found.kind.kind) != (reference.kind.group, reference.kind.kind):
            return "missed"
        if found.name != reference.name or found.namespace not in ("", namespace):
            return "missed"  # a reference is user input: who knows a uid must not be taken into another namespace
        if found.compiled is not _definition(catalog, found.kind):
            return "redefined"
        now = self._loop.time()
        if found.stale_since is not None and now < found.stale_since + STALE_FOR:
            return "stale"
        if found.compiled is not None and self.is_followed(found.kind.group, found.kind.kind):
            return None
        believed_for = PASSED_THROUGH_BELIEVED_FOR if found.compiled is None else BELIEVED_FOR
        return None if now < found.read_at + believed_for else "aged"

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
        """Remember an object as it was shown; the newer one of two views of it stays."""
        metadata = obj["metadata"]
        before, version = self._owners.get(metadata["uid"]), _version(obj)
        if before is not None and before.compiled is compiled and before.version > version:
            return before  # a read that was overtaken by the watch
        structure = None
        if compiled is not None:
            structure = resolve(
                compiled, obj, self._policy.accelerators, namespace=metadata.get("namespace", ""), isolated=isolated
            )
        fingerprint = _fingerprint(obj, compiled)
        unchanged = before is not None and before.fingerprint == fingerprint
        remembered = Remembered(
            kind=kind,
            namespace=metadata.get("namespace", ""),
            name=metadata["name"],
            uid=metadata["uid"],
            next=controller_reference(obj),
            compiled=compiled,
            structure=structure,
            fingerprint=fingerprint,
            version=version,
            read_at=self._loop.time(),
            # A read may come before the update that was reviewed is stored.
            stale_since=before.stale_since if before is not None and unchanged else None,
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

    def seen(self, obj: JsonObject, kind: GroupVersionKind, catalog: Catalog) -> bool:
        """A watch shows a described object as it is now; whether anything that matters has changed since last time."""
        metadata = obj.get("metadata") or {}
        uid, compiled = metadata.get("uid"), _definition(catalog, kind)
        if not uid or compiled is None:
            return False
        found = self._owners.get(uid)
        if found is not None and found.compiled is compiled and found.fingerprint == _fingerprint(obj, compiled):
            found.version = max(found.version, _version(obj))
            return False
        if found is not None and found.stale_since is not None:
            self._metrics.watch_lag_seconds.observe(self._loop.time() - found.stale_since)
        if compiled.structure.pending(obj) is not None:
            self.gone(uid)  # read through, where waiting for another process is possible
        else:
            self._keep(obj, kind, compiled, NOTHING_ISOLATED)
        return True

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


def _fingerprint(obj: JsonObject, compiled: CompiledDefinition | None) -> tuple[object, ...]:
    """What of an object changes whenever its structure or its owner may: status updates leave it as it is."""
    metadata = obj.get("metadata") or {}
    generation = metadata.get("generation")
    if generation is None or (compiled is not None and _reads_status(compiled.structure.sources)):
        generation = metadata.get("resourceVersion")
    return generation, controller_reference(obj), _texts(metadata, "labels"), _texts(metadata, "annotations")


def fingerprint_number(obj: JsonObject) -> int:
    """A number that differs whenever the specification, the owner, a label or an annotation does."""
    return hash(_fingerprint(obj, None))


def _texts(metadata: JsonObject, field: str) -> tuple[tuple[str, str], ...]:
    found = metadata.get(field) or {}
    return tuple(sorted((str(key), str(value)) for key, value in found.items() if _may_matter(key)))


def _may_matter(key: str) -> bool:
    return not key.startswith(("kubectl.kubernetes.io/", "deployment.kubernetes.io/"))


@lru_cache(maxsize=1024)
def _reads_status(sources: tuple[str, ...]) -> bool:
    """Whether an expression may read the status, which changes without the generation."""
    return any(_READS_STATUS.search(source) for source in sources)


def _version(obj: JsonObject) -> int:
    """The resource version, which orders views of one object (Kubernetes 1.35, KEP-5504); 0 when it is no number."""
    text = str((obj.get("metadata") or {}).get("resourceVersion", ""))
    return int(text) if text.isascii() and text.isdigit() else 0


def _named(reference: OwnerReference) -> str:
    return f"{reference.kind.kind} {reference.name}"


def _no_way_up(reference: OwnerReference, seen: set[str]) -> Broken:
    if reference.uid in seen:
        return Broken("cycle", f"owner {_named(reference)} owns itself in a circle")
    return Broken("depth", f"more than {MAX_OWNERS} owners")


def differs(one: Structure, other: Structure) -> bool:
    """Whether two structures of one object would stamp its pods differently."""
    return (one.leaves, one.gangs, one.gang_fault) != (other.leaves, other.gangs, other.gang_fault)


def watched_kind(obj: JsonObject, resource: Resource, version: str) -> GroupVersionKind:
    """The kind of an object of a list that was read at `version`; items carry no apiVersion of their own."""
    named = kind_named(obj.get("apiVersion"), obj.get("kind"))
    return named or GroupVersionKind(resource.group, version, resource.kind)
