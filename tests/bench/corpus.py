"""Reviews as an API server sends them, the same bytes on every run, and the objects that own their pods.

Sizes follow what real controllers send: a JobSet pod is about 8 KB, of which labels, annotations and managedFields are
more than half; a JobSet 8 to 34 KB; a RayCluster with three worker groups about 17 KB.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

Json = dict[str, Any]

JOBSET_PREFIX = "jobset.sigs.k8s.io/"
CLASSES = ("pods", "unrelated", "jobsets", "rayclusters", "jobset-1", "jobset-10", "jobset-100", "jobset-1000")
GROWTH = (1, 10, 100, 1000)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Bodies by class, the objects that own the pods, and the labels that each body's answer has to write."""

    bodies: Mapping[str, tuple[bytes, ...]]
    owners: tuple[Json, ...]
    expected: Mapping[str, tuple[Mapping[str, str] | None, ...]]


def build() -> Corpus:
    """The whole corpus; takes a second."""
    bodies: dict[str, list[bytes]] = {name: [] for name in CLASSES}
    expected: dict[str, list[Mapping[str, str] | None]] = {name: [] for name in CLASSES}
    owners: list[Json] = []
    for number in range(20):
        jobset = _jobset(number, environment=(6, 12, 20, 40)[number % 4])
        _add(bodies, expected, "jobsets", _review("jobsets", jobset), _root_labels(jobset))
        stored = _stored(jobset)
        owners.append(stored)
        for job, role in _jobs(stored):
            owners.append(job)
            _add(bodies, expected, "pods", _review("pods", _pod(job)), {**_root_labels(jobset), "role": role})
    for number in range(10):
        cluster = _raycluster(number)
        _add(bodies, expected, "rayclusters", _review("rayclusters", cluster), {"gpu-total": str(8 * 2 + 4)})
        _add(bodies, expected, "unrelated", _review("pods", _unrelated(number)), None)
    for count in GROWTH:
        grown = _grown(count)
        _add(bodies, expected, f"jobset-{count}", _review("jobsets", grown), {"gpu-total": str(8 * count)})
    return Corpus(
        bodies={name: tuple(found) for name, found in bodies.items()},
        owners=tuple(owners),
        expected={name: tuple(found) for name, found in expected.items()},
    )


def _add(
    bodies: dict[str, list[bytes]],
    expected: dict[str, list[Mapping[str, str] | None]],
    name: str,
    review: bytes,
    labels: Mapping[str, str] | None,
) -> None:
    bodies[name].append(review)
    expected[name].append(labels)


def _root_labels(jobset: Json) -> dict[str, str]:
    pods = sum(job["replicas"] for job in jobset["spec"]["replicatedJobs"])
    return {"gang-size": str(pods), "gpu-total": str(4 * pods), "workload-kind": "JobSet"}


def _uid(*parts: object) -> str:
    digits = hashlib.sha256("/".join(map(str, parts)).encode()).hexdigest()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}"


def _review(resource: str, obj: Json) -> bytes:
    group, _, version = obj["apiVersion"].rpartition("/")
    kind = {"group": group, "version": version, "kind": obj["kind"]}
    where = {"group": group, "version": version, "resource": resource}
    metadata = obj["metadata"]
    account = "system:serviceaccount:kube-system:job-controller"
    return orjson.dumps(
        {
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "request": {
                "uid": _uid("review", resource, metadata),
                "kind": kind,
                "resource": where,
                "requestKind": kind,
                "requestResource": where,
                **({"name": metadata["name"]} if "name" in metadata else {}),
                "namespace": metadata["namespace"],
                "operation": "CREATE",
                "userInfo": {"username": account, "groups": ["system:serviceaccounts", "system:authenticated"]},
                "object": obj,
                "oldObject": None,
                "dryRun": False,
                "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
            },
        }
    )


