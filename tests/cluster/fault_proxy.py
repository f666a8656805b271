"""An HTTP proxy before the API server that misbehaves on request: slow, refusing, cutting, for chosen paths.

    with FaultProxy(control_plane) as proxy:
        kubeconfig = proxy.kubeconfig(token, folder)
        with proxy.fault(Fault(path=r"/jobsets/", delay=5.0)):
            ...
        proxy.cut_watches()

Plain HTTP towards the client, which stays on loopback; TLS towards the API server. Knows nothing of the webhook.
"""

import asyncio
import contextlib
import re
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp import web

from tests.cluster.ports import free_port

HOP_BY_HOP = {"connection", "transfer-encoding", "keep-alive", "content-length", "host", "content-encoding"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What to do with requests whose method and path match: wait `delay` seconds, then answer `status` if it is set."""

    path: str
    method: str = "GET"
    delay: float = 0.0
    status: int | None = None

    def matches(self, request: web.BaseRequest) -> bool:
        """Whether this request is to be treated so."""
        return request.method == self.method and re.search(self.path, request.path) is not None


class FaultProxy:
    """Runs in a thread of its own. `requests` counts what came through, by method and path."""

    def __init__(self, url: str, authority: Path) -> None:
        self._url = url
        self._trust = ssl.create_default_context(cafile=str(authority))
        self._faults: list[Fault] = []
        self._watches: set[asyncio.Task[object]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = free_port()
        self.requests: list[tuple[str, str]] = []

    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @contextlib.contextmanager
    def fault(self, fault: Fault) -> Iterator[None]:
        """Misbehave until the end of the block."""
        self._faults.append(fault)
        try:
            yield
        finally:
            self._faults.remove(fault)

    @property
    def watches(self) -> int:
        """How many watches are open."""
        return len(self._watches)

    def cut_watches(self) -> None:
        """Cut every watch in the middle."""
        for task in list(self._watches):
            self._loop.call_soon_threadsafe(task.cancel)

    async def _start(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=self._trust, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )
        self._runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port).start()

    async def _stop(self) -> None:
        watches = list(self._watches)
        for task in watches:
            task.cancel()
        await asyncio.gather(*watches, return_exceptions=True)
        await self._runner.cleanup()
        await self._session.close()
        await asyncio.sleep(0.1)  # transports that were aborted are closed in the loop's next turns

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.requests.append((request.method, request.path))
        for fault in list(self._faults):
            if fault.matches(request):
                await asyncio.sleep(fault.delay)
                if fault.status is not None:
                    return web.json_response({"kind": "Status", "message": "made up"}, status=fault.status)
        headers = {key: value for key, value in request.headers.items() if key.lower() not in HOP_BY_HOP}
        async with self._session.request(
            request.method, f"{self._url}{request.path_qs}", headers=headers, data=await request.read()
        ) as upstream:
            return await self._forward(request, upstream)

    async def _forward(self, request: web.BaseRequest, upstream: aiohttp.ClientResponse) -> web.StreamResponse:
        kept = {key: value for key, value in upstream.headers.items() if key.lower() not in HOP_BY_HOP}
        if encoding := upstream.headers.get("Content-Encoding"):
            kept["Content-Encoding"] = encoding
        response = web.StreamResponse(status=upstream.status, headers=kept)
        await response.prepare(request)
        task = asyncio.current_task()
        assert task is not None
        if "watch=true" in request.query_string:
            self._watches.add(task)
        try:
            async for chunk in upstream.content.iter_any():
                await response.write(chunk)
            await response.write_eof()
        except (ConnectionError, aiohttp.ClientPayloadError):
            pass  # either side has gone away
        except asyncio.CancelledError:
            if request.transport is not None:
                request.transport.abort()
            raise
        finally:
            self._watches.discard(task)
        return response
