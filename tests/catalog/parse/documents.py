"""Definitions to start from: the smallest, and one that uses every field of the language."""

import itertools
import re
from copy import deepcopy
from typing import Any

from catalog.definition import Json, JsonObject

ROOT = "spec.structureDefinition.rootComponent"
CHILDREN = "spec.structureDefinition.childComponents"
GANGS = "spec.optimizationInstructions.gangScheduling"

_STEP = re.compile(r"([A-Za-z]+)|\[(\d+)\]")
_ABSENT = object()


def smallest() -> JsonObject:
    """A definition with nothing but what is required."""
    return {
        "apiVersion": "workload-stamp.io/v1alpha1",
        "kind": "WorkloadDefinition",
        "metadata": {"name": "runs"},
        "spec": {
            "structureDefinition": {
                "rootComponent": {
                    "name": "run",
                    "kind": {"group": "example.com", "version": "v1", "kind": "Run"},
                    "statusDefinition": {"statusMappings": {}},
                }
            }
        },
    }


def complete() -> JsonObject:
    """A definition in which every field of the language occurs, and which is valid: a made-up `Run`.

    Its leaves are `driver`, `helper` and `part` (with instances); `inner` stands for an object of another definition.
    `podGroup` would win over `podGroups`, so the latter's own fields are in `with_gang_fields`.
    """
    document = smallest()
    document["metadata"] = {"name": "example-com-run-v1", "labels": {"a": "b"}, "resourceVersion": "7", "uid": "u"}
    document["status"] = {"conditions": [{"type": "Ready"}], "anything": 1}
    structure = document["spec"]["structureDefinition"]
    structure["rootComponent"] |= {
        "statusDefinition": _status(),
        "suspendDefinition": {
            "suspendActions": [{"path": ".spec.suspend", "value": "true"}, {"path": ".spec.mode", "value": '"Off"'}],
            "resumeActions": [{"path": ".spec.suspend", "value": False}, {"path": ".spec.mode", "value": None}],
        },
        "spawnsWorkloads": True,
        "rootStamps": "annotations",
        "answeredBy": "inner",
        "isEnabledExpression": "true",
    }
    structure["childComponents"] = [_driver(), _helper(), _part(), _inner()]
    structure["additionalChildKinds"] = [
        {"group": "batch", "version": "v1", "kind": "Job"},
        {"group": "example.com", "version": "v1", "kind": "Job"},
        {"version": "v1", "kind": "ReplicationController"},
    ]
    document["spec"]["optimizationInstructions"] = {"gangScheduling": _gangs()}
    return document


def with_gang_fields() -> JsonObject:
    """The same without `podGroup`, and a group with all fields of ours."""
    document = complete()
    gangs = document["spec"]["optimizationInstructions"]["gangScheduling"]
    del gangs["podGroup"]
    gangs["podGroups"].append(
        {
            "name": "parts",
            "members": [{"componentName": "part"}],
            "gangIdPath": ".spec.parts[].stage",
            "minPath": ".spec.least",
            "sizePath": ".spec.parts[].pods",
            "isEnabledExpression": ".spec.gangs",
        }
    )
    return document


def _status() -> JsonObject:
    return {
        "phaseDefinition": {"path": ".status.phase"},
        "conditionsDefinition": {
            "path": ".status.conditions",
            "typeFieldName": "kind",
            "statusFieldName": "state",
            "messageFieldName": "text",
            "reasonFieldName": "why",
        },
        "statusMappings": {
            "initializing": [{"byPhase": "Pending"}],
            "running": [{"byConditions": [{"type": "Ready", "status": "True", "reason": "AllUp"}, {"type": "Live"}]}],
            "completed": [{"byPhase": "Done", "byExpression": {"expression": ".status.left", "expectedResult": "0"}}],
            "failed": [{"byPhase": "Error"}, {"byPhase": "Lost"}],
            "degraded": [{"byExpression": {"expression": ".status.note", "expectedResult": ""}}],
            "suspended": [{"byPhase": "Suspended"}],
            "suspending": [{"byPhase": "Suspending"}],
            "resuming": [{"byPhase": "Resuming"}],
        },
    }


