"""How a replica leaves: told to stop under a stream of reviews, it loses none."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from certs.authority import KeyPair
from tests.webhook.polling import until
from tests.webhook.serving import Connection, admit, client_tls, issue, review, serving, settings_with, until_ready
from webhook.admit import Answer


@dataclass
class Replica:
    """A server in a process of its own."""

    process: asyncio.subprocess.Process
    reviews: int
    plain: int
    log: list[dict[str, Any]] = field(default_factory=list)

    async def dial(self) -> Connection:
        """A new TLS connection; raises OSError when it is refused."""
        streams = await asyncio.open_connection(
            "127.0.0.1", self.reviews, ssl=client_tls(), server_hostname="127.0.0.1"
        )
        return Connection(*streams)

    async def ready(self) -> bool:
        """Whether it says so, asked as a kubelet asks."""
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.plain)
            writer.write(b"GET /readyz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            said = await reader.read()
            writer.close()
        except OSError:
            return False
        return b" 200 " in said.partition(b"\r\n")[0]

    async def exited(self) -> int:
        """Its exit code, waited for; the log is complete then."""
        async with asyncio.timeout(20):
            assert self.process.stderr is not None
            self.log = [json.loads(line) for line in (await self.process.stderr.read()).splitlines()]
            return await self.process.wait()


def write(pair: KeyPair, folder: Path) -> None:
    """Put a certificate where a replica looks for it."""
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)


@asynccontextmanager
async def replica(folder: Path, *, lame_duck: float = 0.3) -> AsyncIterator[Replica]:
    """A replica that is ready; killed at the end if it is still there."""
    write(issue(), folder)
    command = (sys.executable, "-m", "tests.webhook.serve_alone", str(folder), str(lame_duck))
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe, limit=2**24)
    try:
        assert process.stdout is not None
        ports = json.loads(await process.stdout.readline())
        started = Replica(process, ports["reviews"], ports["plain"])
        await until(started.ready, seconds=20)
        yield started
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


@dataclass
class Service:
    """What a Service does: new connections go to replicas that were ready when last looked at, old ones stay."""

    replicas: list[Replica]
    endpoints: list[Replica] = field(default_factory=list)
    answered: dict[int, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    over: bool = False

    async def watch(self) -> None:
        """Look at the replicas' readiness, with a lag."""
        while not self.over:
            self.endpoints = [one for one in self.replicas if await one.ready()]
            await asyncio.sleep(0.05)

    async def stream(self, name: str) -> None:
        """Send one review after the other over kept-alive connections, as the API server does, until it is over."""
        number, connection, target = 0, None, self.replicas[0]
        while not self.over:
            number += 1
            try:
                if connection is None:
                    target = self.endpoints[number % len(self.endpoints)]
                    connection = await target.dial()
                status, stays = await connection.ask(review(f"{name}-{number}"))
                assert status == 200
                self.answered[target.reviews] = self.answered.get(target.reviews, 0) + 1
                if not stays:
                    await connection.close()
                    connection = None
            except (OSError, asyncio.IncompleteReadError) as error:
                self.lost.append(f"{name}-{number} to {target.reviews}: {error!r}")
                connection = None
        if connection is not None:
            await connection.close()


@pytest.mark.slow
class TestReplica:
    """A process that is told to stop."""

    async def test_loses_no_review_of_a_stream(self, tmp_path: Path) -> None:
        """One of two replicas leaves under load: every review is answered, it exits with 0, the other takes over."""
        (tmp_path / "a").mkdir()
        (tmp_path / "b").mkdir()
        async with replica(tmp_path / "a") as leaver, replica(tmp_path / "b") as stayer:
            service = Service([leaver, stayer], [leaver, stayer])
            tasks = [asyncio.create_task(service.watch())]
            tasks += [asyncio.create_task(service.stream(f"s{number}")) for number in range(8)]
            await until(lambda: service.answered.get(leaver.reviews, 0) > 100, seconds=30)
            leaver.process.send_signal(signal.SIGTERM)
            code = await leaver.exited()
            before = service.answered[stayer.reviews]
            await until(lambda: service.answered[stayer.reviews] > before + 100, seconds=30)
            service.over = True
            await asyncio.gather(*tasks)

        assert code == 0
        assert service.lost == []
        events = [line["event"] for line in leaver.log]
        assert [event for event in events if event in {"serving", "leaving", "left"}] == ["serving", "leaving", "left"]
        assert [line for line in leaver.log if line["level"] != "info"] == []

    async def test_finishes_what_is_in_flight(self, tmp_path: Path) -> None:
        """A review that takes longer than the lame-duck time is answered before the process ends."""
        async with replica(tmp_path, lame_duck=0.0) as leaver:
            connection = await leaver.dial()
            asked = asyncio.create_task(connection.ask(review("slow-1")))
            await until(lambda: busy(leaver))
            leaver.process.send_signal(signal.SIGTERM)

            assert await asked == (200, False)
            assert await leaver.exited() == 0
            await connection.close()

    async def test_can_be_hastened(self, tmp_path: Path) -> None:
        """A second SIGTERM ends the lame-duck time, and the exit code is 0 all the same."""
        async with replica(tmp_path, lame_duck=600.0) as leaver:
            leaver.process.send_signal(signal.SIGTERM)
            await until(lambda: unready(leaver))
            leaver.process.send_signal(signal.SIGTERM)

            assert await leaver.exited() == 0
            assert leaver.log[-1]["event"] == "left"

    async def test_can_be_interrupted(self, tmp_path: Path) -> None:
        """Ctrl-C skips the lame-duck time: a person waits."""
        async with replica(tmp_path, lame_duck=600.0) as leaver:
            leaver.process.send_signal(signal.SIGINT)

            assert await leaver.exited() == 0
            assert leaver.log[-1]["event"] == "left"

    async def test_rereads_its_certificate(self, tmp_path: Path) -> None:
        """A renewed certificate is served without a restart, a mismatched one is not, and both are logged."""

        async def served_certificate() -> bytes:
            connection = await served.dial()
            await connection.close()
            return connection.certificate

        async def renewed() -> bool:
            return await served_certificate() != first

        async with replica(tmp_path, lame_duck=0.0) as served:
            first = await served_certificate()
            write(issue(), tmp_path)
            await until(renewed)
            (tmp_path / "tls.key").write_bytes(issue().key)
            await until(lambda: counted(served, b'certificate_reloads_total{result="refused"} 1.0'))
            await served_certificate()
            served.process.send_signal(signal.SIGTERM)
            await served.exited()

        events = [line["event"] for line in served.log]
        assert "certificate replaced" in events
        assert "certificate not replaced, the last good one serves on" in events


