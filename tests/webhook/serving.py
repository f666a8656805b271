"""A server on loopback with a function in place of the admission, and clients for it: real sockets, real TLS."""

import asyncio
import io
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import aiohttp
import orjson

from certs.authority import Authority, KeyPair
from tests.webhook.polling import until
from webhook.admit import Answer
from webhook.handler import Admission
from webhook.health import Check
from webhook.log import AdmissionLog, build
from webhook.metrics import Metrics
from webhook.options import Address
from webhook.review import Verdict, decode, encode
from webhook.server import Addresses, Server
from webhook.settings import Settings
from webhook.tls import ServingCertificate

NOW = datetime.now(UTC)
AUTHORITY = Authority.create(NOW)
LOOPBACK = Address("127.0.0.1", 0)
QUICK = Settings(bind_address=LOOPBACK, metrics_bind_address=LOOPBACK, lame_duck=0.3, drain=5.0)
"""Settings of a server that is stopped often."""

JSON = {"Content-Type": "application/json"}


def issue() -> KeyPair:
    """A serving certificate for loopback, another one each time."""
    return AUTHORITY.issue_serving(["localhost", "127.0.0.1"], NOW)


def review(uid: str = "c0ffee", **request: Any) -> bytes:
    """An AdmissionReview as the API server sends it."""
    return orjson.dumps(
        {
            "apiVersion": "admission.k8s.io/v1",
            "kind": "AdmissionReview",
            "request": {
                "uid": uid,
                "kind": {"group": "", "version": "v1", "kind": "Pod"},
                "namespace": "team-a",
                "name": "train-0",
                "operation": "CREATE",
                "object": {"metadata": {"name": "train-0"}},
                **request,
            },
        }
    )


async def admit(body: bytes, deadline: float) -> Answer:  # noqa: ARG001 - as an admission is called
    """Admit with one label."""
    found = decode(body)
    operation = {"op": "add", "path": "/metadata/labels", "value": {"workload-stamp.io/role": "leader"}}
    facts = {
        "kind": found.kind.kind,
        "namespace": found.namespace,
        "name": found.name,
        "uid": found.uid,
        "operation": found.operation,
    }
    return Answer(body=encode(found.uid, Verdict(operations=[operation])), outcome="stamped", facts=facts)  # type: ignore[list-item]


def client_tls(pair_path: str | None = None, *, trusted: bytes = AUTHORITY.certificate) -> ssl.SSLContext:
    """What the API server is as a client: it trusts our authority, and may have a certificate of its own."""
    context = ssl.create_default_context(cadata=trusted.decode())
    if pair_path is not None:
        context.load_cert_chain(pair_path)
    return context


POST = b"POST /mutate?timeout=10s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
"""The head of a review's request, but for its length."""


@dataclass
class Connection:
    """One TLS connection on which requests are written byte by byte."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def certificate(self) -> bytes:
        """The server's certificate (DER)."""
        served: bytes = self.writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return served

    async def ask(self, body: bytes) -> tuple[int, bool]:
        """Send a review and read the answer: its status, and whether the connection stays open."""
        self.writer.write(POST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        head = await self.reader.readuntil(b"\r\n\r\n")
        fields = dict(line.lower().split(": ", 1) for line in head.decode().splitlines()[1:-1])
        await self.reader.readexactly(int(fields["content-length"]))
        return int(head.split()[1]), fields.get("connection") != "close"

    async def close(self) -> None:
        """Close it, goodbyes said."""
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()


@dataclass(kw_only=True)
class Served:
    """A running server and what can be seen of it from outside."""

    server: Server
    addresses: Addresses
    certificate: ServingCertificate
    metrics: Metrics
    log: io.BytesIO
    admissions: AdmissionLog
    session: aiohttp.ClientSession

    @property
    def url(self) -> str:
        """Where the TLS port is."""
        return f"https://{self.addresses.reviews}"

    @property
    def plain_url(self) -> str:
        """Where the plain port is."""
        return f"http://{self.addresses.plain}"

    async def ask(
        self, body: bytes | io.BytesIO, *, target: str = "/mutate?timeout=10s", headers: Mapping[str, str] = JSON
    ) -> tuple[int, Any]:
        """Send a review: the status, and the review's response (the text where it is none)."""
        async with self.session.post(f"{self.url}{target}", data=body, headers=headers) as response:
            text = await response.read()
            return response.status, orjson.loads(text)["response"] if response.status == 200 else text.decode()

    async def get(self, path: str, *, plain: bool = True) -> tuple[int, str]:
        """Status and text of one page."""
        async with self.session.get(f"{self.plain_url if plain else self.url}{path}") as response:
            return response.status, await response.text()

    def logged(self, event: str) -> list[dict[str, Any]]:
        """The lines of the log with that event."""
        self.admissions.flush()
        lines = [orjson.loads(line) for line in self.log.getvalue().splitlines()]
        return [line for line in lines if line["event"] == event]

    def counted(self, name: str, **labels: str) -> float:
        """A metric's value; 0 where nothing was counted."""
        return self.metrics.registry.get_sample_value(f"workload_stamp_{name}", labels) or 0

    async def dial(self) -> "Connection":
        """A bare TLS connection."""
        port = self.addresses.reviews.port
        streams = await asyncio.open_connection("127.0.0.1", port, ssl=client_tls(), server_hostname="127.0.0.1")
        return Connection(*streams)


@asynccontextmanager
async def serving(
    admission: Admission = admit,
    *,
    settings: Settings = QUICK,
    ready_checks: Mapping[str, Check] | None = None,
    certificate: ServingCertificate | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[Served]:
    """A server that is ready, and a client's session; both closed at the end."""
    log, metrics = io.BytesIO(), Metrics("1.2.3")
    logger, admissions = build("info", "json", log)
    certificate = certificate or ServingCertificate.from_pair(issue())
    server = Server(
        settings,
        admission,
        ready_checks=ready_checks or {},
        certificate=certificate,
        metrics=metrics,
        logger=logger,
        admissions=admissions,
    )
    addresses = await server.start()
    connector = aiohttp.TCPConnector(ssl=tls or client_tls(), limit=0)
    try:
        async with aiohttp.ClientSession(connector=connector) as session:
            yield Served(
                server=server,
                addresses=addresses,
                certificate=certificate,
                metrics=metrics,
                log=log,
                admissions=admissions,
                session=session,
            )
    finally:
        await server.close()


async def until_ready(served: Served) -> None:
    """Wait until the server says it is ready."""
    await until(lambda: served.metrics.registry.get_sample_value("workload_stamp_ready") == 1)


def settings_with(**changes: Any) -> Settings:
    """Quick settings with something changed."""
    return replace(QUICK, **changes)
