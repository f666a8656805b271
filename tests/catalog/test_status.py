"""Status mapping: every match in upstream's order, or Undefined."""

from typing import Any

import pytest

from catalog.definition import Status
from catalog.status import conditions_of, statuses
from tests.catalog.made_up import definition


def mapped(status: dict[str, Any], **mappings: Any) -> tuple[str, ...]:
    """The statuses of an object with that status."""
    compiled = definition(
        root={
            "statusDefinition": {
                "phaseDefinition": {"path": ".status.phase"},
                "conditionsDefinition": {"path": ".status.conditions"},
                "statusMappings": mappings,
            }
        }
    )
    return tuple(each.value for each in statuses(compiled, {"status": status}))


def test_no_match_is_undefined() -> None:
    """Never an empty answer."""
    assert mapped({}) == ("Undefined",)
    assert mapped({"phase": "Odd"}, running=[{"byPhase": "Up"}]) == ("Undefined",)


def test_every_match_is_returned_in_upstreams_order() -> None:
    """Several at once are legal; the first is the headline by convention."""
    everything = {
        name: [{"byPhase": "x"}]
        for name in (
            "degraded",
            "initializing",
            "completed",
            "failed",
            "running",
            "suspended",
            "suspending",
            "resuming",
        )
    }

    assert [each.value for each in Status][:-1] == list(mapped({"phase": "x"}, **everything))


@pytest.mark.parametrize(
    "wanted, found, holds",
    [
        ({"type": "Ready"}, {"type": "Ready", "status": "False"}, True),
        ({"type": "Ready", "status": "True"}, {"type": "Ready", "status": "False"}, False),
        ({"type": "Ready", "status": "True", "reason": "R"}, {"type": "Ready", "status": "True", "reason": "R"}, True),
        ({"type": "Ready", "reason": "R"}, {"type": "Ready", "status": "True", "reason": "Q"}, False),
        ({"type": "Ready"}, {"type": "Other"}, False),
        ({"type": "Ready"}, {"type": 3}, False),
    ],
)
def test_conditions_match_by_type_status_and_reason(
    wanted: dict[str, str], found: dict[str, Any], *, holds: bool
) -> None:
    """The defaults for the names of a condition's fields always apply."""
    expected = ("Running",) if holds else ("Undefined",)

    assert expected == mapped({"conditions": [found]}, running=[{"byConditions": [wanted]}])


def test_the_last_of_two_conditions_of_one_type_counts() -> None:
    """As upstream indexes them."""
    conditions = [{"type": "Ready", "status": "True"}, {"type": "Ready", "status": "False"}]
    matcher = [{"byConditions": [{"type": "Ready", "status": "True"}]}]

    assert mapped({"conditions": conditions}, running=matcher) == ("Undefined",)


@pytest.mark.parametrize(
    "expression, expected, holds",
    [
        (".status.ready", "2", True),
        (".status.ready > 1", "true", True),
        (".status.absent", "null", True),
        (".status.phase", "Up", True),
        (".status.phase + 1", "x", False),
        (".status", "{}", False),
        ("empty", "null", False),
    ],
)
def test_expressions_compare_their_first_result_as_text(expression: str, expected: str, *, holds: bool) -> None:
    """An error or no result is no match, and hinders no other matcher."""
    matchers = [{"byExpression": {"expression": expression, "expectedResult": expected}}]
    found = mapped({"ready": 2, "phase": "Up"}, running=matchers, failed=[{"byPhase": "Up"}])

    assert (("Running", "Failed") if holds else ("Failed",)) == found


def test_all_parts_of_a_matcher_must_hold() -> None:
    """Phase and condition and expression."""
    matcher = {
        "byPhase": "Up",
        "byConditions": [{"type": "Ready"}],
        "byExpression": {"expression": ".status.n", "expectedResult": "1"},
    }
    good = {"phase": "Up", "n": 1, "conditions": [{"type": "Ready"}]}

    assert mapped(good, running=[matcher]) == ("Running",)
    assert mapped({**good, "n": 2}, running=[matcher]) == ("Undefined",)
    assert mapped({**good, "phase": "Down"}, running=[matcher]) == ("Undefined",)
    assert mapped({**good, "conditions": []}, running=[matcher]) == ("Undefined",)


@pytest.mark.parametrize("status", [None, [], "x", {"conditions": "x", "phase": []}, {"conditions": [1, None, {}]}])
def test_a_status_of_another_shape_is_undefined(status: Any) -> None:
    """Never an exception."""
    assert mapped(status, running=[{"byConditions": [{"type": "Ready"}]}]) == ("Undefined",)


def test_the_frameworks_own_words_are_at_hand() -> None:
    """Phase and conditions, for people."""
    compiled = definition(
        root={
            "statusDefinition": {
                "phaseDefinition": {"path": ".status.phase"},
                "conditionsDefinition": {"path": ".status.conditions"},
                "statusMappings": {},
            }
        }
    )
    ready = {"type": "Ready", "status": "True"}

    assert ("Up", (ready,)) == conditions_of(compiled, {"status": {"phase": "Up", "conditions": [ready]}})
