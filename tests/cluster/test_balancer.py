"""The balancer does to connections what kube-proxy would: ready replicas only, late, and never a second try."""

import http.client
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from tests.cluster.balancer import Backend, Balancer
from tests.cluster.waiting import eventually

pytestmark = pytest.mark.slow


class Replica(ThreadingHTTPServer):
    """Serves its own port number on every path, but /readyz, which says what `is_ready` says."""

    daemon_threads = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.is_ready = True
        self.backend = Backend(port=self.server_address[1], health_port=self.server_address[1])


class Answer(BaseHTTPRequestHandler):
    """One request to a replica."""

    protocol_version = "HTTP/1.1"
    timeout = 5
    server: Replica

    def do_GET(self) -> None:
        """Readiness or the port number."""
        body = str(self.server.backend.port).encode()
        ok = self.server.is_ready or self.path != "/readyz"
        self.send_response(200 if ok else 503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


RunReplicas = Callable[[], Replica]


@pytest.fixture
def replica() -> Iterator[RunReplicas]:
    """Start a replica; all are stopped in the end."""
    with ExitStack() as stack:

        def start() -> Replica:
            server = Replica()
            thread = Thread(target=server.serve_forever, args=(0.05,))
            thread.start()
            stack.callback(server.server_close)
            stack.callback(thread.join)
            stack.callback(server.shutdown)
            return server

        yield start


@pytest.fixture
def balancer() -> Iterator[Balancer]:
    """A balancer without replicas, quicker than kube-proxy."""
    with Balancer(probe_seconds=0.05, delay_seconds=0.1) as balancer:
        yield balancer


def answer(balancer: Balancer) -> int:
    """Port of the replica that answered a new connection."""
    connection = http.client.HTTPConnection("127.0.0.1", balancer.port, timeout=5)
    try:
        connection.request("GET", "/", headers={"Connection": "close"})
        return int(connection.getresponse().read())
    finally:
        connection.close()


def test_new_connections_are_spread_over_the_ready_replicas(balancer: Balancer, replica: RunReplicas) -> None:
    """With two ready replicas, each gets some of forty connections, and the balancer counts them."""
    replicas = [replica(), replica()]
    for each in replicas:
        balancer.add(each.backend)
    balancer.wait_for(2)

    answers = [answer(balancer) for _ in range(40)]

    assert {each.backend.port: answers.count(each.backend.port) for each in replicas} == {
        backend.port: count for backend, count in balancer.accepted.items()
    }
    assert len(balancer.accepted) == 2


def test_an_unready_replica_gets_no_new_connections_but_keeps_its_old_ones(
    balancer: Balancer, replica: RunReplicas
) -> None:
    """A connection that was made before outlives the replica's leaving, as under kube-proxy."""
    leaving = replica()
    balancer.add(leaving.backend)
    balancer.wait_for(1)
    old = http.client.HTTPConnection("127.0.0.1", balancer.port, timeout=5)
    old.request("GET", "/")
    old.getresponse().read()

    leaving.is_ready = False
    balancer.wait_for(0)

    with pytest.raises(OSError, match=r"reset|without response"):
        answer(balancer)
    old.request("GET", "/")
    assert old.getresponse().read() == str(leaving.backend.port).encode()
    old.close()


def test_a_replica_that_becomes_ready_again_comes_back(balancer: Balancer, replica: RunReplicas) -> None:
    """Readiness is asked again and again, not once."""
    wavering = replica()
    balancer.add(wavering.backend)
    balancer.wait_for(1)
    wavering.is_ready = False
    balancer.wait_for(0)

    wavering.is_ready = True
    balancer.wait_for(1)

    assert answer(balancer) == wavering.backend.port


def test_a_withdrawn_replica_still_gets_connections_for_a_moment(replica: RunReplicas) -> None:
    """kube-proxy learns of a deleted pod late; until then a replica that has gone resets whoever is sent to it."""
    with Balancer(probe_seconds=0.05, delay_seconds=1.5) as balancer:
        deleted = replica()
        balancer.add(deleted.backend)
        balancer.wait_for(1)

        balancer.withdraw(deleted.backend)

        assert answer(balancer) == deleted.backend.port
        balancer.wait_for(0)


def test_a_connection_to_a_dead_replica_is_reset_and_not_tried_elsewhere(
    balancer: Balancer, replica: RunReplicas
) -> None:
    """A replica whose port is closed but that has not been taken out yet costs the client its connection."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        alive = replica()
        dead = Backend(port=nobody.getsockname()[1], health_port=alive.backend.port)
        balancer.add(dead)
        balancer.wait_for(1)

        with pytest.raises(OSError, match=r"reset|without response"):
            answer(balancer)

    assert balancer.turned_away == 1


def test_large_bodies_pass_whole_in_both_directions(balancer: Balancer) -> None:
    """Half a connection may be closed while the other half still sends: nothing is lost."""
    sent = bytes(range(256)) * 40_000
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.create_server(("127.0.0.1", 0)) as health:
        port = listener.getsockname()[1]
        threads = [Thread(target=_echo_once, args=(listener,)), Thread(target=_say_ready, args=(health,), daemon=True)]
        for thread in threads:
            thread.start()
        balancer.add(Backend(port=port, health_port=health.getsockname()[1]))
        balancer.wait_for(1)

        with socket.create_connection(("127.0.0.1", balancer.port), timeout=10) as client:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            received = b"".join(iter(lambda: client.recv(65536), b""))

        threads[0].join()
        health.shutdown(socket.SHUT_RDWR)
        threads[1].join()
    assert received == sent


def _echo_once(listener: socket.socket) -> None:
    connection, _ = listener.accept()
    with connection:
        everything = b"".join(iter(lambda: connection.recv(65536), b""))
        connection.sendall(everything)


def _say_ready(listener: socket.socket) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        with connection:
            connection.recv(4096)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


def test_cut_connections_are_reset_and_new_ones_accepted(balancer: Balancer, replica: RunReplicas) -> None:
    """Who holds a connection sees it break at once; who comes again is served."""
    serving = replica()
    balancer.add(serving.backend)
    balancer.wait_for(1)
    with socket.create_connection(("127.0.0.1", balancer.port), timeout=5) as client:
        eventually(lambda: balancer.accepted.total() == 1, what="the connection to be passed on")

        balancer.cut()

        with pytest.raises(ConnectionResetError):
            client.recv(1)
    assert answer(balancer) == serving.backend.port


def test_closing_the_balancer_ends_its_connections(replica: RunReplicas) -> None:
    """Nothing of a balancer outlives its test."""
    with Balancer(probe_seconds=0.05, delay_seconds=0.05) as balancer:
        balancer.add(replica().backend)
        balancer.wait_for(1)
        client = socket.create_connection(("127.0.0.1", balancer.port), timeout=5)
        eventually(lambda: balancer.accepted.total() == 1, what="the connection to be passed on")

    with client, pytest.raises(ConnectionResetError):
        client.recv(1)
