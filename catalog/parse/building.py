"""From the fields of an object of the language to a frozen value of `catalog.definition`: names only, no judgement."""

from collections.abc import Mapping
from dataclasses import dataclass

from catalog.definition import (
    Assignment,
    Component,
    ConditionMatch,
    ConditionsAt,
    ExpressionMatch,
    GangGroup,
    GangMember,
    GroupVersionKind,
    Matcher,
    PodFieldsAt,
    PodGroup,
    PodSelector,
    PodSource,
    PodSpecAt,
    PodTemplateAt,
    RootStamps,
    Scale,
    Status,
    StatusMapping,
    SubGroup,
    Suspension,
    Topology,
)
from catalog.parse.reading import Builder, Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Root:
    """The root component, and what only a root says."""

    component: Component
    spawns_workloads: bool
    root_stamps: RootStamps
    answered_by: str | None


def _kind(values: Values) -> GroupVersionKind:
    return GroupVersionKind(group=values["group"] or "", version=values["version"], kind=values["kind"])


def _pod_fields(values: Values) -> PodFieldsAt:
    return PodFieldsAt(
        scheduler_name=values["schedulerNamePath"],
        labels=values["labelsPath"],
        annotations=values["annotationsPath"],
        resources=values["resourcesPath"],
        resource_claims=values["resourceClaimsPath"],
        pod_affinity=values["podAffinityPath"],
        node_affinity=values["nodeAffinityPath"],
        containers=values["containersPath"],
        container=values["containerPath"],
        priority_class_name=values["priorityClassNamePath"],
        image=values["imagePath"],
    )


def _pod_source(values: Values) -> PodSource:
    if values["podTemplateSpecPath"] is not None:
        return PodTemplateAt(template=values["podTemplateSpecPath"])
    if values["podSpecPath"] is not None:
        return PodSpecAt(spec=values["podSpecPath"], metadata=values["metadataPath"])
    return values["fragmentedPodSpecDefinition"] or PodFieldsAt()


def _scale(values: Values) -> Scale:
    return Scale(
        replicas=values["replicasPath"],
        min_replicas=values["minReplicasPath"],
        max_replicas=values["maxReplicasPath"],
        unknown_reason=values["unknownReason"],
    )


def _condition_match(values: Values) -> ConditionMatch:
    return ConditionMatch(type=values["type"], status=values["status"], reason=values["reason"])


def _expression_match(values: Values) -> ExpressionMatch:
    return ExpressionMatch(expression=values["expression"], expected=values["expectedResult"])


def _matcher(values: Values) -> Matcher:
    return Matcher(
        by_phase=values["byPhase"], by_conditions=values["byConditions"], by_expression=values["byExpression"]
    )


def _conditions(values: Values) -> ConditionsAt:
    """Upstream leaves the defaults to the API server; here a file has them too."""
    return ConditionsAt(
        path=values["path"],
        type_field=values["typeFieldName"] or "type",
        status_field=values["statusFieldName"] or "status",
        message_field=values["messageFieldName"] or "message",
        reason_field=values["reasonFieldName"] or "reason",
    )


def _status_mapping(values: Values) -> StatusMapping:
    phase, mappings = values["phaseDefinition"], values["statusMappings"]
    return StatusMapping(
        phase=None if phase is None else phase["path"],
        conditions=values["conditionsDefinition"],
        matchers={status: matchers for status in Status if (matchers := mappings.get(status.value.lower()))},
    )


def _assignment(values: Values) -> Assignment:
    return Assignment(path=values["path"], value=values["value"])


def _suspension(values: Values) -> Suspension:
    return Suspension(suspend=values["suspendActions"], resume=values["resumeActions"])


def _pod_selector(values: Values) -> PodSelector:
    component_type: Values = values["componentTypeSelector"] or {}
    instance: Values = values["componentInstanceSelector"] or {}
    replica: Values = values["replicaSelector"] or {}
    return PodSelector(
        key=component_type.get("keyPath"),
        value=component_type.get("value"),
        match_labels=component_type.get("matchLabels", {}),
        instance=instance.get("idPath"),
        replica=replica.get("keyPath"),
    )


def _component(values: Values) -> Component:
    return Component(
        name=values["name"],
        kind=values["kind"],
        owner=values["ownerRef"],
        pods=values["specDefinition"],
        scale=values["scaleDefinition"],
        status=values["statusDefinition"],
        suspension=values["suspendDefinition"],
        instance_ids=values["instanceIdPath"],
        selector=values["podSelector"],
        is_enabled=values["isEnabledExpression"],
        is_complete=values["isCompleteExpression"],
        incomplete_reason=values["incompleteReason"],
        role=values["role"],
    )


def _root(values: Values) -> Root:
    return Root(
        component=_component({**values, "ownerRef": None}),
        spawns_workloads=values["spawnsWorkloads"],
        root_stamps=RootStamps(values["rootStamps"]),
        answered_by=values["answeredBy"],
    )


def _topology(values: Values) -> Topology:
    return Topology(
        name=values["topologyName"] or "",
        preferred_level=values["preferredTopologyLevel"] or "",
        required_level=values["requiredTopologyLevel"] or "",
    )


def _sub_group(values: Values) -> SubGroup:
    return SubGroup(component=values["componentName"], topology=values["topology"])


def _pod_group(values: Values) -> PodGroup:
    return PodGroup(name=values["name"], sub_groups=values["subGroups"], topology=values["topology"])


def _member(values: Values) -> GangMember:
    return GangMember(component=values["componentName"], group_by=values["groupByKeyPaths"], filters=values["filters"])


def _gang_group(values: Values) -> GangGroup:
    return GangGroup(
        name=values["name"],
        members=values["members"],
        gang_id=values["gangIdPath"],
        minimum=values["minPath"],
        size=values["sizePath"],
        is_enabled=values["isEnabledExpression"],
    )


BUILDERS: Mapping[str, Builder] = {
    "kind": _kind,
    "fragmentedPodSpecDefinition": _pod_fields,
    "specDefinition": _pod_source,
    "scaleDefinition": _scale,
    "byConditions": _condition_match,
    "byExpression": _expression_match,
    "matcher": _matcher,
    "conditionsDefinition": _conditions,
    "statusDefinition": _status_mapping,
    "action": _assignment,
    "suspendDefinition": _suspension,
    "podSelector": _pod_selector,
    "rootComponent": _root,
    "childComponent": _component,
    "topology": _topology,
    "subGroup": _sub_group,
    "podGroup": _pod_group,
    "member": _member,
    "podGroups": _gang_group,
}
"""By the name of the object in the table of fields; an object that is not here stays what it is, its fields."""
