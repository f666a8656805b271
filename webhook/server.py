"""How the service starts, listens and leaves: two ports, readiness, and no review lost on the way out.

This module must not know what is answered (that is `handler`), what a review says, or which definitions there are.
"""

import asyncio
import gc
import importlib
import importlib.util
import signal
import ssl
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from webhook.handler import Admission, ReviewHandler, plain_handler
from webhook.health import Check, Health
from webhook.listener import HANDSHAKE_SECONDS, Listener, ListenError
from webhook.log import AdmissionLog, Logger
from webhook.metrics import Metrics
from webhook.options import Address
from webhook.settings import Settings, SettingsError
from webhook.tls import ServingCertificate

SETTLE_SECONDS = 0.2
"""How long after the last answer idle connections stay open, for a review that is on its way."""

COLLECT_AFTER = 50_000
"""Objects made between two searches for cycles: a large review makes thousands, and leaves no cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Where a server listens, with the ports that were really bound."""

    reviews: Address
    plain: Address


class Server:
    """The two listeners and what they answer. Made inside a running loop."""

    def __init__(
        self,
        settings: Settings,
        admission: Admission,
        *,
        ready_checks: Mapping[str, Check],
        certificate: ServingCertificate,
        metrics: Metrics,
        logger: Logger,
        admissions: AdmissionLog,
    ) -> None:
        checks = {
            "certificate": certificate.fault,
            "listener": self.unproven,
            **ready_checks,
            "leaving": self._leaving,
        }
        health = Health(checks)
        self._settings = settings
        self._certificate = certificate
        self._logger = logger
        self._handler = ReviewHandler(
            settings, admission, health=health, metrics=metrics, logger=logger, admissions=admissions
        )
        self._reviews = Listener(self._handler, keep_alive=settings.keep_alive, tls=certificate.context)
        self._plain = Listener(plain_handler(health, metrics), keep_alive=settings.keep_alive)
        self._proof: asyncio.Task[None] | None = None
        self._proven = False
        metrics.watch(
            in_flight=lambda: self._handler.in_flight,
            certificate_expiry=certificate.seconds_to_expiry,
            ready=lambda: not health.faults(),
        )

    async def start(self) -> Addresses:
        """Listen. Raises SettingsError naming each address that can't be had."""
        problems = []
        for flag, listener, address in (
            ("--bind-address", self._reviews, self._settings.bind_address),
            ("--metrics-bind-address", self._plain, self._settings.metrics_bind_address),
        ):
            try:
                await listener.open(address)
            except ListenError as error:
                problems.append(f"{flag}: {error}")
        if problems:
            await self.close()
            raise SettingsError(tuple(problems))
        self._proof = asyncio.create_task(self._prove(self._reviews.dialled()))
        return Addresses(reviews=self._reviews.address(), plain=self._plain.address())

    async def leave(self, hasten: asyncio.Event) -> None:
        """Be not ready, serve on for the lame-duck time or until `hasten`, then close without losing a review.

        Every answer closes its connection meanwhile, so that the API server finds another replica by itself.
        """
        self._handler.leaving = True
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.lame_duck):
                await hasten.wait()
        self._reviews.refuse()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._settings.drain):
                await self._quiet()
        await self.close()

    async def close(self) -> None:
        """Close everything at once; what is being answered is cut off."""
        if self._proof is not None:
            self._proof.cancel()
        await self._reviews.close()
        await self._plain.close()

    async def _quiet(self) -> None:
        """Wait until nothing has been in flight for a moment."""
        loop = asyncio.get_running_loop()
        since = loop.time()
        while loop.time() < since + SETTLE_SECONDS:
            await asyncio.sleep(SETTLE_SECONDS / 10)
            if self._handler.in_flight:
                since = loop.time()

    async def _prove(self, address: Address) -> None:
        """Dial ourselves until a handshake succeeds: a bound port alone is no service (KAI-Scheduler#1980)."""
        anyone = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        anyone.check_hostname = False
        anyone.verify_mode = ssl.CERT_NONE
        while not self._proven:
            try:
                async with asyncio.timeout(HANDSHAKE_SECONDS):
                    _, writer = await asyncio.open_connection(address.host, address.port, ssl=anyone)
            except (OSError, TimeoutError):
                await asyncio.sleep(SETTLE_SECONDS)
            else:
                self._proven = True
                writer.close()

    def connections(self) -> tuple[web.RequestHandler, ...]:
        """The open connections of the TLS port, as aiohttp's protocols."""
        return self._reviews.connections()

    def unproven(self) -> str | None:
        """Why the listener is not known to work, None once it is."""
        return None if self._proven else "no TLS connection to our own port has succeeded yet"

    def _leaving(self) -> str | None:
        return "this replica is leaving" if self._handler.leaving else None


async def serve(
    settings: Settings,
    admission: Admission,
    *,
    ready_checks: Mapping[str, Check],
    certificate: ServingCertificate,
    metrics: Metrics,
    logger: Logger,
    admissions: AdmissionLog,
    on_started: Callable[[Addresses], None] | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, then leave; SIGINT, or a second signal, skips the lame-duck time.

    `on_started` is told the addresses once both ports listen. Raises SettingsError when one of them can't be had.
    """
    server = Server(
        settings,
        admission,
        ready_checks=ready_checks,
        certificate=certificate,
        metrics=metrics,
        logger=logger,
        admissions=admissions,
    )
    addresses = await server.start()
    following = asyncio.create_task(_follow(certificate, settings, metrics, logger))
    stop, hasten = _signals()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, 20, 50)
    logger.info("serving", reviews=f"https://{addresses.reviews}/mutate", plain=f"http://{addresses.plain}")
    if on_started is not None:
        on_started(addresses)
    try:
        await stop.wait()
        logger.info("leaving", lame_duck=0 if hasten.is_set() else settings.lame_duck)
        await server.leave(hasten)
    finally:
        following.cancel()
        await server.close()
        admissions.flush()
    logger.info("left")


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run `main` in a new event loop: uvloop's where it is installed, which costs a tenth to a quarter less."""
    fast = importlib.import_module("uvloop") if importlib.util.find_spec("uvloop") else asyncio
    with asyncio.Runner(loop_factory=fast.new_event_loop) as runner:
        runner.run(main)


async def _follow(certificate: ServingCertificate, settings: Settings, metrics: Metrics, logger: Logger) -> None:
    """Log and count what becomes of a certificate that is kept in files."""

    def report(fault: str | None) -> None:
        metrics.reloaded(good=fault is None)
        if fault is None:
            logger.info("certificate replaced", expires_in_seconds=round(certificate.seconds_to_expiry()))
        else:
            logger.error("certificate not replaced, the last good one serves on", reason=fault)

    await certificate.follow(settings.cert_poll_interval, report)


def _signals() -> tuple[asyncio.Event, asyncio.Event]:
    """Events for: stop, and do so without delay."""
    stop, hasten = asyncio.Event(), asyncio.Event()

    def told(*, at_once: bool) -> None:
        if at_once or stop.is_set():
            hasten.set()
        stop.set()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, lambda: told(at_once=False))
    loop.add_signal_handler(signal.SIGINT, lambda: told(at_once=True))
    return stop, hasten
