"""After `workload-stamp uninstall` nothing of us is left, and whoever was served meanwhile was served."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.api_client import ApiClient, api_path
from tests.cluster.conftest import StartController
from tests.cluster.control_plane import ControlPlane
from tests.cluster.installation import DEFINITIONS, MANIFESTS, NAMESPACE, Installation
from tests.cluster.jobsets import JOBSETS, jobset, stamps
from tests.cluster.kubectl import Kubectl
from tests.cluster.waiting import eventually
from tests.cluster.webhook_replica import REPOSITORY
from tests.cluster.webhook_service import WebhookService

EVERYTHING = (
    "clusterroles,clusterrolebindings,customresourcedefinitions,mutatingwebhookconfigurations,namespaces,"
    "validatingadmissionpolicies,validatingadmissionpolicybindings"
)
OURS = ("workload-stamp", "workloaddefinitions.workload-stamp.io")
THEIRS = ("workload-stamp-ring", "workload-stamp-ensembles")  # roles that came with frameworks of other tests


@pytest.fixture
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """The base with the protecting policies, freshly applied."""
    installation = Installation.of(control_plane, "overlays/protect")
    yield installation
    uninstall(control_plane, "--yes", "--remove-definitions")


def uninstall(control_plane: ControlPlane, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """The ended command, run as the cluster's admin."""
    kubeconfig = control_plane.files.kubeconfig("admin")
    return run("--kubeconfig", str(kubeconfig), *arguments, stdin=stdin)


