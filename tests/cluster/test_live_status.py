"""Our word for a workload's state, held against what its real controller says, through its whole life."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.cluster.api_client import ApiClient
from tests.cluster.conftest import StartController
from tests.cluster.control_plane import ControlPlane
from tests.cluster.live_command import LiveCommand
from tests.cluster.live_objects import HELD, KINDS, Gate, Kind, Pods, spec_of
from tests.cluster.nodes import FAIL_AFTER, FINISH_AFTER
from tests.cluster.recipes import set_ray_job_status
from tests.cluster.waiting import eventually

SECONDS = 60.0
NAME = "live"

SEEN: set[tuple[str, str]] = set()
"""Kind and status of everything that came true in this run."""


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


class Life:
    """One object of a kind, and the questions that are asked about it."""

    def __init__(self, kind: Kind, client: ApiClient, live: LiveCommand, namespace: str, name: str = NAME) -> None:
        self._kind = kind
        self._client = client
        self._live = live
        self._namespace = namespace
        self._name = name

    def begin(self, pods: Pods, **more: Any) -> None:
        """Create it."""
        spec = spec_of(self._kind.kind, pods) | more
        self._client.post(self._kind.path(self._namespace), self._kind.document(self._name, spec))

    def change(self, spec: dict[str, Any]) -> None:
        """Merge something into its spec."""
        self._client.merge_patch(self._kind.path(self._namespace, self._name), {"spec": spec})

    def becomes(self, status: str, *, while_: Callable[[dict[str, Any]], bool] = lambda _: True) -> None:
        """Wait until it has that status; the object itself must say `while_`, its framework's own words, by then."""
        assert status in HELD[self._kind.kind], "docs/status.md is made from the table of what is seen here"

        def seen() -> bool:
            row = self._live.row(self._kind.kind, self._namespace, self._name)
            return row is not None and row["status"] == status and while_(self.status())

        eventually(seen, what=f"{self._kind.kind} to be {status}: {self.status()}", seconds=SECONDS)
        SEEN.add((self._kind.kind, status))

    def status(self) -> dict[str, Any]:
        """The object's own status."""
        obj = self._client.get(self._kind.path(self._namespace, self._name))
        found: dict[str, Any] = {**(obj.get("status") or {}), "_spec": obj["spec"]}
        return found

    def kill_a_pod(self) -> None:
        """Delete one of its running pods."""
        path = f"/api/v1/namespaces/{self._namespace}/pods"
        pods = [pod for pod in self._client.get(path)["items"] if pod["status"].get("phase") == "Running"]
        self._client.delete(f"{path}/{pods[-1]['metadata']['name']}")


Begin = Callable[..., Life]


@pytest.fixture
def life(controller: StartController, client: ApiClient, live: LiveCommand, namespace: str) -> Begin:
    """`life("JobSet")`: an object of that kind, not created yet, with its controller running."""

    def begin(kind: str, name: str = NAME) -> Life:
        if KINDS[kind].controller:
            controller(KINDS[kind].controller)
        return Life(KINDS[kind], client, live, namespace, name)

    return begin


def has(kind: str, status: str = "True") -> Callable[[dict[str, Any]], bool]:
    """Whether the framework itself says that condition."""

    def holds(found: dict[str, Any]) -> bool:
        entries = found.get("conditions") or []
        return any(entry["type"] == kind and entry["status"] == status for entry in entries)

    return holds


def jobs_ready(found: dict[str, Any]) -> int:
    """Jobs of a JobSet that are ready, as it says itself."""
    return sum(job["ready"] for job in found["replicatedJobsStatus"])


def test_a_job_sets_life(life: Begin, gate: Gate) -> None:
    """JobSet has no condition for running: it is read from the counts of its Jobs."""
    jobset = life("JobSet")
    jobset.begin(Pods(gate=gate))
    jobset.becomes("Initializing")
    gate.open()
    jobset.becomes("Running", while_=lambda found: jobs_ready(found) == 3)
    gate.close()
    jobset.kill_a_pod()
    jobset.becomes("Degraded", while_=lambda found: jobs_ready(found) == 2)
    gate.open()
    jobset.becomes("Running", while_=lambda found: jobs_ready(found) == 3)
    jobset.change({"suspend": True})
    jobset.becomes("Suspended", while_=has("Suspended"))
    jobset.change({"suspend": False})
    jobset.becomes("Running", while_=has("Suspended", "False"))


def test_a_jobset_whose_second_stage_waits_is_running(life: Begin, gate: Gate) -> None:
    """A stage that has not begun is no reason to call the whole Initializing."""
    jobset = life("JobSet")
    gate.open()
    first, second = spec_of("JobSet", Pods(gate=gate))["replicatedJobs"]
    staged = [first, {**second, "dependsOn": [{"name": first["name"], "status": "Complete"}]}]
    jobset.begin(Pods(gate=gate), replicatedJobs=staged)

    jobset.becomes("Running", while_=lambda found: sum(job["active"] for job in found["replicatedJobsStatus"]) == 1)


ENDS = [
    ("JobSet", has("Completed"), has("Failed")),
    ("Job", has("Complete"), has("Failed")),
    ("PyTorchJob", has("Succeeded"), has("Failed")),
    ("MPIJob", has("Succeeded"), has("Failed")),
]


