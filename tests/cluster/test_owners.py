"""Owners are found in a real cluster: at once, through pods, across scopes, and never by a forged reference."""

import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.api_client import ApiClient, api_path
from tests.cluster.conftest import StartController
from tests.cluster.control_plane import ControlPlane
from tests.cluster.fault_proxy import Fault, FaultProxy
from tests.cluster.installation import Installation
from tests.cluster.jobsets import stamps
from tests.cluster.rings import RINGS, member, ring, ring_framework
from tests.cluster.waiting import eventually
from tests.cluster.webhook_service import WebhookService
from tests.cluster.workloads import pod, pod_spec, scaled
from webhook.identity import workload_id

TIMEOUT = 3.0
"""Seconds after which the API server goes on without us."""


@pytest.fixture(scope="module")
def proxy(control_plane: ControlPlane) -> Iterator[FaultProxy]:
    """Between the replica and the API server."""
    with FaultProxy(control_plane.url, control_plane.files.authority) as proxy:
        yield proxy


@pytest.fixture(scope="module")
def service(control_plane: ControlPlane, proxy: FaultProxy) -> Iterator[WebhookService]:
    """One replica that speaks to the API server through the proxy, and rings."""
    installation = Installation.of(control_plane)
    with WebhookService.running(installation, through=proxy) as service, ring_framework(control_plane):
        service.wait_until_known("rings")
        path = api_path(RINGS, "rings", namespace="default")
        eventually(
            lambda: stamps(control_plane.client.post(path, ring("probe"), query={"dryRun": "All"})),
            what="rings to be stamped",
        )
        yield service


@pytest.fixture
def rings(service: WebhookService, namespace: str) -> str:
    """Path of the namespace's rings."""
    assert service.replicas
    return api_path(RINGS, "rings", namespace=namespace)


@pytest.fixture
def pods(namespace: str) -> str:
    """Path of the namespace's pods."""
    return api_path("v1", "pods", namespace=namespace)


def test_a_child_that_comes_milliseconds_after_its_owner(
    client: ApiClient, rings: str, pods: str, namespace: str
) -> None:
    """Before any watch has shown the owner, its pod has every stamp: fifty times in a row."""
    for number in range(50):
        owner = client.post(rings, ring(f"ring-{number}", members=number + 1))
        found = stamps(client.post(pods, member(owner)))
        identity = workload_id("training.example.com", "Ring", namespace, f"ring-{number}")
        assert (found["workload-id"], found["gang-size"]) == (identity, str(number + 2))
        assert "unresolved" not in found


def test_a_pod_right_after_its_owner_was_changed(client: ApiClient, rings: str, pods: str) -> None:
    """It carries the new numbers, whether the watch has seen the change or not."""
    owner = client.post(rings, ring("ring"))
    for members in (8, 2, 30, 5, 17):
        client.merge_patch(f"{rings}/ring", {"spec": {"members": members}})
        found = stamps(client.post(pods, member(owner)))
        assert (found["gang-size"], found["gpu-total"]) == (str(members + 1), str(members * 2))


def test_many_pods_of_one_owner_read_it_once(
    service: WebhookService, client: ApiClient, rings: str, pods: str, proxy: FaultProxy
) -> None:
    """Eight at a time, right after its creation."""
    owner = client.post(rings, ring("large", members=1000))
    made: list[Any] = []

    def create() -> None:
        made.extend(client.post(pods, member(owner), query={"dryRun": "All"}) for _ in range(25))

    threads = [threading.Thread(target=create) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(made) == 200
    assert all(stamps(each)["gang-size"] == "1001" for each in made)
    assert sum(path.endswith("/rings/large") for _, path in proxy.requests) <= 1
    assert service.metric("workload_stamp_lineages_broken_total", reason="throttled") == 0


def test_an_owner_through_a_pod(
    service: WebhookService, controller: StartController, client: ApiClient, namespace: str
) -> None:
    """A LeaderWorkerSet's worker belongs to a StatefulSet that belongs to the leader pod: one workload all the same."""
    controller("lws")
    service.wait_until_known("leaderworkersets")
    template = {"spec": pod_spec(gpus=2)}
    spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}}
    document = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "spec": spec}
    client.post(
        api_path("leaderworkerset.x-k8s.io/v1", "leaderworkersets", namespace=namespace),
        {**document, "metadata": {"name": "serve"}},
    )
    path = api_path("v1", "pods", namespace=namespace)
    eventually(lambda: len(client.get(path)["items"]) == 4, what="four pods")

    found = [stamps(each) for each in client.get(path)["items"]]
    identity = workload_id("leaderworkerset.x-k8s.io", "LeaderWorkerSet", namespace, "serve")
    assert {(each["workload-id"], each["gang-size"], each["gpu-total"]) for each in found} == {(identity, "2", "8")}
    assert sorted(each["role"] for each in found) == ["leader", "leader", "worker", "worker"]
    assert len({each["gang"] for each in found}) == 2


