"""Which kinds the API server serves: plural, scope and preferred version, looked up again when one is missing."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from catalog.definition import JsonObject
from webhook.cluster.client import ApiError, ApiServer

AGGREGATED = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList,application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A served kind. `version` is the preferred one of its group, `versions` all that serve it, preferred first."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    versions: tuple[str, ...]
    verbs: frozenset[str]

    def path(self, namespace: str = "", name: str = "", version: str = "") -> str:
        """The URL path of the collection, of one namespace's, or of one object."""
        root = f"/apis/{self.group}/{version or self.version}" if self.group else f"/api/{version or self.version}"
        place = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        return f"{root}{place}/{self.plural}{f'/{name}' if name else ''}"


class Discovery:
    """The served kinds, read once and again on demand. One reading at a time, whoever asks."""

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._kinds: Mapping[tuple[str, str], Resource] = {}
        self._reading = asyncio.Lock()
        self._readings = 0

    def known(self, group: str, kind: str) -> Resource | None:
        """The kind as last read; `None` when it was not served then."""
        return self._kinds.get((group, kind))

    @property
    def kinds(self) -> Mapping[tuple[str, str], Resource]:
        """Every kind as last read."""
        return self._kinds

    async def find(self, group: str, kind: str) -> Resource | None:
        """The kind, after another look when it is not known. Raises `ApiError` or `ConnectionFault`."""
        found = self.known(group, kind)
        if found is None:
            await self.refresh(since=self._readings)
            found = self.known(group, kind)
        return found

    async def refresh(self, since: int | None = None) -> None:
        """Read again; not when somebody else has read since reading number `since`."""
        async with self._reading:
            if since is not None and self._readings > since:
                return
            core, groups = await asyncio.gather(self._read("/api"), self._read("/apis"))
            self._kinds = {**_kinds(core), **_kinds(groups)}
            self._readings += 1

    @property
    def readings(self) -> int:
        """How often the kinds were read."""
        return self._readings

    async def _read(self, path: str) -> JsonObject:
        document = await self._server.request("GET", path, accept=AGGREGATED, within=10)
        if document.get("kind") != "APIGroupDiscoveryList":
            raise ApiError(406, "NotAcceptable", f"{self._server.host} has no aggregated discovery (Kubernetes 1.30)")
        return document


def _kinds(document: JsonObject) -> dict[tuple[str, str], Resource]:
    """Kinds of an APIGroupDiscoveryList; the first version that has a kind is its group's preferred one."""
    found: dict[tuple[str, str], Resource] = {}
    for item in document.get("items") or ():
        group = (item.get("metadata") or {}).get("name", "")
        serving: dict[str, list[tuple[str, JsonObject]]] = {}
        for version in item.get("versions") or ():
            for resource in version.get("resources") or ():
                kind = (resource.get("responseKind") or {}).get("kind", "")
                serving.setdefault(kind, []).append((version.get("version", ""), resource))
        for kind, versions in serving.items():
            found[group, kind] = _resource(group, kind, versions)
    return found


def _resource(group: str, kind: str, versions: list[tuple[str, JsonObject]]) -> Resource:
    preferred, resource = versions[0]
    return Resource(
        group=group,
        version=preferred,
        kind=kind,
        plural=resource.get("resource", ""),
        namespaced=resource.get("scope") == "Namespaced",
        versions=tuple(version for version, _ in versions),
        verbs=frozenset(resource.get("verbs") or ()),
    )
