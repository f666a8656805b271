"""A real TLS handshake in memory: a client that trusts a bundle against a server that has a key pair."""

import ssl
from pathlib import Path

from certs.authority import KeyPair


def load(context: ssl.SSLContext, pair: KeyPair, folder: Path) -> None:
    """Give `context` the pair; the `ssl` module takes files only."""
    path = folder / "pair.pem"
    path.write_bytes(pair.key + pair.certificate)
    context.load_cert_chain(path)


def server_context(pair: KeyPair, folder: Path, *, client_ca: bytes | None = None) -> ssl.SSLContext:
    """A server that has `pair`, and with `client_ca` lets in only clients that one of its authorities vouches for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load(context, pair, folder)
    if client_ca is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=client_ca.decode())
    return context


def client_context(trusted: bytes, folder: Path, *, pair: KeyPair | None = None) -> ssl.SSLContext:
    """A client that trusts `trusted`, and with `pair` has a certificate of its own."""
    context = ssl.create_default_context(cadata=trusted.decode())
    if pair is not None:
        load(context, pair, folder)
    return context


def shake(client: ssl.SSLContext, server: ssl.SSLContext, name: str) -> None:
    """Let `client` ask `server` for `name` until both are content; raises ssl.SSLError when one is not."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while ends:
        ends = [end for end in ends if not _done(end)]


def _done(end: ssl.SSLObject) -> bool:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
