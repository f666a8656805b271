"""Removes every stamp from the objects that carry any: for `workload-stamp uninstall --remove-stamps`.

Page by page, at a bounded rate, and again from the start without harm. Nothing but keys under the prefix is touched.
This module must not know how it is asked for or shown.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

from catalog.definition import JsonObject, RootStamps
from catalog.library import Catalog
from webhook.cluster.client import MERGE, ApiError, ApiServer
from webhook.cluster.configuration import OPT_IN_KEY
from webhook.cluster.discovery import Discovery, Resource
from webhook.stamps import IGNORE_KEY


@dataclass(slots=True, kw_only=True)
class Progress:
    """How far it has come: objects looked at, cleaned, and kept as they are, by kind; `faults` are sentences."""

    seen: int = 0
    cleaned: int = 0
    kept: dict[str, int] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)


class StampRemoval:
    """One pass over all described objects and pods of a cluster.

    At most `rate` objects a second are written, none with `dry_run`. A kind whose controller may copy its labels into
    pod templates keeps its objects' identity, unless `restart_pods`: taking it away would roll out the pods.
    """

    def __init__(
        self,
        server: ApiServer,
        discovery: Discovery,
        *,
        prefix: str,
        rate: float,
        restart_pods: bool,
        dry_run: bool,
    ) -> None:
        """`discovery` has been read."""
        self._server = server
        self._discovery = discovery
        self._prefix = f"{prefix}/"
        self._users_own = {f"{prefix}/{IGNORE_KEY}", f"{prefix}/{OPT_IN_KEY}"}
        self._pause = 1.0 / rate
        self._restart_pods = restart_pods
        self._dry_run = dry_run
        self.progress = Progress()

    async def run(self, catalog: Catalog) -> AsyncIterator[Progress]:
        """Yields after each page. Raises `ConnectionFault`; what the API server refuses is among the faults."""
        for resource, keeps in self._kinds(catalog):
            try:
                async for page in self._server.pages(resource.path(), metadata_only=True):
                    for obj in page.items:
                        await self._look_at(obj, resource, keeps=keeps)
                    yield self.progress
            except ApiError as error:
                self.progress.faults.append(f"{resource.plural} could not be listed: {error}")

    def _kinds(self, catalog: Catalog) -> Iterator[tuple[Resource, bool]]:
        """Served kinds that may carry stamps, and whether their objects keep them."""
        for group, kind in sorted(catalog.by_kind.keys() | {("", "Pod")}):
            resource = self._discovery.known(group, kind)
            if resource is None or not {"list", "patch"} <= resource.verbs:
                continue
            modes = {compiled.definition.root_stamps for compiled in catalog.by_kind.get((group, kind), ())}
            may_be_copied = RootStamps.IDENTITY in modes and (group, kind) != ("", "Pod")
            yield resource, may_be_copied and not self._restart_pods

    async def _look_at(self, obj: JsonObject, resource: Resource, *, keeps: bool) -> None:
        self.progress.seen += 1
        keys = self._stamps_on(obj)
        if not keys:
            return
        if keeps:
            self.progress.kept[resource.kind] = self.progress.kept.get(resource.kind, 0) + 1
        elif self._dry_run or await self._clean(obj, resource, keys):
            self.progress.cleaned += 1

    async def _clean(self, obj: JsonObject, resource: Resource, keys: JsonObject) -> bool:
        """Remove the keys; false when that was refused, or when the object is gone."""
        metadata = obj["metadata"]
        body = {"metadata": {"uid": metadata["uid"], **keys}}
        path = resource.path(metadata.get("namespace", ""), metadata["name"])
        try:
            await self._server.request("PATCH", path, body=body, content_type=MERGE)
        except ApiError as error:
            if error.code not in (404, 409):
                place = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
                self.progress.faults.append(f"{resource.kind} {place}{metadata['name']}: {error}")
            return False
        await asyncio.sleep(self._pause)
        return True

    def _stamps_on(self, obj: JsonObject) -> JsonObject:
        """A merge patch's metadata that removes our keys; empty when there are none. The users' own keys stay."""
        found: JsonObject = {}
        for name in ("labels", "annotations"):
            present = obj["metadata"].get(name) or {}
            keys = {key: None for key in present if key.startswith(self._prefix) and key not in self._users_own}
            if keys:
                found[name] = keys
        return found
