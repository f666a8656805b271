"""Ports on loopback: which are free, who answers there. Knows nothing of who will listen."""

import random
import socket
from http.client import HTTPConnection, HTTPException

LOOPBACK = "127.0.0.1"
# Below the range that the kernel takes source ports from: a client that tries again and again to reach a server which
# is down would else, sooner or later, be given the server's own port and connect to itself.
LOWEST, HIGHEST = 10_000, 32_000

_given: set[int] = set()


def free_port() -> int:
    """A port on 127.0.0.1 that is free now and that this process was not given before."""
    for _ in range(1000):
        port = random.randint(LOWEST, HIGHEST)
        if port not in _given and _can_listen(port):
            _given.add(port)
            return port
    raise RuntimeError(f"no free port on {LOOPBACK} between {LOWEST} and {HIGHEST}")


def is_open(port: int) -> bool:
    """Whether somebody accepts connections on that port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((LOOPBACK, port)) == 0


def healthy(port: int, path: str = "/readyz") -> bool:
    """Whether an HTTP GET on loopback is answered with 200."""
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _can_listen(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
    return True
