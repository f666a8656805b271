"""What valid definitions are read as."""

from collections.abc import Iterator
from typing import Any

import pytest

from catalog.definition import (
    Assignment,
    Component,
    ConditionMatch,
    ConditionsAt,
    Definition,
    Expression,
    ExpressionMatch,
    GangGroup,
    GangMember,
    GroupVersionKind,
    Json,
    Matcher,
    PodFieldsAt,
    PodGroup,
    PodSelector,
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
from catalog.parse import DEFINITION, KINDS, parse
from catalog.parse.fields import ListOf, Object, Shape, objects
from tests.catalog.parse.documents import CHILDREN, GANGS, ROOT, changed, complete, smallest, with_gang_fields


def at(path: str, text: str) -> Expression:
    """An expression with its place."""
    return Expression(text, path)


def test_the_smallest_definition_says_little() -> None:
    """What is not stated has the least consequence: no children, no gangs, identity stamps only."""
    assert parse(smallest(), "run.yaml") == Definition(
        name="runs",
        origin="run.yaml",
        root=Component(name="run", kind=GroupVersionKind("example.com", "v1", "Run"), status=StatusMapping()),
        root_stamps=RootStamps.IDENTITY,
    )


def test_the_root_is_read_whole() -> None:
    """Every field that a root can have, with the place of each expression."""
    definition = parse(complete(), "run.yaml")
    status = f"{ROOT}.statusDefinition"
    suspend = f"{ROOT}.suspendDefinition"

    def by_phase(phase: str) -> tuple[Matcher]:
        return (Matcher(by_phase=phase),)

    assert definition.spawns_workloads
    assert definition.root_stamps is RootStamps.ANNOTATIONS
    assert definition.answered_by == "inner"
    assert definition.describes == GroupVersionKind("example.com", "v1", "Run")
    assert definition.root.is_enabled == at(f"{ROOT}.isEnabledExpression", "true")
    assert definition.root.suspension == Suspension(
        suspend=(
            Assignment(path=at(f"{suspend}.suspendActions[0].path", ".spec.suspend"), value="true"),
            Assignment(path=at(f"{suspend}.suspendActions[1].path", ".spec.mode"), value='"Off"'),
        ),
        resume=(
            Assignment(path=at(f"{suspend}.resumeActions[0].path", ".spec.suspend"), value="false"),
            Assignment(path=at(f"{suspend}.resumeActions[1].path", ".spec.mode"), value="null"),
        ),
    )
    assert definition.root.status == StatusMapping(
        phase=at(f"{status}.phaseDefinition.path", ".status.phase"),
        conditions=ConditionsAt(
            path=at(f"{status}.conditionsDefinition.path", ".status.conditions"),
            type_field="kind",
            status_field="state",
            message_field="text",
            reason_field="why",
        ),
        matchers={
            Status.RESUMING: by_phase("Resuming"),
            Status.SUSPENDING: by_phase("Suspending"),
            Status.SUSPENDED: by_phase("Suspended"),
            Status.RUNNING: (
                Matcher(
                    by_conditions=(
                        ConditionMatch(type="Ready", status="True", reason="AllUp"),
                        ConditionMatch(type="Live"),
                    )
                ),
            ),
            Status.FAILED: by_phase("Error") + by_phase("Lost"),
            Status.COMPLETED: (
                Matcher(
                    by_phase="Done",
                    by_expression=ExpressionMatch(
                        expression=at(f"{status}.statusMappings.completed[0].byExpression.expression", ".status.left"),
                        expected="0",
                    ),
                ),
            ),
            Status.INITIALIZING: by_phase("Pending"),
            Status.DEGRADED: (
                Matcher(
                    by_expression=ExpressionMatch(
                        expression=at(f"{status}.statusMappings.degraded[0].byExpression.expression", ".status.note"),
                        expected="",
                    )
                ),
            ),
        },
    )


def test_statuses_are_in_the_order_in_which_matches_are_reported() -> None:
    """Upstream's order, whatever the order of the document."""
    mapping = parse(complete(), "run.yaml").root.status

    assert mapping is not None
    assert list(mapping.matchers) == [status for status in Status if status is not Status.UNDEFINED]


def test_a_child_with_a_template_is_read_whole() -> None:
    """Selector parts, role and the expressions of ours."""
    path = f"{CHILDREN}[0]"
    driver = parse(complete(), "run.yaml").children[0]

    assert driver == Component(
        name="driver",
        kind=GroupVersionKind("", "v1", "Pod"),
        owner="run",
        pods=PodTemplateAt(template=at(f"{path}.specDefinition.podTemplateSpecPath", ".spec.driver.template")),
        status=StatusMapping(),
        selector=PodSelector(
            key=at(f"{path}.podSelector.componentTypeSelector.keyPath", '.metadata.labels["example.com/kind"] // ""'),
            value="",
            match_labels={"example.com/part-of": "run", "plain": ""},
            replica=at(f"{path}.podSelector.replicaSelector.keyPath", '.metadata.labels["example.com/replica"]'),
        ),
        is_enabled=at(f"{path}.isEnabledExpression", ".spec.driver != null"),
        is_complete=at(f"{path}.isCompleteExpression", ".spec.driver.image != null"),
        incomplete_reason="a site's default image decides; name one in spec.driver.image",
        role="the-driver",
    )


def test_the_other_pod_specs_are_read_whole() -> None:
    """A pod spec with its metadata, and one in pieces with instances and scale."""
    _, helper, part, inner = parse(complete(), "run.yaml").children
    path = f"{CHILDREN}[2]"
    fields = f"{path}.specDefinition.fragmentedPodSpecDefinition"

    assert helper.pods == PodSpecAt(
        spec=at(f"{CHILDREN}[1].specDefinition.podSpecPath", ".spec.helper"),
        metadata=at(f"{CHILDREN}[1].specDefinition.metadataPath", ".spec.helperMeta"),
    )
    assert part.pods == PodFieldsAt(
        scheduler_name=at(f"{fields}.schedulerNamePath", ".spec.parts[].schedulerName"),
        labels=at(f"{fields}.labelsPath", ".spec.parts[].labels"),
        annotations=at(f"{fields}.annotationsPath", ".spec.parts[].annotations"),
        resources=at(f"{fields}.resourcesPath", ".spec.parts[].resources"),
        resource_claims=at(f"{fields}.resourceClaimsPath", ".spec.parts[].resourceClaims"),
        pod_affinity=at(f"{fields}.podAffinityPath", ".spec.parts[].podAffinity"),
        node_affinity=at(f"{fields}.nodeAffinityPath", ".spec.parts[].nodeAffinity"),
        containers=at(f"{fields}.containersPath", ".spec.parts[].containers"),
        container=at(f"{fields}.containerPath", ".spec.parts[].container"),
        priority_class_name=at(f"{fields}.priorityClassNamePath", ".spec.parts[].priorityClassName"),
        image=at(f"{fields}.imagePath", ".spec.parts[].image"),
    )
    assert part.scale == Scale(
        replicas=at(f"{path}.scaleDefinition.replicasPath", ".spec.parts[].pods"),
        min_replicas=at(f"{path}.scaleDefinition.minReplicasPath", ".spec.parts[].least"),
        max_replicas=at(f"{path}.scaleDefinition.maxReplicasPath", ".spec.parts[].most"),
        unknown_reason="a site's default decides; write the number in spec.parts[].pods",
    )
    assert part.instance_ids == at(f"{path}.instanceIdPath", ".spec.parts[].name")
    assert part.selector is not None
    assert part.selector.instance == at(
        f"{path}.podSelector.componentInstanceSelector.idPath", '.metadata.labels["example.com/part"]'
    )
    assert inner == Component(name="inner", kind=GroupVersionKind("other.example.com", "v2", "Inner"), owner="run")


def test_kinds_between_the_object_and_its_pods_are_read() -> None:
    """One kind in two groups is two kinds; no group is the core group."""
    assert parse(complete(), "run.yaml").additional_child_kinds == (
        GroupVersionKind("batch", "v1", "Job"),
        GroupVersionKind("example.com", "v1", "Job"),
        GroupVersionKind("", "v1", "ReplicationController"),
    )


def test_gangs_are_read_whole() -> None:
    """Both of upstream's forms, and the fields of ours."""
    topology = Topology(name="racks", preferred_level="rack", required_level="zone")
    first, second = parse(with_gang_fields(), "run.yaml").gang_groups
    member, group = f"{GANGS}.podGroups[0].members[0]", f"{GANGS}.podGroups[1]"

    assert parse(complete(), "run.yaml").pod_group == PodGroup(
        name="everything",
        sub_groups=(SubGroup(component="driver", topology=topology), SubGroup(component="part")),
        topology=topology,
    )
    assert first == GangGroup(
        name="run",
        members=(
            GangMember(
                component="driver",
                group_by=(
                    at(f"{member}.groupByKeyPaths[0]", '.metadata.labels["example.com/run"]'),
                    at(f"{member}.groupByKeyPaths[1]", ".metadata.namespace"),
                ),
                filters=(at(f"{member}.filters[0]", '.metadata.labels["example.com/gang"] == "true"'),),
            ),
            GangMember(component="helper"),
        ),
    )
    assert second == GangGroup(
        name="parts",
        members=(GangMember(component="part"),),
        gang_id=at(f"{group}.gangIdPath", ".spec.parts[].stage"),
        minimum=at(f"{group}.minPath", ".spec.least"),
        size=at(f"{group}.sizePath", ".spec.parts[].pods"),
        is_enabled=at(f"{group}.isEnabledExpression", ".spec.gangs"),
    )


@pytest.mark.parametrize("api_version, kind", KINDS)
def test_all_fields_are_accepted_in_every_kind(api_version: str, kind: str) -> None:
    """Upstream's kinds may carry fields of ours: a file is not pruned by a CRD."""
    document = with_gang_fields() | {"apiVersion": api_version, "kind": kind}

    assert parse(document, "run.yaml") == parse(with_gang_fields(), "run.yaml")


def test_the_names_of_condition_fields_have_defaults() -> None:
    """In files too, where upstream has none."""
    document = changed(complete(), f"{ROOT}.statusDefinition.conditionsDefinition", {"path": ".status.conditions"})
    status = parse(document, "run.yaml").root.status

    assert status is not None
    assert status.conditions == ConditionsAt(
        path=at(f"{ROOT}.statusDefinition.conditionsDefinition.path", ".status.conditions"),
        type_field="type",
        status_field="status",
        message_field="message",
        reason_field="reason",
    )


@pytest.mark.parametrize("nothing", ["", None], ids=["empty", "null"])
@pytest.mark.parametrize(
    "path",
    [
        f"{ROOT}.ownerRef",
        f"{ROOT}.role",
        f"{ROOT}.rootStamps",
        f"{ROOT}.answeredBy",
        f"{ROOT}.instanceIdPath",
        f"{ROOT}.isEnabledExpression",
        f"{GANGS}.podGroup.topology.topologyName",
    ],
)
def test_an_empty_optional_text_is_absent(path: str, nothing: Json) -> None:
    """Upstream's types cannot tell an empty text from none."""
    without = changed(smallest(), f"{GANGS}.podGroup", {"name": "g", "topology": {}})

    assert parse(changed(without, path, nothing), "") == parse(without, "")


def test_null_is_absent_everywhere() -> None:
    """A live resource or a template may write null for what it does not set."""
    document = smallest()
    for name in ("specDefinition", "scaleDefinition", "suspendDefinition", "podSelector", "spawnsWorkloads"):
        document = changed(document, f"{ROOT}.{name}", None)
    document = changed(document, CHILDREN, None)
    document = changed(document, GANGS, None)

    assert parse(document | {"status": None}, "") == parse(smallest(), "")


def test_suspend_values_are_json_text_or_json() -> None:
    """Upstream has had both forms."""
    values: list[tuple[Json, str]] = [
        ("true", "true"),
        ('"Suspended"', '"Suspended"'),
        ("null", "null"),
        ('{"a": [1, 2.5]}', '{"a":[1,2.5]}'),
        (True, "true"),
        (3, "3"),
        (None, "null"),
        ({"a": 1}, '{"a":1}'),
    ]
    actions = [{"path": ".x", "value": value} for value, _ in values]
    document = changed(
        smallest(), f"{ROOT}.suspendDefinition", {"suspendActions": actions, "resumeActions": actions[:1]}
    )
    suspension = parse(document, "").root.suspension

    assert suspension is not None
    assert [action.value for action in suspension.suspend] == [text for _, text in values]


def test_leaves_may_share_a_selector_when_they_exist_under_different_conditions() -> None:
    """A component whose pod spec moved between two versions of a framework."""
    old = changed(complete(), f"{CHILDREN}[0].isEnabledExpression", ".spec.old")
    new = old["spec"]["structureDefinition"]["childComponents"][0] | {"name": "new", "isEnabledExpression": ".spec.new"}

    assert len(parse(changed(old, f"{CHILDREN}[4]", new), "").children) == 5


def test_instances_tell_leaves_apart() -> None:
    """A leaf may be chosen by the ids of its instances alone."""
    document = changed(complete(), f"{CHILDREN}[2].podSelector.componentTypeSelector")

    assert parse(document, "").children[2].selector == PodSelector(
        instance=at(
            f"{CHILDREN}[2].podSelector.componentInstanceSelector.idPath", '.metadata.labels["example.com/part"]'
        )
    )


def stated_fields(shape: Shape, value: Json) -> Iterator[tuple[str, str]]:
    """The (object, field) pairs of the language that occur in a document."""
    if isinstance(shape, ListOf):
        for entry in value:
            yield from stated_fields(shape.entry, entry)
    if isinstance(shape, Object):
        for field in shape.fields:
            if field.name in value:
                yield shape.name, field.name
                yield from stated_fields(field.shape, value[field.name])


def test_the_documents_of_these_tests_use_every_field() -> None:
    """So no field goes untested; a root's `ownerRef` is in the table only to be refused."""
    language = {(shape.name, field.name) for shape in objects() for field in shape.fields}
    used = set(stated_fields(DEFINITION, complete())) | set(stated_fields(DEFINITION, with_gang_fields()))
    used |= {("childComponent", name) for owner, name in used if owner == "rootComponent"}
    used |= {("rootComponent", name) for owner, name in used if owner == "childComponent"}

    assert used & language == language


def test_the_table_tells_what_to_write() -> None:
    """Every field has a meaning that completes a sentence, and every object one form."""
    forms: dict[str, Any] = {}
    for shape in objects():
        assert forms.setdefault(shape.name, shape) == shape
        for field in shape.fields:
            assert field.meaning
            assert not field.meaning.endswith(".")
