"""Resolving an object: counts, GPUs and gangs exactly, or unknown with a reason, one component at a time."""

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.structure import GangNumbers, Structure, Unknown, whole_number
from tests.catalog.made_up import definition, groups, leaf, resolved, template, train

ONE = [leaf("worker")]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "spec", "worker"]), inner),
    max_leaves=8,
)


def counts(structure: Structure) -> dict[str, dict[str, int | Unknown]]:
    """Pods by component and instance."""
    return {each.component.name: {one.id: one.pods for one in each.instances} for each in structure.leaves}


def sizes(gang: GangNumbers) -> dict[str, int | Unknown]:
    """Sizes of a gang group's gangs."""
    return dict(gang.sizes.values)


@pytest.mark.parametrize(
    "value, expected",
    [(0, 0), (3, 3), ("3", 3), (3.0, 3), (2**31 - 1, 2**31 - 1)],
    ids=["none", "number", "string", "float", "largest"],
)
def test_a_count_is_a_whole_number_or_a_string_of_one(value: Any, expected: int) -> None:
    """Numeric strings are numbers (definitions.md, 3.3)."""
    structure = resolved(definition(children=ONE), train(worker={"replicas": value, "template": template()}))

    assert {"worker": {"": expected}} == counts(structure)


@pytest.mark.parametrize("value", [-1, 1.5, True, False, "x", "1.5 ", "", [], {}, "\u0661", 2**31])
def test_anything_else_is_no_count(value: Any) -> None:
    """A negative count, a fraction, a boolean, another string: unknown, with the expression's place."""
    structure = resolved(definition(children=ONE), train(worker={"replicas": value, "template": template()}))
    found = structure.leaves[0].instances[0].pods

    assert isinstance(found, Unknown)
    assert "replicasPath" in found.reason
    assert isinstance(structure.gpu_total, Unknown)


def test_null_replicas_are_not_stated() -> None:
    """A default of the controller's belongs into the expression."""
    structure = resolved(definition(children=ONE), train(worker={"template": template(1)}))

    assert isinstance(structure.pods_total, Unknown)


def test_without_scale_there_is_one_pod_for_each_instance() -> None:
    """An absent scaleDefinition."""
    child = {key: value for key, value in groups().items() if key != "scaleDefinition"}
    structure = resolved(
        definition(children=[child]),
        train(groups=[{"name": "a", "template": template(2)}, {"name": "b", "template": template(3)}]),
    )

    assert counts(structure) == {"group": {"a": 1, "b": 1}}
    assert Decimal(5) == structure.gpu_total


def test_no_pods_need_no_gpus_whatever_their_spec() -> None:
    """`replicas: 0` of an unknown spec is 0 GPUs."""
    structure = resolved(definition(children=ONE), train(worker={"replicas": 0}))

    assert Decimal(0) == structure.gpu_total


def test_an_absent_template_is_unknown_until_the_pod_shows_it() -> None:
    """The pod spec is not in this object."""
    structure = resolved(definition(children=ONE), train(worker={"replicas": 2}))
    found = structure.leaves[0].instances[0].gpus

    assert isinstance(found, Unknown)
    assert found.until_pod


@pytest.mark.parametrize("gpus", ["x", -1, [], "1Gi1"])
def test_a_malformed_quantity_is_unknown_and_said(gpus: Any) -> None:
    """What is malformed is named."""
    structure = resolved(definition(children=ONE), train(worker={"replicas": 2, "template": template(gpus)}))
    found = structure.leaves[0].instances[0].gpus

    assert isinstance(found, Unknown)
    assert not found.until_pod
    assert "nvidia.com/gpu" in found.reason


@pytest.mark.parametrize("ids", [[{"name": ""}], [{"name": None}], [{}], [{"name": 3}], [{"name": "a"}, {"name": "a"}]])
def test_instance_ids_are_distinct_non_empty_strings(ids: list[Any]) -> None:
    """Else the component's instances are unknown, and the others go on."""
    both = definition(children=[groups(), leaf("head")])
    structure = resolved(both, train(groups=ids, head={"replicas": 1, "template": template(1)}))

    assert structure.leaf("group").fault is not None  # type: ignore[union-attr]
    assert counts(structure)["head"][""] == 1
    assert isinstance(structure.gpu_total, Unknown)


def test_results_that_do_not_pair_with_the_instances_are_an_error_of_that_component() -> None:
    """Two ids, one count: nothing is shifted onto another instance."""
    child = groups(scaleDefinition={"replicasPath": ".spec.groups[] | .replicas | select(. != null)"})
    structure = resolved(
        definition(children=[child]),
        train(groups=[{"name": "a", "template": template(1)}, {"name": "b", "replicas": 2, "template": template(1)}]),
    )

    assert all(isinstance(pods, Unknown) for pods in counts(structure)["group"].values())


