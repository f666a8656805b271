"""The two manifests that follow from the catalogue, so that nobody keeps them by hand.

    python -m tests.manifests.generated

writes them: the CustomResourceDefinition of WorkloadDefinition from the table of the language's fields, and the
ClusterRole with what the webhook may do to described kinds from the packaged definitions. `test_generated` holds the
files to what is generated. Knows nothing of what the rest of `manifests/` says.
"""

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from catalog import load
from catalog.definition import Definition, RootStamps
from catalog.library import Catalog, CompiledDefinition
from catalog.parse.fields import (
    DEFINITION,
    Anything,
    Choice,
    Field,
    Flag,
    Jq,
    JsonValue,
    LabelMap,
    ListOf,
    Object,
    Shape,
    Text,
)

MANIFESTS = Path(__file__).resolve().parents[2] / "manifests"

AGGREGATE_LABEL = "workload-stamp.io/aggregate-to-webhook"
"""A ClusterRole with this label, `"true"`, is added to what the webhook may do."""

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_OPEN: Mapping[str, Any] = {_PRESERVE: True}

READ_VERBS = ("get", "list", "watch")
"""Owners are read, and roots watched."""

MENDED = frozenset({RootStamps.FULL, RootStamps.ANNOTATIONS})
"""Objects that upkeep gives the stamps which admission could not; the others are written to at their creation only."""

PASSED_VERBS = ("get",)
"""What a definition names between its object and the pods is only read on the way up."""

POD_VERBS = ("get", "list", "patch")
"""Pods are not watched: upkeep lists those without an id, and a pod can own pods (LeaderWorkerSet)."""


# ------------------------------------------------------------------------------------------ custom resource


def definition_crd() -> dict[str, Any]:
    """The CustomResourceDefinition of WorkloadDefinition.

    It tells people what each field is, and refuses nothing: a definition with faults has to be stored for its status
    to name them all. So no field is required, unknown ones are kept, and single values may be anything.
    """
    names = {
        "kind": "WorkloadDefinition",
        "listKind": "WorkloadDefinitionList",
        "plural": "workloaddefinitions",
        "singular": "workloaddefinition",
        "shortNames": ["wldef"],
        "categories": ["workload-stamp"],
    }
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": _COLUMNS,
        "schema": {"openAPIV3Schema": _document_schema()},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "workloaddefinitions.workload-stamp.io"},
        "spec": {"group": "workload-stamp.io", "names": names, "scope": "Cluster", "versions": [version]},
    }


_COLUMNS = [
    {"name": "Describes", "type": "string", "jsonPath": ".status.describes", "description": "The described kind."},
    {
        "name": "Accepted",
        "type": "string",
        "jsonPath": '.status.conditions[?(@.type=="Accepted")].status',
        "description": "Whether the definition is valid; its problems are in the status.",
    },
    {
        "name": "In force",
        "type": "boolean",
        "jsonPath": ".status.inForce",
        "description": "Whether objects of the kind are stamped by this definition.",
    },
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


def _document_schema() -> dict[str, Any]:
    fields = {field.name: field for field in DEFINITION.fields}
    return {
        "type": "object",
        "description": "Describes one kind of workload, so that its objects and their pods are stamped.",
        **_OPEN,
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": _described(fields["spec"]),
            "status": _STATUS,
        },
    }


def _described(field: Field) -> dict[str, Any]:
    """The schema of a field, with its description."""
    schema = _schema(field.shape)
    return {"description": _description(field), **schema}


def _description(field: Field) -> str:
    sentences = [f"{field.meaning[0].upper()}{field.meaning[1:]}."]
    match field.shape:
        case Jq():
            sentences.append(f"A jq expression, evaluated on {field.shape.input.value}.")
        case Text() if field.shape.form != Text().form:
            sentences.append(f"Write {field.shape.wanted}.")
        case Choice():
            words = ", ".join(field.shape.words)
            sentences.append(f"One of {words}; {field.shape.words[0]} when absent.")
        case Flag():
            sentences.append("true or false; false when absent.")
    if field.required:
        sentences.append("Required.")
    return " ".join(sentences)


