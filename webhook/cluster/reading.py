"""Reads a cluster once for people who look at it: described objects, pods, their owners, nodes, in pages and at once.

Needs the rights to list (and get, for single objects); what may not be read is noted and the rest goes on. Nothing is
watched and nothing is written. What the objects mean is the business of `webhook.live`.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from catalog.definition import GroupVersionKind, JsonObject
from catalog.library import Catalog, CompiledDefinition, leaves
from webhook.cluster.client import ApiError, ApiServer, ConnectionFault
from webhook.cluster.discovery import Discovery, Resource
from webhook.cluster.views import readable_version
from webhook.lineage import MAX_OWNERS, OwnerReference, controller_reference, next_owner
from webhook.live.scheduler_groups import GROUP_KIND, SCHEDULERS
from webhook.live.snapshot import Snapshot, Unread, kind_of, map_at, text_at

AT_ONCE = 8
"""Requests under way at a time: enough to hide latency, few for an API server."""

PODS_PAGE = 1000
"""Pods of one page, about 8 MB: larger ones make the API server and us wait for each other."""

FEW = 20
"""Up to so many objects of one kind are read one by one; of more, the kind is listed."""

ATTEMPTS = 3
"""Times that a list is begun which the API server lets expire or refuses for the moment."""

PATIENCE = 2.0
"""Seconds at most that an API server may ask to wait before the next attempt."""

MOSTLY_PARTS = frozenset({("apps", "ReplicaSet")})
"""Kinds of which a controller keeps old ones by the dozen: their metadata tells which have a life of their own."""

KindKey = tuple[str, str]
"""API group and kind."""

POD: KindKey = ("", "Pod")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What to read. An empty namespace is all of them; `kinds` None are all described ones.

    `pods` are selectors of labels, each a list of its own; one that is empty is every pod. Without `owners`, pods that
    have no stamps stay without a workload.
    """

    namespace: str = ""
    kinds: frozenset[KindKey] | None = None
    pods: tuple[str, ...] = ("",)
    nodes: bool = False
    groups: bool = False
    owners: bool = True


@dataclass(slots=True, kw_only=True)
class Progress:
    """How far a reading is: objects read, and those known to come."""

    read: int = 0
    coming: int = 0


@dataclass(slots=True, kw_only=True)
class _Collected:
    """What was read so far; owners are read as metadata, everything else whole."""

    objects: dict[str, JsonObject] = field(default_factory=dict)
    owners: dict[str, JsonObject] = field(default_factory=dict)
    pods: dict[str, JsonObject] = field(default_factory=dict)
    nodes: list[JsonObject] | None = None
    groups: list[JsonObject] = field(default_factory=list)
    unread: dict[KindKey, Unread] = field(default_factory=dict)
    sought: set[str] = field(default_factory=set)

    def __contains__(self, uid: str) -> bool:
        return uid in self.objects or uid in self.owners or uid in self.pods


class Unauthorised(ConnectionFault):
    """The API server does not know us: a token has expired, or was never good."""

    def __init__(self, host: str) -> None:
        super().__init__(f"{host} does not accept the credentials (401): they may have expired; log in again")


