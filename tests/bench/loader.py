"""Drives an admission server as an API server does: kept-alive HTTP/1.1 over TLS, every answer read whole.

A closed loop keeps every connection busy; an open loop lets reviews arrive at random at a rate, each on an idle
connection, its latency counted from the moment of arrival.
"""

import asyncio
import random
import ssl
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Check = Callable[[int, bytes], None]
"""Judges the answer to the body of that number; raises AssertionError."""


@dataclass(slots=True)
class Measured:
    """Latencies in seconds, in order of completion, and the time that all took."""

    latencies: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.latencies) / self.seconds

    def percentile(self, share: float) -> float:
        """The latency that this share of answers does not exceed, in seconds."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Connection:
    """One kept-alive connection, opened again when the server has asked to close it."""

    def __init__(self, port: int, trust: ssl.SSLContext) -> None:
        self._port = port
        self._trust = trust
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Shake hands."""
        self._streams = await asyncio.open_connection(
            "127.0.0.1", self._port, ssl=self._trust, server_hostname="localhost"
        )
        return self._streams

    async def ask(self, request: bytes) -> bytes:
        """Send a whole request; the body of its answer. Raises AssertionError unless it is a 200."""
        reader, writer = self._streams or await self.open()
        writer.write(request)
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        assert head.startswith(b"http/1.1 200"), head[:200]
        start = head.index(b"content-length:") + len(b"content-length:")
        body = await reader.readexactly(int(head[start : head.index(b"\r\n", start)]))
        if b"connection: close" in head:
            self.close()
        return body

    def close(self) -> None:
        """Hang up."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _opened(port: int, trust: ssl.SSLContext, count: int) -> list[Connection]:
    connections = [Connection(port, trust) for _ in range(count)]
    for connection in connections:
        await connection.open()
    return connections


def requests(bodies: Sequence[bytes]) -> list[bytes]:
    """Whole HTTP requests for the bodies."""
    head = b"POST /mutate?timeout=10s HTTP/1.1\r\nHost: localhost\r\nUser-Agent: kube-apiserver-admission\r\n"
    head += b"Accept: application/json, */*\r\nContent-Type: application/json\r\n"
    return [head + b"Content-Length: %d\r\n\r\n" % len(body) + body for body in bodies]


async def closed_loop(
    port: int, trust: ssl.SSLContext, bodies: Sequence[bytes], *, connections: int, seconds: float, check: Check
) -> Measured:
    """Keep that many connections busy for that long."""
    asked = requests(bodies)
    opened = await _opened(port, trust, connections)
    measured = Measured()
    began = time.perf_counter()
    end = began + seconds

    async def drive(connection: Connection, number: int) -> None:
        while (start := time.perf_counter()) < end:
            number = (number + connections) % len(asked)
            answer = await connection.ask(asked[number])
            measured.latencies.append(time.perf_counter() - start)
            check(number, answer)

    await asyncio.gather(*(drive(connection, number) for number, connection in enumerate(opened)))
    measured.seconds = time.perf_counter() - began
    for connection in opened:
        connection.close()
    return measured


async def open_loop(
    port: int, trust: ssl.SSLContext, bodies: Sequence[bytes], *, rate: float, seconds: float, check: Check
) -> Measured:
    """Let reviews arrive at random, `rate` a second on average, for that long."""
    asked, arrivals = requests(bodies), random.Random(20261129)
    idle = await _opened(port, trust, 16)
    measured = Measured()
    began = time.perf_counter()
    due, number = began, 0
    tasks: list[asyncio.Task[None]] = []

    async def one(number: int, arrived: float) -> None:
        connection = idle.pop() if idle else Connection(port, trust)
        answer = await connection.ask(asked[number])
        measured.latencies.append(time.perf_counter() - arrived)
        idle.append(connection)
        check(number, answer)

    while due < began + seconds:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        tasks.append(asyncio.create_task(one(number % len(asked), due)))
        number += 1
        due += arrivals.expovariate(rate)
    await asyncio.gather(*tasks)
    measured.seconds = time.perf_counter() - began
    for connection in idle:
        connection.close()
    return measured
