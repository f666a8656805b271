"""The API server, spoken to in plain JSON: the only door to the Kubernetes client library.

The library gives kubeconfig, contexts, exec plugins, tokens and their renewal; objects stay as they are on the wire.
"""

import asyncio
import os
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import aiohttp
import orjson
from kubernetes_asyncio import client as kubernetes
from kubernetes_asyncio.config import ConfigException
from multidict import CIMultiDict

from catalog.definition import Json, JsonObject
from webhook.cluster import kubeconfig

PAGE = 200
"""Objects of one page of a list: some 4 MB where objects are large, which is parsed in one go while admissions wait."""

BREATH = 10
"""Objects that are looked at in one go, for the same reason."""

METADATA_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
METADATA_ONLY_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"

REQUEST_TIMEOUT = 30.0
"""Seconds for one request and its answer, unless the caller says otherwise: the library itself would wait for ever."""

SILENCE = 90.0
"""Seconds without a byte after which a watch counts as cut; the API server sends a bookmark about every minute."""

MAX_LINE = 4 * 1024 * 1024
"""Bytes of one watch event; etcd holds objects of 1.5 MiB, JSON escapes included."""


class ConnectionFault(Exception):
    """The API server could not be spoken to: no configuration, no credentials, no answer. One sentence."""


class ApiError(Exception):
    """The API server answered with an error.

    `code` is the HTTP status, `reason` the machine's word (`NotFound`), `retry_after` seconds when it asks to wait.
    """

    def __init__(self, code: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message or reason or f"HTTP {code}")
        self.code = code
        self.reason = reason
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How to reach an API server: a kubeconfig with its context, or in a cluster the pod's own service account."""

    kubeconfig: Path | None = None
    context: str | None = None
    in_cluster: bool = False
    impersonate_user: str | None = None
    impersonate_groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a list: its objects, and the resource version of the whole list."""

    items: tuple[JsonObject, ...]
    resource_version: str
    remaining: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One watch event: `type` is ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    obj: JsonObject = field(repr=False)


class ApiServer:
    """A connection to one API server. Use `connect`.

    `namespace` is the one that the kubeconfig's context or the service account names; empty when it names none.
    """

    def __init__(self, api: kubernetes.ApiClient, access: Access, namespace: str = "") -> None:
        self._api = api
        self._impersonation = _impersonation_headers(access)
        self.namespace = namespace

    @classmethod
    @asynccontextmanager
    async def connect(cls, access: Access) -> AsyncIterator[Self]:
        """Raises `ConnectionFault` when there is no usable configuration."""
        configuration, namespace = await _configuration(access)
        async with kubernetes.ApiClient(configuration) as api:
            yield cls(api, access, namespace)

    @property
    def host(self) -> str:
        """The API server's address, for messages."""
        return str(self._api.configuration.host)

    async def get(self, path: str, *, metadata_only: bool = False, within: float | None = None) -> JsonObject:
        """One object. Raises `ApiError` or `ConnectionFault`; `within` in seconds."""
        return await self.request("GET", path, accept=METADATA_ONLY if metadata_only else None, within=within)

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json = None,
        content_type: str = "application/json",
        accept: str | None = None,
        within: float | None = None,
    ) -> JsonObject:
        """One request, its answer as JSON. Raises `ApiError` for an error answer, `ConnectionFault` for none."""
        response = await self._send(
            method, path, query=query, body=body, content_type=content_type, accept=accept, within=within
        )
        try:
            text = await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ConnectionFault(_sentence(error, self.host)) from error
        finally:
            response.release()
        return _answer(response, text)

    async def pages(
        self,
        path: str,
        *,
        metadata_only: bool = False,
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str | None = None,
        limit: int = PAGE,
    ) -> AsyncIterator[Page]:
        """A list in pages, the next one under way while one is worked on.

        Raises `ApiError` (410 when the continuation has expired) or `ConnectionFault`.
        """
        query = {"limit": str(limit), "labelSelector": label_selector, "fieldSelector": field_selector}
        query = {key: value for key, value in query.items() if value}
        if resource_version is not None:
            query["resourceVersion"] = resource_version
        accept = METADATA_ONLY_LIST if metadata_only else None
        coming = asyncio.create_task(self.request("GET", path, query=query, accept=accept))
        query.pop("resourceVersion", None)
        try:
            while True:
                document = await coming
                metadata = document.get("metadata") or {}
                following = metadata.get("continue")
                if following:
                    further = {**query, "continue": following}
                    coming = asyncio.create_task(self.request("GET", path, query=further, accept=accept))
                yield Page(
                    items=tuple(document.get("items") or ()),
                    resource_version=metadata.get("resourceVersion", ""),
                    remaining=metadata.get("remainingItemCount"),
                )
                if not following:
                    return
        finally:
            coming.cancel()
            if coming.done() and not coming.cancelled():
                coming.exception()  # a page that nobody came for has failed for nobody

    async def watch(
        self,
        path: str,
        resource_version: str,
        *,
        metadata_only: bool = False,
        label_selector: str = "",
        field_selector: str = "",
        within: float = 300.0,
        on_open: Callable[[], None] = lambda: None,
    ) -> AsyncIterator[Event]:
        """Events after `resource_version`, until the server ends the watch, after about `within` seconds.

        `on_open` is called once the server has begun to answer. Raises `ApiError` (410 when the version is too old) or
        `ConnectionFault`.
        """
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": resource_version,
            "timeoutSeconds": str(int(within)),
            "labelSelector": label_selector,
            "fieldSelector": field_selector,
        }
        query = {key: value for key, value in query.items() if value}
        accept = METADATA_ONLY if metadata_only else None
        silence = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=SILENCE)
        response = await self._send("GET", path, query=query, accept=accept, within=silence)
        try:
            if response.status != 200:
                _answer(response, await response.read())
            on_open()
            async for line in _lines(response):
                yield _event(line)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ConnectionFault(_sentence(error, self.host)) from error
        finally:
            response.close()

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None,
        body: Json = None,
        content_type: str = "application/json",
        accept: str | None,
        within: float | aiohttp.ClientTimeout | None,
    ) -> aiohttp.ClientResponse:
        try:
            headers = CIMultiDict({"Content-Type": content_type, "Accept": accept or "application/json"})
            headers.extend(self._impersonation)
            token = await self._api.configuration.get_api_key_with_prefix("BearerToken")
            if token:
                headers["Authorization"] = token
            response: aiohttp.ClientResponse = await self._api.rest_client.request(
                method,
                f"{self.host}{path}",
                query_params=dict(query) if query else None,
                headers=headers,  # type: ignore[arg-type] # it hands them on to aiohttp, which takes several of a name
                body=body,
                _preload_content=False,
                _request_timeout=REQUEST_TIMEOUT if within is None else within,
            )
        except (aiohttp.ClientError, TimeoutError, OSError, ssl.SSLError, ConfigException) as error:
            raise ConnectionFault(_sentence(error, self.host)) from error
        return response


