"""Which kinds the API server serves: plural, scope and preferred version, looked up again when one is missing.

A kind that was served is not given up on one reading: an API server that has just started, or an aggregated one that is
away, leaves kinds out that are back a moment later, and giving them up would end their stamps.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from catalog.definition import JsonObject
from webhook.cluster.client import ApiError, ApiServer

AGGREGATED = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList,application/json"

STALE = "Stale"
"""`freshness` of a version whose aggregated API server did not answer; its resources may be left out."""

FRESH_FOR = 2.0
"""Seconds after a reading during which a kind that it lacks is not looked for again: objects may name any kind."""

DOUBT = 3.0
"""Seconds for which a kind has to be missing until it is given up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A served kind. `version` is the preferred one of its group, `versions` all that serve it, preferred first.

    `names` are the words for it besides its kind and plural: the singular and the short ones.
    """

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    versions: tuple[str, ...]
    verbs: frozenset[str]
    names: frozenset[str] = frozenset()

    def is_called(self, word: str) -> bool:
        """Whether people mean this kind: by any of its words in any case, alone or as `word.group`."""
        name, _, group = word.lower().partition(".")
        if name not in {self.kind.lower(), self.plural, *self.names}:
            return False
        return not group or group == self.group or group in {f"{version}.{self.group}" for version in self.versions}

    def path(self, namespace: str = "", name: str = "", version: str = "") -> str:
        """The URL path of the collection, of one namespace's, or of one object."""
        root = f"/apis/{self.group}/{version or self.version}" if self.group else f"/api/{version or self.version}"
        place = f"/namespaces/{namespace}" if namespace and self.namespaced else ""
        return f"{root}{place}/{self.plural}{f'/{name}' if name else ''}"


class Discovery:
    """The served kinds, read once and again on demand. One reading at a time, whoever asks.

    `doubtful` are kinds that the last readings lacked, though not yet for long: they count as served until then.
    """

    def __init__(self, server: ApiServer) -> None:
        self._server = server
        self._kinds: Mapping[tuple[str, str], Resource] = {}
        self._reading = asyncio.Lock()
        self._read_at = 0.0
        self._loop = asyncio.get_running_loop()
        self.readings = 0
        self._missing_since: dict[tuple[str, str], float] = {}

    def known(self, group: str, kind: str) -> Resource | None:
        """The kind as last read; `None` when it was not served then."""
        return self._kinds.get((group, kind))

    @property
    def kinds(self) -> Mapping[tuple[str, str], Resource]:
        """Every kind as last read."""
        return self._kinds

    @property
    def doubtful(self) -> frozenset[tuple[str, str]]:
        """Kinds that a reading after `DOUBT` will give up, unless they are back."""
        return frozenset(self._missing_since)

    async def find(self, group: str, kind: str) -> Resource | None:
        """The kind, after another look when it is not known. Raises `ApiError` or `ConnectionFault`."""
        found = self.known(group, kind)
        if found is None and (self.readings == 0 or self._loop.time() >= self._read_at + FRESH_FOR):
            await self.refresh(since=self.readings)
            found = self.known(group, kind)
        return found

    async def refresh(self, since: int | None = None) -> None:
        """Read again; not when somebody else has read since reading number `since`."""
        async with self._reading:
            if since is not None and self.readings > since:
                return
            documents = await asyncio.gather(self._read("/api"), self._read("/apis"))
            found: dict[tuple[str, str], Resource] = {}
            stale: set[str] = set()
            for document in documents:
                found |= _kinds(document)
                stale |= _stale_groups(document)
            self._take_over(found, stale)
            self.readings, self._read_at = self.readings + 1, self._loop.time()

    def _take_over(self, found: dict[tuple[str, str], Resource], stale: set[str]) -> None:
        now = self._loop.time()
        missing = [key for key in self._kinds if key not in found]
        since = {key: self._missing_since.get(key, now) for key in missing if key[0] not in stale}
        self._missing_since = {key: at for key, at in since.items() if now < at + DOUBT}
        kept = {key: self._kinds[key] for key in missing if key not in since or key in self._missing_since}
        self._kinds = {**kept, **found}

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


def _stale_groups(document: JsonObject) -> set[str]:
    """Groups of which an aggregated API server did not answer for some version."""
    return {
        (item.get("metadata") or {}).get("name", "")
        for item in document.get("items") or ()
        if any(version.get("freshness") == STALE for version in item.get("versions") or ())
    }


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
        names=frozenset((resource.get("singularResource") or "", *(resource.get("shortNames") or ()))) - {""},
    )
