"""A TCP balancer that plays kube-proxy and the kubelet's readiness probes, for several replicas behind one address.

    with Balancer(delay_seconds=0.5) as balancer:
        balancer.add(Backend(port=replica_port, health_port=replica_health_port))
        balancer.wait_for(1)
        ...  # register https://127.0.0.1:{balancer.port}/mutate
        balancer.withdraw(backend)  # what deleting the pod does, at the moment its SIGTERM is sent

As kube-proxy: a new connection goes to one of the ready replicas by chance and is not tried elsewhere when that one
refuses it; established connections stay where they are when a replica becomes unready; a replica joins and leaves
`delay_seconds` late. Bytes pass unread, so TLS is the replicas'. Knows nothing of what they serve.
"""

import asyncio
import contextlib
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import Coroutine
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tests.cluster.ports import LOOPBACK, free_port
from tests.cluster.waiting import eventually

CHUNK_BYTES = 64 * 1024
RESET_ON_CLOSE = struct.pack("ii", 1, 0)  # SO_LINGER: on, for 0 seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One replica on loopback: where it serves, and where it says that it is ready, over plain HTTP."""

    port: int
    health_port: int
    path: str = "/readyz"


class Balancer:
    """Accepts on `port`; a context manager whose loop runs in a thread of its own."""

    def __init__(self, *, probe_seconds: float = 0.5, failure_threshold: int = 1, delay_seconds: float = 0.5) -> None:
        """Times as in a pod's readinessProbe; `delay_seconds` is what news of it takes to reach kube-proxy."""
        self.port = free_port()
        self.accepted: Counter[Backend] = Counter()  # connections by replica
        self.turned_away = 0  # connections that were reset because no replica was ready, or the chosen one refused
        self._probe_seconds = probe_seconds
        self._failure_threshold = failure_threshold
        self._delay_seconds = delay_seconds
        self._ready: tuple[Backend, ...] = ()
        self._probes: dict[Backend, asyncio.Task[None]] = {}
        self._connections: set[asyncio.Task[Any]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="balancer", daemon=True)
        self._server: asyncio.Server | None = None

    @property
    def ready(self) -> tuple[Backend, ...]:
        """The replicas that get new connections now."""
        return self._ready

    def __enter__(self) -> Self:
        """Listen."""
        self._thread.start()
        self._server = self._call(asyncio.start_server(self._serve, LOOPBACK, self.port))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop listening and reset all connections."""
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def add(self, backend: Backend) -> None:
        """Probe the replica from now on; it gets connections once it is ready."""
        self._call(self._begin(backend))

    def withdraw(self, backend: Backend) -> None:
        """Take the replica out for good, `delay_seconds` from now; does not wait for that."""
        self._call(self._end(backend))

    def cut(self) -> None:
        """Reset all established connections, as a node that goes away does; new ones are accepted as before."""
        self._call(self._cut())

    def wait_for(self, count: int, *, seconds: float = 30.0) -> None:
        """Wait until exactly so many replicas get connections."""
        eventually(lambda: len(self._ready) == count, what=f"{count} replicas behind the balancer", seconds=seconds)

    def _call(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout=30)

    async def _begin(self, backend: Backend) -> None:
        self._probes[backend] = asyncio.create_task(self._probe(backend))

    async def _end(self, backend: Backend) -> None:
        self._probes.pop(backend).cancel()
        self._loop.call_later(self._delay_seconds, self._leave, backend)

    async def _cut(self) -> None:
        await _cancel(*self._connections)

    async def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        await _cancel(*self._probes.values(), *self._connections)
        await self._server.wait_closed()
        await asyncio.sleep(0)  # transports that were aborted are closed in the loop's next turn

    async def _probe(self, backend: Backend) -> None:
        failures = 0
        while True:
            failures = 0 if await _says_ready(backend) else failures + 1
            if not failures and backend not in self._ready:
                await asyncio.sleep(self._delay_seconds)
                self._ready = (*self._ready, backend)
            elif failures >= self._failure_threshold and backend in self._ready:
                await asyncio.sleep(self._delay_seconds)
                self._leave(backend)
            await asyncio.sleep(self._probe_seconds)

    def _leave(self, backend: Backend) -> None:
        self._ready = tuple(other for other in self._ready if other != backend)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            await self._connect(reader, writer)
        except asyncio.CancelledError:
            _reset(writer)
            raise
        finally:
            self._connections.discard(task)
            writer.transport.abort()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._ready:
            self.turned_away += 1
            _reset(writer)
            return
        backend = random.choice(self._ready)
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection(LOOPBACK, backend.port)
        except OSError:
            self.turned_away += 1
            _reset(writer)
            return
        self.accepted[backend] += 1
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(_pump(reader, upstream_writer))
                directions.create_task(_pump(upstream_reader, writer))
        except* OSError:
            _reset(writer)
        finally:
            upstream_writer.transport.abort()


async def _cancel(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until there are no more, then say so; OSError when either side was reset."""
    while chunk := await reader.read(CHUNK_BYTES):
        writer.write(chunk)
        await writer.drain()
    writer.write_eof()


def _reset(writer: asyncio.StreamWriter) -> None:
    """Let the client see a reset, as it does when nobody listens or a process was killed."""
    with contextlib.suppress(OSError):
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)


async def _says_ready(backend: Backend) -> bool:
    try:
        async with asyncio.timeout(1):
            return await _asked(backend)
    except (OSError, TimeoutError):
        return False


async def _asked(backend: Backend) -> bool:
    reader, writer = await asyncio.open_connection(LOOPBACK, backend.health_port)
    try:
        writer.write(f"GET {backend.path} HTTP/1.1\r\nHost: {LOOPBACK}\r\nConnection: close\r\n\r\n".encode())
        status = await reader.readline()
        return b" 200 " in status
    finally:
        writer.transport.abort()
