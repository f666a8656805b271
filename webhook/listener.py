"""One port: bound, listened on, and the connections that came in through it until the last is closed.

This module must not know what is answered, or when the service starts and stops.
"""

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from aiohttp import web
from aiohttp.http import HttpProcessingError

from webhook.options import Address

BACKLOG = 1024
"""Connections that wait to be accepted; the API server opens one for each review in flight above 25."""

HANDSHAKE_SECONDS = 10.0
"""What the API server allows a handshake (`client-go transport/cache.go`)."""

GOODBYE_SECONDS = 2.0
"""How long a closed TLS connection, or the rest of a refused body, is waited for."""

LOOPBACK = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - to dial ourselves by
"""What to dial where every interface is listened on."""


class ListenError(Exception):
    """An address that can't be had; the message says which and why."""


class Connections(web.Server):
    """aiohttp's low-level server, which also knows when every connection is wholly closed."""

    def __init__(self, handler: Callable[[web.BaseRequest], Any], **options: Any) -> None:
        super().__init__(handler, **options)
        self._open = 0
        self._none_open = asyncio.Event()
        self._none_open.set()

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Count one more."""
        self._open += 1
        self._none_open.clear()
        super().connection_made(handler, transport)

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        """Count one less."""
        self._open -= 1
        if not self._open:
            self._none_open.set()
        super().connection_lost(handler, exc)

    async def gone(self) -> None:
        """Wait until all are closed, TLS's goodbyes included, but no longer than those are waited for."""
        with suppress(TimeoutError):
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self._none_open.wait()


class Listener:
    """One port and the connections that came in through it."""

    def __init__(
        self, handler: Callable[[web.BaseRequest], Any], *, keep_alive: float, tls: ssl.SSLContext | None = None
    ) -> None:
        self._tls = tls
        self._protocol = Connections(
            handler,
            keepalive_timeout=keep_alive,
            lingering_time=GOODBYE_SECONDS,
            access_log=None,
            logger=_http_logger(),
            auto_decompress=False,
        )
        self._server: asyncio.Server | None = None

    async def open(self, address: Address) -> None:
        """Bind and listen. Raises ListenError."""
        try:
            bound = bound_socket(address)
        except OSError as error:
            raise ListenError(f"can't listen on {address}: {_reason(error)}") from None
        self._server = await asyncio.get_running_loop().create_server(
            self._protocol,
            sock=bound,
            ssl=self._tls,
            backlog=BACKLOG,
            ssl_handshake_timeout=HANDSHAKE_SECONDS if self._tls is not None else None,
            ssl_shutdown_timeout=GOODBYE_SECONDS if self._tls is not None else None,
        )

    def address(self) -> Address:
        """Where it listens, with the port that was bound."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()[:2]
        return Address(host, port)

    def dialled(self) -> Address:
        """An address of this machine under which it is reached."""
        address = self.address()
        return Address(LOOPBACK.get(address.host, address.host), address.port)

    def connections(self) -> tuple[web.RequestHandler, ...]:
        """Those that are open."""
        return tuple(self._protocol.connections)

    def refuse(self) -> None:
        """Accept no further connection; those that are open stay."""
        if self._server is not None:
            self._server.close()

    async def close(self) -> None:
        """Close the port and every connection."""
        self.refuse()
        self._protocol.pre_shutdown()
        await self._protocol.shutdown(timeout=GOODBYE_SECONDS)
        await self._protocol.gone()


def _http_logger() -> logging.Logger:
    """What aiohttp complains to."""
    logger = logging.getLogger(__name__)
    logger.addFilter(_at_its_level)
    return logger


def _at_its_level(record: logging.LogRecord) -> bool:
    """A request that is no HTTP is its sender's fault and gets its 400: aiohttp's error, our debug."""
    error = record.exc_info[1] if record.exc_info else None
    if isinstance(error, HttpProcessingError):
        record.levelno, record.levelname = logging.DEBUG, logging.getLevelName(logging.DEBUG)
    return True


def bound_socket(address: Address) -> socket.socket:
    """A listening socket; an empty host, or `::`, is every interface in both families where there are both."""
    everywhere = address.host in ("", "::")
    if everywhere and socket.has_dualstack_ipv6():
        return socket.create_server(("::", address.port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True)
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    return socket.create_server((address.host, address.port), family=family, backlog=BACKLOG)


def _reason(error: OSError) -> str:
    """The error in the system's words, without what Python adds to them."""
    number = error.errno or 0
    return os.strerror(number) if number in errno.errorcode else str(error.strerror or error)