class Reader:
    """Reads one cluster. `on_progress` is called after each page."""

    def __init__(
        self,
        server: ApiServer,
        discovery: Discovery,
        catalog: Catalog,
        *,
        prefix: str,
        on_progress: Callable[[Progress], None] = lambda _: None,
    ) -> None:
        self._server = server
        self._discovery = discovery
        self._catalog = catalog
        self._stamped = f"{prefix}/workload-id"
        self._on_progress = on_progress
        self._progress = Progress()
        self._remaining: dict[str, int] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)

    @property
    def described(self) -> Mapping[KindKey, Resource]:
        """Described kinds that are served and can be listed, pods aside."""
        found = {}
        for key in sorted(self._catalog.by_kind):
            resource = self._discovery.known(*key)
            if resource is not None and key != POD and "list" in resource.verbs:
                found[key] = resource
        return found

    def with_parts(self, kinds: Iterable[KindKey]) -> frozenset[KindKey]:
        """The kinds, and the described ones that their objects may be made of."""
        found: set[KindKey] = set()
        due = list(kinds)
        while due:
            key = due.pop()
            if key in found:
                continue
            found.add(key)
            for compiled in self._catalog.by_kind.get(key, ()):
                definition = compiled.definition
                below = [*(child.kind for child in definition.children), *definition.additional_child_kinds]
                due += [(kind.group, kind.kind) for kind in below if kind is not None]
        return frozenset(key for key in found if self._catalog.describes(*key))

    async def snapshot(self, wanted: Wanted, objects: Sequence[JsonObject] = ()) -> Snapshot:
        """Everything wanted, and the owners that pods without stamps need. `objects` were read before.

        Raises `ConnectionFault`, also when the API server does not accept the credentials.
        """
        collected = _Collected()
        for obj in objects:
            self._keep(collected, obj, whole=True)
        await _together(self._lists(collected, wanted))
        if wanted.owners:
            await self._read_owners(collected)
        return Snapshot(
            objects=tuple(collected.objects.values()),
            owners=tuple(collected.owners.values()),
            pods=tuple(collected.pods.values()),
            nodes=None if collected.nodes is None else tuple(collected.nodes),
            groups=tuple(collected.groups),
            unread=tuple(collected.unread[key] for key in sorted(collected.unread)),
        )

    def _lists(self, collected: _Collected, wanted: Wanted) -> Iterator[Coroutine[None, None, None]]:
        for selector in wanted.pods:
            yield self._read_pods(collected, wanted.namespace, selector)
        for key, resource in self.described.items():
            if wanted.kinds is None or key in wanted.kinds:
                yield self._read_kind(collected, resource, wanted.namespace)
        if wanted.nodes:
            yield self._read_nodes(collected)
        for group in SCHEDULERS if wanted.groups else ():
            yield self._read_groups(collected, group, wanted.namespace)

    async def get(self, resource: Resource, namespace: str, name: str) -> JsonObject | None:
        """One object by name; None when there is none. Raises `ApiError` or `ConnectionFault`."""
        kind = self._kind(resource)
        try:
            async with self._turns:
                obj = await self._server.get(resource.path(namespace, name, kind.version))
        except ApiError as error:
            if error.code == 404:
                return None
            self._check_credentials(error)
            raise
        return _named(obj, kind)

    async def selected(self, kinds: Iterable[KindKey], namespace: str, selector: str) -> frozenset[str]:
        """The uids of objects of the kinds whose labels match. Raises `ApiError` for a selector that is none."""
        uids: set[str] = set()
        for key in sorted(kinds):
            resource = self._discovery.known(*key)
            if resource is None:
                continue
            try:
                async for page in self._pages(resource, namespace, metadata_only=True, selector=selector):
                    uids.update(text_at(obj, "metadata", "uid") for obj in page)
            except ApiError as error:
                if error.code == 400:
                    raise
        return frozenset(uids)

    async def _read_pods(self, collected: _Collected, namespace: str, selector: str) -> None:
        resource = self._discovery.known(*POD)
        if resource is not None:
            async for page in self._noting_faults(collected, resource, namespace, selector=selector, limit=PODS_PAGE):
                for pod in page:
                    collected.pods[text_at(pod, "metadata", "uid")] = pod

    async def _read_kind(self, collected: _Collected, resource: Resource, namespace: str) -> None:
        """The objects of a kind; of one whose objects are mostly parts of others, whole only those that are not."""
        if (resource.group, resource.kind) not in MOSTLY_PARTS:
            async for page in self._noting_faults(collected, resource, namespace):
                for obj in page:
                    self._keep(collected, obj, whole=True)
            return
        alone: list[JsonObject] = []
        async for page in self._noting_faults(collected, resource, namespace, metadata_only=True):
            for obj in page:
                if self._is_mere_part(obj):
                    self._keep(collected, obj, whole=False)
                else:
                    alone.append(obj)
        await self._read_whole(collected, resource, namespace, alone)

    def _is_mere_part(self, obj: JsonObject) -> bool:
        """Whether the owner alone tells all about the object's pods: its one component claims every pod."""
        reference = controller_reference(obj)
        compiled = self._catalog.find(reference.kind) if reference is not None else None
        return compiled is not None and _claims_every_pod(compiled)

    async def _read_whole(
        self, collected: _Collected, resource: Resource, namespace: str, objects: Sequence[JsonObject]
    ) -> None:
        if len(objects) > FEW:
            uids = {text_at(obj, "metadata", "uid") for obj in objects}
            async for page in self._noting_faults(collected, resource, namespace):
                for obj in page:
                    if text_at(obj, "metadata", "uid") in uids:
                        self._keep(collected, obj, whole=True)
            return
        await _together(
            self._read_one(collected, resource, text_at(obj, "metadata", "namespace"), text_at(obj, "metadata", "name"))
            for obj in objects
        )

    async def _read_one(self, collected: _Collected, resource: Resource, namespace: str, name: str) -> None:
        try:
            obj = await self.get(resource, namespace, name)
        except ApiError as error:
            collected.unread.setdefault((resource.group, resource.kind), _unread(resource, error))
        else:
            if obj is not None:
                self._keep(collected, obj, whole=True)

    async def _read_nodes(self, collected: _Collected) -> None:
        resource = self._discovery.known("", "Node")
        if resource is None:
            return
        nodes: list[JsonObject] = []
        async for page in self._noting_faults(collected, resource, ""):
            nodes += page
        if ("", "Node") not in collected.unread:
            collected.nodes = nodes

    async def _read_groups(self, collected: _Collected, group: str, namespace: str) -> None:
        resource = self._discovery.known(group, GROUP_KIND)
        if resource is not None and "list" in resource.verbs:
            async for page in self._noting_faults(collected, resource, namespace):
                collected.groups += page

    async def _read_owners(self, collected: _Collected) -> None:
        """Go up from pods without stamps, and from described objects, level by level, until nothing is missing."""
        for _ in range(MAX_OWNERS):
            missing = self._missing_owners(collected)
            if not missing:
                return
            by_place: dict[tuple[KindKey, str], set[str]] = {}
            for namespace, reference in missing:
                collected.sought.add(reference.uid)
                key = (reference.kind.group, reference.kind.kind)
                by_place.setdefault((key, namespace), set()).add(reference.name)
            await _together(
                self._read_owners_of_kind(collected, key, namespace, names)
                for (key, namespace), names in by_place.items()
            )

    def _missing_owners(self, collected: _Collected) -> list[tuple[str, OwnerReference]]:
        """Namespace and reference of owners that admission would read, and that are not here and were not sought."""
        due = [pod for pod in collected.pods.values() if self._stamped not in map_at(pod, "metadata", "labels")]
        found: dict[str, tuple[str, OwnerReference]] = {}
        for obj in (*due, *collected.objects.values(), *collected.owners.values()):
            reference = next_owner(obj, self._catalog)
            if reference is not None and reference.uid not in collected and reference.uid not in collected.sought:
                found[reference.uid] = (text_at(obj, "metadata", "namespace"), reference)
        return list(found.values())

    async def _read_owners_of_kind(
        self, collected: _Collected, key: KindKey, namespace: str, names: Collection[str]
    ) -> None:
        resource = self._discovery.known(*key)
        if resource is None or key in collected.unread:
            return
        whole = self._catalog.describes(*key) and key != POD
        if whole and len(names) <= FEW:
            await _together(self._read_one(collected, resource, namespace, name) for name in names)
            return
        async for page in self._noting_faults(collected, resource, namespace, metadata_only=not whole):
            for obj in page:
                self._keep(collected, obj, whole=whole)

    def _keep(self, collected: _Collected, obj: JsonObject, *, whole: bool) -> None:
        uid = text_at(obj, "metadata", "uid")
        if kind_of(obj).kind == "Pod" and not kind_of(obj).group:
            collected.owners.setdefault(uid, obj)
        else:
            (collected.objects if whole else collected.owners)[uid] = obj

    async def _noting_faults(
        self,
        collected: _Collected,
        resource: Resource,
        namespace: str,
        *,
        metadata_only: bool = False,
        selector: str = "",
        limit: int = 500,
    ) -> AsyncIterator[list[JsonObject]]:
        """The pages of a list; when it can't be read to its end, that is noted."""
        try:
            pages = self._pages(resource, namespace, metadata_only=metadata_only, selector=selector, limit=limit)
            async for page in pages:
                yield page
        except ApiError as error:
            if error.code not in (404, 405):
                collected.unread.setdefault((resource.group, resource.kind), _unread(resource, error))

    async def _pages(
        self,
        resource: Resource,
        namespace: str,
        *,
        metadata_only: bool = False,
        selector: str = "",
        limit: int = 500,
    ) -> AsyncIterator[list[JsonObject]]:
        """The pages of a list, begun anew when it expires; objects are then shown again."""
        kind = self._kind(resource)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                async with self._turns:
                    path = resource.path(namespace, version=kind.version)
                    pages = self._server.pages(path, metadata_only=metadata_only, label_selector=selector, limit=limit)
                    async for page in pages:
                        self._count(f"{path} {selector}", len(page.items), page.remaining)
                        yield [_named(obj, kind) for obj in page.items]
            except ApiError as error:
                self._check_credentials(error)
                if attempt == ATTEMPTS or error.code not in (410, 429, 503):
                    raise
                await asyncio.sleep(min(PATIENCE, error.retry_after or 0.1))
            else:
                return

    def _kind(self, resource: Resource) -> GroupVersionKind:
        """The kind at the version that its definition reads."""
        defined = self._catalog.by_kind.get((resource.group, resource.kind), ())
        preferred = GroupVersionKind(resource.group, resource.version, resource.kind)
        for compiled in defined:
            version = readable_version(resource, compiled.definition.describes, compiled)
            if version == compiled.definition.describes.version:
                return compiled.definition.describes
        return preferred

    def _count(self, what: str, read: int, remaining: int | None) -> None:
        self._progress.read += read
        self._remaining[what] = remaining or 0
        self._progress.coming = sum(self._remaining.values())
        self._on_progress(self._progress)

    def _check_credentials(self, error: ApiError) -> None:
        if error.code == 401:
            raise Unauthorised(self._server.host) from error


async def _together(work: Iterable[Coroutine[None, None, None]]) -> None:
    """Do everything at once; the first fault ends the rest and is raised as it is, in no group."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _claims_every_pod(compiled: CompiledDefinition) -> bool:
    bearing = leaves(compiled.definition)
    return len(bearing) == 1 and bearing[0].selector is None and not compiled.states_gangs


def _named(obj: JsonObject, kind: GroupVersionKind) -> JsonObject:
    """The object with its apiVersion and kind, which items of lists often lack."""
    obj["apiVersion"], obj["kind"] = kind.api_version, kind.kind
    return obj


def _unread(resource: Resource, error: ApiError) -> Unread:
    reason = "may not be listed" if error.code == 403 else f"could not be listed: {error}"
    return Unread(group=resource.group, kind=resource.kind, reason=reason)
