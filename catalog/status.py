"""A described object's status in the shared vocabulary, from its definition's matchers.

Every status that matches is returned, in upstream's order; the first is the headline by convention
(definitions.md, section 3.8).
"""

from collections.abc import Mapping

from catalog.attribution import printed
from catalog.definition import (
    ConditionMatch,
    ConditionsAt,
    ExpressionMatch,
    Json,
    JsonObject,
    Matcher,
    Status,
    StatusMapping,
)
from catalog.expressions import Failure, Outcome
from catalog.library import NOTHING_ISOLATED, CompiledDefinition
from catalog.structure import Results

Conditions = Mapping[str, JsonObject]
"""The object's conditions by type; of two with one type the last counts."""


def statuses(
    compiled: CompiledDefinition, obj: JsonObject, isolated: Mapping[str, Outcome] = NOTHING_ISOLATED
) -> tuple[Status, ...]:
    """Every status that holds, headline first; `(Status.UNDEFINED,)` when none does."""
    mapping = compiled.definition.root.status
    if mapping is None:
        return (Status.UNDEFINED,)
    results = Results(compiled.definition, compiled.status.sources, compiled.status.evaluate(obj, isolated))
    phase, conditions = _phase(mapping, results), _conditions(mapping.conditions, results)
    found = tuple(
        status
        for status in Status
        if any(
            _matches(matcher, phase, conditions, mapping.conditions, results)
            for matcher in mapping.matchers.get(status, ())
        )
    )
    return found or (Status.UNDEFINED,)


def conditions_of(
    compiled: CompiledDefinition, obj: JsonObject, isolated: Mapping[str, Outcome] = NOTHING_ISOLATED
) -> tuple[str, tuple[JsonObject, ...]]:
    """The framework's own phase (empty when it has none) and conditions, for people to read."""
    mapping = compiled.definition.root.status
    if mapping is None:
        return "", ()
    results = Results(compiled.definition, compiled.status.sources, compiled.status.evaluate(obj, isolated))
    return _phase(mapping, results), tuple(_conditions(mapping.conditions, results).values())


def _phase(mapping: StatusMapping, results: Results) -> str:
    if mapping.phase is None:
        return ""
    outcome = results.all(mapping.phase)
    if isinstance(outcome, Failure) or not outcome or outcome[0] is None:
        return ""
    return printed(outcome[0])


def _conditions(at: ConditionsAt | None, results: Results) -> Conditions:
    if at is None:
        return {}
    outcome = results.all(at.path)
    if isinstance(outcome, Failure) or not outcome or not isinstance(outcome[0], list):
        return {}
    return {
        entry[at.type_field]: entry
        for entry in outcome[0]
        if isinstance(entry, dict) and isinstance(entry.get(at.type_field), str)
    }


def _matches(matcher: Matcher, phase: str, conditions: Conditions, at: ConditionsAt | None, results: Results) -> bool:
    if matcher.by_phase is not None and matcher.by_phase != phase:
        return False
    if at is not None and not all(_condition_holds(wanted, conditions, at) for wanted in matcher.by_conditions):
        return False
    return matcher.by_expression is None or _expression_holds(matcher.by_expression, results)


def _condition_holds(wanted: ConditionMatch, conditions: Conditions, at: ConditionsAt) -> bool:
    entry = conditions.get(wanted.type)
    if entry is None:
        return False
    return _agrees(wanted.status, entry.get(at.status_field)) and _agrees(wanted.reason, entry.get(at.reason_field))


def _agrees(wanted: str | None, found: Json) -> bool:
    return not wanted or wanted == found


def _expression_holds(wanted: ExpressionMatch, results: Results) -> bool:
    outcome = results.all(wanted.expression)
    if isinstance(outcome, Failure) or not outcome:
        return False
    first = outcome[0]
    return not isinstance(first, list | dict) and printed(first) == wanted.expected