def test_no_instances_are_no_pods() -> None:
    """An empty list of groups is legal."""
    structure = resolved(definition(children=[groups()]), train(groups=[]))

    assert structure.pods_total == 0
    assert Decimal(0) == structure.gpu_total


def test_a_component_that_is_not_enabled_does_not_exist() -> None:
    """Only `true` enables; its descendants go with it."""
    parent = {"name": "tier", "ownerRef": "train", "isEnabledExpression": ".spec.tier == true"}
    child = leaf("worker", ownerRef="tier")
    head = leaf("head")
    spec = {"worker": {"replicas": 2, "template": template(1)}, "head": {"replicas": 1, "template": template(1)}}
    compiled = definition(children=[parent, child, head])

    assert counts(resolved(compiled, train(**spec))) == {"head": {"": 1}}
    assert counts(resolved(compiled, train(tier=True, **spec))) == {"worker": {"": 2}, "head": {"": 1}}


def test_an_enabling_expression_that_fails_makes_the_component_unknown() -> None:
    """It may be there: neither left out nor counted."""
    child = leaf("worker", isEnabledExpression=".spec.name + 1 == 2")
    spec = {"name": "x", "worker": {"replicas": 2, "template": template(1)}}
    structure = resolved(definition(children=[child]), train(**spec))

    assert isinstance(structure.pods_total, Unknown)


@pytest.mark.parametrize("complete", [False, None, "true", 1])
def test_a_spec_that_is_completed_elsewhere_is_unknown_until_the_pod(complete: Any) -> None:
    """Only `true` says that the object has the whole pod spec."""
    child = leaf("worker", isCompleteExpression=".spec.complete")
    spec = {"complete": complete, "worker": {"replicas": 2, "template": template(1)}}
    structure = resolved(definition(children=[child]), train(**spec))
    found = structure.leaves[0].instances[0].gpus

    assert isinstance(found, Unknown)
    assert found.until_pod


def test_a_definition_gives_its_own_reasons() -> None:
    """Where the object states no number, and where its pod spec is completed elsewhere or not there at all."""
    child = leaf(
        "worker",
        isCompleteExpression=".spec.complete",
        incompleteReason="the site's image decides; name one in spec.image",
        scaleDefinition={
            "replicasPath": ".spec.worker.replicas",
            "unknownReason": "the site decides; write spec.worker.replicas",
        },
    )
    incomplete = resolved(definition(children=[child]), train(worker={"template": template(1)}))
    absent = resolved(definition(children=[child]), train(complete=True, worker={"replicas": 1}))

    assert incomplete.pods_total == Unknown("worker: the site decides; write spec.worker.replicas")
    for structure in (incomplete, absent):
        gpus = structure.leaves[0].instances[0].gpus
        assert gpus == Unknown("worker: the site's image decides; name one in spec.image", until_pod=True)


def test_pod_spec_with_metadata_beside_it() -> None:
    """The second shape of a specDefinition; a shared GPU is asked for by annotation."""
    child = leaf("worker", specDefinition={"podSpecPath": ".spec.worker.pod", "metadataPath": ".spec.worker.meta"})
    worker = {
        "replicas": 2,
        "pod": {"containers": [{"name": "main"}]},
        "meta": {"annotations": {"gpu-fraction": "0.25"}},
    }
    structure = resolved(definition(children=[child]), train(worker=worker))

    assert Decimal("0.5") == structure.gpu_total


@pytest.mark.parametrize(
    "worker, expected",
    [
        ({"resources": {"limits": {"nvidia.com/gpu": 2}}}, Decimal(2)),
        ({"container": {"resources": {"limits": {"nvidia.com/gpu": 3}}}}, Decimal(3)),
        ({"containers": [{"resources": {"limits": {"nvidia.com/gpu": 1}}}] * 2}, Decimal(2)),
        ({"container": {}, "resources": {"limits": {"nvidia.com/gpu": 4}}}, Decimal(4)),
        ({"containers": []}, Decimal(0)),
        ({"container": {"resources": {"limits": {"nvidia.com/gpu": 1}}}, "resources": {"limits": {}}}, None),
        ({}, None),
    ],
)
def test_scattered_pod_fields_make_a_pod_spec(worker: dict[str, Any], expected: Decimal | None) -> None:
    """The third shape; a container whose resources are stated twice is unknown, and so is one stated nowhere."""
    fields = {
        "resourcesPath": ".spec.worker.resources",
        "containerPath": ".spec.worker.container",
        "containersPath": ".spec.worker.containers",
    }
    child = leaf("worker", specDefinition={"fragmentedPodSpecDefinition": fields})
    structure = resolved(definition(children=[child]), train(worker={"replicas": 1, **worker}))

    assert expected == (None if isinstance(structure.gpu_total, Unknown) else structure.gpu_total)


