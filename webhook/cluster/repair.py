"""Upkeep of stamps, on the leader: gives objects what their admission could not.

Roots made with `generateName`, scaled through a subresource, or older than us; bare pods made with `generateName`,
pods whose owner could not be read, and pods that were created while we were registered but could not be reached.
Nothing is remembered: whoever takes over looks at everything again. Which objects those are is `unstamped`'s to tell.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from catalog.definition import GroupVersionKind, JsonObject, RootStamps
from catalog.library import NOTHING_ISOLATED, Catalog, CompiledDefinition
from catalog.resources import effective_devices
from catalog.structure import Structure, resolve
from webhook.admit import POD, must_be_left_alone_object
from webhook.cluster.application import apply_stamps, is_due
from webhook.cluster.client import BREATH, ApiError, ApiServer, ConnectionFault
from webhook.cluster.discovery import Discovery, Resource
from webhook.cluster.owners import ClusterOwners
from webhook.cluster.supervision import Supervision
from webhook.cluster.telemetry import ClusterMetrics
from webhook.cluster.unstamped import Unstamped
from webhook.cluster.views import readable_version, watched_kind
from webhook.isolation import Isolated
from webhook.lineage import NO_OWNERS, controller_reference
from webhook.patch import PatchRefused
from webhook.stamps import Policy, Stamps, pod_stamps, root_stamps

READ_PATIENCE = 10.0
"""Seconds that a repair waits for owners; nobody waits for it."""

MAX_ATTEMPTS = 5
"""Tries for one object until the next sweep finds it again."""

CHANGES_LATER = (RootStamps.FULL, RootStamps.ANNOTATIONS)
"""Modes in which a root is written to after its creation."""


@dataclass(frozen=True, slots=True)
class Target:
    """An object to look at: by name, so that it is read as it is when its turn comes."""

    group: str
    kind: str
    namespace: str
    name: str
    uid: str


class Repair:
    """A queue of objects that may lack stamps, worked off at a bounded rate while this replica leads.

    `in_scope(namespace)` says whether objects there are ours to stamp. A sweep looks through everything, every
    `interval` seconds and when `sweep_soon` is called.
    """

    def __init__(
        self,
        server: ApiServer,
        discovery: Discovery,
        owners: ClusterOwners,
        policy: Policy,
        metrics: ClusterMetrics,
        *,
        supervision: Supervision,
        isolated: Isolated,
        catalog: Callable[[], Catalog],
        in_scope: Callable[[str], bool],
        unstamped: Unstamped,
        rate: float,
        interval: float,
    ) -> None:
        self._server = server
        self._discovery = discovery
        self._owners = owners
        self._policy = policy
        self._metrics = metrics
        self._supervision = supervision
        self._isolated = isolated
        self._catalog = catalog
        self._in_scope = in_scope
        self._unstamped = unstamped
        self._pause = 1.0 / rate
        self._interval = interval
        self._due: dict[Target, int] = {}
        self._wake = asyncio.Event()
        self._sweep = asyncio.Event()
        self.active = False

    def sweep_soon(self) -> None:
        """Something has changed that many objects' stamps follow from."""
        self._sweep.set()

    def consider(self, obj: JsonObject, kind: GroupVersionKind) -> None:
        """A root as a watch shows it: queued when it is ours to mend and may lack something."""
        compiled = self._mendable(obj, kind) if self.active else None
        if compiled is None:
            return
        if compiled.structure.pending(obj) is None and not self._lacks(obj, compiled):
            return
        self._enqueue(obj, kind.group, kind.kind)

    def _mendable(self, obj: JsonObject, kind: GroupVersionKind) -> CompiledDefinition | None:
        """The definition of a root that is ours to change after its creation."""
        compiled = self._catalog().find(kind)
        if compiled is None or compiled.definition.root_stamps not in CHANGES_LATER:
            return None
        if not self._in_scope((obj.get("metadata") or {}).get("namespace", "")):
            return None
        if must_be_left_alone_object(obj, self._policy.prefix) or controller_reference(obj) is not None:
            return None
        return compiled

    def _lacks(self, obj: JsonObject, compiled: CompiledDefinition) -> bool:
        namespace = obj["metadata"].get("namespace", "")
        stamps = _stamps_of_root(resolve(compiled, obj, self._policy.accelerators, namespace=namespace))
        try:
            return stamps is not None and is_due(obj, stamps, self._policy.prefix)
        except PatchRefused:
            return False

    async def root_stamps_now(self, obj: JsonObject, kind: GroupVersionKind) -> Stamps | None:
        """What a root should carry that exists already; `None` when it is not ours to change after its creation."""
        compiled = self._mendable(obj, kind)
        return None if compiled is None else _stamps_of_root(await self._structure(compiled, obj))

    async def _structure(self, compiled: CompiledDefinition, obj: JsonObject) -> Structure:
        request = compiled.structure.pending(obj)
        isolated = NOTHING_ISOLATED if request is None else await self._isolated(compiled, request)
        namespace = obj["metadata"].get("namespace", "")
        return resolve(compiled, obj, self._policy.accelerators, namespace=namespace, isolated=isolated)

    def _enqueue(self, obj: JsonObject, group: str, kind: str) -> None:
        metadata = obj["metadata"]
        target = Target(group, kind, metadata.get("namespace", ""), metadata["name"], metadata["uid"])
        self._due.setdefault(target, 0)
        self._wake.set()

    async def run(self) -> None:
        """Sweep and mend for as long as this replica leads."""
        self.active = True
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._sweep_for_ever())
                tasks.create_task(self._work())
        finally:
            self.active = False
            self._due.clear()

    async def _sweep_for_ever(self) -> None:
        while True:
            self._sweep.clear()
            try:
                await self.sweep_roots()
                await self.sweep_pods()
            except (ApiError, ConnectionFault) as error:
                self._supervision.tell("repair", f"a sweep ended early: {error}")
            try:
                async with asyncio.timeout(self._interval):
                    await self._sweep.wait()
            except TimeoutError:
                continue

    async def sweep_roots(self) -> None:
        """Look at every object of every kind that is written to after its creation, in pages."""
        for resource, version in self._root_resources():
            try:
                async for page in self._server.pages(resource.path(version=version)):
                    for number, obj in enumerate(page.items):
                        if number % BREATH == 0:
                            await asyncio.sleep(0)
                        self._guarded(self.consider, obj, watched_kind(obj, resource, version))
            except ApiError as error:
                if error.code not in (403, 404, 410):
                    raise

    def _root_resources(self) -> Iterable[tuple[Resource, str]]:
        for (group, kind), definitions in sorted(self._catalog().by_kind.items()):
            resource = self._discovery.known(group, kind)
            if resource is None or (group, kind) == ("", "Pod") or "list" not in resource.verbs:
                continue
            if any(compiled.definition.root_stamps in CHANGES_LATER for compiled in definitions):
                first = definitions[0]
                yield resource, readable_version(resource, first.definition.describes, first)

    async def sweep_pods(self) -> None:
        """Look at every pod without an id that should have one; metadata is enough to tell."""
        selector = f"!{self._policy.prefix}/workload-id"
        found: set[str] = set()
        async for page in self._server.pages("/api/v1/pods", metadata_only=True, label_selector=selector):
            for number, pod in enumerate(page.items):
                if number % BREATH == 0:
                    await asyncio.sleep(0)
                self._guarded(self._consider_pod, pod, found)
        self._unstamped.only(found)
        self._metrics.unstamped_pods.set(len(found))

    def _consider_pod(self, pod: JsonObject, found: set[str]) -> None:
        metadata = pod["metadata"]
        if not self._in_scope(metadata.get("namespace", "")) or not self._unstamped.is_pod(pod, self._catalog()):
            return
        found.add(metadata["uid"])
        if self._unstamped.is_due(metadata["uid"]):
            self._enqueue(pod, "", "Pod")

    def _guarded(self, look: Callable[..., None], obj: JsonObject, *further: object) -> None:
        try:
            look(obj, *further)
        except Exception:  # noqa: BLE001 - one odd object must not keep all others from being mended
            self._supervision.survived("repair", name=str((obj.get("metadata") or {}).get("name", "")))

    async def _work(self) -> None:
        while True:
            if not self._due:
                self._wake.clear()
                await self._wake.wait()
            target, attempts = next(iter(self._due.items()))
            del self._due[target]
            result = await self._mend(target)
            if result == "failed" and attempts + 1 < MAX_ATTEMPTS:
                self._due[target] = attempts + 1
            self._metrics.repairs.labels(target.kind if target.kind == "Pod" else "root", result).inc()
            await asyncio.sleep(self._pause)

    async def _mend(self, target: Target) -> str:
        named = f"{target.kind} {target.namespace}/{target.name}"
        try:
            return await self.mend(target)
        except ApiError as error:
            if error.code in (404, 409):
                return "gone"
            self._supervision.tell("repair", f"{named}: {error}")
            return "refused" if error.code in (400, 403, 422) else "failed"
        except ConnectionFault as fault:
            self._supervision.tell("repair", f"{named}: {fault}")
            return "failed"
        except PatchRefused as refusal:
            self._supervision.tell("repair", f"{named}: {refusal}")
            return "refused"
        except Exception:  # noqa: BLE001 - logged and counted; the next object's turn comes
            self._supervision.survived("repair", name=named)
            return "refused"

    async def mend(self, target: Target, *, dry_run: bool = False) -> str:
        """Bring one object to what it should carry now: `mended`, `good`, or `unknown` when that cannot be told.

        `gone` when it is no longer there, or no longer ours to stamp.
        """
        if not self._in_scope(target.namespace):
            return "gone"
        resource = await self._discovery.find(target.group, target.kind)
        if resource is None:
            return "gone"
        version = self._version(resource)
        obj = await self._server.get(resource.path(target.namespace, target.name, version), within=READ_PATIENCE)
        if obj["metadata"].get("uid") != target.uid:
            return "gone"
        if target.kind == "Pod" and not target.group:
            stamps = await self.pod_stamps_now(obj)
        else:
            stamps = await self.root_stamps_now(obj, watched_kind(obj, resource, version))
        if stamps is None or not (stamps.labels or stamps.annotations):
            return "unknown"
        if not is_due(obj, stamps, self._policy.prefix):
            return "good"
        await apply_stamps(self._server, resource, obj, stamps, self._policy.prefix, dry_run=dry_run)
        return "mended"

    def _version(self, resource: Resource) -> str:
        defined = self._catalog().by_kind.get((resource.group, resource.kind), ())
        versions = [compiled.definition.describes.version for compiled in defined]
        return next((version for version in resource.versions if version in versions), resource.version)

    async def pod_stamps_now(self, pod: JsonObject) -> Stamps | None:
        """What a pod should carry, with its owners as they are now; `None` when they cannot be read."""
        if must_be_left_alone_object(pod, self._policy.prefix):
            return None
        catalog, namespace = self._catalog(), pod["metadata"].get("namespace", "")
        deadline = asyncio.get_running_loop().time() + READ_PATIENCE
        lineage = await self._owners.lineage(pod, namespace, catalog, deadline)
        if lineage.broken is not None:
            return None
        isolated = dict(NOTHING_ISOLATED)
        for structure in lineage.described:
            request = structure.compiled.selection.pending(pod)
            if request is not None:
                isolated.update(await self._isolated(structure.compiled, request))
        compiled = catalog.find(POD) if controller_reference(pod) is None else None
        own = await self._structure(compiled, pod) if compiled is not None else None
        devices = effective_devices(
            pod.get("spec") or {}, pod["metadata"].get("annotations") or {}, self._policy.accelerators
        )
        return pod_stamps(pod, devices, lineage, own, isolated)


def _stamps_of_root(structure: Structure) -> Stamps | None:
    return root_stamps(structure, operation="UPDATE", owned=False, lineage=NO_OWNERS)
