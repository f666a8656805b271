"""`python -m tests.bench`: our server beside the echo, rounds interleaved, ratios within each round.

Server and loader have a core each. CPU is the server's user and system time from /proc, the steadiest figure.
"""

import argparse
import asyncio
import base64
import os
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import jsonpatch
import orjson

from certs.authority import Authority
from tests.bench.corpus import CLASSES, Corpus, build
from tests.bench.loader import Measured, closed_loop, open_loop

PREFIX = "workload-stamp.io/"
TICKS = os.sysconf("SC_CLK_TCK")
SERVER_CORE, LOADER_CORE = 0, 1
TARGETS = {"pods": 1.6, "unrelated": 1.25, "jobsets": 2.0, "rayclusters": 2.0}
GROWTH_TARGET = 2.0
OPEN_RATE = 200.0


@dataclass(slots=True)
class Peer:
    """A server under test, pinned to its core."""

    name: str
    port: int
    process: subprocess.Popen[bytes]

    def cpu_seconds(self) -> float:
        """User and system time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def resident_megabytes(self) -> float:
        """Memory that it holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(status.split("VmRSS:")[1].split()[0]) / 1024


@dataclass(slots=True)
class Row:
    """One class of reviews in one way of asking: figures of each round, for echo and ours."""

    rates: dict[str, list[float]] = field(default_factory=lambda: {"echo": [], "ours": []})
    p50: dict[str, list[float]] = field(default_factory=lambda: {"echo": [], "ours": []})
    p99: dict[str, list[float]] = field(default_factory=lambda: {"echo": [], "ours": []})
    cpu: dict[str, list[float]] = field(default_factory=lambda: {"echo": [], "ours": []})

    def add(self, name: str, measured: Measured, cpu: float) -> None:
        """Take one measurement in."""
        self.rates[name].append(measured.rate)
        self.p50[name].append(measured.percentile(0.5) * 1000)
        self.p99[name].append(measured.percentile(0.99) * 1000)
        self.cpu[name].append(cpu / len(measured.latencies) * 1e6)

    def ratio(self, figures: Mapping[str, list[float]]) -> float:
        """The median of the rounds' ratios, ours to the echo."""
        return statistics.median(ours / echo for ours, echo in zip(figures["ours"], figures["echo"], strict=True))


def main() -> None:
    """Parse the options, run, print."""
    options = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=float, default=2.0, help="of one measurement")
    options.add_argument("--classes", nargs="*", default=list(CLASSES), choices=CLASSES)
    options.add_argument("--json", type=Path, help="write the figures there too")
    chosen = options.parse_args()
    os.sched_setaffinity(0, {LOADER_CORE % (os.cpu_count() or 1)})
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_bench(Path(folder), chosen))


async def _bench(folder: Path, chosen: argparse.Namespace) -> None:
    corpus = build()
    trust, peers = _start(folder, corpus)
    try:
        for peer in peers.values():
            await _until_open(peer)
        rows: dict[str, Row] = {}
        for name in chosen.classes:
            for connections in (16, 64) if not name.startswith("jobset-") else (4,):
                key = f"{name} × {connections}"
                rows[key] = await _closed(peers, trust, corpus, name, connections=connections, chosen=chosen)
                _print_row(key, rows[key])
        for name in ("pods", "jobsets"):
            if name in chosen.classes:
                key = f"{name} at {OPEN_RATE:g}/s"
                rows[key] = await _open(peers, trust, corpus, name, chosen)
                _print_row(key, rows[key])
        _print_summary(rows, peers)
        if chosen.json is not None:
            chosen.json.write_bytes(orjson.dumps({key: vars_of(row) for key, row in rows.items()}))
    finally:
        for peer in peers.values():
            peer.process.kill()


def vars_of(row: Row) -> dict[str, object]:
    """A row's figures by name."""
    return {"rates": row.rates, "p50": row.p50, "p99": row.p99, "cpu": row.cpu}


def _start(folder: Path, corpus: Corpus) -> tuple[ssl.SSLContext, dict[str, Peer]]:
    now = datetime.now(UTC)
    authority = Authority.create(now)
    pair = authority.issue_serving(("localhost", "127.0.0.1"), now)
    (folder / "tls.crt").write_bytes(pair.certificate)
    (folder / "tls.key").write_bytes(pair.key)
    (folder / "owners.json").write_bytes(orjson.dumps(corpus.owners))
    ports = [_free_port() for _ in range(3)]
    files = [str(folder / "tls.crt"), str(folder / "tls.key")]
    ours = ["-m", "webhook", "serve", "--cert-file", files[0], "--key-file", files[1], "--log-level", "warning"]
    ours += ["--bind-address", f"127.0.0.1:{ports[1]}", "--metrics-bind-address", f"127.0.0.1:{ports[2]}"]
    ours += ["--owners", str(folder / "owners.json")]
    echo = ["-m", "tests.bench.echo", *files, str(ports[0])]
    trust = ssl.create_default_context(cadata=authority.certificate.decode())
    return trust, {"echo": _run("echo", ports[0], echo), "ours": _run("ours", ports[1], ours)}