def _schema(shape: Shape) -> dict[str, Any]:
    match shape:
        case Object():
            properties = {field.name: _described(field) for field in shape.fields}
            return {"type": "object", "nullable": True, **_OPEN, "properties": properties}
        case ListOf():
            return {"type": "array", "nullable": True, "items": _schema(shape.entry)}
        case LabelMap():
            return {"type": "object", "nullable": True, **_OPEN}
        case Text() | Jq() | Flag() | Choice() | JsonValue() | Anything():
            return dict(_OPEN)


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


_CONDITION = {
    "type": "object",
    "required": ["type", "status"],
    "properties": {
        "type": _text("Accepted: the definition is valid. InForce: objects of its kind are stamped by it."),
        "status": {**_text("True, False or Unknown."), "enum": ["True", "False", "Unknown"]},
        "reason": _text("Why, in one word."),
        "message": _text("Why, in a sentence."),
        "lastTransitionTime": {**_text("When the status last changed."), "format": "date-time"},
    },
}

_STATUS = {
    "type": "object",
    "description": "What became of the definition; the webhook's leader writes it.",
    "properties": {
        "observedGeneration": {
            "type": "integer",
            "format": "int64",
            "description": "The generation of the definition that this status is about.",
        },
        "describes": _text("The described kind, as Kind.version.group."),
        "inForce": {
            "type": "boolean",
            "description": "Whether objects of the kind are stamped by this definition, or by the good one before it.",
        },
        "problems": {
            "type": "array",
            "description": "Every problem: where, what is wrong, what was found, what would be right.",
            "items": {"type": "string"},
        },
        "conditions": {
            "type": "array",
            "description": "Accepted and InForce.",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": _CONDITION,
        },
    },
}


# --------------------------------------------------------------------------------------------- cluster role


def described_kinds_role() -> dict[str, Any]:
    """The ClusterRole for the packaged definitions' kinds, aggregated to the webhook's."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "workload-stamp-described-kinds", "labels": {AGGREGATE_LABEL: "true"}},
        "rules": list(_rules(packaged_definitions())),
    }


@cache
def packaged_definitions() -> tuple[Definition, ...]:
    """The definitions of the package; all are good, which other tests hold."""
    return load.packaged().definitions


def _rules(definitions: Iterable[Definition]) -> Iterable[dict[str, Any]]:
    """One rule for the kinds of a group that are used alike."""
    catalog = Catalog.of([CompiledDefinition(definition) for definition in definitions])
    used: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for group, kind in sorted(catalog.passed_through | catalog.by_kind.keys() | {("", "Pod")}):
        used.setdefault((group, _verbs(catalog, group, kind)), []).append(plural(kind))
    for (group, verbs), resources in used.items():
        yield {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}


def _verbs(catalog: Catalog, group: str, kind: str) -> tuple[str, ...]:
    if (group, kind) == ("", "Pod"):
        return POD_VERBS
    modes = {compiled.definition.root_stamps for compiled in catalog.by_kind.get((group, kind), ())}
    if not modes:
        return PASSED_VERBS
    return (*READ_VERBS, "patch") if modes & MENDED else READ_VERBS


def plural(kind: str) -> str:
    """The resource of a kind, by the rule that all described ones follow; tests hold it to the frameworks' own CRDs.

    A kind with a plural of its own is to be named here.
    """
    word = kind.lower()
    if word.endswith(("s", "x", "ch", "sh")):
        return f"{word}es"
    return f"{word[:-1]}ies" if word.endswith("y") else f"{word}s"


# -------------------------------------------------------------------------------------------------- writing

_HEADER = "# Written by `python -m tests.manifests.generated`; a test holds it current.\n"


@cache
def generated() -> dict[Path, str]:
    """The text of each generated file, by its path."""
    return {
        MANIFESTS / "base" / "workload-definition-crd.yaml": _yaml(definition_crd()),
        MANIFESTS / "base" / "described-kinds-role.yaml": _yaml(described_kinds_role()),
    }


def _yaml(document: Mapping[str, Any]) -> str:
    text = yaml.safe_dump(dict(document), sort_keys=False, width=120, allow_unicode=True, default_flow_style=None)
    return _HEADER + text


def main() -> None:
    """Write every generated file that is not current."""
    for path, text in generated().items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    main()
