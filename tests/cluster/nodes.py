"""Nodes that exist as objects only, and what annotations make KWOK do with the pods on them.

`stages.yaml` is KWOK's side of it. A bound pod becomes Running and Ready 0.2 s later; annotations on the pod
(in a template: on the template) change that. Knows nothing of who creates pods.
"""

from pathlib import Path
from typing import Any

STAGES = Path(__file__).resolve().parent / "stages.yaml"

# Pod annotations; each value is a Go duration such as "2s".
READY_AFTER = "test.workload-stamp.io/ready-after"  # from being bound to being Ready
FINISH_AFTER = "test.workload-stamp.io/finish-after"  # from being Ready to phase Succeeded, exit code 0
FAIL_AFTER = "test.workload-stamp.io/fail-after"  # from being Ready to phase Failed, exit code 1

NODES = 8
NODES_PER_RACK = 2
RACKS_PER_ZONE = 2


def gpu_node(number: int, *, gpus: int = 8) -> dict[str, Any]:
    """A node with `gpus` of nvidia.com/gpu; two neighbours share a rack and a node pool, two racks a zone."""
    rack = number // NODES_PER_RACK
    resources = {
        "cpu": "1000", "memory": "4Ti", "ephemeral-storage": "16Ti", "pods": "4000", "nvidia.com/gpu": str(gpus),
    }  # fmt: skip
    labels = {
        "kubernetes.io/hostname": f"node-{number}",
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "node.kubernetes.io/instance-type": f"gpu-{gpus}",
        "topology.kubernetes.io/region": "test",
        "topology.kubernetes.io/zone": f"zone-{rack // RACKS_PER_ZONE}",
        "topology.kubernetes.io/rack": f"rack-{rack}",
        "cloud.google.com/gke-nodepool": f"pool-{rack}",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"node-{number}", "labels": labels},
        "status": {"capacity": resources, "allocatable": resources},
    }
