"""The live views on the real control plane: every framework's workloads alike, and figures that add up."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.api_client import ApiClient, api_path
from tests.cluster.conftest import StartController
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kubectl import Kubectl
from tests.cluster.live_command import LiveCommand
from tests.cluster.live_objects import KINDS, Gate, Pods, spec_of
from tests.cluster.recipes import set_ray_job_status
from tests.cluster.waiting import eventually

SECONDS = 90.0


@pytest.fixture
def live(control_plane: ControlPlane) -> LiveCommand:
    """The admin's command line."""
    return LiveCommand(control_plane.files.kubeconfig("admin"))


@pytest.fixture
def gate(client: ApiClient, namespace: str) -> Iterator[Gate]:
    """A gate of the test's own, closed at first."""
    gate = Gate(client, namespace)
    yield gate
    gate.close()


def create(client: ApiClient, namespace: str, kind: str, pods: Pods, name: str = "train", **more: Any) -> None:
    """Create a small object of a kind."""
    spec = spec_of(kind, pods) | more
    client.post(KINDS[kind].path(namespace), KINDS[kind].document(name, spec))


def pods_of(kubectl: Kubectl, namespace: str) -> list[dict[str, Any]]:
    """Every pod, as kubectl has it."""
    items: list[dict[str, Any]] = kubectl.json("get", "pods", "-n", namespace)["items"]
    return items


def test_the_contracts_jobset_is_one_row_and_its_pods_are_placed(
    controller: StartController, client: ApiClient, kubectl: Kubectl, live: LiveCommand, namespace: str
) -> None:
    """1 leader + 2 workers, 12 GPUs, Running; described, each pod is on the node where kubectl sees it."""
    controller("jobset")
    create(client, namespace, "JobSet", Pods(gpus=4))
    eventually(lambda: live.status("jobset", namespace, "train") == "Running", what="it to run", seconds=SECONDS)
    eventually(lambda: live.json("get", "-n", namespace)["items"][0]["pods"]["ready"] == 3, what="three ready pods")

    header, line = live.text("get", "-n", namespace).splitlines()
    described = live.json("describe", "jobset/train", "-n", namespace)

    assert header.split() == ["KIND", "NAME", "STATUS", "ROLES", "PODS", "GPUS", "GANGS", "AGE"]
    for text in ("JobSet  train  Running  1 leader + 2 workers", "3/3", "12/12", "1/1 of 3"):
        assert text in line
    seen = {pod["metadata"]["name"]: pod["spec"]["nodeName"] for pod in pods_of(kubectl, namespace)}
    (component,) = described["components"]
    pods = [pod for instance in component["instances"] for pod in instance["pods"]]
    assert {pod["name"]: pod["node"] for pod in pods} == seen
    assert {place["name"]: place["gpus"] for place in described["placement"]["nodes"]} == {
        node: 4 * list(seen.values()).count(node) for node in seen.values()
    }
    zones = described["placement"]["topology"]["topology.kubernetes.io/zone"]
    assert sum(zone["gpus"] for zone in zones) == 12


ALIKE = {
    # kind: roles, pods asked, GPUs asked (one GPU a pod, heads and launchers aside), gangs asked and their size
    "JobSet": ("1 leader + 2 workers", 3, 3, [1, 3]),
    "LeaderWorkerSet": ("2 leader + 2 worker", 4, 4, [2, 2]),
    "PyTorchJob": ("1 master + 2 worker", 3, 3, [1, 3]),
    "MPIJob": ("1 launcher + 2 worker", 3, 3, [1, 3]),
    "RayJob": ("1 head + 2 worker", 3, 2, [1, 3]),
    "Deployment": ("3 pods", 3, 3, [0, None]),
    "Job": ("2 pods", 2, 2, [0, None]),
    "CronJob": ("each run 1 job", 1, 1, [0, None]),
}