def test_claim_templates_in_the_object_are_counted() -> None:
    """Dynamic Resource Allocation: where the claim template is in the object."""
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}
    claims = [{"name": "two", "templateSpec": {"spec": {"devices": {"requests": [request]}}}}]
    pod_spec = {
        "containers": [{"name": "main", "resources": {"claims": [{"name": "c"}]}}],
        "resourceClaims": [{"name": "c", "resourceClaimTemplateName": "two"}],
    }
    worker = {"replicas": 3, "template": {"spec": pod_spec}}
    known = resolved(definition(children=ONE), train(worker=worker, resourceClaimTemplates=claims))
    unknown = resolved(definition(children=ONE), train(worker=worker))

    assert Decimal(6) == known.gpu_total
    assert isinstance(unknown.gpu_total, Unknown)


def test_bounds_of_an_autoscaled_component_are_information() -> None:
    """They change no number that is stamped."""
    scale = {"replicasPath": ".spec.worker.replicas", "minReplicasPath": ".spec.min", "maxReplicasPath": ".spec.max"}
    structure = resolved(
        definition(children=[leaf("worker", scaleDefinition=scale)]),
        train(min=1, max="x", worker={"replicas": 2, "template": template()}),
    )
    found = structure.leaves[0].instances[0]

    assert (found.pods, found.min_pods, found.max_pods) == (2, 1, None)


def test_another_kind_may_answer() -> None:
    """`answeredBy`: the object's own numbers are unknown, the kind below is named."""
    child = {
        "name": "set",
        "ownerRef": "train",
        "kind": {"group": "jobset.x-k8s.io", "version": "v1", "kind": "JobSet"},
    }
    structure = resolved(definition(root={"answeredBy": "set"}, children=[child]), train())

    assert structure.answered_by.kind == "JobSet"  # type: ignore[union-attr]
    assert isinstance(structure.gpu_total, Unknown)
    assert isinstance(structure.pods_total, Unknown)


def member(component: str, *keys: str, **fields: Any) -> dict[str, Any]:
    """A member of a gang group."""
    return {"componentName": component, "groupByKeyPaths": list(keys), **fields}


HEAD_AND_WORKERS = [leaf("head"), leaf("worker")]
SPEC = {"head": {"replicas": 1, "template": template()}, "worker": {"replicas": 4, "template": template()}}


def gang_of(group: dict[str, Any], children: list[dict[str, Any]] | None = None, **spec: Any) -> GangNumbers:
    """The single gang group of an object."""
    compiled = definition(children=children or HEAD_AND_WORKERS, gang={"podGroups": [{"name": "g", **group}]})
    (gang,) = resolved(compiled, train(**{**SPEC, **spec})).gangs
    return gang


def test_members_of_one_group_are_summed() -> None:
    """Upstream takes the pod's own component only; that is a bug we do not copy."""
    assert sizes(gang_of({"members": [member("head"), member("worker")]})) == {"": 5}


def test_a_grouping_key_that_is_the_objects_own_name_is_no_grouping() -> None:
    """From the closed list of labels, for the kinds that write their own name there."""
    group = {"members": [member("head", '.metadata.labels["jobset.sigs.k8s.io/jobset-name"]'), member("worker")]}
    jobset = {"group": "jobset.x-k8s.io", "version": "v1alpha2", "kind": "JobSet"}
    compiled = definition(children=HEAD_AND_WORKERS, gang={"podGroups": [{"name": "g", **group}]}, kind=jobset)
    (gang,) = resolved(compiled, train(**SPEC)).gangs

    assert sizes(gang) == {"": 5}
    assert isinstance(sizes(gang_of(group))[""], Unknown)


def test_grouping_by_instance_gives_each_instance_its_size() -> None:
    """The grouping path is the member's own instance idPath."""
    group = {"members": [member("group", '.metadata.labels["group"]')]}
    spec = [{"name": "a", "replicas": 2, "template": template()}, {"name": "b", "replicas": 3, "template": template()}]

    assert sizes(gang_of(group, [groups()], groups=spec)) == {"a": 2, "b": 3}


def test_any_other_grouping_needs_a_size() -> None:
    """Unknown without sizePath, the number with it."""
    group = {"members": [member("head"), member("worker", '.metadata.labels["rack"]')]}

    assert isinstance(sizes(gang_of(group))[""], Unknown)
    assert sizes(gang_of({**group, "sizePath": ".spec.size"}, size=7)) == {"": 7}


