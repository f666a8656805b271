"""Upkeep of stamps, on the leader: gives objects what their admission could not.

Roots made with `generateName`, scaled through a subresource, or older than us; bare pods made with `generateName`, and
pods whose owner could not be read. Nothing is remembered: whoever takes over looks at everything again.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import orjson

from catalog.definition import GroupVersionKind, JsonObject
from catalog.library import Catalog
from catalog.resources import effective_devices
from catalog.structure import resolve
from webhook.admit import POD, must_be_left_alone_object
from webhook.cluster.application import apply_stamps, is_due
from webhook.cluster.client import ApiError, ApiServer, ConnectionFault
from webhook.cluster.discovery import Discovery, Resource
from webhook.cluster.owners import ClusterOwners, watched_kind
from webhook.cluster.telemetry import ClusterMetrics
from webhook.lineage import NO_OWNERS, controller_reference
from webhook.patch import PatchRefused
from webhook.stamps import Policy, Stamps, pod_stamps, root_stamps

SWEEP_INTERVAL = 60.0
"""Seconds between two looks at pods that lack an id, and at roots."""

READ_PATIENCE = 10.0
"""Seconds that a repair waits for owners; nobody waits for it."""

MAX_ATTEMPTS = 5


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

    `in_scope(namespace)` says whether objects there are ours to stamp.
    """

    def __init__(
        self,
        server: ApiServer,
        discovery: Discovery,
        owners: ClusterOwners,
        policy: Policy,
        metrics: ClusterMetrics,
        *,
        catalog: Callable[[], Catalog],
        in_scope: Callable[[str], bool],
        rate: float,
        report: Callable[[str, str], None],
    ) -> None:
        self._server = server
        self._discovery = discovery
        self._owners = owners
        self._policy = policy
        self._metrics = metrics
        self._catalog = catalog
        self._in_scope = in_scope
        self._pause = 1.0 / rate
        self._report = report
        self._due: dict[Target, int] = {}
        self._wake = asyncio.Event()
        self.active = False

    def consider(self, obj: JsonObject, kind: GroupVersionKind) -> None:
        """A root as a watch shows it: queued when it is ours to mend and lacks something."""
        if self.active and self._lacks(obj, kind):
            self._enqueue(obj, kind.group, kind.kind)

    def _lacks(self, obj: JsonObject, kind: GroupVersionKind) -> bool:
        stamps = self.root_stamps_now(obj, kind)
        try:
            return stamps is not None and is_due(obj, stamps, self._policy.prefix)
        except PatchRefused:
            return False

    def root_stamps_now(self, obj: JsonObject, kind: GroupVersionKind) -> Stamps | None:
        """What a root should carry that exists already; `None` when it is not ours to change after its creation."""
        compiled = self._catalog().find(kind)
        metadata = obj.get("metadata") or {}
        if compiled is None or not self._in_scope(metadata.get("namespace", "")):
            return None
        if must_be_left_alone_object(obj, self._policy.prefix) or controller_reference(obj) is not None:
            return None
        if compiled.structure.pending(obj) is not None:
            return None
        structure = resolve(compiled, obj, self._policy.accelerators, namespace=metadata.get("namespace", ""))
        return root_stamps(structure, operation="UPDATE", owned=False, lineage=NO_OWNERS)

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
            try:
                await self.sweep_roots()
                await self.sweep_pods()
            except (ApiError, ConnectionFault) as error:
                self._report("repair", f"a sweep ended early: {error}")
            await asyncio.sleep(SWEEP_INTERVAL)

    async def sweep_roots(self) -> None:
        """Look at every object of every described kind once, in pages."""
        for resource in self._root_resources():
            try:
                async for page in self._server.pages(resource.path()):
                    for obj in page.items:
                        self.consider(obj, watched_kind(obj, resource))
                    await asyncio.sleep(0)
            except ApiError as error:
                if error.code not in (403, 404, 410):
                    raise

    def _root_resources(self) -> Iterable[Resource]:
        for group, kind in sorted(self._catalog().by_kind):
            resource = self._discovery.known(group, kind)
            if resource is not None and (group, kind) != ("", "Pod") and "list" in resource.verbs:
                yield resource

    async def sweep_pods(self) -> None:
        """Look at every pod without an id that says why it has none; metadata is enough to tell."""
        selector = f"!{self._policy.prefix}/workload-id"
        async for page in self._server.pages("/api/v1/pods", metadata_only=True, label_selector=selector):
            for pod in page.items:
                if self._waits_for_id(pod):
                    self._enqueue(pod, "", "Pod")
            await asyncio.sleep(0)

    def _waits_for_id(self, pod: JsonObject) -> bool:
        metadata = pod.get("metadata") or {}
        if not self._in_scope(metadata.get("namespace", "")):
            return False
        if must_be_left_alone_object(pod, self._policy.prefix):
            return False
        text = (metadata.get("annotations") or {}).get(f"{self._policy.prefix}/unresolved", "")
        try:
            reasons = orjson.loads(text) if text else {}
        except orjson.JSONDecodeError:
            return False
        return isinstance(reasons, dict) and "workload-id" in reasons

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
        try:
            return await self.mend(target)
        except ApiError as error:
            if error.code in (404, 409):
                return "gone"
            self._report("repair", f"{target.kind} {target.namespace}/{target.name}: {error}")
            return "refused" if error.code in (400, 403, 422) else "failed"
        except ConnectionFault as fault:
            self._report("repair", f"{target.kind} {target.namespace}/{target.name}: {fault}")
            return "failed"

    async def mend(self, target: Target, *, dry_run: bool = False) -> str:
        """Bring one object to what it should carry now: `mended`, `good`, or `unknown` when that cannot be told."""
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
            stamps = self.root_stamps_now(obj, watched_kind(obj, resource))
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
        catalog, namespace = self._catalog(), pod["metadata"].get("namespace", "")
        deadline = asyncio.get_running_loop().time() + READ_PATIENCE
        lineage = await self._owners.lineage(pod, namespace, catalog, deadline)
        if lineage.broken is not None:
            return None
        bare = controller_reference(pod) is None
        compiled = catalog.find(POD) if bare else None
        own = resolve(compiled, pod, self._policy.accelerators, namespace=namespace) if compiled is not None else None
        devices = effective_devices(
            pod.get("spec") or {}, pod["metadata"].get("annotations") or {}, self._policy.accelerators
        )
        return pod_stamps(pod, devices, lineage, own)