def test_an_old_version_in_a_reference(client: ApiClient, pods: str, namespace: str) -> None:
    """A ReplicaSet named as apps/v1beta2 is the one that is served as apps/v1."""
    client.post(api_path("apps/v1", "deployments", namespace=namespace), scaled("Deployment", "web", replicas=0))
    path = api_path("apps/v1", "replicasets", namespace=namespace)
    (owner,) = eventually(lambda: client.get(path)["items"], what="the ReplicaSet")

    found = stamps(client.post(pods, pod(owner={**owner, "apiVersion": "apps/v1beta2", "kind": "ReplicaSet"})))

    assert found["workload-id"] == workload_id("apps", "Deployment", namespace, "web")


def test_a_forged_reference(control_plane: ControlPlane, client: ApiClient, rings: str, namespace: str) -> None:
    """Who names another namespace's object as owner, with its uid, belongs to nothing."""
    owner = client.post(rings, ring("secret"))
    client.post(api_path("v1", "pods", namespace=namespace), member(owner))
    other = f"{namespace[:50]}-other"
    control_plane.create_namespace(other)

    found = stamps(client.post(api_path("v1", "pods", namespace=other), member(owner), query={"dryRun": "All"}))

    assert json.loads(found["unresolved"]).keys() == {"workload-id"}
    assert found.keys() == {"gpus", "accelerators", "unresolved"}
    client.delete(api_path("v1", "namespaces", name=other))


def test_an_owner_that_is_gone(client: ApiClient, rings: str, pods: str, service: WebhookService) -> None:
    """Only what the pod says itself is written, and why; the same for an owner that was made again."""
    owner = client.post(rings, ring("gone"))
    client.delete(f"{rings}/gone")
    eventually(
        lambda: stamps(client.post(pods, member(owner), query={"dryRun": "All"})).get("unresolved"), what="a reason"
    )
    before = service.metric("workload_stamp_lineages_broken_total", reason="other-uid")
    client.post(rings, ring("gone"))

    found = stamps(client.post(pods, member(owner), query={"dryRun": "All"}))

    assert "another uid" in json.loads(found["unresolved"])["workload-id"]
    assert found["gpus"] == "2"
    assert service.metric("workload_stamp_lineages_broken_total", reason="other-uid") == before + 1


def test_a_circle_of_owners(client: ApiClient, rings: str, pods: str, service: WebhookService) -> None:
    """Two that own each other: a reason, and no more."""
    one = client.post(rings, ring("one"))
    other = client.post(rings, ring("other", ownerReferences=[_owned_by(one)]))
    client.merge_patch(f"{rings}/one", {"metadata": {"ownerReferences": [_owned_by(other)]}})
    follows = "workload_stamp_lineages_broken_total"
    before = service.metric(follows, reason="cycle")

    eventually(
        lambda: stamps(client.post(pods, member(one), query={"dryRun": "All"})).get("unresolved"), what="a reason"
    )

    assert service.metric(follows, reason="cycle") > before


def _owned_by(owner: Any) -> dict[str, Any]:
    reference: dict[str, Any] = member(owner)["metadata"]["ownerReferences"][0]
    return reference


# ----------------------------------------------------------------------------------- an API server that does not answer

FAULTS = {
    "slow": Fault(path="/rings/", delay=5.0),
    "429": Fault(path="/rings/", status=429),
    "500": Fault(path="/rings/", status=500),
    "403": Fault(path="/rings/", status=403),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_an_owner_that_cannot_be_read(
    *, fault: str, service: WebhookService, client: ApiClient, rings: str, pods: str, proxy: FaultProxy
) -> None:
    """The pod is created in time with what it says itself and a reason, it is counted, and upkeep mends it later.

    The owner is not remembered: the watch that would have shown it is cut off as well.
    """
    reason = {"slow": "deadline", "403": "forbidden"}.get(fault, "unreachable")
    counted = service.metric("workload_stamp_lineages_broken_total", reason=reason)
    with proxy.fault(Fault(path="/rings$", status=503)):
        proxy.cut_watches()
        owner = client.post(rings, ring(f"ring-{fault}"))
        with proxy.fault(FAULTS[fault]):
            begun = time.monotonic()
            found = stamps(client.post(pods, member(owner, "waits")))
            assert time.monotonic() < begun + TIMEOUT
    assert found.keys() == {"gpus", "accelerators", "unresolved"}
    assert json.loads(found["unresolved"]).keys() == {"workload-id"}
    assert service.metric("workload_stamp_lineages_broken_total", reason=reason) > counted

    eventually(lambda: "unresolved" not in stamps(client.get(f"{pods}/waits")), what="the pod to be mended")

    mended = stamps(client.get(f"{pods}/waits"))
    assert (mended["role"], mended["gang-size"], mended["gpu-total"]) == ("member", "5", "8")
