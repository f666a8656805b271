"""The serving certificate: what new connections are served with, replaced while serving.

A pair is verified in a context of its own before it serves. Reloading the listener's own context would not do: a key of
another type is kept beside the old one, and a mismatched pair breaks every later handshake. So the listener's context
has no certificate at all, and hands each handshake to the context in force (`sni_callback`, called without SNI too).
This module must not know HTTP, the cluster, or who logs and counts what it reports.
"""

import asyncio
import os
import ssl
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

from certs.authority import CertificateError, KeyPair
from certs.expiry import expires, unusable

Report = Callable[[str | None], None]
"""Told of each certificate that was looked at anew: None when it serves now, else why it doesn't."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateFiles:
    """Where a certificate, its key and the authorities of clients are kept, all PEM."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def read(self) -> tuple[KeyPair, bytes | None]:
        """What is there now: the pair, and the authorities if there are any. Raises CertificateError."""
        pair = KeyPair(certificate=_contents(self.certificate), key=_contents(self.key))
        return pair, _contents(self.client_ca) if self.client_ca is not None else None


class ServingCertificate:
    """What new connections are served with. `context` is for the listener and stays the same for good.

    With `client_ca` (PEM) only clients that one of these authorities vouches for are let in.
    Until `replace` is called for the first time, every handshake is refused.
    """

    def __init__(self, *, client_ca: bytes | None = None) -> None:
        self.pair: KeyPair | None = None
        self.context = _context(client_certificates=client_ca is not None)
        self.context.sni_callback = self._choose
        self._client_ca = client_ca
        self._serving: ssl.SSLContext | None = None
        self._expires = datetime.min.replace(tzinfo=UTC)
        self._files: CertificateFiles | None = None

    @classmethod
    def from_pair(cls, pair: KeyPair, *, client_ca: bytes | None = None) -> Self:
        """One that serves `pair`. Raises CertificateError."""
        made = cls(client_ca=client_ca)
        made.replace(pair)
        return made

    @classmethod
    def from_files(cls, files: CertificateFiles) -> Self:
        """One that serves what is in `files`, and `follow`s them. Raises CertificateError naming the files."""
        pair, client_ca = files.read()
        made = cls(client_ca=client_ca)
        made._files = files
        made._replace_from(files, pair, client_ca)
        return made

    def replace(self, pair: KeyPair, *, client_ca: bytes | None = None) -> None:
        """Serve `pair` from the next handshake on, and trust these clients' authorities (None: as before).

        Raises CertificateError when it is unreadable, mismatched or not valid now; the last good one serves on.
        """
        fault = unusable(pair, datetime.now(UTC))
        if fault is not None:
            raise CertificateError(fault)
        trusted = client_ca if client_ca is not None else self._client_ca
        self._serving = _loaded(pair, trusted)
        self._expires = expires(pair.certificate)
        self._client_ca = trusted
        self.pair = pair

    def fault(self) -> str | None:
        """Why no client would accept what is served, None when all is well; for readiness."""
        if self.pair is None:
            return "there is no certificate yet"
        return f"the certificate expired at {self._expires.isoformat()}" if self.seconds_to_expiry() <= 0 else None

    def seconds_to_expiry(self) -> float:
        """Time until the certificate in force expires; 0 when there is none."""
        return (self._expires - datetime.now(UTC)).total_seconds() if self.pair is not None else 0.0

    async def follow(self, interval: float, report: Report) -> None:
        """Look at the files every `interval` seconds and serve what is new in them; for ever.

        Returns at once when there are no files. A pair that can't be served is looked at again each time: it may only
        be early. A fault is reported once, until it changes.
        """
        reported: str | None = None
        while self._files is not None:
            await asyncio.sleep(interval)
            changed, fault = self._reread(self._files)
            if changed or fault != reported:
                report(fault)
            reported = fault

    def _reread(self, files: CertificateFiles) -> tuple[bool, str | None]:
        """Whether something new serves now, and what is wrong with the files."""
        try:
            pair, client_ca = files.read()
            if (pair, client_ca) == (self.pair, self._client_ca):
                return False, None
            self._replace_from(files, pair, client_ca)
        except CertificateError as error:
            return False, str(error)
        return True, None

    def _replace_from(self, files: CertificateFiles, pair: KeyPair, client_ca: bytes | None) -> None:
        try:
            self.replace(pair, client_ca=client_ca)
        except CertificateError as error:
            raise CertificateError(f"{files.certificate}, {files.key}: {error}") from None

    def _choose(self, connection: ssl.SSLObject, _name: str | None, _context: ssl.SSLContext) -> int | None:
        if self._serving is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._serving
        return None


def _context(*, client_certificates: bool) -> ssl.SSLContext:
    """A server's context, without certificate.

    TLS 1.2 and later. No session tickets: the API server resumes no session, so writing them is wasted work.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_TICKET
    context.num_tickets = 0
    if client_certificates:
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _loaded(pair: KeyPair, client_ca: bytes | None) -> ssl.SSLContext:
    """A context that serves `pair`; OpenSSL has the last word on whether it can. Raises CertificateError."""
    context = _context(client_certificates=client_ca is not None)
    try:
        with _file_of(pair.key + b"\n" + pair.certificate) as path:
            context.load_cert_chain(path)
    except ssl.SSLError as error:
        raise CertificateError(f"the certificate and its key can't be served: {error.reason or error}") from None
    if client_ca is not None:
        try:
            context.load_verify_locations(cadata=client_ca.decode("ascii"))
        except (ssl.SSLError, ValueError):
            raise CertificateError("the authorities of clients can't be read: they must be PEM certificates") from None
    return context


@contextmanager
def _file_of(secret: bytes) -> Iterator[str]:
    """A path under which `secret` can be read meanwhile, as `load_cert_chain` insists; on Linux no disk sees it."""
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("pair"), "wb") as memory:
            memory.write(secret)
            memory.flush()
            yield f"/proc/self/fd/{memory.fileno()}"
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(secret)
            file.flush()
            yield file.name


def _contents(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise CertificateError(f"{path}: can't be read: {error.strerror}") from None
