"""Where a recording cannot be compared with the stamps, or only in part, each with its reason.

Kept as small as the evidence allows: an entry of the last two tables that is not needed fails the test.
"""

from collections.abc import Mapping

NOT_PROMISED: Mapping[tuple[str, str], str] = {
    ("apps.nvidia.com", "NemoGuardrail"): "recorded beside the others; the catalogue does not promise it",
}
"""Recorded root kinds that need no definition."""

TWO_AT_ONCE = frozenset({"during the upgrade", "both revisions", "two runs", "manual and scheduled run"})
"""Labels of counts that were taken while two workloads, or two versions of one, existed side by side."""

EDITED: Mapping[str, str] = {
    "lws/zero-replicas-then-scaled": "scaled to 2",
    "mpi-operator/scale-down-launcher-as-worker": "Worker.replicas 2",
    "training-operator/pytorch-elastic": "Worker.replicas patched to 4",
}
"""Cases whose root was edited before its owners were stored: which count belongs to the stored owners."""

EDITED_LATER: Mapping[str, frozenset[str]] = {
    "grove/auto-scaling": frozenset({"PodClique worker scaled to 4"}),
    "kserve/isvc-predictor-transformer-min2": frozenset({"predictor-min-3"}),
    "kserve/llm-no-worker": frozenset({"scaled-to-3"}),
    "nim-operator/pipeline-3-services-1-disabled": frozenset({"rerank-enabled"}),
    "volcano/min-absent-two-tasks": frozenset({"worker-scaled-to-5", "resumed"}),
}
"""Counts after an edit that the stored owners do not show, or of an object below the root, which asks for the same."""

_NAMES_OF_NIMSERVICES = ("llm", "meta-llama-3-2-1b-instruct", "meta-llama3-8b-instruct")

ROLES: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("", "Pod"): {"-": "pod"},
    ("apps", "Deployment"): {"replicaset": "deployment"},
    ("apps.nvidia.com", "NIMService"): dict.fromkeys(_NAMES_OF_NIMSERVICES, "nimservice"),
    ("argoproj.io", "Workflow"): {"resource-claims-x": "step", "test-linux": "step"},
    ("serving.knative.dev", "Service"): {"pod": "revision"},
    ("serving.kserve.io", "LLMInferenceService"): {
        "leader": "llminferenceservice-workload-leader",
        "worker": "llminferenceservice-workload-worker",
        "leader-prefill": "llminferenceservice-workload-leader-prefill",
        "worker-prefill": "llminferenceservice-workload-worker-prefill",
    },
}
"""Roles that the observer named otherwise than the contract does, by kind of the root."""

_NODES = "a pod for each node that fits: the number is not the object's to say (contract, section 6)"
_STEPS = "how many steps run at one time is decided while a workflow runs"
_CLAIM = "what devices a claim gets stands in a ResourceClaimTemplate, an object beside the pod"
_VERSION = "which components a cluster has depends on its version, and the object names none"
_NO_REPLICAS = "over several nodes the operator reads no default, and this version fails where replicas is absent"
_STEP_SPEC = "the pods' specs are made from templates, defaults and patches while a workflow runs"
_NODES_OF_RUNTIME = (
    "how many nodes serve a model follows from GPUs that its ServingRuntime sets and from KServe's version"
)
_RUNTIME = "the containers that serve the model come from a ServingRuntime"
_PRESET = "the leader's template comes from a preset of the operator's configuration"
_POOL_TEMPLATE = "the pods' template stands in the SandboxTemplate that the pool names"
_TOTALS = ("gpu-total", "gpu-total on pods")
_NUMBERS = ("roles", "pods-total", *_TOTALS)