def test_filters_without_a_size_are_unknown() -> None:
    """Which pods pass is not the object's to say."""
    group = {"members": [member("head"), member("worker", filters=['.metadata.labels["x"] == "y"'])]}

    assert isinstance(sizes(gang_of(group))[""], Unknown)


def test_instances_with_the_same_gang_id_are_one_gang() -> None:
    """`gangIdPath`; the empty string is in none."""
    group = {"members": [member("group")], "gangIdPath": ".spec.groups[].stage"}
    spec = [
        {"name": "a", "stage": "one", "replicas": 2},
        {"name": "b", "stage": "one", "replicas": 3},
        {"name": "c", "stage": "two", "replicas": 4},
        {"name": "d", "stage": "", "replicas": 5},
    ]

    assert sizes(gang_of(group, [groups()], groups=spec)) == {"a": 5, "b": 5, "c": 4}


def test_sizes_and_minimums_may_be_one_for_each_instance() -> None:
    """Paired with the single multi-instance member."""
    group = {
        "members": [member("group", '.metadata.labels["rack"]')],
        "sizePath": ".spec.groups[].size",
        "minPath": ".spec.groups[].min",
    }
    gang = gang_of(group, [groups()], groups=[{"name": "a", "size": 2, "min": 1}, {"name": "b", "size": 3}])

    assert sizes(gang) == {"a": 2, "b": 3}
    assert dict(gang.minimums.values) == {"a": 1}


def test_a_group_that_is_not_enabled_is_no_gang() -> None:
    """`isEnabledExpression` of a group."""
    group = {"name": "g", "members": [member("worker")], "isEnabledExpression": ".spec.gang == true"}
    compiled = definition(children=HEAD_AND_WORKERS, gang={"podGroups": [group]})

    assert resolved(compiled, train(**SPEC)).gangs == ()
    assert len(resolved(compiled, train(gang=True, **SPEC)).gangs) == 1


def test_a_groups_enabling_expression_that_fails_leaves_all_gangs_unknown() -> None:
    """Which group a pod is in cannot be told then."""
    group = {"name": "g", "members": [member("worker")], "isEnabledExpression": ".spec.gang + 1 == 2"}
    compiled = definition(children=HEAD_AND_WORKERS, gang={"podGroups": [group]})
    structure = resolved(compiled, train(gang="x", **SPEC))

    assert structure.gang_fault is not None


@pytest.mark.parametrize(
    "pod_group, expected",
    [
        ({"name": "g"}, 5),
        ({"name": "g", "subGroups": [{"componentName": "worker"}]}, 4),
        ({"name": "g", "subGroups": [{"componentName": "head"}, {"componentName": "worker"}]}, 5),
    ],
)
def test_upstreams_newer_pod_group_is_one_gang(pod_group: dict[str, Any], expected: int) -> None:
    """The sum over its sub-groups; over every leaf where it names none."""
    compiled = definition(children=HEAD_AND_WORKERS, gang={"podGroup": pod_group})
    (gang,) = resolved(compiled, train(**SPEC)).gangs

    assert {"": expected} == sizes(gang)


def test_an_inner_component_stands_for_its_leaves() -> None:
    """A member that bears no pods counts those of its descendants."""
    tier = {"name": "tier", "ownerRef": "train"}
    children = [tier, leaf("head", ownerRef="tier"), leaf("worker", ownerRef="tier")]

    assert sizes(gang_of({"members": [member("tier")]}, children)) == {"": 5}


@given(JSON)
def test_any_object_resolves(obj: Any) -> None:
    """Whatever the object, there is a structure; what cannot be told is unknown."""
    compiled = definition(children=[groups(), leaf("worker")], gang={"podGroup": {"name": "g"}})

    assert isinstance(resolved(compiled, obj), Structure)


@given(st.integers() | st.floats() | st.text(max_size=12))
def test_whole_numbers_are_told_from_everything_else(value: Any) -> None:
    """Python's own `int` is the judge for what is taken."""
    found = whole_number(value)

    if found is not None:
        assert found == int(float(value)) if isinstance(value, float) else found == int(value)


def test_a_definition_may_say_in_its_own_words_why_a_number_is_unknown() -> None:
    """`error("…")` with a literal: the reason tells the user what to do."""
    scale = {"replicasPath": '.spec.worker.replicas // error("state spec.worker.replicas")'}
    structure = resolved(definition(children=[leaf("worker", scaleDefinition=scale)]), train())

    assert Unknown("worker replicasPath: state spec.worker.replicas") == structure.pods_total