@pytest.mark.parametrize("kind, completed, failed", ENDS, ids=[kind for kind, *_ in ENDS])
def test_how_it_ends(
    kind: str,
    completed: Callable[[dict[str, Any]], bool],
    failed: Callable[[dict[str, Any]], bool],
    life: Begin,
) -> None:
    """Completed when its pods end well, failed when they don't, as the framework's own conditions say."""
    well, badly = life(kind, "well"), life(kind, "badly")
    well.begin(Pods(annotations={FINISH_AFTER: "0.5s"}))
    badly.begin(Pods(annotations={FAIL_AFTER: "0.5s"}, retries=0))

    well.becomes("Completed", while_=completed)
    badly.becomes("Failed", while_=failed)


def test_a_jobs_life(life: Begin, gate: Gate) -> None:
    """From waiting to running, and to rest and back."""
    job = life("Job")
    job.begin(Pods(gate=gate))
    job.becomes("Initializing", while_=lambda found: found.get("active") == 2)
    gate.open()
    job.becomes("Running", while_=lambda found: found["ready"] == 2)
    job.change({"suspend": True})
    job.becomes("Suspended", while_=has("Suspended"))
    job.change({"suspend": False})
    job.becomes("Running")


def test_a_deployments_life(life: Begin, gate: Gate) -> None:
    """One of three pods killed is a degraded Deployment; none asked for is one at rest."""
    deployment = life("Deployment")
    deployment.begin(Pods(gate=gate))
    deployment.becomes("Initializing", while_=has("Available", "False"))
    gate.open()
    deployment.becomes("Running", while_=has("Available"))
    gate.close()
    deployment.kill_a_pod()
    deployment.becomes("Degraded", while_=lambda found: found["availableReplicas"] == 2)
    deployment.change({"replicas": 0})
    deployment.becomes("Suspended", while_=lambda found: not found.get("replicas"))


def test_a_leader_worker_sets_life(life: Begin, gate: Gate) -> None:
    """A killed pod takes its whole group along; the other one runs on."""
    groups = life("LeaderWorkerSet")
    groups.begin(Pods(gate=gate))
    groups.becomes("Initializing")
    gate.open()
    groups.becomes("Running", while_=lambda found: found["readyReplicas"] == 2)
    gate.close()
    groups.kill_a_pod()
    groups.becomes("Degraded", while_=lambda found: found["readyReplicas"] == 1)
    groups.change({"replicas": 0})
    groups.becomes("Suspended", while_=lambda found: not found.get("replicas"))


@pytest.mark.parametrize("kind", ["PyTorchJob", "MPIJob"])
def test_a_kubeflow_jobs_life(kind: str, life: Begin, gate: Gate) -> None:
    """Waiting, running, suspended and running again, each with the condition of that name."""
    job = life(kind)
    job.begin(Pods(gate=gate))
    job.becomes("Initializing", while_=has("Created"))
    gate.open()
    job.becomes("Running", while_=has("Running"))
    job.change({"runPolicy": {"suspend": True}})
    job.becomes("Suspended", while_=has("Suspended"))
    job.change({"runPolicy": {"suspend": False}})
    job.becomes("Running", while_=has("Running"))


def test_a_ray_jobs_life(life: Begin, gate: Gate, controller: StartController) -> None:
    """It runs when Ray says so, which needs its cluster; it ends as Ray says."""
    ray_operator = controller("ray-operator")
    set_ray_job_status(ray_operator, "RUNNING")
    job = life("RayJob")
    job.begin(Pods(gate=gate))
    job.becomes("Initializing", while_=lambda found: found.get("jobDeploymentStatus") == "Initializing")
    gate.open()
    job.becomes("Running", while_=lambda found: found.get("jobDeploymentStatus") == "Running")
    job.change({"suspend": True})
    job.becomes("Suspended", while_=lambda found: found.get("jobDeploymentStatus") == "Suspended")
    job.change({"suspend": False})
    job.becomes("Running", while_=lambda found: found.get("jobStatus") == "RUNNING")
    set_ray_job_status(ray_operator, "SUCCEEDED")
    job.becomes("Completed", while_=lambda found: found.get("jobDeploymentStatus") == "Complete")
    set_ray_job_status(ray_operator, "RUNNING")


def test_a_ray_job_that_fails(life: Begin, controller: StartController) -> None:
    """Failed as Ray says."""
    ray_operator = controller("ray-operator")
    job = life("RayJob")
    job.begin(Pods())
    set_ray_job_status(ray_operator, "FAILED")
    job.becomes("Failed", while_=lambda found: found.get("jobDeploymentStatus") == "Failed")
    set_ray_job_status(ray_operator, "RUNNING")


def test_a_schedules_life(life: Begin) -> None:
    """A CronJob that waits for its first run, and one that is suspended."""
    schedule = life("CronJob")
    schedule.begin(Pods(), schedule="0 0 1 1 *")
    schedule.becomes("Initializing")
    schedule.change({"suspend": True})
    schedule.becomes("Suspended")


def test_all_that_is_claimed_was_seen(request: pytest.FixtureRequest) -> None:
    """The table behind docs/status.md says no more than the tests above have shown."""
    ran = {item.name.partition("[")[0] for item in request.session.items if item.path == request.path}
    everything = {name for name in globals() if name.startswith("test_")}
    if ran != everything:
        pytest.skip("only a part of this file was run")
    claimed = {(kind, status) for kind, statuses in HELD.items() for status in statuses}

    missing = {kind for kind, _ in claimed - SEEN}
    assert not missing & {kind for kind, _ in SEEN}, claimed - SEEN  # of a kind whose controller isn't built, none is
