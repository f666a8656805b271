"""Each framework's own controller makes the pods of a small object of its kind, beside the control plane."""

from typing import Any

import pytest

from tests.cluster.api_client import ApiClient, ApiError, api_path
from tests.cluster.conftest import StartController
from tests.cluster.kubectl import Kubectl
from tests.cluster.recipes import set_ray_job_status
from tests.cluster.waiting import eventually

CONTAINER = {"name": "main", "image": "registry.example/image", "command": ["run"]}
POD = {"spec": {"containers": [CONTAINER]}}
NEVER = {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}


def replica(count: int, container: str) -> dict[str, Any]:
    """One entry of a training job's replica specs; training-operator asks for containers of certain names."""
    return {"replicas": count, "template": {"spec": {"containers": [{**CONTAINER, "name": container}]}}}


JOBSET = {
    "replicatedJobs": [
        {"name": name, "replicas": count, "template": {"spec": {"parallelism": 1, "completions": 1, "template": NEVER}}}
        for name, count in (("leader", 1), ("workers", 2))
    ]
}
LEADER_WORKER_SET = {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": POD}}
PYTORCH_JOB = {"pytorchReplicaSpecs": {"Master": replica(1, "pytorch"), "Worker": replica(2, "pytorch")}}
MPI_JOB = {
    "slotsPerWorker": 1,
    "mpiReplicaSpecs": {
        "Launcher": {"replicas": 1, "template": POD},
        "Worker": {"replicas": 2, "template": POD},
    },
}
RAY_CLUSTER = {
    "headGroupSpec": {"rayStartParams": {}, "template": POD},
    "workerGroupSpecs": [
        {"groupName": "small", "replicas": 2, "minReplicas": 0, "maxReplicas": 4, "rayStartParams": {}, "template": POD}
    ],
}
TRAIN_JOB = {"runtimeRef": {"name": "torch-distributed"}, "trainer": {"numNodes": 2}}
KNATIVE_SERVICE = {
    "template": {
        "metadata": {"annotations": {"autoscaling.knative.dev/class": "kpa.autoscaling.knative.dev"}},
        "spec": {
            "containerConcurrency": 0,
            "timeoutSeconds": 300,
            "enableServiceLinks": False,
            "containers": [
                {
                    "name": "user-container",
                    "image": "registry.example/image",
                    "resources": {},
                    "readinessProbe": {"successThreshold": 1, "tcpSocket": {"port": 0}},
                }
            ],
        },
    },
    "traffic": [{"latestRevision": True, "percent": 100}],
}

CASES = {
    "jobset": ("jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets", JOBSET, 3),
    "lws": ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets", LEADER_WORKER_SET, 4),
    "training-operator": ("kubeflow.org/v1", "PyTorchJob", "pytorchjobs", PYTORCH_JOB, 3),
    "mpi-operator": ("kubeflow.org/v2beta1", "MPIJob", "mpijobs", MPI_JOB, 3),
    "ray-operator": ("ray.io/v1", "RayCluster", "rayclusters", RAY_CLUSTER, 3),
    "trainer": ("trainer.kubeflow.org/v1alpha1", "TrainJob", "trainjobs", TRAIN_JOB, 2),
    "knative": ("serving.knative.dev/v1", "Service", "services", KNATIVE_SERVICE, 1),
}


def running_pods(client: ApiClient, namespace: str) -> list[dict[str, Any]]:
    """Pods that are in phase Running."""
    pods = client.get(api_path("v1", "pods", namespace=namespace))["items"]
    return [pod for pod in pods if pod["status"].get("phase") == "Running"]


@pytest.mark.parametrize("name", CASES)
def test_the_real_controller_makes_the_pods(
    name: str, controller: StartController, client: ApiClient, namespace: str
) -> None:
    """An object of the framework's kind leads to as many running pods as it asks for, each with a controller owner."""
    controller(name)
    api_version, kind, plural, spec, count = CASES[name]
    document = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "train"}, "spec": spec}

    client.post(api_path(api_version, plural, namespace=namespace), document)

    eventually(lambda: len(running_pods(client, namespace)) == count, what=f"{count} running pods of the {kind}")
    owners = [pod["metadata"]["ownerReferences"][0] for pod in running_pods(client, namespace)]
    assert all(owner["controller"] for owner in owners)


def test_controllers_with_the_same_fixed_port_take_turns(
    controller: StartController, client: ApiClient, namespace: str
) -> None:
    """mpi-operator and Knative's controller were compiled for one port; whichever is asked for works."""
    operator = controller("mpi-operator")
    controller("knative")
    assert not operator.process.running
    controller("mpi-operator")
    api_version, kind, plural, spec, count = CASES["mpi-operator"]

    document = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "again"}, "spec": spec}
    client.post(api_path(api_version, plural, namespace=namespace), document)

    eventually(lambda: len(running_pods(client, namespace)) == count, what="the MPIJob's pods")


def test_a_ray_job_runs_and_ends_as_the_dashboard_says(
    controller: StartController, client: ApiClient, namespace: str
) -> None:
    """The operator takes the stand-in for the cluster's dashboard, so a RayJob goes through its whole life."""
    ray_operator = controller("ray-operator")
    path = api_path("ray.io/v1", "rayjobs", namespace=namespace)
    spec = {"entrypoint": "run", "submissionMode": "HTTPMode", "rayClusterSpec": RAY_CLUSTER}
    client.post(path, {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "train"}, "spec": spec})

    def status() -> dict[str, Any]:
        job: dict[str, Any] = client.get(f"{path}/train")
        return job.get("status") or {}

    eventually(lambda: status().get("jobStatus") == "RUNNING", what="the Ray job to run", seconds=60)
    set_ray_job_status(ray_operator, "SUCCEEDED")
    eventually(lambda: status().get("jobDeploymentStatus") == "Complete", what="the Ray job to end", seconds=60)
    set_ray_job_status(ray_operator, "RUNNING")


def test_jobsets_own_webhooks_are_asked(controller: StartController, kubectl: Kubectl, namespace: str) -> None:
    """A name that only JobSet's validating webhook knows to be too long is refused: it is registered and answers."""
    controller("jobset")
    document = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": {"name": "x" * 60}}

    ended = kubectl.run("create", "-n", namespace, "-f", "-", stdin={**document, "spec": JOBSET})

    assert ended.returncode != 0
    assert "pod names generated for this JobSet will exceed 63 characters" in ended.stderr


def test_a_controller_that_was_killed_goes_on(controller: StartController, client: ApiClient, namespace: str) -> None:
    """While it is dead its webhooks refuse; asked for again it runs, and looks after the objects of its former life."""
    jobset = controller("jobset")
    path = api_path("jobset.x-k8s.io/v1alpha2", "jobsets", namespace=namespace)
    document = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "spec": JOBSET}
    client.post(path, {**document, "metadata": {"name": "train"}})
    eventually(lambda: len(running_pods(client, namespace)) == 3, what="the JobSet's pods")

    jobset.process.kill()
    with pytest.raises(ApiError, match="failed calling webhook"):
        client.post(path, {**document, "metadata": {"name": "other"}})
    controller("jobset")
    client.merge_patch(f"{path}/train", {"spec": {"suspend": True}})

    eventually(lambda: not running_pods(client, namespace), what="the suspended JobSet to have no pods")