def run(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """The ended command."""
    return subprocess.run(
        [sys.executable, "-m", "webhook", "uninstall", *arguments], input=stdin, capture_output=True, text=True,
        check=False, cwd=REPOSITORY, timeout=300,
    )  # fmt: skip


def left_over(kubectl: Kubectl) -> list[str]:
    """Names of cluster-wide objects that are ours."""
    names = kubectl("get", EVERYTHING, "-o", "name").split()
    ours = [name for name in names if any(word in name for word in (*OURS, "zz-workload-stamp"))]
    return [name for name in ours if not name.endswith(THEIRS)]


def test_nothing_is_left(installation: Installation, control_plane: ControlPlane, kubectl: Kubectl) -> None:
    """Registration, policies, Deployment, roles, Secrets, Lease, resource definition and namespace are gone."""
    with WebhookService.running(installation):
        ended = uninstall(control_plane, "--yes")

    assert ended.returncode == 0, ended.stderr
    deleted = [line.removeprefix("deleted ") for line in ended.stdout.splitlines()]
    assert deleted[0] == "MutatingWebhookConfiguration zz-workload-stamp"
    assert deleted.index("Deployment workload-stamp") < deleted.index("ClusterRoleBinding workload-stamp")
    assert deleted[-1] == f"Namespace {NAMESPACE}"
    assert "Secret workload-stamp-authority" in deleted
    assert "Lease workload-stamp" in deleted
    assert left_over(kubectl) == []
    again = uninstall(control_plane, "--yes")
    assert (again.returncode, again.stdout) == (0, "Nothing is installed.\n")


def test_a_replica_that_insists_stays_unregistered(
    installation: Installation, control_plane: ControlPlane, kubectl: Kubectl
) -> None:
    """What makes its registration again and again loses the right to, and what it made last goes, too."""
    with WebhookService.running(installation, "--registration=always"):
        ended = uninstall(control_plane, "--yes")
        assert ended.returncode == 0, ended.stderr
        assert left_over(kubectl) == []


def test_a_dry_run_changes_nothing(
    installation: Installation, control_plane: ControlPlane, kubectl: Kubectl, client: ApiClient, namespace: str
) -> None:
    """It names every part and counts the stamped objects."""
    with WebhookService.running(installation):
        path = api_path("v1", "pods", namespace=namespace)
        client.post(path, _pod("bare"))
        before = (sorted(left_over(kubectl)), client.get(f"{path}/bare")["metadata"]["labels"])

        ended = uninstall(control_plane, "--dry-run", "--remove-stamps")

        after = (sorted(left_over(kubectl)), client.get(f"{path}/bare")["metadata"]["labels"])
    assert ended.returncode == 0, ended.stderr
    assert "would delete MutatingWebhookConfiguration zz-workload-stamp" in ended.stdout
    assert "would delete ValidatingAdmissionPolicy workload-stamp-protect-pods" in ended.stdout
    assert "stamps would be removed from" in ended.stdout
    assert after == before


def _pod(name: str, **labels: str) -> dict[str, Any]:
    spec = {"containers": [{"name": "main", "image": "registry.example/main:1"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": labels}, "spec": spec}


def test_stamps_go_when_that_is_asked_for(
    installation: Installation,
    control_plane: ControlPlane,
    controller: StartController,
    client: ApiClient,
    namespace: str,
) -> None:
    """Workloads and pods lose them and run on as the same pods; the users' own key stays."""
    controller("jobset")
    pods = api_path("v1", "pods", namespace=namespace)
    root = api_path(JOBSETS, "jobsets", namespace=namespace, name="train")
    with WebhookService.running(installation):
        eventually(lambda: "jobsets" in json.dumps(installation.configuration), what="JobSets to be registered")
        client.post(root.rpartition("/")[0], jobset("train"))
        eventually(lambda: len(client.get(pods)["items"]) == 3, what="three pods")
        client.post(pods, _pod("left-alone", **{"workload-stamp.io/ignore": "true"}))
        stamped = client.get(pods)["items"]
        assert sum("workload-id" in stamps(pod) for pod in stamped) == 3

        ended = uninstall(control_plane, "--yes", "--remove-stamps")

    assert ended.returncode == 0, ended.stderr
    after = client.get(pods)["items"]
    assert {pod["metadata"]["uid"] for pod in after} == {pod["metadata"]["uid"] for pod in stamped}
    assert [stamps(pod) for pod in after if stamps(pod)] == [{"ignore": "true"}]
    assert stamps(client.get(root)) == {}


@pytest.mark.usefixtures("installation")
def test_stamps_that_pods_may_depend_on_stay_unless_asked_for(
    control_plane: ControlPlane, kubectl: Kubectl, client: ApiClient, namespace: str
) -> None:
    """A kind that is stamped at creation only may have its labels in pod templates: its objects keep them."""
    ring = MANIFESTS / "examples" / "ring"
    kubectl("apply", "-f", str(ring / "crd.yaml"))
    kubectl("wait", "--for=condition=Established", "crd/rings.training.example.com", "--timeout=30s")
    framework = (ring / "framework.yaml").read_text().replace("rootStamps: full", "rootStamps: identity")
    kubectl("apply", "-f", "-", stdin=framework)
    rings = api_path("training.example.com/v1", "rings", namespace=namespace)
    client.post(rings, {"apiVersion": "training.example.com/v1", "kind": "Ring", "metadata": {
        "name": "a", "labels": {"workload-stamp.io/workload-id": "a-0123456789"}}})  # fmt: skip

    kept = uninstall(control_plane, "--yes", "--remove-stamps")
    still_there = stamps(client.get(f"{rings}/a"))
    gone = uninstall(control_plane, "--yes", "--remove-stamps", "--restart-pods", "--remove-definitions")
    cleaned = stamps(client.get(f"{rings}/a"))
    kubectl("delete", "-f", str(ring / "crd.yaml"))

    assert "kept the stamps of 1 Ring objects" in kept.stdout
    assert "holds 1 WorkloadDefinition (ring); see --remove-definitions" in kept.stdout
    assert still_there == {"workload-id": "a-0123456789"}
    assert "deleted ClusterRole workload-stamp-ring" in gone.stdout
    assert cleaned == {}
    assert left_over(kubectl) == []


@pytest.mark.usefixtures("installation")
def test_what_is_not_ours_stays(control_plane: ControlPlane, client: ApiClient) -> None:
    """A namespace with somebody's pod in it, and a configuration of our name that we did not make."""
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "zz-workload-stamp"},
    }
    path = api_path("admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations")
    client.post(path, configuration)
    pods = api_path("v1", "pods", namespace=NAMESPACE)
    pod = _pod("somebodys")
    restricted = {"runAsNonRoot": True, "runAsUser": 1, "seccompProfile": {"type": "RuntimeDefault"}}
    dropped = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    pod["spec"] |= {"securityContext": restricted}
    pod["spec"]["containers"][0] |= {"securityContext": dropped}
    client.post(pods, pod)

    ended = uninstall(control_plane, "--yes")

    assert client.get(f"{path}/zz-workload-stamp")["metadata"]["name"]
    assert client.get(f"{pods}/somebodys")["metadata"]["name"]
    assert f"kept Namespace {NAMESPACE}, as it has 1 pod (somebodys) that we did not make" in ended.stdout
    assert "kept MutatingWebhookConfiguration zz-workload-stamp lacks the label" in ended.stdout
    client.delete(f"{path}/zz-workload-stamp")
    client.delete(f"{pods}/somebodys")
    eventually(lambda: client.get(pods)["items"] == [], what="the pod to be gone")


@pytest.mark.usefixtures("installation")
def test_without_a_yes_nothing_happens(control_plane: ControlPlane, client: ApiClient) -> None:
    """It shows what would go, asks, and takes everything but yes for no."""
    ended = uninstall(control_plane, stdin="n\n")

    assert ended.returncode == 130
    assert "to be deleted: Deployment workload-stamp" in ended.stdout
    assert client.get(DEFINITIONS)


@pytest.mark.usefixtures("installation")
def test_who_may_not_delete_is_told_what_is_left(control_plane: ControlPlane, client: ApiClient) -> None:
    """A person who may look but not delete gets one line for each part, and exit code 1."""
    viewer = control_plane.service_account("default", "viewer", cluster_role="cluster-viewer")
    role = api_path("rbac.authorization.k8s.io/v1", "clusterroles", name="cluster-viewer")
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list"]}]
    document = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "cluster-viewer"},
    }
    client.apply(role, {**document, "rules": rules})

    def ended() -> Any:
        done = run("--kubeconfig", str(viewer), "--yes")
        return done if "cannot delete" in done.stderr else None

    told = eventually(ended, what="the viewer's role to count")
    client.delete(role)
    assert told.returncode == 1
    assert "ClusterRole workload-stamp: " in told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.parametrize("arguments", [("--prefix", "Not A Domain"), ("--rate", "0")])
def test_wrong_use_is_told(arguments: tuple[str, str]) -> None:
    """What is no prefix or no rate is refused before anything is read."""
    ended = run(*arguments)
    assert ended.returncode == 2
    assert arguments[0] in ended.stderr


def test_a_cluster_that_cannot_be_reached_is_told_in_one_line(tmp_path: Path) -> None:
    """A kubeconfig that is not there: exit code 2, no traceback."""
    ended = run("--kubeconfig", str(tmp_path / "missing"), "--yes")

    assert ended.returncode == 2
    assert len(ended.stderr.splitlines()) == 1
