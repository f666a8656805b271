"""Attributing a pod: component, instance and gang from its own labels, or unknown with a reason."""

from typing import Any

import pytest

from catalog.attribution import Attribution, GangSeat, PodReading, printed
from catalog.structure import Structure, Unknown
from tests.catalog.made_up import definition, groups, leaf, pod, resolved, template, train

TWO = [leaf("head"), leaf("worker")]
SPEC = {"head": {"replicas": 1, "template": template()}, "worker": {"replicas": 4, "template": template()}}
GROUPS = [{"name": name, "replicas": 2, "template": template()} for name in ("a", "b")]


def component(structure: Structure, obj: dict[str, Any]) -> Any:
    """The pod's component and instance; None for none, the unknown for unknown."""
    found = PodReading(structure, obj).attribution()
    return (found.leaf.component.name, found.instance) if isinstance(found, Attribution) else found


def seat(structure: Structure, obj: dict[str, Any]) -> GangSeat | Unknown | None:
    """The pod's place in a gang."""
    reading = PodReading(structure, obj)
    found = reading.attribution()
    assert isinstance(found, Attribution)
    return reading.seat(found)


def test_the_first_leaf_whose_selector_holds_has_the_pod() -> None:
    """Root first, then the order of declaration."""
    structure = resolved(definition(children=TWO), train(**SPEC))

    assert component(structure, pod(role="worker")) == ("worker", None)
    assert component(structure, pod(role="head")) == ("head", None)
    assert component(structure, pod(role="other")) is None
    assert component(structure, {"metadata": {}}) is None


def test_a_sole_leaf_without_selector_has_every_pod() -> None:
    """Only when it is the sole leaf."""
    child = {key: value for key, value in leaf("worker").items() if key != "podSelector"}
    structure = resolved(definition(children=[child]), train(**SPEC))

    assert component(structure, pod()) == ("worker", None)


def test_a_sole_leaf_with_a_selector_does_not_claim_every_pod() -> None:
    """Upstream lets it; we do not."""
    structure = resolved(definition(children=[leaf("worker")]), train(**SPEC))

    assert component(structure, pod(role="helper")) is None


@pytest.mark.parametrize(
    "selector, labels, holds",
    [
        ({"keyPath": '.metadata.labels["x"]'}, {"x": "1"}, True),
        ({"keyPath": '.metadata.labels["x"]'}, {"x": ""}, False),
        ({"keyPath": '.metadata.labels["x"]'}, {}, False),
        ({"keyPath": '.metadata.labels["x"] // "none"', "value": "none"}, {}, True),
        ({"keyPath": '.metadata.labels["x"] // "0"', "value": "0"}, {"x": "0"}, True),
        ({"matchLabels": {"a": "1", "b": "2"}}, {"a": "1", "b": "2", "c": "3"}, True),
        ({"matchLabels": {"a": "1", "b": "2"}}, {"a": "1"}, False),
        ({"matchLabels": {"a": "1"}, "keyPath": '.metadata.labels["x"]', "value": "y"}, {"a": "1", "x": "y"}, True),
        ({"matchLabels": {"a": "1"}, "keyPath": '.metadata.labels["x"]', "value": "y"}, {"a": "1", "x": "z"}, False),
        ({"keyPath": '.metadata.labels["n"] | tonumber', "value": "1000000"}, {"n": "1e6"}, True),
        ({"keyPath": '.metadata.labels["x"] == "y"', "value": "true"}, {"x": "y"}, True),
    ],
)
def test_all_parts_of_a_selector_must_hold(selector: dict[str, Any], labels: dict[str, str], *, holds: bool) -> None:
    """Absence, existence, equality, and numbers as jq prints them."""
    child = leaf("worker", podSelector={"componentTypeSelector": selector})
    structure = resolved(definition(children=[child, leaf("head")]), train(**SPEC))

    assert (("worker", None) if holds else None) == component(structure, pod(**labels))


def test_a_selector_that_cannot_be_evaluated_makes_the_component_unknown() -> None:
    """The pod might be that component's."""
    child = leaf("worker", podSelector={"componentTypeSelector": {"keyPath": '.metadata.labels["n"] | tonumber'}})
    structure = resolved(definition(children=[child, leaf("head")]), train(**SPEC))

    assert isinstance(component(structure, pod(n="x", role="head")), Unknown)


def test_the_instance_is_one_of_the_objects_ids() -> None:
    """No fuzzy matching."""
    structure = resolved(definition(children=[groups()]), train(groups=GROUPS))

    assert component(structure, pod(group="a")) == ("group", "a")
    assert component(structure, pod(group="A")) is None
    assert component(structure, pod()) is None


