"""Small workloads as people write them, one container each. Knows nothing of clusters and stamps."""

from typing import Any

UNSCHEDULED = {"schedulerName": "nobody"}
"""Part of a pod's spec that keeps it Pending: what happens to it after its creation is not looked at."""


def pod_spec(*, gpus: int = 0, **further: Any) -> dict[str, Any]:
    """A pod's spec with that many GPUs."""
    container: dict[str, Any] = {"name": "main", "image": "registry.example/main:1"}
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": str(gpus)}}
    return {"containers": [container], **further}


def pod(name: str = "", *, gpus: int = 0, owner: Any = None, **metadata: Any) -> dict[str, Any]:
    """A pod that nobody schedules; with an owner it names it as its controller. Without a name, `generateName`."""
    named = {"name": name} if name else {"generateName": "pod-"}
    owners = {"ownerReferences": [controller(owner)]} if owner else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**named, **owners, **metadata},
        "spec": pod_spec(gpus=gpus, **UNSCHEDULED),
    }


def controller(owner: Any) -> dict[str, Any]:
    """The reference by which an object names its controller."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }


def scaled(kind: str, name: str, *, replicas: int = 1, gpus: int = 0) -> dict[str, Any]:
    """A Deployment or StatefulSet."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec(gpus=gpus)},
            **({"serviceName": name} if kind == "StatefulSet" else {}),
        },
    }


def job_spec(*, parallelism: int = 1, gpus: int = 0) -> dict[str, Any]:
    """The spec of a Job whose pods are started together."""
    return {
        "parallelism": parallelism,
        "completions": parallelism,
        "completionMode": "Indexed",
        "template": {"spec": pod_spec(gpus=gpus, restartPolicy="Never")},
    }


def cron_job(name: str, **spec: Any) -> dict[str, Any]:
    """A CronJob that never comes by itself."""
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": job_spec(**spec)}},
    }