def _pod_spec(gpus: int, environment: int) -> Json:
    amounts = {"cpu": "16", "memory": "128Gi", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    container = {
        "name": "trainer",
        "image": "registry.example/train:2.9",
        "imagePullPolicy": "IfNotPresent",
        "command": ["torchrun", "--nnodes=3", "--nproc_per_node=4", "train.py", "--config", "/etc/train/config.yaml"],
        "env": [{"name": f"TRAIN_OPTION_{number}", "value": f"value-{number}"} for number in range(environment)],
        "ports": [{"containerPort": 29500, "name": "rendezvous", "protocol": "TCP"}],
        "resources": {"limits": dict(amounts), "requests": dict(amounts)},
        "volumeMounts": [{"mountPath": "/data", "name": "data"}, {"mountPath": "/dev/shm", "name": "shm"}],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    return {
        "containers": [container],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "OnFailure",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "nodeSelector": {"node.kubernetes.io/instance-type": "gpu-8"},
        "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
        "volumes": [
            {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}},
        ],
    }


def _jobset(number: int, environment: int) -> Json:
    jobs = [
        {
            "name": name,
            "groupName": "default",
            "replicas": replicas,
            "template": {
                "metadata": {},
                "spec": {
                    "parallelism": 1,
                    "completions": 1,
                    "completionMode": "Indexed",
                    "backoffLimit": 0,
                    "template": {"metadata": {"labels": {"team": "nlp"}}, "spec": _pod_spec(4, environment)},
                },
            },
        }
        for name, replicas in (("leader", 1), ("workers", 2 + number % 3), *((("eval", 1),) if number % 5 == 4 else ()))
    ]
    return _managed(
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": {
                "name": f"train-{number}",
                "namespace": f"team-{'abc'[number % 3]}",
                "labels": {"kueue.x-k8s.io/queue-name": "gpu", "team": "nlp"},
            },
            "spec": {
                "failurePolicy": {"maxRestarts": 3},
                "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
                "replicatedJobs": jobs,
                "startupPolicy": {"startupPolicyOrder": "AnyOrder"},
                "successPolicy": {"operator": "All"},
                "suspend": False,
            },
        }
    )


def _stored(obj: Json) -> Json:
    metadata = obj["metadata"]
    extra = {"uid": _uid(metadata["namespace"], metadata["name"]), "generation": 1, "resourceVersion": "4242"}
    return {**obj, "metadata": {**metadata, **extra}}


def _reference(owner: Json) -> Json:
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _jobs(jobset: Json) -> Iterator[tuple[Json, str]]:
    total = sum(job["replicas"] for job in jobset["spec"]["replicatedJobs"])
    namespace, owner = jobset["metadata"]["namespace"], jobset["metadata"]["name"]
    start = 0
    for job in jobset["spec"]["replicatedJobs"]:
        for index in range(job["replicas"]):
            name = f"{owner}-{job['name']}-{index}"
            marks = {
                "jobset-name": owner,
                "jobset-uid": jobset["metadata"]["uid"],
                "replicatedjob-name": job["name"],
                "replicatedjob-replicas": str(job["replicas"]),
                "job-index": str(index),
                "job-global-index": str(start + index),
                "global-replicas": str(total),
                "job-key": hashlib.sha256(name.encode()).hexdigest()[:40],
                "restart-attempt": "0",
                "group-name": "default",
                "group-replicas": str(total),
                "job-group-index": str(start + index),
            }
            marks = {JOBSET_PREFIX + key: value for key, value in marks.items()}
            template = job["template"]["spec"]["template"]
            yield (
                {
                    "apiVersion": "batch/v1",
                    "kind": "Job",
                    "metadata": {
                        "name": name,
                        "namespace": namespace,
                        "uid": _uid(namespace, name),
                        "labels": marks,
                        "annotations": marks,
                        "ownerReferences": [_reference(jobset)],
                    },
                    "spec": {**job["template"]["spec"], "template": {**template, "metadata": {"labels": marks}}},
                },
                job["name"],
            )
        start += job["replicas"]


