"""Whatever breaks while pods are created, no creation fails or waits too long, and what went unstamped is mended."""

import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster.api_client import ApiClient, api_path
from tests.cluster.control_plane import ControlPlane
from tests.cluster.creations import Creations
from tests.cluster.fault_proxy import FaultProxy
from tests.cluster.installation import CONFIGURATION, Installation, InstalledReplica
from tests.cluster.jobsets import stamps
from tests.cluster.rings import RINGS, member, ring, ring_framework
from tests.cluster.waiting import eventually
from tests.cluster.webhook_service import WebhookService
from tests.cluster.workloads import pod

TIMEOUT = 3.0
"""Seconds after which the API server goes on without us."""

SLACK = 1.5
"""Seconds that a creation may take besides, on a busy machine."""

FAILED_OPEN = "apiserver_admission_webhook_fail_open_count"

Stream = Callable[[], Creations]


@pytest.fixture(scope="module")
def proxy(control_plane: ControlPlane) -> Iterator[FaultProxy]:
    """Between the replicas and the API server."""
    with FaultProxy(control_plane.url, control_plane.files.authority) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def service(control_plane: ControlPlane, proxy: FaultProxy) -> Iterator[WebhookService]:
    """Two replicas behind the balancer, and rings, which only a definition in the cluster describes."""
    installation = Installation.of(control_plane)
    with (
        WebhookService.running(installation, replicas=2, through=proxy) as service,
        ring_framework(control_plane),
    ):
        service.wait_until_known("rings")
        yield service


@pytest.fixture
def stream(service: WebhookService, client: ApiClient, namespace: str) -> Iterator[Stream]:
    """Pods of one ring, created again and again; whatever went unstamped has to be mended in the end."""
    owner = client.post(api_path(RINGS, "rings", namespace=namespace), ring("ring"))
    path = api_path("v1", "pods", namespace=namespace)
    begun: list[Creations] = []

    def start() -> Creations:
        begun.append(Creations(client, path, lambda number: member(owner, f"pod-{number}"), rate=40))
        return begun[-1]

    yield start

    for creations in begun:
        assert creations.refused == []
        assert creations.slowest < TIMEOUT + SLACK
    eventually(lambda: _unstamped(client, path) == [], what="every pod to be stamped in the end", seconds=60)
    service.wait_until_effective()


def _unstamped(client: ApiClient, path: str) -> list[str]:
    return [each["metadata"]["name"] for each in client.get(path)["items"] if not _is_stamped(each)]


def _is_stamped(obj: Any) -> bool:
    found = stamps(obj)
    return (found.get("gang-size"), found.get("gpu-total"), found.get("role")) == ("5", "8", "member")


def lost(creations: Creations) -> list[str]:
    """Pods that were not stamped at their creation."""
    return [each.obj["metadata"]["name"] for each in creations.made if not _is_stamped(each.obj)]


def failed_open(client: ApiClient) -> float:
    """Creations for which the API server went on without an answer of ours, by its own count."""
    lines = client.get("/metrics").splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(FAILED_OPEN) and "workload" in line)


def test_a_killed_replica(service: WebhookService, stream: Stream, client: ApiClient) -> None:
    """kill -9 of the leader: a few reviews are lost with it, which the API server counts; the other replica goes on."""
    before, victim = failed_open(client), service.leader
    with stream() as creations:
        creations.more(20)
        victim.kill()
        creations.more(60)
        survivor = service.leader
        creations.more(20)
    assert survivor is not victim
    print(f"unstamped after kill -9: {len(lost(creations))} of {len(creations.made)}")
    assert len(lost(creations)) <= failed_open(client) - before
    assert len(lost(creations)) < 60

    service.replicas.remove(victim)
    service.add().wait_until_ready()


def test_a_rolling_restart_loses_nothing(service: WebhookService, stream: Stream, client: ApiClient) -> None:
    """Each replica is replaced by a new one, SIGTERM and all: no review is lost, and none lacks a definition."""
    before = failed_open(client)
    with stream() as creations:
        creations.more(10)
        for old in list(service.replicas):
            service.add().wait_until_ready()
            assert service.balancer is not None
            service.balancer.wait_for(len(service.replicas))
            _leave(service, old)
            creations.more(10)
    assert lost(creations) == []
    assert failed_open(client) == before