async def unready(one: Replica) -> bool:
    """Whether a replica says that it is not ready."""
    return not await one.ready()


async def busy(one: Replica) -> bool:
    """Whether a replica has one review in flight."""
    return await counted(one, b"admissions_in_flight 1.0")


async def counted(one: Replica, sample: bytes) -> bool:
    """Whether a replica's metrics' page has a line that ends like this."""
    return sample + b"\n" in await metrics_of(one)


async def metrics_of(served: Replica) -> bytes:
    """The metrics' page of a replica."""
    reader, writer = await asyncio.open_connection("127.0.0.1", served.plain)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
    page = await reader.read()
    writer.close()
    return page


class TestLameDuck:
    """The time between being told to stop and refusing connections."""

    async def test_serves_on_and_says_it_is_not_ready(self) -> None:
        """Reviews are answered and close their connections, new connections are accepted, readiness fails."""
        async with serving(settings=settings_with(lame_duck=60.0)) as served:
            await until_ready(served)
            old = await served.dial()
            hasten = asyncio.Event()
            leaving = asyncio.create_task(served.server.leave(hasten))
            await until(lambda: served.counted("ready") == 0)

            new = await served.dial()
            assert await old.ask(review()) == (200, False)
            assert await new.ask(review()) == (200, False)
            status, text = await served.get("/readyz")
            assert status == 503
            assert "[-]leaving failed: this replica is leaving" in text
            assert await served.get("/livez") == (200, "ok")
            await old.close()
            await new.close()
            hasten.set()
            await leaving
            with pytest.raises(OSError, match="Connect call failed"):
                await served.dial()

    async def test_ends_by_itself(self) -> None:
        """After the lame-duck time, and not before, connections are refused."""
        async with serving(settings=settings_with(lame_duck=0.2)) as served:
            began = asyncio.get_running_loop().time()
            await served.server.leave(asyncio.Event())

            assert asyncio.get_running_loop().time() - began >= 0.2

    async def test_is_followed_by_a_bounded_wait(self) -> None:
        """An admission that won't end is cut off when the drain time is over, so that the process ends in time."""

        async def hangs(body: bytes, deadline: float) -> Answer:
            await asyncio.sleep(max(0.0, deadline - asyncio.get_running_loop().time() - 0.2))
            return await admit(body, deadline)

        async with serving(hangs, settings=settings_with(lame_duck=0.0, drain=0.1, deadline=30.0)) as served:
            connection = await served.dial()
            asked = asyncio.create_task(connection.ask(review("u-1")))
            await until(lambda: served.counted("admissions_in_flight") == 1)
            began = asyncio.get_running_loop().time()
            await served.server.leave(asyncio.Event())

            assert asyncio.get_running_loop().time() - began < 8
            with pytest.raises((OSError, asyncio.IncompleteReadError)):
                await asked
            await connection.close()

    async def test_answers_what_comes_at_the_last_moment(self) -> None:
        """A review on an old connection after the port is closed is still answered while others are in flight."""
        going = asyncio.Event()

        async def waits(body: bytes, deadline: float) -> Answer:
            if b"u-slow" in body:
                await going.wait()
            return await admit(body, deadline)

        async with serving(waits, settings=settings_with(lame_duck=0.0)) as served:
            slow, late = await served.dial(), await served.dial()
            assert await late.ask(review("u-0")) == (200, True)
            asked = asyncio.create_task(slow.ask(review("u-slow")))
            await until(lambda: served.counted("admissions_in_flight") == 1)
            leaving = asyncio.create_task(served.server.leave(asyncio.Event()))
            await until(lambda: served.counted("ready") == 0)
            await refused(served.dial)

            assert await late.ask(review("u-late")) == (200, False)
            going.set()
            assert await asked == (200, False)
            await leaving
            await slow.close()
            await late.close()


async def refused(dial: Any) -> None:
    """Wait until a connection is refused."""
    async with asyncio.timeout(10):
        while True:
            try:
                await (await dial()).close()
            except OSError:
                return