def _pod(job: Json) -> Json:
    name, marks = job["metadata"]["name"], job["metadata"]["labels"]
    index = {"batch.kubernetes.io/job-completion-index": "0"}
    mine = {"batch.kubernetes.io/controller-uid": job["metadata"]["uid"], "batch.kubernetes.io/job-name": name}
    return _managed(
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {
                "generateName": f"{name}-0-",
                "namespace": job["metadata"]["namespace"],
                "labels": {"team": "nlp", **marks, **index, **mine, "job-name": name},
                "annotations": {**marks, **index},
                "finalizers": ["batch.kubernetes.io/job-tracking"],
                "ownerReferences": [_reference(job)],
            },
            "spec": {**job["spec"]["template"]["spec"], "hostname": f"{name}-0", "enableServiceLinks": True},
            "status": {},
        }
    )


def _unrelated(number: int) -> Json:
    owner = {
        "apiVersion": "operator.example/v1",
        "kind": "Shop",
        "metadata": {"name": f"shop-{number}", "uid": _uid("shop", number)},
    }
    return _managed(
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {
                "generateName": f"shop-{number}-",
                "namespace": "shop",
                "labels": {"app": "shop", "tier": "web"},
                "ownerReferences": [_reference(owner)],
            },
            "spec": _pod_spec(0, 24),
            "status": {},
        }
    )


def _raycluster(number: int) -> Json:
    def template(name: str, gpus: int) -> Json:
        spec = _pod_spec(gpus, 24)
        spec["containers"][0]["name"] = name
        return {"metadata": {"labels": {"team": "ray"}, "annotations": {"example.com/scrape": "true"}}, "spec": spec}

    groups = [
        {
            "groupName": name,
            "replicas": replicas,
            "minReplicas": 0,
            "maxReplicas": 16,
            "numOfHosts": 1,
            "rayStartParams": {"block": "true"},
            "template": template("ray-worker", gpus),
        }
        for name, replicas, gpus in (("gpu-group", 2, 8), ("small-gpu", 4, 1), ("cpu-group", 8, 0))
    ]
    return _managed(
        {
            "apiVersion": "ray.io/v1",
            "kind": "RayCluster",
            "metadata": {"name": f"ray-{number}", "namespace": f"ray-{'ab'[number % 2]}", "labels": {"app": "ray"}},
            "spec": {
                "rayVersion": "2.52.0",
                "headGroupSpec": {"rayStartParams": {"num-cpus": "0"}, "template": template("ray-head", 0)},
                "workerGroupSpecs": groups,
            },
        }
    )


def _grown(count: int) -> Json:
    resources = {"limits": {"cpu": "16", "memory": "128Gi", "nvidia.com/gpu": "8"}}
    container = {"name": "main", "image": "registry.example/train:2.9", "command": ["train"], "resources": resources}
    jobs = [
        {
            "name": f"job-{number}",
            "groupName": "default",
            "replicas": 1,
            "template": {
                "metadata": {},
                "spec": {
                    "parallelism": 1,
                    "completions": 1,
                    "template": {"metadata": {"labels": {"team": "nlp"}}, "spec": {"containers": [container]}},
                },
            },
        }
        for number in range(count)
    ]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": f"grown-{count}", "namespace": "team-a", "labels": {"team": "nlp"}},
        "spec": {"replicatedJobs": jobs, "startupPolicy": {"startupPolicyOrder": "AnyOrder"}},
    }


def _managed(obj: Json) -> Json:
    """The object with managedFields as the API server computes them: every field that its manager set."""
    fields = {f"f:{key}": _fields(value) for key, value in obj["metadata"].items() if key != "name"}
    entry = {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": obj["apiVersion"],
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:metadata": fields, "f:spec": _fields(obj["spec"])},
    }
    return {**obj, "metadata": {**obj["metadata"], "managedFields": [entry]}}


def _fields(value: Any) -> Json:
    if isinstance(value, dict):
        return {f"f:{key}": _fields(inner) for key, inner in value.items()}
    if isinstance(value, list) and all(isinstance(item, dict) and "name" in item for item in value):
        return {f'k:{{"name":"{item["name"]}"}}': {".": {}, **_fields(item)} for item in value}
    return {}