UNRESOLVED: Mapping[str, Mapping[str, str]] = {
    "agent-sandbox/hpa-warmpool-10": {"gpu-total": _POOL_TEMPLATE},
    "argo-workflows/loops-maps": dict.fromkeys(_NUMBERS, _STEPS),
    "argo-workflows/resource-claims": {"gpu-total": _STEP_SPEC, "gpu-total on pods": _CLAIM},
    "argo-workflows/suspended": {"gpu-total": _STEP_SPEC},
    "builtins/daemonset": dict.fromkeys(_NUMBERS, _NODES),
    "kserve/isvc-transformer-feast": dict.fromkeys(_TOTALS, _RUNTIME),
    "kserve/llm-managed-dra": dict.fromkeys(_TOTALS, _CLAIM),
    "kserve/llm-worker-no-template": dict.fromkeys(_TOTALS, _PRESET),
    **{
        f"kserve/{case}": dict.fromkeys((*_NUMBERS, "gangs"), _NODES_OF_RUNTIME)
        for case in (
            "mnreq-pp2-tp2-h4-w2",
            "mnreq-pp2-tp2-w4",
            "multinode-llama3",
            "multinode-min2",
            "multinode-pp2-tp2-worker4",
            "multinode-pp2-tp8-no-gpu",
            "multinode-pp3-tp8-gpu8",
        )
    },
    **{
        f"milvus-operator/{case}": dict.fromkeys(("roles", "pods-total", "gpu-total"), _VERSION)
        for case in (
            "cluster-default",
            "cluster-healthy",
            "cluster-hpa-minus-one",
            "cluster-mixcoord",
            "cluster-stopped",
            "deployment-groups",
            "hpa",
        )
    },
    "nim-operator/multinode-replicas-absent": dict.fromkeys(("roles", "pods-total", "gpu-total"), _NO_REPLICAS),
}
"""Case → check → why that cannot be known from the object: no value is right, a wrong one is not."""

_EXAMPLE_GPU = "example.com/gpu is a GPU by the contract's section 6 (*/gpu); the observer counted nvidia.com/gpu alone"
_TWO_RUNS = "the schedule had fired twice when the pods were counted; the stamps are those of one run"
_ROLLED_OUT = "pods of a rollout that stalled are among them"
_SCALED_BELOW = "two of the pods are beyond what the set asks for: its PodClique was scaled"
_CACHE_POD = "the pod that read the model's manifest was gone when the pods were counted"
_STILL_DISABLED = "one of the pods is a service's that the stored pipeline has disabled still"
_SUBMITTER_WAITS = "the submitter comes when the Ray cluster is ready, which it never was here"

EXCEPTIONS: Mapping[str, Mapping[str, str]] = {
    "argo-workflows/resource-claims": {"gpus of pods": _CLAIM},
    "argo-workflows/suspended": dict.fromkeys(("roles", "pods-total"), "it was never resumed"),
    "builtins/example-sample-dra-extended-resource-job": dict.fromkeys(
        ("gpu-total", "gpu-total on pods", "gpus of pods"), _EXAMPLE_GPU
    ),
    "grove/auto-scaling": dict.fromkeys(("gangs", "starts together"), _SCALED_BELOW),
    "grove/rollout": dict.fromkeys(("gangs", "starts together"), _ROLLED_OUT),
    "kserve/llm-managed-dra": {"gpus of pods": _CLAIM},
    "kuberay-1.6/example-cronjob": dict.fromkeys(("roles", "pods-total"), _TWO_RUNS),
    "kuberay/example-job-batch-inference": dict.fromkeys(("roles", "pods-total"), _SUBMITTER_WAITS),
    "kuberay/example-job-use-existing-raycluster": dict.fromkeys(("roles", "pods-total"), _SUBMITTER_WAITS),
    "mpi-operator/scale-down-launcher-as-worker": {"gangs": "a worker from before the scale-down is among the pods"},
    "nim-operator/nimcache-hf": {"roles of pods": _CACHE_POD},
    "nim-operator/nimcache-ngc": {"roles of pods": _CACHE_POD},
    "nim-operator/pipeline-3-services-1-disabled": {"roles of pods": _STILL_DISABLED},
    "volcano/min-absent-two-tasks": {"gangs": "a worker from after the scale-up is among the pods"},
}
"""Case → check → why a value is stamped that was not counted. The checks are those of `comparison.py`."""