def test_every_framework_is_one_row_alike(
    controller: StartController, client: ApiClient, live: LiveCommand, namespace: str
) -> None:
    """Roles, pods, GPUs and gangs of each; its parts have no rows."""
    for name in ("jobset", "lws", "training-operator", "mpi-operator"):
        controller(name)
    set_ray_job_status(controller("ray-operator"), "RUNNING")
    for kind in ALIKE:
        more = {"schedule": "0 0 1 1 *"} if kind == "CronJob" else {}
        create(client, namespace, kind, Pods(gpus=1), name=kind.lower(), **more)

    def all_run() -> bool:
        rows = live.json("get", "-n", namespace)["items"]
        going = [row for row in rows if row["kind"] != "CronJob"]
        return all(row["status"] == "Running" and row["pods"]["ready"] == row["pods"]["asked"] for row in going)

    eventually(all_run, what=f"all to run: {live.text('get', '-n', namespace)}", seconds=SECONDS)
    rows = {row["kind"]: row for row in live.json("get", "-n", namespace)["items"]}
    table = live.text("get", "-n", namespace)

    assert sorted(rows) == sorted(ALIKE)
    for kind, (roles, pods, gpus, gangs) in ALIKE.items():
        row = rows[kind]
        assert (row["pods"]["asked"], row["gpus"]["asked"]) == (pods, gpus), kind
        assert [row["gangs"]["asked"], *(row["gangs"]["sizes"] or [None])] == gangs, kind
        if kind != "CronJob":
            assert (row["gangs"]["whole"], row["gpus"]["running"]) == (gangs[0], gpus), kind
        assert any(roles in line for line in table.splitlines() if line.startswith(f"{kind} ")), (kind, table)
    assert live.json("get", "rayclusters", "-n", namespace)["items"] == []


def test_top_adds_up_to_what_the_nodes_gave_away(
    controller: StartController, client: ApiClient, kubectl: Kubectl, live: LiveCommand, namespace: str
) -> None:
    """By whatever it is sorted: the GPUs placed are those that pods on nodes request, and free is what is left."""
    controller("jobset")
    create(client, namespace, "JobSet", Pods(gpus=2))
    create(client, namespace, "Deployment", Pods(gpus=1), name="web")
    create(client, namespace, "Job", Pods(gpus=64), name="too-large")
    eventually(
        lambda: (
            {row["name"]: row["gpus"]["running"] for row in live.json("get", "-n", namespace)["items"]}
            == {"train": 6, "web": 3, "too-large": 0}
        ),
        what="the GPUs to run",
        seconds=SECONDS,
    )

    def looked_at() -> tuple[int, dict[str, Any], str] | None:
        """What pods hold, every table, and the text; None when another test's pods came or went meanwhile."""
        before = held(kubectl)
        tables = {by: live.json("top", by, "-A") for by in ("namespace", "kind", "workload", "node")}
        text = live.text("top", "-A")
        return (before, tables, text) if held(kubectl) == before else None

    placed, tables, text = eventually(looked_at, what="a quiet cluster", seconds=SECONDS)
    nodes = kubectl.json("get", "nodes")["items"]
    allocatable = sum(int(node["status"]["allocatable"]["nvidia.com/gpu"]) for node in nodes)
    for by, table in tables.items():
        assert table["total"]["placed"] == sum(row["placed"] for row in table["items"]) == placed, by
        assert (table["nodes"]["allocatable"], table["nodes"]["free"]) == (allocatable, allocatable - placed), by
    mine = next(row for row in tables["namespace"]["items"] if row["namespace"] == namespace)
    assert (mine["asked"], mine["placed"], mine["running"], mine["idle"]) == (6 + 3 + 128, 9, 9, 0)
    assert f"{len(nodes)} nodes: {allocatable} GPUs, {placed} placed" in text


