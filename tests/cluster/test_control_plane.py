"""The control plane that the cluster tests stand on is a real one: objects, controllers, scheduler, kubelets' part."""

from typing import Any

import pytest

from tests.cluster.api_client import ApiClient, ApiError, api_path
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kubectl import Kubectl
from tests.cluster.nodes import FAIL_AFTER, FINISH_AFTER
from tests.cluster.waiting import eventually


def pod(name: str, *, gpus: int = 1, annotations: dict[str, str] | None = None) -> dict[str, Any]:
    """A pod of one container with GPUs."""
    container = {
        "name": "main", "image": "registry.example/image", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }  # fmt: skip
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


def phase(client: ApiClient, namespace: str, name: str) -> str:
    """Phase of a pod."""
    return str(client.get(api_path("v1", "pods", namespace=namespace, name=name))["status"].get("phase", ""))


def test_kubectl_speaks_to_a_server_of_its_own_version(kubectl: Kubectl) -> None:
    """The client accepts the server, and both say the version they were built from."""
    versions = kubectl.json("version")

    assert versions["serverVersion"]["gitVersion"] == versions["clientVersion"]["gitVersion"]
    assert versions["serverVersion"]["gitVersion"].startswith("v1.")


def test_eight_nodes_offer_eight_gpus_each(client: ApiClient) -> None:
    """The nodes are Ready, with GPUs and topology labels."""
    nodes = client.get(api_path("v1", "nodes"))["items"][:8]

    assert [node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes] == ["8"] * 8
    assert len({node["metadata"]["labels"]["topology.kubernetes.io/rack"] for node in nodes}) == 4


def test_pods_of_a_deployment_are_made_scheduled_and_ready(kubectl: Kubectl, namespace: str) -> None:
    """Controller manager, scheduler and KWOK play together until the rollout is complete."""
    kubectl("create", "deployment", "web", "--image=registry.example/web", "--replicas=3", "-n", namespace)

    kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=60s")

    pods = kubectl.json("get", "pods", "-n", namespace)["items"]
    assert [pod["status"]["phase"] for pod in pods] == ["Running"] * 3
    assert all(pod["spec"]["nodeName"].startswith("node-") for pod in pods)


def test_a_pod_that_is_to_finish_succeeds(client: ApiClient, namespace: str) -> None:
    """The annotation makes a pod end by itself with exit code 0."""
    client.post(api_path("v1", "pods", namespace=namespace), pod("short", annotations={FINISH_AFTER: "500ms"}))

    eventually(lambda: phase(client, namespace, "short") == "Succeeded", what="the pod to succeed")


def test_a_pod_that_is_to_fail_fails(client: ApiClient, namespace: str) -> None:
    """The annotation makes a pod end by itself with exit code 1."""
    client.post(api_path("v1", "pods", namespace=namespace), pod("bad", annotations={FAIL_AFTER: "500ms"}))

    eventually(lambda: phase(client, namespace, "bad") == "Failed", what="the pod to fail")

    status = client.get(api_path("v1", "pods", namespace=namespace, name="bad"))["status"]
    assert status["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 1


def test_a_pod_with_more_gpus_than_a_node_has_stays_pending(client: ApiClient, namespace: str) -> None:
    """The scheduler is a real one: what fits nowhere isn't placed."""
    client.post(api_path("v1", "pods", namespace=namespace), pod("large", gpus=9))

    def unschedulable() -> bool:
        status = client.get(api_path("v1", "pods", namespace=namespace, name="large"))["status"]
        return any(condition.get("reason") == "Unschedulable" for condition in status.get("conditions", []))

    eventually(unschedulable, what="the scheduler to give up on the pod")
    assert phase(client, namespace, "large") == "Pending"


def test_a_service_account_may_do_what_it_was_allowed_and_no_more(control_plane: ControlPlane, namespace: str) -> None:
    """RBAC is enforced: an account without a role reads nothing, one that is bound to `view` reads pods only."""
    strange = control_plane.kubectl_as(control_plane.service_account(namespace, "strange"))
    viewer = control_plane.kubectl_as(control_plane.service_account(namespace, "viewer", cluster_role="view"))

    assert "forbidden" in strange.run("get", "pods", "-n", namespace).stderr
    assert viewer.run("get", "pods", "-n", namespace).returncode == 0
    assert "forbidden" in viewer.run("get", "secrets", "-n", namespace).stderr


def test_what_was_stored_outlives_the_api_server_and_etcd(control_plane: ControlPlane, namespace: str) -> None:
    """Both can be killed and started again on their ports, with their data; tokens and controllers go on."""
    client = control_plane.client
    control_plane.kubectl("create", "deployment", "web", "--image=registry.example/web", "-n", namespace)
    control_plane.kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=60s")
    before = client.get(api_path("apps/v1", "deployments", namespace=namespace, name="web"))["metadata"]["uid"]

    control_plane.restart_apiserver()
    control_plane.restart_etcd()

    after = client.get(api_path("apps/v1", "deployments", namespace=namespace, name="web"))["metadata"]["uid"]
    assert after == before
    control_plane.kubectl("scale", "deployment/web", "--replicas=2", "-n", namespace)
    control_plane.kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=60s")


def test_a_refusal_tells_what_was_refused(client: ApiClient, namespace: str) -> None:
    """An error of the test's own client says the request, the code and the server's reason."""
    with pytest.raises(ApiError) as refusal:
        client.get(api_path("v1", "pods", namespace=namespace, name="nobody"))

    assert (refusal.value.code, refusal.value.reason) == (404, "NotFound")
    assert f"GET /api/v1/namespaces/{namespace}/pods/nobody: 404" in str(refusal.value)