def test_a_replica_that_hangs(service: WebhookService, stream: Stream, client: ApiClient) -> None:
    """It answers nothing, neither reviews nor probes: who was asked waits for the timeout and no longer.

    Those go without stamps, which the API server counts, and upkeep mends them.
    """
    before, victim = failed_open(client), service.replicas[0]
    with stream() as creations:
        creations.more(10)
        victim.send(signal.SIGSTOP)
        try:
            creations.more(40)
        finally:
            victim.send(signal.SIGCONT)
        creations.more(20)
    print(f"unstamped while a replica hung: {len(lost(creations))} of {len(creations.made)}")
    assert len(lost(creations)) <= failed_open(client) - before


def test_a_cut_watch(service: WebhookService, stream: Stream, proxy: FaultProxy) -> None:
    """Every watch is cut in the middle, three times: nothing is lost."""
    before = service.metric("workload_stamp_watch_restarts_total", reason="unreachable")
    with stream() as creations:
        for _ in range(3):
            creations.more(10)
            eventually(lambda: proxy.watches >= service.metric("workload_stamp_watches"), what="every watch to be back")
            proxy.cut_watches()
        creations.more(20)
    assert lost(creations) == []
    assert service.metric("workload_stamp_watch_restarts_total", reason="unreachable") > before
    eventually(service.follows_everything, what="every watch to be back")


def test_an_api_server_that_restarts(control_plane: ControlPlane, service: WebhookService, stream: Stream) -> None:
    """Killed and started again: no replica ends, and what is created afterwards is stamped."""
    with stream() as creations:
        creations.more(10)
        control_plane.restart_apiserver()
        creations.more(20)
        eventually(service.follows_everything, what="every watch to be back")
        settled = time.monotonic()
        creations.forgive()
        creations.more(20)
    assert creations.unreachable > 0
    assert all(_is_stamped(each.obj) for each in creations.made if each.at > settled)
    assert all(replica.running for replica in service.replicas)


def test_an_etcd_that_restarts(control_plane: ControlPlane, service: WebhookService, stream: Stream) -> None:
    """The same for what is behind the API server."""
    with stream() as creations:
        creations.more(10)
        control_plane.restart_etcd()
        creations.forgive()
        creations.more(20)
    assert lost(creations) == []
    assert all(replica.running for replica in service.replicas)


EDITS = {
    "failure-policy": [{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Fail"}],
    "timeout": [{"op": "replace", "path": "/webhooks/1/timeoutSeconds", "value": 30}],
    "selector": [{"op": "replace", "path": "/webhooks/0/namespaceSelector", "value": {}}],
    "bundle": [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}],
    "condition": [
        {"op": "add", "path": "/webhooks/0/matchConditions/-", "value": {"name": "never", "expression": "false"}}
    ],
    "rules": [{"op": "replace", "path": "/webhooks/1/rules", "value": []}],
    "webhook": [{"op": "remove", "path": "/webhooks/1"}],
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_edited_configuration(edit: str, service: WebhookService, client: ApiClient) -> None:
    """Whatever is changed by hand is as it was a moment later."""
    assert service.leader.running
    before = client.get(CONFIGURATION)["webhooks"]

    client.request("PATCH", CONFIGURATION, EDITS[edit], content_type="application/json-patch+json")

    assert client.get(CONFIGURATION)["webhooks"] != before
    eventually(
        lambda: client.get(CONFIGURATION)["webhooks"] == before, what="the configuration to be mended", seconds=10
    )


def test_a_deleted_configuration(service: WebhookService, client: ApiClient, namespace: str) -> None:
    """An administrator's switch: nothing is made again, not by another leader either; a new replica that leads does."""
    pods = api_path("v1", "pods", namespace=namespace)
    client.delete(CONFIGURATION)
    eventually(lambda: not any(each.metric("workload_stamp_registered") for each in service.replicas), what="notice")
    assert stamps(client.post(pods, pod("while-off"))) == {}
    assert service.balancer is not None

    _leave(service, service.leader)
    assert service.leader.running
    assert service.installation.configuration is None

    service.add().wait_until_ready()
    _leave(service, service.replicas[0])
    service.installation.wait_registered()
    service.add().wait_until_ready()
    eventually(lambda: stamps(client.post(pods, pod("on"), query={"dryRun": "All"})), what="stamps again")


def _leave(service: WebhookService, replica: InstalledReplica) -> None:
    """Delete a replica's pod."""
    service.withdraw(replica)
    assert replica.terminate() == 0
