"""Where a recording cannot be compared with the stamps, or only after an edit, each with its reason.

Kept as small as the evidence allows: an entry that is not needed fails the test.
"""

from collections.abc import Mapping

NOT_PROMISED: Mapping[tuple[str, str], str] = {
    ("apps.nvidia.com", "NemoGuardrail"): "recorded beside the others; the catalogue does not promise it",
}
"""Recorded root kinds that need no definition."""

TWO_AT_ONCE = frozenset({"during the upgrade", "both revisions", "two runs", "manual and scheduled run"})
"""Labels of counts that were taken while two workloads, or two versions of one, existed side by side."""

EDITED: Mapping[str, str] = {
    "kserve/isvc-predictor-transformer-min2": "predictor-min-3",
    "kserve/llm-no-worker": "scaled-to-3",
    "lws/zero-replicas-then-scaled": "scaled to 2",
    "mpi-operator/scale-down-launcher-as-worker": "Worker.replicas 2",
    "nim-operator/pipeline-3-services-1-disabled": "rerank-enabled",
    "training-operator/pytorch-elastic": "Worker.replicas patched to 4",
    "volcano/min-absent-two-tasks": "resumed",
}
"""Cases whose root was edited: which count belongs to the owners as they were stored at the end."""

NOT_OF_THE_ROOT: Mapping[str, str] = {
    "grove/auto-scaling": "PodClique worker scaled to 4",
}
"""Counts after somebody scaled an object below the root, which asks for what it always did."""

ROLES: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("", "Pod"): {"-": "pod"},
    ("apps", "Deployment"): {"replicaset": "deployment"},
}
"""Roles that the observer named otherwise than the contract does, by kind of the root."""

_NODES = "a pod for each node that fits: the number is not the object's to say (contract, section 6)"
_EXAMPLE_GPU = (
    "example.com/gpu is a GPU to the stamps (contract, section 6: */gpu); nvidia.com/gpu alone was counted as one"
)
_TWO_RUNS = "the schedule had fired twice when the pods were counted; the stamps are those of one run"
_SUBMITTER_WAITS = "the submitter comes when the Ray cluster is ready, which it never was here"

EXCEPTIONS: Mapping[str, Mapping[str, str]] = {
    "builtins/daemonset": dict.fromkeys(("roles", "pods-total", "gpu-total", "gpu-total on pods"), _NODES),
    "builtins/example-sample-dra-extended-resource-job": dict.fromkeys(
        ("gpu-total", "gpu-total on pods", "gpus of pods"), _EXAMPLE_GPU
    ),
    "kuberay-1.6/example-cronjob": dict.fromkeys(("roles", "pods-total"), _TWO_RUNS),
    "kuberay/example-job-batch-inference": dict.fromkeys(("roles", "pods-total"), _SUBMITTER_WAITS),
    "kuberay/example-job-use-existing-raycluster": dict.fromkeys(("roles", "pods-total"), _SUBMITTER_WAITS),
}
"""Case → check → why the stamps differ from what was counted. The checks are those of `comparison.py`."""