def held(kubectl: Kubectl) -> int:
    """GPUs of all pods that count against a node."""
    return sum(gpus_of(pod) for pod in kubectl.json("get", "pods", "-A")["items"] if holds(pod))


def holds(pod: dict[str, Any]) -> bool:
    """Whether a pod counts against its node, as the scheduler has it."""
    return bool(pod["spec"].get("nodeName")) and pod["status"].get("phase") not in ("Succeeded", "Failed")


def gpus_of(pod: dict[str, Any]) -> int:
    """GPUs that a pod requests."""
    requests = (container.get("resources", {}).get("requests", {}) for container in pod["spec"]["containers"])
    return sum(int(each.get("nvidia.com/gpu", 0)) for each in requests)


POD_GROUPS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "podgroups.scheduling.x-k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, a stand-in for tests"},
    },
    "spec": {
        "group": "scheduling.x-k8s.io",
        "names": {"kind": "PodGroup", "plural": "podgroups"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }
        ],
    },
}
"""A minimal stand-in for coscheduling's PodGroup: no scheduler acts on it."""


def test_a_gang_that_waits_tells_what_it_lacks(  # noqa: PLR0917 - fixtures
    controller: StartController, client: ApiClient, kubectl: Kubectl, live: LiveCommand, namespace: str, gate: Gate
) -> None:
    """Pods that no node takes are counted; a scheduler's group that asks for fewer is told to differ."""
    controller("jobset")
    kubectl("apply", "--server-side", "-f", "-", stdin=POD_GROUPS)
    kubectl("wait", "--for=condition=Established", "crd/podgroups.scheduling.x-k8s.io")
    groups = api_path("scheduling.x-k8s.io/v1alpha1", "podgroups", namespace=namespace)
    group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "pg"}}
    client.post(groups, {**group, "spec": {"minMember": 2}})
    spec = spec_of("JobSet", Pods(gpus=1, gate=gate))
    for job in spec["replicatedJobs"]:
        job["template"]["spec"]["template"]["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "pg"}
    client.post(KINDS["JobSet"].path(namespace), KINDS["JobSet"].document("train", spec))

    def gang() -> dict[str, Any]:
        items = live.json("gangs", "-n", namespace)["items"]
        return items[0] if items else {}

    eventually(lambda: gang().get("present") == 3, what="three pods")
    waiting = gang()
    gate.open()
    eventually(lambda: gang()["running"] == 3, what="three running pods")

    assert (waiting["size"], waiting["placed"], waiting["state"]) == (3, 0, "incomplete")
    assert len(waiting["waiting"]) == 3
    assert waiting["canBeWhole"] is True
    assert waiting["schedulerGroups"] == [
        {"scheduler": "coscheduling", "name": "pg", "minimum": 2, "phase": None, "agreement": "differs"}
    ]
    assert (gang()["state"], gang()["canBeWhole"]) == ("running", True)


def test_the_tree_of_a_schedule_reaches_its_pods(
    client: ApiClient, kubectl: Kubectl, live: LiveCommand, namespace: str
) -> None:
    """CronJob, its run, the run's pod; asked for from either end."""
    create(client, namespace, "CronJob", Pods(), name="nightly", schedule="0 0 1 1 *")
    kubectl("create", "job", "nightly-by-hand", "--from=cronjob/nightly", "-n", namespace)
    eventually(lambda: pods_of(kubectl, namespace), what="the run's pod")
    pod = pods_of(kubectl, namespace)[0]["metadata"]["name"]

    lines = live.text("tree", f"pod/{pod}", "-n", namespace).splitlines()

    assert [line.strip("│├└─ ").split("  ")[0] for line in lines] == [
        "CronJob nightly",
        "Job nightly-by-hand",
        f"Pod {pod}",
    ]
    assert lines == live.text("tree", "cronjob", "nightly", "-n", namespace).splitlines()
    assert live.json("describe", f"pod/{pod}", "-n", namespace)["workload"]["name"] == "nightly-by-hand"
