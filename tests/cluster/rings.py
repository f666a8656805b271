"""A made-up framework, the one of `manifests/examples/ring`: its definition, its objects, and their pods.

No controller looks after rings, so nobody but the test changes their pods. `with rings(control_plane)` installs the
kind and what makes the webhook know it, and takes both away.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.cluster.control_plane import ControlPlane
from tests.cluster.installation import MANIFESTS
from tests.cluster.workloads import pod, pod_spec

RINGS = "training.example.com/v1"
PART = "training.example.com/part"
FOLDER = MANIFESTS / "examples" / "ring"


@contextmanager
def ring_kind(control_plane: ControlPlane) -> Iterator[None]:
    """The kind alone: its CRD, served."""
    kubectl = control_plane.kubectl
    kubectl("apply", "--server-side", "-f", str(FOLDER / "crd.yaml"))
    kubectl("wait", "--for=condition=Established", "crd/rings.training.example.com", "--timeout=30s")
    try:
        yield
    finally:
        kubectl("delete", "--ignore-not-found", "-f", str(FOLDER / "crd.yaml"))


@contextmanager
def ring_framework(control_plane: ControlPlane) -> Iterator[None]:
    """The kind, its definition and the right to read it."""
    with ring_kind(control_plane):
        control_plane.kubectl("apply", "--server-side", "-f", str(FOLDER / "framework.yaml"))
        try:
            yield
        finally:
            control_plane.kubectl("delete", "--ignore-not-found", "-f", str(FOLDER / "framework.yaml"))


def ring(name: str, *, members: int = 4, gpus: int = 2, **metadata: Any) -> dict[str, Any]:
    """One coordinator without GPUs and some members with that many each: a gang of all of them."""
    return {
        "apiVersion": RINGS,
        "kind": "Ring",
        "metadata": {"name": name, **metadata},
        "spec": {
            "coordinator": {"spec": pod_spec()},
            "members": members,
            "member": {"spec": pod_spec(gpus=gpus)},
        },
    }


def member(owner: Any, name: str = "", *, part: str = "member", gpus: int = 2) -> dict[str, Any]:
    """A pod of a ring, as its controller would make it."""
    return pod(name, gpus=gpus, owner=owner, labels={PART: part})
