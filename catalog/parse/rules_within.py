"""What the fields of one object have to do with each other: which exclude, need or complete which.

Rules look at the values of an object's fields. A faulty value counts as stated, and nothing more is said about it.
"""

from collections.abc import Iterator, Mapping

from catalog.parse.problem import Problem, listed
from catalog.parse.reading import FAULTY, ObjectRule, Values, as_found
from catalog.resources.message import shown

POD_SHAPES = ("podTemplateSpecPath", "podSpecPath", "fragmentedPodSpecDefinition")
"""The ways to say where a pod spec is."""

CORE_KINDS = frozenset(
    {
        "Binding", "ComponentStatus", "ConfigMap", "Endpoints", "Event", "LimitRange", "Namespace", "Node",
        "PersistentVolume", "PersistentVolumeClaim", "Pod", "PodTemplate", "ReplicationController", "ResourceQuota",
        "Secret", "Service", "ServiceAccount",
    }
)  # fmt: skip
"""The kinds of Kubernetes' core group (1.36, k8s.io/api/core/v1/register.go); the group gets no new ones."""


def _kind(values: Values, path: str) -> Iterator[Problem]:
    kind = values["kind"]
    if not values["group"] and kind != FAULTY and kind not in CORE_KINDS:
        remedy = f"write the API group of {kind}: the core group has no such kind"
        yield Problem(f"{path}.group", "is missing", None, remedy)


def _spec_definition(values: Values, path: str) -> Iterator[Problem]:
    stated = tuple(name for name in POD_SHAPES if values[name] is not None)
    if len(stated) > 1:
        yield Problem(path, "says more than once where the pod spec is", listed(stated), "keep one of them")
    metadata = values["metadataPath"]
    if metadata is not None and values["podSpecPath"] is None:
        remedy = "leave it out, or write podSpecPath"
        yield Problem(f"{path}.metadataPath", "goes with podSpecPath only", as_found(metadata), remedy)
    elif not stated:
        yield Problem(path, "does not say where the pod spec is", None, f"write {listed(POD_SHAPES, 'or')}")


def _matcher(values: Values, path: str) -> Iterator[Problem]:
    if not any(values.values()):
        yield Problem(path, "matches every object", None, "write byPhase, byConditions or byExpression")


def _status_definition(values: Values, path: str) -> Iterator[Problem]:
    """A matcher needs the phase or the conditions that it looks at."""
    for status, matchers in values["statusMappings"].items():
        for index, matcher in enumerate(matchers):
            there = f"{path}.statusMappings.{status}[{index}]"
            if matcher.by_phase not in (None, FAULTY) and values["phaseDefinition"] is None:
                remedy = "write phaseDefinition"
                yield Problem(f"{there}.byPhase", "has no phase to look at", shown(matcher.by_phase), remedy)
            types = [condition.type for condition in matcher.by_conditions if condition.type != FAULTY]
            if types and values["conditionsDefinition"] is None:
                remedy = "write conditionsDefinition"
                yield Problem(f"{there}.byConditions", "has no conditions to look at", shown(types[0]), remedy)


def _component_type_selector(values: Values, path: str) -> Iterator[Problem]:
    if values["value"] is not None and values["keyPath"] is None:
        yield Problem(f"{path}.value", "has no keyPath to be compared with", as_found(values["value"]), "write keyPath")
    elif values["keyPath"] is None and not values["matchLabels"]:
        yield Problem(path, "selects nothing", None, "write keyPath or matchLabels")


def _component(values: Values, path: str) -> Iterator[Problem]:
    """Instances and the selector that tells a pod's instance come together."""
    ids = values["instanceIdPath"]
    instance = None if values["podSelector"] is None else values["podSelector"].instance
    if ids is not None and instance is None:
        remedy = "write podSelector.componentInstanceSelector.idPath"
        yield Problem(f"{path}.instanceIdPath", "has no selector that tells a pod's instance", as_found(ids), remedy)
    if instance is not None and instance.text and ids is None:
        there = f"{path}.podSelector.componentInstanceSelector"
        yield Problem(there, "has no instances to choose from", shown(instance.text), "write instanceIdPath")


def _root_component(values: Values, path: str) -> Iterator[Problem]:
    yield from _component(values, path)
    if values["ownerRef"] is not None:
        yield Problem(f"{path}.ownerRef", "is not for the root component", as_found(values["ownerRef"]), "leave it out")


RULES: Mapping[str, ObjectRule] = {
    "kind": _kind,
    "specDefinition": _spec_definition,
    "matcher": _matcher,
    "statusDefinition": _status_definition,
    "componentTypeSelector": _component_type_selector,
    "rootComponent": _root_component,
    "childComponent": _component,
}
"""By the name of the object in the table of fields."""