def _driver() -> JsonObject:
    return {
        "name": "driver",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "ownerRef": "run",
        "specDefinition": {"podTemplateSpecPath": ".spec.driver.template"},
        "podSelector": {
            "componentTypeSelector": {
                "keyPath": '.metadata.labels["example.com/kind"] // ""',
                "value": "",
                "matchLabels": {"example.com/part-of": "run", "plain": ""},
            },
            "replicaSelector": {"keyPath": '.metadata.labels["example.com/replica"]'},
        },
        "role": "the-driver",
        "isEnabledExpression": ".spec.driver != null",
        "isCompleteExpression": ".spec.driver.image != null",
        "incompleteReason": "a site's default image decides; name one in spec.driver.image",
        "statusDefinition": {"statusMappings": {}},
    }


def _helper() -> JsonObject:
    return {
        "name": "helper",
        "ownerRef": "driver",
        "specDefinition": {"podSpecPath": ".spec.helper", "metadataPath": ".spec.helperMeta"},
        "podSelector": {"componentTypeSelector": {"matchLabels": {"example.com/kind": "helper"}}},
    }


def _part() -> JsonObject:
    fields = "schedulerName labels annotations resources resourceClaims podAffinity nodeAffinity containers container"
    return {
        "name": "part",
        "kind": {"group": "apps", "version": "v1", "kind": "StatefulSet"},
        "ownerRef": "run",
        "instanceIdPath": ".spec.parts[].name",
        "specDefinition": {
            "fragmentedPodSpecDefinition": {
                f"{name}Path": f".spec.parts[].{name}" for name in (*fields.split(), "priorityClassName", "image")
            }
        },
        "scaleDefinition": {
            "replicasPath": ".spec.parts[].pods",
            "minReplicasPath": ".spec.parts[].least",
            "maxReplicasPath": ".spec.parts[].most",
            "unknownReason": "a site's default decides; write the number in spec.parts[].pods",
        },
        "podSelector": {
            "componentTypeSelector": {"keyPath": '.metadata.labels["example.com/part"]'},
            "componentInstanceSelector": {"idPath": '.metadata.labels["example.com/part"]'},
        },
    }


def _inner() -> JsonObject:
    return {
        "name": "inner",
        "kind": {"group": "other.example.com", "version": "v2", "kind": "Inner"},
        "ownerRef": "run",
    }


def _gangs() -> JsonObject:
    topology = {"topologyName": "racks", "preferredTopologyLevel": "rack", "requiredTopologyLevel": "zone"}
    return {
        "podGroup": {
            "name": "everything",
            "subGroups": [{"componentName": "driver", "topology": topology}, {"componentName": "part"}],
            "topology": topology,
        },
        "podGroups": [
            {
                "name": "run",
                "members": [
                    {
                        "componentName": "driver",
                        "groupByKeyPaths": ['.metadata.labels["example.com/run"]', ".metadata.namespace"],
                        "filters": ['.metadata.labels["example.com/gang"] == "true"'],
                    },
                    {"componentName": "helper"},
                ],
            }
        ],
    }


def changed(document: JsonObject, path: str, value: Json = _ABSENT) -> JsonObject:
    """A copy with the value at the path, or with nothing there; `[n]` behind the last entry appends."""
    copy = deepcopy(document)
    steps: list[Any] = [name or int(index) for name, index in _STEP.findall(path)]
    place: Any = copy
    for step, following in itertools.pairwise(steps):
        if isinstance(step, str) and step not in place:
            place[step] = [] if isinstance(following, int) else {}
        place = place[step]
    if value is _ABSENT:
        del place[steps[-1]]
    elif isinstance(place, list) and steps[-1] == len(place):
        place.append(value)
    else:
        place[steps[-1]] = value
    return copy