def test_the_instance_of_a_component_whose_ids_are_unknown_is_unknown() -> None:
    """Two groups of one name."""
    structure = resolved(definition(children=[groups()]), train(groups=[{"name": "a"}, {"name": "a"}]))

    assert isinstance(component(structure, pod(group="a")), Unknown)


def test_a_component_that_does_not_exist_has_no_pods() -> None:
    """Not enabled: the next leaf is asked."""
    child = leaf("worker", isEnabledExpression=".spec.on == true")
    structure = resolved(
        definition(children=[child, leaf("other", label="worker", isEnabledExpression="true")]), train()
    )

    assert component(structure, pod(role="worker")) == ("other", None)


def grouped(members: list[dict[str, Any]], children: list[dict[str, Any]] | None = None, **group: Any) -> Structure:
    """An object with one gang group."""
    compiled = definition(children=children or TWO, gang={"podGroups": [{"name": "g", "members": members, **group}]})
    return resolved(compiled, train(groups=GROUPS, **SPEC))


def test_a_pod_of_no_member_is_in_no_gang() -> None:
    """A pod that no stated gang covers."""
    assert seat(grouped([{"componentName": "worker"}]), pod(role="head")) is None


def test_a_single_group_without_keys_is_the_objects_gang() -> None:
    """Neither group name nor keys are needed to tell it."""
    found = seat(grouped([{"componentName": "head"}, {"componentName": "worker"}]), pod(role="head"))

    assert GangSeat(group="", keys=(), size=5, minimum=None) == found


def test_keys_that_differ_inside_the_object_are_part_of_the_gang() -> None:
    """And the pod has to carry them."""
    structure = grouped([{"componentName": "worker", "groupByKeyPaths": ['.metadata.labels["rack"]']}], sizePath=".x")

    assert seat(structure, pod(role="worker", rack="r1")).keys == ("r1",)  # type: ignore[union-attr]
    assert isinstance(seat(structure, pod(role="worker")), Unknown)


def test_filters_decide_which_pods_are_in() -> None:
    """Exactly `true`."""
    structure = grouped([{"componentName": "worker", "filters": ['.metadata.labels["in"] == "yes"']}], sizePath="2")

    assert seat(structure, pod(role="worker", **{"in": "yes"})).size == 2  # type: ignore[union-attr]
    assert seat(structure, pod(role="worker")) is None


def test_several_groups_are_told_by_name() -> None:
    """The group's name is part of the gang only where there are several."""
    gang = {
        "podGroups": [
            {"name": "one", "members": [{"componentName": "head"}]},
            {"name": "two", "members": [{"componentName": "worker"}], "minPath": "2"},
        ]
    }
    structure = resolved(definition(children=TWO, gang=gang), train(**SPEC))

    assert GangSeat(group="two", keys=(), size=4, minimum=2) == seat(structure, pod(role="worker"))


def test_stages_are_keys_only_where_there_are_several() -> None:
    """`gangIdPath`: one stage needs no name, an empty one is in no gang."""
    members = [{"componentName": "group"}]
    stages = grouped(members, [groups()], gangIdPath=".spec.groups[].name")
    one = grouped(members, [groups()], gangIdPath='.spec.groups[] | "all"')
    none = grouped(members, [groups()], gangIdPath='.spec.groups[] | ""')

    assert (seat(stages, pod(group="a")).keys, seat(stages, pod(group="a")).size) == (("a",), 2)  # type: ignore[union-attr]
    assert (seat(one, pod(group="a")).keys, seat(one, pod(group="a")).size) == ((), 4)  # type: ignore[union-attr]
    assert seat(none, pod(group="a")) is None


def test_an_ancestor_may_be_the_member() -> None:
    """With an instance of its own, by its own selector."""
    tier = {
        "name": "tier",
        "ownerRef": "train",
        "instanceIdPath": ".spec.groups[].name",
        "podSelector": {"componentInstanceSelector": {"idPath": '.metadata.labels["group"]'}},
    }
    child = leaf("worker", ownerRef="tier")
    structure = grouped(
        [{"componentName": "tier", "groupByKeyPaths": ['.metadata.labels["group"]']}],
        [tier, child],
        sizePath="3",
    )

    assert GangSeat(group="", keys=("b",), size=3, minimum=None) == seat(structure, pod(role="worker", group="b"))


@pytest.mark.parametrize(
    "value, text",
    [("x", "x"), (1, "1"), (1.0, "1"), (1.5, "1.5"), (1_000_000, "1000000"), (True, "true"), (None, "null")],
)
def test_scalars_are_printed_as_jq_prints_them(value: Any, text: str) -> None:
    """A million is no 1e+06."""
    assert text == printed(value)
