"""With the webhook installed: what it stamps is what audit wants, views are the same, and its leader counts."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.api_client import ApiClient
from tests.cluster.conftest import StartController
from tests.cluster.control_plane import ControlPlane
from tests.cluster.installation import Installation
from tests.cluster.live_command import LiveCommand
from tests.cluster.live_objects import KINDS, Pods, spec_of
from tests.cluster.waiting import eventually
from tests.cluster.webhook_service import WebhookService

SECONDS = 90.0
STAMPED = ("JobSet", "LeaderWorkerSet", "PyTorchJob", "MPIJob", "RayCluster", "Deployment", "Job", "CronJob")


@pytest.fixture
def live(control_plane: ControlPlane) -> LiveCommand:
    """The admin's command line."""
    return LiveCommand(control_plane.files.kubeconfig("admin"))


@pytest.fixture
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """The manifests, and nothing of an earlier test's replicas."""
    installation = Installation.of(control_plane)
    installation.clear()
    yield installation
    installation.clear()


def all_ready(live: LiveCommand, namespace: str) -> list[dict[str, Any]]:
    """The rows, once every pod that is asked for is ready."""
    rows: list[dict[str, Any]] = live.json("get", "-n", namespace)["items"]
    going = [row for row in rows if not row["isSchedule"]]
    ready = len(rows) == len(STAMPED) and all(row["pods"]["ready"] == row["pods"]["asked"] for row in going)
    return rows if ready else []


def test_what_the_webhook_stamps_is_what_audit_wants(
    controller: StartController,
    client: ApiClient,
    live: LiveCommand,
    namespace: str,
    installation: Installation,
) -> None:
    """Objects and pods of every framework, made while it serves; then the leader's metrics say the same as `get`."""
    for name in ("jobset", "lws", "training-operator", "mpi-operator", "ray-operator"):
        controller(name)
    with WebhookService.running(installation):
        for kind in STAMPED:
            more = {"schedule": "0 0 1 1 *"} if kind == "CronJob" else {}
            spec = spec_of(kind, Pods(gpus=1)) | more
            client.post(KINDS[kind].path(namespace), KINDS[kind].document(kind.lower(), spec))
        rows = eventually(lambda: all_ready(live, namespace), what="all pods to be ready", seconds=SECONDS)
        pods = [pod for row in rows for pod in stamped(live, namespace, row)]
        eventually(lambda: live("audit", "-n", namespace).code == 0, what=audit(live, namespace), seconds=30.0)

    assert pods
    assert all(pods)
    with WebhookService.running(installation, "--workload-metrics") as service:
        (replica,) = service.replicas
        labels = {"kind": "JobSet", "namespace": namespace}
        eventually(
            lambda: replica.metric("workload_stamp_gpus_running", **labels) == 3, what="the JobSet's GPUs", seconds=30.0
        )
        for row in rows:
            of_kind = {"kind": row["kind"], "namespace": namespace}
            assert replica.metric("workload_stamp_workloads", **of_kind) == 1, row["kind"]
            asked = 0 if row["isSchedule"] else row["gpus"]["asked"]
            assert replica.metric("workload_stamp_gpus_asked", **of_kind) == asked, row["kind"]
            assert replica.metric("workload_stamp_gpus_running", **of_kind) == row["gpus"]["running"], row["kind"]
        assert replica.metric("workload_stamp_gpus_running", **labels, role="workers") == 2
        assert 0 <= replica.metric("workload_stamp_census_age_seconds") < 60


def stamped(live: LiveCommand, namespace: str, row: dict[str, Any]) -> Iterator[bool]:
    """Whether each pod of a workload is read by its stamps."""
    if row["isSchedule"]:
        return
    described = live.json("describe", f"{row['kind']}/{row['name']}", "-n", namespace)
    for component in described["components"]:
        for instance in component["instances"]:
            yield from (pod["stamped"] for pod in instance["pods"])


def audit(live: LiveCommand, namespace: str) -> str:
    """What an audit says, for a failure's message."""
    ended = live("audit", "-n", namespace)
    return f"a clean audit: {ended.out} {ended.err}"
