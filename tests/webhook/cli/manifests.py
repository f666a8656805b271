"""Manifests of our own, as text, for the tests of the command line."""

import json
from typing import Any


def pod_spec(gpus: int) -> dict[str, Any]:
    """A pod spec with one container that asks for GPUs."""
    limits = {"nvidia.com/gpu": gpus} if gpus else {}
    return {"containers": [{"name": "main", "image": "example.com/train:1", "resources": {"limits": limits}}]}


def job(name: str = "solo", **metadata: Any) -> dict[str, Any]:
    """A Job of one pod with a GPU."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, **metadata},
        "spec": {"parallelism": 1, "completions": 1, "template": {"spec": pod_spec(1)}},
    }


def jobset(name: str = "train", **metadata: Any) -> dict[str, Any]:
    """A JobSet of a leader and two workers with four GPUs each."""

    def replicated(role: str, replicas: int) -> dict[str, Any]:
        spec = {"parallelism": 1, "completions": 1, "template": {"spec": pod_spec(4)}}
        return {"name": role, "replicas": replicas, "template": {"spec": spec}}

    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": name, **metadata},
        "spec": {"replicatedJobs": [replicated("leader", 1), replicated("workers", 2)]},
    }


def owned_by(owner: dict[str, Any]) -> list[dict[str, Any]]:
    """The owner references of what `owner` controls."""
    metadata = owner["metadata"]
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
    return [{**reference, "name": metadata["name"], "uid": metadata["uid"]}]


def chain(namespace: str = "team-a") -> list[dict[str, Any]]:
    """A JobSet, its first worker Job and that Job's pod, as stored: with uids and owner references."""
    top = jobset(namespace=namespace, uid="uid-of-train")
    labels = {"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/replicatedjob-name": "workers"}
    middle = job("train-workers-0", namespace=namespace, uid="uid-of-job", labels=labels, ownerReferences=owned_by(top))
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "train-workers-0-0-",
            "namespace": namespace,
            "labels": {**labels, "batch.kubernetes.io/job-name": "train-workers-0"},
            "ownerReferences": owned_by(middle),
        },
        "spec": pod_spec(4),
    }
    return [top, middle, pod]


def review(obj: dict[str, Any] | None, uid: str = "1", operation: str = "CREATE", **request: Any) -> dict[str, Any]:
    """An AdmissionReview about an object."""
    known = obj or {"apiVersion": "v1", "kind": "Pod", "metadata": {}}
    group, _, version = known["apiVersion"].rpartition("/")
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": uid,
            "kind": {"group": group, "version": version, "kind": known["kind"]},
            "namespace": known["metadata"].get("namespace", "team-a"),
            "operation": operation,
            "userInfo": {"username": "ada@example.com"},
            "object": obj,
            **request,
        },
    }


def text(*objects: Any) -> str:
    """Objects as JSON documents one after the other, which are YAML documents too."""
    return "\n".join(json.dumps(obj) for obj in objects)


SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "front"}}
