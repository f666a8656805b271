"""A small API server in this process: objects by path, lists in pages, watches, conflicts, and faults on demand.

Knows of Kubernetes what the cluster room asks for and no more: no admission, no validation. What server-side apply
makes of a document is its merge patch, which is enough where one writer is looked at.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import orjson
from aiohttp import web

from tests.cluster.ports import free_port
from webhook.cluster.client import Access, ApiServer

Fault = Callable[[web.BaseRequest], "tuple[int, str] | float | None"]
"""What to do with a request: answer with a status and reason, wait so many seconds, or nothing out of the ordinary."""


class FakeApiServer:
    """Use `running`; `objects` are by URL path, `requests` is what came in, in order: method, path with query."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, str]] = []
        self.faults: list[Fault] = []
        self.kinds: list[tuple[str, str, str, str, bool]] = [
            ("", "v1", "Pod", "pods", True),
            ("batch", "v1", "Job", "jobs", True),
            ("apps", "v1", "Deployment", "deployments", True),
            ("apps", "v1", "ReplicaSet", "replicasets", True),
        ]
        self.stale_groups: set[str] = set()
        self.not_served: set[str] = set()
        self.page = 500
        self._version = 100
        self._oldest = 0
        self._history: list[tuple[int, str, str, dict[str, Any]]] = []
        self._news = asyncio.Event()
        self._watching: set[asyncio.Task[Any]] = set()
        self.port = free_port()

    @classmethod
    @asynccontextmanager
    async def running(cls) -> AsyncIterator[Self]:
        """Listen on loopback until the end of the block."""
        fake = cls()
        runner = web.ServerRunner(web.Server(fake._handle), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", fake.port).start()
        try:
            yield fake
        finally:
            fake.cut_watches()
            await runner.cleanup()

    @asynccontextmanager
    async def client(self, folder: Path, user: str | None = None) -> AsyncIterator[ApiServer]:
        """The webhook's own client of it; with a user its requests carry the header `Impersonate-User`."""
        cluster = {"name": "fake", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}
        context = {"name": "fake", "context": {"cluster": "fake", "user": "fake"}}
        account = {"name": "fake", "user": {"token": "token"}}
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(
            json.dumps({"clusters": [cluster], "contexts": [context], "users": [account], "current-context": "fake"})
        )
        async with ApiServer.connect(Access(kubeconfig=kubeconfig, impersonate_user=user)) as server:
            yield server

    # ------------------------------------------------------------------------------------------ the tests' side

    def put(self, path: str, obj: dict[str, Any]) -> dict[str, Any]:
        """Create or replace an object as anybody may; as it was stored."""
        before = self.objects.get(path)
        self._version += 1
        metadata = {**obj.get("metadata", {}), "name": path.rpartition("/")[2], "resourceVersion": str(self._version)}
        metadata.setdefault("uid", before["metadata"]["uid"] if before else f"uid-{self._version}")
        metadata.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
        namespaced = re.search("/namespaces/([^/]+)/", path)
        if namespaced:
            metadata["namespace"] = namespaced[1]
        if before is None:
            metadata.setdefault("generation", 1)
        else:
            changed = before.get("spec") != obj.get("spec")
            metadata["generation"] = before["metadata"]["generation"] + (1 if changed else 0)
        stored = {**obj, "metadata": metadata}
        self.objects[path] = stored
        self._tell("MODIFIED" if before else "ADDED", path, stored)
        return stored

    def delete(self, path: str) -> None:
        """Delete an object."""
        self._version += 1
        gone = self.objects.pop(path)
        self._tell("DELETED", path, {**gone, "metadata": {**gone["metadata"], "resourceVersion": str(self._version)}})

    def cut_watches(self) -> None:
        """Cut every watch in the middle."""
        for task in list(self._watching):
            task.cancel()

    def forget(self) -> None:
        """Compact: watches from before now are told that their version is too old."""
        self._oldest = self._version

    def count(self, method: str, pattern: str) -> int:
        """How many requests of that method came whose path and query match."""
        return sum(1 for each, path in self.requests if each == method and re.search(pattern, path))

    @property
    def watches(self) -> int:
        """Watches that are open."""
        return len(self._watching)

    # ----------------------------------------------------------------------------------------- the server's side

    def _tell(self, kind: str, path: str, obj: dict[str, Any]) -> None:
        self._history.append((self._version, kind, path, obj))
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append((request.method, request.path_qs))
        for fault in list(self.faults):
            found = fault(request)
            if isinstance(found, tuple):
                return _status(*found)
            if found is not None:
                await asyncio.sleep(found)
        if request.path in ("/api", "/apis"):
            return web.json_response(self._discovery(core=request.path == "/api"))
        if any(request.path.startswith(path) for path in self.not_served):
            return _status(404, "NotFound")
        handlers = {"GET": self._get, "POST": self._post, "PUT": self._put, "PATCH": self._patch}
        return await handlers[request.method](request)

    async def _get(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path in self.objects:
            return web.json_response(self.objects[request.path])
        if _is_collection(request.path):
            return await self._watch(request) if request.query.get("watch") else self._list(request)
        return _status(404, "NotFound")

    def _list(self, request: web.BaseRequest) -> web.Response:
        everything = [obj for path, obj in sorted(self.objects.items()) if _belongs(path, request)]
        start = int(request.query.get("continue", "0"))
        metadata = {"resourceVersion": str(self._version)}
        if start + self.page < len(everything):
            metadata["continue"] = str(start + self.page)
        return web.json_response({"items": everything[start : start + self.page], "metadata": metadata})

    async def _watch(self, request: web.BaseRequest) -> web.StreamResponse:
        since = int(request.query["resourceVersion"])
        response = web.StreamResponse()
        await response.prepare(request)
        task = asyncio.current_task()
        assert task is not None
        self._watching.add(task)
        try:
            await self._stream(request, response, since)
        except asyncio.CancelledError:
            if request.transport is not None:
                request.transport.abort()
            raise
        finally:
            self._watching.discard(task)
        return response

    async def _stream(self, request: web.BaseRequest, response: web.StreamResponse, since: int) -> None:
        if since < self._oldest:
            expired = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
            await response.write(orjson.dumps({"type": "ERROR", "object": expired}) + b"\n")
            return
        while True:
            news = self._news
            for version, kind, path, obj in list(self._history):
                if version > since and _belongs(path, request):
                    await response.write(orjson.dumps({"type": kind, "object": obj}) + b"\n")
                since = max(since, version)
            await news.wait()

    async def _post(self, request: web.BaseRequest) -> web.Response:
        obj = await request.json()
        path = f"{request.path}/{obj['metadata']['name']}"
        if path in self.objects:
            return _status(409, "AlreadyExists")
        return web.json_response(self.put(path, obj), status=201)

    async def _put(self, request: web.BaseRequest) -> web.Response:
        obj, before = await request.json(), self.objects.get(request.path)
        if before is None:
            return _status(404, "NotFound")
        version = obj["metadata"].pop("resourceVersion", None)
        if version is not None and version != before["metadata"]["resourceVersion"]:
            return _status(409, "Conflict")
        return web.json_response(self.put(request.path, obj))

    async def _patch(self, request: web.BaseRequest) -> web.Response:
        path = request.path.removesuffix("/status")
        body = orjson.loads(await request.read())
        before = self.objects.get(path)
        applies = "apply-patch" in request.headers["Content-Type"]
        if before is None:
            uid_is_given = "uid" in body.get("metadata", {})
            return web.json_response(self.put(path, body)) if applies and not uid_is_given else _status(404, "NotFound")
        version = body.get("metadata", {}).pop("resourceVersion", before["metadata"]["resourceVersion"])
        if version != before["metadata"]["resourceVersion"]:
            return _status(409, "Conflict")
        if body.get("metadata", {}).get("uid", before["metadata"]["uid"]) != before["metadata"]["uid"]:
            return _status(409, "Conflict")
        return web.json_response(self.put(path, _merged(before, body)))

    def _discovery(self, *, core: bool) -> dict[str, Any]:
        groups: dict[str, dict[str, list[dict[str, Any]]]] = {}
        for group, version, kind, plural, namespaced in self.kinds:
            if (not group) == core:
                resource = {
                    "resource": plural,
                    "responseKind": {"kind": kind},
                    "scope": "Namespaced" if namespaced else "Cluster",
                    "verbs": ["get", "list", "watch", "patch"],
                }
                groups.setdefault(group, {}).setdefault(version, []).append(resource)
        items = [
            {
                "metadata": {"name": group},
                "versions": [
                    {
                        "version": version,
                        "resources": [] if group in self.stale_groups else resources,
                        "freshness": "Stale" if group in self.stale_groups else "Current",
                    }
                    for version, resources in versions.items()
                ],
            }
            for group, versions in groups.items()
        ]
        return {"kind": "APIGroupDiscoveryList", "items": items}


def _status(code: int, reason: str) -> web.Response:
    return web.json_response({"kind": "Status", "code": code, "reason": reason, "message": reason}, status=code)


def _is_collection(path: str) -> bool:
    """Whether a path names a collection: its words come in pairs, but for the last."""
    words = re.sub("^/(api/[^/]+|apis/[^/]+/[^/]+)/", "", path).split("/")
    return len(words) % 2 == 1


def _belongs(path: str, request: web.BaseRequest) -> bool:
    """Whether an object is in the collection that the request is about, of one namespace or of all."""
    everywhere = re.sub("/namespaces/[^/]+/", "/", path)
    inside = path.startswith(f"{request.path}/") or everywhere.startswith(f"{request.path}/")
    name = request.query.get("fieldSelector", "").partition("metadata.name=")[2]
    return inside and (not name or path.endswith(f"/{name}"))


def _merged(target: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merged(result.get(key), value)
    return result
