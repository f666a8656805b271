"""Small objects of every framework that the live views are held against, and a gate that their pods wait at.

A pod that waits at the gate can be placed only while the gate is open, so a test decides when an object starts, and
whether the successor of a killed pod may: nothing depends on how fast the machine is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.cluster.api_client import ApiClient, api_path

NODE = "node-0"
"""The node behind every gate; KWOK plays it."""


class Gate:
    """Lets pods that wait at it be placed while it is open."""

    def __init__(self, client: ApiClient, name: str) -> None:
        """Closed at first; `name` is a label's, one for each test."""
        self._client = client
        self._label = f"gate.test/{name[-60:]}"

    @property
    def selector(self) -> dict[str, str]:
        """The node selector of a pod that waits."""
        return {self._label: "open"}

    def open(self) -> None:
        """Let pods through."""
        self._set("open")

    def close(self) -> None:
        """Let no further pod through; those that are stay."""
        self._set(None)

    def _set(self, value: str | None) -> None:
        self._client.merge_patch(api_path("v1", "nodes", name=NODE), {"metadata": {"labels": {self._label: value}}})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How objects of one kind are reached."""

    api_version: str
    kind: str
    plural: str
    controller: str = ""

    def path(self, namespace: str, name: str = "") -> str:
        """The collection, or one object."""
        return api_path(self.api_version, self.plural, namespace=namespace, name=name)

    def document(self, name: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        """An object."""
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": {"name": name}, "spec": dict(spec)}


KINDS = {
    kind.kind: kind
    for kind in (
        Kind(api_version="apps/v1", kind="Deployment", plural="deployments"),
        Kind(api_version="batch/v1", kind="Job", plural="jobs"),
        Kind(api_version="batch/v1", kind="CronJob", plural="cronjobs"),
        Kind(api_version="jobset.x-k8s.io/v1alpha2", kind="JobSet", plural="jobsets", controller="jobset"),
        Kind(
            api_version="leaderworkerset.x-k8s.io/v1",
            kind="LeaderWorkerSet",
            plural="leaderworkersets",
            controller="lws",
        ),
        Kind(api_version="kubeflow.org/v1", kind="PyTorchJob", plural="pytorchjobs", controller="training-operator"),
        Kind(api_version="kubeflow.org/v2beta1", kind="MPIJob", plural="mpijobs", controller="mpi-operator"),
        Kind(api_version="ray.io/v1", kind="RayJob", plural="rayjobs", controller="ray-operator"),
        Kind(api_version="ray.io/v1", kind="RayCluster", plural="rayclusters", controller="ray-operator"),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pods:
    """What all pods of an object have: GPUs each, a gate to wait at, annotations that tell KWOK what to do.

    `retries` is how many pods of a Job may fail.
    """

    gpus: int = 0
    gate: Gate | None = None
    annotations: Mapping[str, str] | None = None
    retries: int = 6

    def template(self, container: str = "main", *, never: bool = False, labels: Mapping[str, str] | None = None) -> Any:
        """A pod template."""
        resources = {"resources": {"limits": {"nvidia.com/gpu": str(self.gpus)}}} if self.gpus else {}
        spec: dict[str, Any] = {"containers": [{"name": container, "image": "registry.example/image", **resources}]}
        if self.gate is not None:
            spec["nodeSelector"] = self.gate.selector
        if never:
            spec["restartPolicy"] = "Never"
        metadata = {"annotations": dict(self.annotations or {}), "labels": dict(labels or {})}
        return {"metadata": metadata, "spec": spec}


def spec_of(kind: str, pods: Pods) -> dict[str, Any]:
    """A small object of that kind: three pods, a Job two, a CronJob's runs one."""
    return _SPECS[kind](pods)


def _deployment(pods: Pods) -> dict[str, Any]:
    labels = {"app": "live"}
    return {"replicas": 3, "selector": {"matchLabels": labels}, "template": pods.template(labels=labels)}


def _job(pods: Pods) -> dict[str, Any]:
    return {"parallelism": 2, "completions": 2, "backoffLimit": pods.retries, "template": pods.template(never=True)}


def _cron_job(pods: Pods) -> dict[str, Any]:
    return {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": pods.template(never=True)}}}


def _jobset(pods: Pods) -> dict[str, Any]:
    job = {"parallelism": 1, "completions": 1, "backoffLimit": pods.retries, "template": pods.template(never=True)}
    counts = (("leader", 1), ("workers", 2))
    return {"replicatedJobs": [{"name": name, "replicas": n, "template": {"spec": job}} for name, n in counts]}


def _leader_worker_set(pods: Pods) -> dict[str, Any]:
    return {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": pods.template()}}


def _pytorch_job(pods: Pods) -> dict[str, Any]:
    replica = {"restartPolicy": "Never", "template": pods.template("pytorch")}
    return {"pytorchReplicaSpecs": {"Master": {"replicas": 1, **replica}, "Worker": {"replicas": 2, **replica}}}


def _mpi_job(pods: Pods) -> dict[str, Any]:
    return {
        "slotsPerWorker": 1,
        "runPolicy": {"backoffLimit": 0},
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "restartPolicy": "Never", "template": pods.template()},
            "Worker": {"replicas": 2, "template": Pods(gpus=pods.gpus, gate=pods.gate).template()},
        },
    }


def _ray_cluster(pods: Pods) -> dict[str, Any]:
    group = {"groupName": "gpu-group", "replicas": 2, "minReplicas": 0, "maxReplicas": 4, "rayStartParams": {}}
    return {
        "headGroupSpec": {"rayStartParams": {}, "template": Pods(gate=pods.gate).template("ray-head")},
        "workerGroupSpecs": [{**group, "template": pods.template("ray-worker")}],
    }


def _ray_job(pods: Pods) -> dict[str, Any]:
    return {
        "entrypoint": "run",
        "submissionMode": "HTTPMode",
        "shutdownAfterJobFinishes": True,
        "rayClusterSpec": _ray_cluster(pods),
    }


_SPECS = {
    "Deployment": _deployment,
    "Job": _job,
    "CronJob": _cron_job,
    "JobSet": _jobset,
    "LeaderWorkerSet": _leader_worker_set,
    "PyTorchJob": _pytorch_job,
    "MPIJob": _mpi_job,
    "RayCluster": _ray_cluster,
    "RayJob": _ray_job,
}


HELD = {
    "CronJob": ("Suspended", "Initializing"),
    "Deployment": ("Suspended", "Running", "Initializing", "Degraded"),
    "Job": ("Suspended", "Running", "Failed", "Completed", "Initializing"),
    "JobSet": ("Suspended", "Running", "Failed", "Completed", "Initializing", "Degraded"),
    "LeaderWorkerSet": ("Suspended", "Running", "Initializing", "Degraded"),
    "MPIJob": ("Suspended", "Running", "Failed", "Completed", "Initializing"),
    "PyTorchJob": ("Suspended", "Running", "Failed", "Completed", "Initializing"),
    "RayJob": ("Suspended", "Running", "Failed", "Completed", "Initializing"),
}
"""Our statuses that `test_live_status` has seen a kind's real controller lead to; `docs/status.md` marks them."""
