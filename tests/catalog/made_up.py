"""Definitions of made-up kinds, for what no packaged definition shows; and objects of such kinds."""

from typing import Any

from catalog.library import CompiledDefinition
from catalog.parse import parse
from catalog.resources import AcceleratorPolicy
from catalog.structure import Structure, resolve

POLICY = AcceleratorPolicy()
TRAIN = {"group": "example.com", "version": "v1", "kind": "Train"}


def definition(
    root: dict[str, Any] | None = None,
    children: list[dict[str, Any]] | None = None,
    gang: dict[str, Any] | None = None,
    kind: dict[str, str] | None = None,
    **structure: Any,
) -> CompiledDefinition:
    """A definition of kind Train, or of another, with these parts."""
    document = {
        "apiVersion": "workload-stamp.io/v1alpha1",
        "kind": "WorkloadDefinition",
        "metadata": {"name": "made-up"},
        "spec": {
            "structureDefinition": {
                "rootComponent": {
                    "name": "train",
                    "kind": kind or TRAIN,
                    "statusDefinition": {"statusMappings": {}},
                    **(root or {}),
                },
                "childComponents": children or [],
                **structure,
            },
            **({"optimizationInstructions": {"gangScheduling": gang}} if gang else {}),
        },
    }
    return CompiledDefinition(parse(document, "made-up"))


def leaf(name: str, label: str | None = None, **fields: Any) -> dict[str, Any]:
    """A child with a pod template at `.spec.<name>.template` and a count at `.spec.<name>.replicas`."""
    return {
        "name": name,
        "ownerRef": "train",
        "specDefinition": {"podTemplateSpecPath": f".spec.{name}.template"},
        "scaleDefinition": {"replicasPath": f".spec.{name}.replicas"},
        "podSelector": {"componentTypeSelector": {"keyPath": '.metadata.labels["role"]', "value": label or name}},
        **fields,
    }


def groups(**fields: Any) -> dict[str, Any]:
    """A multi-instance child: one instance for each entry of `.spec.groups`."""
    return {
        "name": "group",
        "ownerRef": "train",
        "instanceIdPath": ".spec.groups[].name",
        "specDefinition": {"podTemplateSpecPath": ".spec.groups[].template"},
        "scaleDefinition": {"replicasPath": ".spec.groups[].replicas"},
        "podSelector": {"componentInstanceSelector": {"idPath": '.metadata.labels["group"]'}},
        **fields,
    }


def template(gpus: Any = None) -> dict[str, Any]:
    """A pod template whose one container asks for that many GPUs."""
    resources = {} if gpus is None else {"resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {"spec": {"containers": [{"name": "main", **resources}]}}


def train(**spec: Any) -> dict[str, Any]:
    """An object of kind Train."""
    return {
        "apiVersion": "example.com/v1",
        "kind": "Train",
        "metadata": {"name": "t", "namespace": "team-a", "uid": "1"},
        "spec": spec,
    }


def resolved(compiled: CompiledDefinition, obj: Any) -> Structure:
    """The structure of an object under the default policy."""
    return resolve(compiled, obj, POLICY)


def pod(**labels: str) -> dict[str, Any]:
    """A pod with these labels."""
    return {"metadata": {"name": "p", "labels": labels}}