def _impersonation_headers(access: Access) -> list[tuple[str, str]]:
    """Each group is a header of its own: a name may hold a comma."""
    user = [] if access.impersonate_user is None else [("Impersonate-User", access.impersonate_user)]
    return user + [("Impersonate-Group", group) for group in access.impersonate_groups]


async def _configuration(access: Access) -> kubeconfig.Loaded:
    try:
        if access.in_cluster and access.kubeconfig is None:
            loaded = kubeconfig.of_account()
        else:
            loaded = await kubeconfig.of_files(access.kubeconfig, access.context, os.environ)
    except kubeconfig.Unusable as fault:
        raise ConnectionFault(str(fault)) from fault
    # Each watch holds a connection for good; with a limit, many described kinds would leave none for reading owners.
    loaded.configuration.connection_pool_maxsize = 0
    return loaded


def _answer(response: aiohttp.ClientResponse, text: bytes) -> JsonObject:
    try:
        document = orjson.loads(text) if text else {}
    except orjson.JSONDecodeError:
        document = None
    if 200 <= response.status < 300 and isinstance(document, dict):
        return document
    status = document if isinstance(document, dict) else {}
    raise ApiError(
        response.status,
        str(status.get("reason") or response.reason or ""),
        str(status.get("message") or text[:200].decode(errors="replace")),
        _seconds(response.headers.get("Retry-After")),
    )


def _seconds(header: str | None) -> float | None:
    return float(header) if header is not None and header.isdigit() else None


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Whole lines of the stream, however it is cut."""
    rest = b""
    async for chunk in response.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line:
                yield line
        if len(rest) > MAX_LINE:
            raise ConnectionFault("a watch event is larger than 4 MiB")


def _event(line: bytes) -> Event:
    try:
        document: Any = orjson.loads(line)
        kind, obj = document["type"], document["object"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        raise ConnectionFault("the watch sent something that is no event") from None
    if kind == "ERROR":
        raise ApiError(int(obj.get("code") or 500), str(obj.get("reason") or ""), str(obj.get("message") or ""))
    return Event(type=kind, obj=obj)


def _sentence(error: BaseException, host: str) -> str:
    if isinstance(error, TimeoutError | asyncio.TimeoutError):
        return f"{host} did not answer in time"
    return f"{host} could not be reached: {_why(error)}"


def _why(error: BaseException) -> str:
    """The operating system's words where there are any: the library's name sockets and contexts."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {getattr(error.certificate_error, 'verify_message', error)}"
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    if isinstance(cause, OSError) and cause.errno is not None and not isinstance(cause, ssl.SSLError | socket.gaierror):
        return os.strerror(cause.errno)
    if isinstance(cause, socket.gaierror):
        return cause.strerror or "its name is not known"
    return " ".join(str(cause).split()) or type(cause).__name__
