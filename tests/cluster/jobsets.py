"""The contract's example, as tests create it, and how stamps are read. Knows nothing of clusters."""

from typing import Any

JOBSETS = "jobset.x-k8s.io/v1alpha2"
STAMP = "workload-stamp.io/"


def jobset(name: str, *, gpus: int = 4, workers: int = 2) -> dict[str, Any]:
    """A JobSet of one leader and some workers, one pod each, with that many GPUs a pod."""
    return {
        "apiVersion": JOBSETS,
        "kind": "JobSet",
        "metadata": {"name": name},
        "spec": {"replicatedJobs": [_replicated("leader", 1, gpus), _replicated("workers", workers, gpus)]},
    }


def _replicated(name: str, replicas: int, gpus: int) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "registry.example/train:1",
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}},
    }
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {
        "name": name,
        "replicas": replicas,
        "template": {"spec": {"parallelism": 1, "completions": 1, "template": {"spec": pod}}},
    }


def stamps(obj: Any) -> dict[str, str]:
    """Labels and annotations under our prefix, without it."""
    metadata = obj["metadata"]
    everything = {**(metadata.get("labels") or {}), **(metadata.get("annotations") or {})}
    return {key.removeprefix(STAMP): value for key, value in everything.items() if key.startswith(STAMP)}