def _run(name: str, port: int, arguments: list[str]) -> Peer:
    process = subprocess.Popen(
        [sys.executable, *arguments],
        preexec_fn=lambda: os.sched_setaffinity(0, {SERVER_CORE}),  # noqa: PLW1509
    )
    return Peer(name, port, process)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def _until_open(peer: Peer) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", peer.port)
        except OSError:
            await asyncio.sleep(0.05)
            continue
        writer.close()
        return
    raise SystemExit(f"{peer.name} did not start")


async def _closed(
    peers: Mapping[str, Peer],
    trust: ssl.SSLContext,
    corpus: Corpus,
    name: str,
    *,
    connections: int,
    chosen: argparse.Namespace,
) -> Row:
    async def measure(peer: Peer, check: Callable[[int, bytes], None], seconds: float) -> Measured:
        bodies = corpus.bodies[name]
        return await closed_loop(peer.port, trust, bodies, connections=connections, seconds=seconds, check=check)

    return await _rounds(peers, corpus, name, chosen, measure)


async def _open(
    peers: Mapping[str, Peer], trust: ssl.SSLContext, corpus: Corpus, name: str, chosen: argparse.Namespace
) -> Row:
    async def measure(peer: Peer, check: Callable[[int, bytes], None], seconds: float) -> Measured:
        bodies = corpus.bodies[name]
        return await open_loop(peer.port, trust, bodies, rate=OPEN_RATE, seconds=2 * seconds, check=check)

    return await _rounds(peers, corpus, name, chosen, measure)


async def _rounds(
    peers: Mapping[str, Peer],
    corpus: Corpus,
    name: str,
    chosen: argparse.Namespace,
    measure: Callable[..., object],
) -> Row:
    """Rounds of both peers in turn; the first is a warm-up in which every answer is examined."""
    row = Row()
    for number in range(chosen.rounds + 1):
        for peer in peers.values():
            examine = _examiner(corpus, name) if peer.name == "ours" and number == 0 else _glance
            before = peer.cpu_seconds()
            measured = await measure(peer, examine, chosen.seconds if number else 0.5)  # type: ignore[misc]
            if number:
                row.add(peer.name, measured, peer.cpu_seconds() - before)
    return row


def _glance(_: int, answer: bytes) -> None:
    assert b'"allowed":true' in answer, answer[:200]


def _examiner(corpus: Corpus, name: str) -> Callable[[int, bytes], None]:
    """Checks uid, allowed, that the patch applies, and that the stamps are right."""
    reviews = [orjson.loads(body)["request"] for body in corpus.bodies[name]]

    def examine(number: int, answer: bytes) -> None:
        response = orjson.loads(answer)["response"]
        assert response["allowed"] is True
        assert response["uid"] == reviews[number]["uid"]
        wanted = corpus.expected[name][number]
        if wanted is None:
            assert "patch" not in response
            return
        patch = orjson.loads(base64.b64decode(response["patch"]))
        labels = jsonpatch.apply_patch(reviews[number]["object"], patch)["metadata"]["labels"]
        found = {key: labels.get(PREFIX + key) for key in wanted}
        assert found == wanted, (found, wanted)

    return examine


def _print_row(key: str, row: Row) -> None:
    ours = {name: statistics.median(getattr(row, name)["ours"]) for name in ("rates", "p50", "p99", "cpu")}
    print(
        f"{key:22} {ours['rates']:8.0f} req/s  p50 {ours['p50']:7.2f} ms  p99 {ours['p99']:7.2f} ms  "
        f"{ours['cpu']:8.0f} µs CPU  ÷ echo: CPU {row.ratio(row.cpu):5.2f}  p99 {row.ratio(row.p99):5.2f}",
        flush=True,
    )


def _print_summary(rows: Mapping[str, Row], peers: Mapping[str, Peer]) -> None:
    print()
    for key, row in rows.items():
        name = key.split(" ")[0]
        if " at " in key:
            print(f"{key:22} p99 {row.ratio(row.p99):5.2f} × echo (to reach: 1.5)")
        elif name in TARGETS or name.startswith("jobset-"):
            print(f"{key:22} CPU {row.ratio(row.cpu):5.2f} × echo (to reach: {TARGETS.get(name, GROWTH_TARGET)})")
    print(f"resident memory: ours {peers['ours'].resident_megabytes():.0f} MB (to reach: 120), ", end="")
    print(f"echo {peers['echo'].resident_megabytes():.0f} MB")


if __name__ == "__main__":
    main()
