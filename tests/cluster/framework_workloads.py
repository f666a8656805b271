"""One canonical multi-node GPU object of each kind that a framework's real controller can be run for.

Beside each object stands what it asks for, written by hand: the GPUs of every pod of each role, and the sizes of its
gangs. Knows nothing of stamps; `test_frameworks` counts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """An object to create, and what it asks for.

    `controller` is the name of the framework's controller, empty for Kubernetes' own. `pods` holds, for each role, the
    GPUs of each of its pods; `gangs` the number of pods of each gang. `annotations` are the object's own.
    """

    name: str
    controller: str
    api_version: str
    kind: str
    plural: str
    spec: Json
    pods: Mapping[str, tuple[int, ...]]
    gangs: tuple[int, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    top: str = ""
    """Kind of the workload, when it is not the object's own: a schedule's runs are workloads of their own."""

    @property
    def pod_count(self) -> int:
        """Pods of all roles together."""
        return sum(len(gpus) for gpus in self.pods.values())

    def document(self, namespace: str) -> Json:
        """The object as a person would create it."""
        metadata = {"name": self.name, "namespace": namespace, "annotations": dict(self.annotations)}
        return {"apiVersion": self.api_version, "kind": self.kind, "metadata": metadata, "spec": self.spec}


def _container(gpus: int = 0, *, name: str = "main") -> Json:
    resources = {"limits": {"nvidia.com/gpu": gpus}} if gpus else {}
    return {"name": name, "image": "registry.example/train:1", "command": ["run"], "resources": resources}


def _template(gpus: int = 0, *, name: str = "main", **spec: Any) -> Json:
    return {"spec": {"containers": [_container(gpus, name=name)], **spec}}


def _selected(gpus: int) -> Json:
    """A selector and a template that carries its label."""
    labels = {"app": "serve"}
    return {
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, **_template(gpus)},
    }


# ----------------------------------------------------------------------------------------------- built-in kinds


def _built_in() -> Iterator[Asked]:
    finished = _template(4, restartPolicy="Never")
    apps: Json = {"controller": "", "api_version": "apps/v1"}
    batch: Json = {"controller": "", "api_version": "batch/v1", "kind": "Job", "plural": "jobs"}
    yield Asked(
        name="deployment",
        kind="Deployment",
        plural="deployments",
        spec={"replicas": 3, **_selected(2)},
        pods={"deployment": (2, 2, 2)},
        **apps,
    )
    yield Asked(
        name="statefulset",
        kind="StatefulSet",
        plural="statefulsets",
        spec={"replicas": 2, "serviceName": "serve", **_selected(1)},
        pods={"statefulset": (1, 1)},
        **apps,
    )
    yield Asked(
        name="replicaset",
        kind="ReplicaSet",
        plural="replicasets",
        spec={"replicas": 2, **_selected(1)},
        pods={"replicaset": (1, 1)},
        **apps,
    )
    yield Asked(
        name="indexed-job",
        spec={"completionMode": "Indexed", "parallelism": 3, "completions": 3, "template": finished},
        pods={"job": (4, 4, 4)},
        gangs=(3,),
        **batch,
    )
    yield Asked(
        name="job-in-batches",
        spec={"parallelism": 3, "completions": 2, "template": finished},
        pods={"job": (4, 4)},
        **batch,
    )


# ----------------------------------------------------------------------------------------------------- training


def _replicated(name: str, replicas: int, gpus: int, **job: Any) -> Json:
    template = _template(gpus, restartPolicy="Never")
    return {"name": name, "replicas": replicas, "template": {"spec": {"template": template, **job}}}


def _jobsets() -> Iterator[Asked]:
    kind: Json = {
        "controller": "jobset",
        "api_version": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "plural": "jobsets",
    }
    yield Asked(
        name="jobset",
        spec={"replicatedJobs": [_replicated("leader", 1, 4), _replicated("workers", 2, 4)]},
        pods={"leader": (4,), "workers": (4, 4)},
        gangs=(3,),
        **kind,
    )
    yield Asked(
        name="jobset-in-order",
        spec={
            "startupPolicy": {"startupPolicyOrder": "InOrder"},
            "replicatedJobs": [
                _replicated("driver", 1, 0),
                _replicated("workers", 2, 2, parallelism=2, completions=2, completionMode="Indexed"),
            ],
        },
        pods={"driver": (0,), "workers": (2, 2, 2, 2)},
        gangs=(1, 4),
        **kind,
    )
    yield Asked(
        name="jobset-exclusive",
        spec={"replicatedJobs": [_replicated("slices", 2, 4, parallelism=2, completions=2, completionMode="Indexed")]},
        pods={"slices": (4, 4, 4, 4)},
        annotations={"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"},
        **kind,
    )


def _leader_worker_sets() -> Iterator[Asked]:
    kind: Json = {
        "controller": "lws",
        "api_version": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "plural": "leaderworkersets",
    }
    groups = {"size": 3, "leaderTemplate": _template(1), "workerTemplate": _template(4)}
    yield Asked(
        name="lws",
        spec={"replicas": 2, "leaderWorkerTemplate": groups},
        pods={"leader": (1, 1), "worker": (4, 4, 4, 4)},
        gangs=(3, 3),
        **kind,
    )
    yield Asked(
        name="lws-leader-ready",
        spec={"replicas": 2, "startupPolicy": "LeaderReady", "leaderWorkerTemplate": {**groups}},
        pods={"leader": (1, 1), "worker": (4, 4, 4, 4)},
        gangs=(2, 2),
        **kind,
    )


def _training_operator(kind: str, field_name: str, container: str, replicas: Mapping[str, tuple[int, int]]) -> Asked:
    """A job of training-operator; `replicas` holds pods and GPUs of one pod for each replica type."""
    specs = {
        role: {"replicas": pods, "restartPolicy": "OnFailure", "template": _template(gpus, name=container)}
        for role, (pods, gpus) in replicas.items()
    }
    return Asked(
        name=kind.lower(),
        controller="training-operator",
        api_version="kubeflow.org/v1",
        kind=kind,
        plural=f"{kind.lower()}s",
        spec={field_name: specs},
        pods={role.lower(): (gpus,) * pods for role, (pods, gpus) in replicas.items()},
        gangs=(sum(pods for pods, _ in replicas.values()),),
    )


def _training_operators() -> Iterator[Asked]:
    yield _training_operator("PyTorchJob", "pytorchReplicaSpecs", "pytorch", {"Master": (1, 4), "Worker": (3, 4)})
    yield _training_operator(
        "TFJob", "tfReplicaSpecs", "tensorflow", {"Chief": (1, 1), "PS": (2, 0), "Worker": (2, 2), "Evaluator": (1, 1)}
    )
    yield _training_operator("XGBoostJob", "xgbReplicaSpecs", "xgboost", {"Master": (1, 1), "Worker": (2, 1)})
    yield _training_operator("PaddleJob", "paddleReplicaSpecs", "paddle", {"Master": (1, 2), "Worker": (2, 2)})
    yield _training_operator("JAXJob", "jaxReplicaSpecs", "jax", {"Worker": (3, 4)})


def _mpi_jobs() -> Iterator[Asked]:
    kind: Json = {
        "controller": "mpi-operator",
        "api_version": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "plural": "mpijobs",
    }
    replicas = {
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "template": _template()},
            "Worker": {"replicas": 2, "template": _template(8)},
        }
    }
    pods = {"launcher": (0,), "worker": (8, 8)}
    yield Asked(name="mpijob", spec={"slotsPerWorker": 8, **replicas}, pods=pods, gangs=(3,), **kind)
    yield Asked(
        name="mpijob-waits",
        spec={"slotsPerWorker": 8, "launcherCreationPolicy": "WaitForWorkersReady", **replicas},
        pods=pods,
        gangs=(2,),
        **kind,
    )


def _train_jobs() -> Iterator[Asked]:
    kind: Json = {
        "controller": "trainer",
        "api_version": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "plural": "trainjobs",
    }
    node = {"resourcesPerNode": {"limits": {"nvidia.com/gpu": 4}}}
    yield Asked(
        name="trainjob",
        spec={"runtimeRef": {"name": "torch-distributed"}, "trainer": {"numNodes": 3, **node}},
        pods={"node": (4, 4, 4)},
        gangs=(3,),
        **kind,
    )
    # The launcher of this runtime is one of the nodes.
    yield Asked(
        name="trainjob-mpi",
        spec={"runtimeRef": {"name": "deepspeed-distributed"}, "trainer": {"numNodes": 3, **node}},
        pods={"launcher": (4,), "node": (4, 4)},
        gangs=(3,),
        **kind,
    )


# ------------------------------------------------------------------------------------------------ Ray, serving


def _ray_cluster() -> Json:
    """A head, two workers of four GPUs, and a replica of two hosts with two GPUs each."""
    gpu = {"groupName": "gpu", "replicas": 2, "minReplicas": 0, "maxReplicas": 4, "template": _template(4)}
    hosts = {"groupName": "hosts", "replicas": 1, "minReplicas": 1, "maxReplicas": 1, "numOfHosts": 2}
    return {
        "rayVersion": "2.52.0",
        "headGroupSpec": {"rayStartParams": {}, "template": _template()},
        "workerGroupSpecs": [
            {**gpu, "rayStartParams": {}},
            {**hosts, "rayStartParams": {}, "template": _template(2)},
        ],
    }


def _ray() -> Iterator[Asked]:
    ray: Json = {"controller": "ray-operator", "api_version": "ray.io/v1", "gangs": (5,)}
    pods = {"head": (0,), "worker": (4, 4, 2, 2)}
    with_submitter = {**pods, "submitter": (0,)}
    yield Asked(name="raycluster", kind="RayCluster", plural="rayclusters", spec=_ray_cluster(), pods=pods, **ray)
    yield Asked(
        name="rayjob",
        kind="RayJob",
        plural="rayjobs",
        spec={"entrypoint": "run", "rayClusterSpec": _ray_cluster()},
        pods=with_submitter,
        **ray,
    )
    yield Asked(
        name="rayservice",
        kind="RayService",
        plural="rayservices",
        spec={"serveConfigV2": "applications: []", "rayClusterConfig": _ray_cluster()},
        pods=pods,
        **ray,
    )
    yield Asked(
        name="raycronjob",
        kind="RayCronJob",
        plural="raycronjobs",
        spec={"schedule": "@every 5s", "jobTemplate": {"entrypoint": "run", "rayClusterSpec": _ray_cluster()}},
        pods=with_submitter,
        top="RayJob",
        **ray,
    )


def _knative() -> Iterator[Asked]:
    """What Knative's defaulting webhook would fill in is written out: it does not run here."""
    container = {
        **_container(2, name="user-container"),
        "readinessProbe": {"successThreshold": 1, "tcpSocket": {"port": 0}},
    }
    spec = {"containerConcurrency": 0, "timeoutSeconds": 300, "enableServiceLinks": False, "containers": [container]}
    annotations = {"autoscaling.knative.dev/initial-scale": "2", "autoscaling.knative.dev/min-scale": "1"}
    yield Asked(
        name="knative-service",
        controller="knative",
        api_version="serving.knative.dev/v1",
        kind="Service",
        plural="services",
        spec={
            "template": {"metadata": {"annotations": annotations}, "spec": spec},
            "traffic": [{"latestRevision": True, "percent": 100}],
        },
        pods={"revision": (2, 2)},
    )


def all_workloads() -> Iterator[Asked]:
    """Every object; those of one controller follow each other, as controllers are started when they are first asked."""
    for of_framework in (
        _built_in,
        _jobsets,
        _train_jobs,
        _leader_worker_sets,
        _training_operators,
        _ray,
        _mpi_jobs,
        _knative,
    ):
        yield from of_framework()
