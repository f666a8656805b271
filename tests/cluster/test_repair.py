"""Upkeep gives objects what their admission could not, by its own field manager, and leaves alone what is not ours."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.api_client import ApiClient, api_path
from tests.cluster.control_plane import ControlPlane
from tests.cluster.installation import DEFINITIONS, Installation
from tests.cluster.jobsets import STAMP, stamps
from tests.cluster.kubectl import Kubectl
from tests.cluster.rings import FOLDER, RINGS, ring, ring_kind
from tests.cluster.waiting import eventually
from tests.cluster.webhook_service import WebhookService
from tests.cluster.workloads import job_spec, pod, scaled


@pytest.fixture(scope="module")
def older(control_plane: ControlPlane) -> Iterator[str]:
    """A namespace with a Deployment that was there before the webhook, and another one that is left alone."""
    installation = Installation.of(control_plane)
    installation.clear()
    for name, labels in (("older", {}), ("older-and-ignored", {f"{STAMP}ignore": "true"})):
        control_plane.create_namespace(name, labels=labels)
        path = api_path("apps/v1", "deployments", namespace=name)
        control_plane.client.post(path, scaled("Deployment", "web", replicas=2, gpus=1))
        eventually(lambda name=name: len(_pods(control_plane.client, name)) == 2, what="two pods")  # type: ignore[misc]
    yield "older"
    for name in ("older", "older-and-ignored"):
        control_plane.client.delete(api_path("v1", "namespaces", name=name))


@pytest.fixture(scope="module")
def service(older: str, control_plane: ControlPlane) -> Iterator[WebhookService]:
    """One replica, which comes after the older objects."""
    assert _pods(control_plane.client, older)
    with WebhookService.running(Installation.of(control_plane)) as service:
        yield service


def _pods(client: ApiClient, namespace: str) -> list[Any]:
    items: list[Any] = client.get(api_path("v1", "pods", namespace=namespace))["items"]
    return items


def _deployment(client: ApiClient, namespace: str) -> Any:
    return client.get(api_path("apps/v1", "deployments", namespace=namespace, name="web"))


def test_what_was_there_before_us(service: WebhookService, older: str, client: ApiClient) -> None:
    """The Deployment gets its stamps and rolls out nothing; its pods keep what was true at their creation: nothing."""
    eventually(lambda: "workload-id" in stamps(_deployment(client, older)), what="the Deployment's stamps")

    root = _deployment(client, older)
    assert (stamps(root)["gpu-total"], stamps(root)["pods-total"]) == ("2", "2")
    assert root["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "1"
    (ours,) = [each for each in root["metadata"]["managedFields"] if each["manager"] == "workload-stamp"]
    assert ours["operation"] == "Apply"
    written = ours["fieldsV1"]["f:metadata"]
    assert written.keys() == {"f:labels", "f:annotations"}
    assert all(key.startswith(f"f:{STAMP}") for part in written.values() for key in part)
    assert all(stamps(each) == {} for each in _pods(client, older))
    assert stamps(_deployment(client, "older-and-ignored")) == {}
    assert service.metric("workload_stamp_repairs_total", object="root", result="mended") >= 1


def test_a_root_that_is_scaled_through_its_subresource(
    service: WebhookService, kubectl: Kubectl, client: ApiClient, namespace: str
) -> None:
    """No admission of ours sees it: the root's stamps follow all the same, and new pods carry the new numbers."""
    assert service.replicas
    path = api_path("apps/v1", "deployments", namespace=namespace)
    client.post(path, scaled("Deployment", "web", replicas=1, gpus=2))
    eventually(lambda: len(_pods(client, namespace)) == 1, what="the first pod")

    kubectl("scale", "-n", namespace, "deployment/web", "--replicas=3")

    eventually(lambda: stamps(_deployment(client, namespace))["gpu-total"] == "6", what="the root's stamps to follow")
    assert stamps(_deployment(client, namespace))["pods-total"] == "3"
    eventually(lambda: len(_pods(client, namespace)) == 3, what="three pods")
    assert sorted(stamps(each)["gpu-total"] for each in _pods(client, namespace)) == ["2", "6", "6"]


def test_what_was_created_while_we_were_away(service: WebhookService, client: ApiClient, namespace: str) -> None:
    """Every replica was gone; what came meanwhile, roots and pods, has its stamps soon after one is back."""
    (replica,) = service.replicas
    replica.kill()
    jobs = api_path("batch/v1", "jobs", namespace=namespace)
    client.post(
        jobs,
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "run"}, "spec": job_spec(parallelism=2, gpus=4)},
    )
    client.post(api_path("v1", "pods", namespace=namespace), pod("bare", gpus=1))
    unknown = {"apiVersion": "example.com/v1", "kind": "Unknown", "metadata": {"name": "x", "uid": "1-2-3"}}
    client.post(api_path("v1", "pods", namespace=namespace), pod("strange", owner=unknown))
    eventually(lambda: len(_pods(client, namespace)) == 4, what="the Job's pods")
    assert all(stamps(each) == {} for each in _pods(client, namespace))

    replica.start()
    replica.wait_until_ready()

    def mended() -> bool:
        found = {each["metadata"]["name"]: stamps(each) for each in _pods(client, namespace)}
        return sum("workload-id" in each for each in found.values()) == 3

    eventually(mended, what="three pods to be mended")
    found = [stamps(each) for each in _pods(client, namespace)]
    assert sorted((each.get("workload-kind", ""), each.get("gpu-total", "")) for each in found) == [
        ("", ""), ("Job", "8"), ("Job", "8"), ("Pod", "1"),
    ]  # fmt: skip
    eventually(lambda: stamps(client.get(f"{jobs}/run")).get("gpu-total") == "8", what="the Job to be mended")
    eventually(lambda: service.metric("workload_stamp_unstamped_pods") == 0, what="nothing to be left")


def test_a_kind_that_is_served_later(
    service: WebhookService, control_plane: ControlPlane, client: ApiClient, namespace: str
) -> None:
    """Its definition is there, its CRD is not: registered and followed once it comes, and no longer once it goes."""
    control_plane.kubectl("apply", "--server-side", "-f", str(FOLDER / "framework.yaml"))
    path = api_path(RINGS, "rings", namespace=namespace)
    eventually(lambda: client.get(f"{DEFINITIONS}/ring").get("status", {}).get("inForce"), what="the definition")
    assert "rings" not in json.dumps(service.installation.configuration)

    with ring_kind(control_plane):
        service.wait_until_known("rings")
        eventually(lambda: stamps(client.post(path, ring("ring"), query={"dryRun": "All"})), what="rings to be stamped")

    eventually(lambda: "rings" not in json.dumps(service.installation.configuration), what="rings to be left out")
    assert service.metric("workload_stamp_failures_total") == 0
