# ruff: noqa: ARG001, ARG005 - all closures have one signature
"""The closures that plain evaluation is made of: what does one thing, and what puts two together.

Two shapes: `One` gives exactly one result and returns it, `Many` appends its results as they come, so that those before
an error are kept, as in jq. `One` after `One` stays `One`; everything else is `Many`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from catalog.definition import Json
from catalog.expressions.outcome import MAX_REASON_LENGTH
from catalog.expressions.plain.functions import ORDERED
from catalog.expressions.plain.operators import COMPARISONS, elements, index, truth
from catalog.expressions.plain.values import Fault, Meter, compared, spend, type_name

FAULT_STEPS = 12
"""What an error that is caught costs: raising is slow."""

Value: TypeAlias = Callable[[Json, Meter], Json]
Values: TypeAlias = Callable[[Json, Meter, list[Json]], None]


@dataclass(frozen=True, slots=True)
class One:
    """Exactly one result. `weight` is the number of parts, which bounds the steps of one run without iteration."""

    run: Value
    weight: int = 1
    fields: tuple[str, ...] = ()
    """The names, when all it does is to follow them from the input."""


@dataclass(frozen=True, slots=True)
class Many:
    """Any number of results."""

    run: Values
    weight: int = 1


def object_key(value: Json) -> str:
    """A value that is to be the key of an object."""
    if isinstance(value, str):
        return value
    raise Fault(f"the key of an object is {type_name(value)}, not a string")


def no_run(value: Json, meter: Meter) -> Json:
    """The run of a step that has a key: it isn't called."""
    raise AssertionError("a step with a key has no run of its own")


def as_many(compiled: One | Many) -> Many:
    """The same in the other shape."""
    if isinstance(compiled, Many):
        return compiled
    single = compiled.run

    def run(value: Json, meter: Meter, out: list[Json]) -> None:
        out.append(single(value, meter))

    return Many(run, compiled.weight)


def _each(value: Json, meter: Meter, out: list[Json]) -> None:
    out.extend(elements(value, meter))


def each_optional(value: Json, meter: Meter, out: list[Json]) -> None:
    """`[]?`."""
    if type(value) is list or type(value) is dict:
        out.extend(elements(value, meter))


EACH = Many(_each)


def fields(names: tuple[str, ...]) -> One:
    """Follows names from the input."""
    if len(names) == 1:
        return _field(names[0])

    def run(value: Json, meter: Meter) -> Json:
        for name in names:
            if type(value) is dict:
                value = value.get(name)
            elif value is None:
                return None
            else:
                raise Fault(f"cannot index {type_name(value)} with a string")
        return value

    return One(run, len(names), names)


def _field(name: str) -> One:
    def run(value: Json, meter: Meter) -> Json:
        if type(value) is dict:
            return value.get(name)
        if value is None:
            return None
        raise Fault(f"cannot index {type_name(value)} with a string")

    return One(run, 1, (name,))


def keyed(runs: Sequence[tuple[Value | None, Value]]) -> Value:
    """A path whose keys, where a step has one, are evaluated on the input of the whole path."""

    def run(value: Json, meter: Meter) -> Json:
        keys = [key(value, meter) if key is not None else None for key, _ in reversed(runs)]
        current = value
        for key_run, step in runs:
            key = keys.pop()
            current = index(current, key) if key_run is not None else step(current, meter)
        return current

    return run


def chained(stages: Sequence[One | Many]) -> One | Many:
    """Each stage on every result of the one before it."""
    if not stages:
        return One(lambda value, meter: value)
    chain = stages[-1]
    for stage in reversed(stages[:-1]):
        chain = then(stage, chain)
    return chain


def then(first: One | Many, second: One | Many) -> One | Many:
    """The second on every result of the first."""
    weight = first.weight + second.weight
    if isinstance(first, One):
        before = first.run
        if isinstance(second, One):
            after = second.run
            return One(lambda value, meter: after(before(value, meter), meter), weight)
        following = second.run
        return Many(lambda value, meter, out: following(before(value, meter), meter, out), weight)
    if first is EACH:
        return _for_each_element(second, weight)
    return _for_each_result(first.run, as_many(second).run, weight)


def _for_each_element(second: One | Many, weight: int) -> Many:
    steps = second.weight
    if isinstance(second, One):
        one = second.run

        def run_one(value: Json, meter: Meter, out: list[Json]) -> None:
            found = elements(value, meter)
            spend(meter, len(found) * steps)
            try:
                out.extend([one(element, meter) for element in found])
            except Fault:
                # Once more, slowly: what comes before the error has to stay.
                for element in found:
                    out.append(one(element, meter))  # noqa: PERF401

        return Many(run_one, weight)
    several = second.run

    def run_several(value: Json, meter: Meter, out: list[Json]) -> None:
        found = elements(value, meter)
        spend(meter, len(found) * steps)
        for element in found:
            several(element, meter, out)

    return Many(run_several, weight)


def _for_each_result(first: Values, second: Values, weight: int) -> Many:
    def run(value: Json, meter: Meter, out: list[Json]) -> None:
        found: list[Json] = []
        try:
            first(value, meter, found)
        finally:  # jq has already passed on what came before an error
            spend(meter, len(found) * weight)
            for result in found:
                second(result, meter, out)

    return Many(run, weight)


def in_turn(parts: Sequence[Many]) -> Many:
    """All results of each part, on the same input."""
    runs = [part.run for part in parts]

    def run(value: Json, meter: Meter, out: list[Json]) -> None:
        for part in runs:
            part(value, meter, out)

    return Many(run, sum(part.weight for part in parts))


def _field_or_constant(name: str, constant: Json) -> One:
    def run(value: Json, meter: Meter) -> Json:
        if type(value) is dict:
            found = value.get(name)
            return constant if found is None or found is False else found
        if value is None:
            return constant
        raise Fault(f"cannot index {type_name(value)} with a string")

    return One(run, 2)


def or_constant(left: One, constant: Json) -> One:
    """`left // constant`, the kind of `//` that there is most of."""
    if len(left.fields) == 1:
        return _field_or_constant(left.fields[0], constant)
    preferred = left.run

    def run(value: Json, meter: Meter) -> Json:
        found = preferred(value, meter)
        return constant if found is None or found is False else found

    return One(run, left.weight + 1)


def alternative(left: One | Many, right: One | Many) -> One | Many:
    """`left // right`: what is true on the left, or what is on the right if there is nothing such."""
    weight = left.weight + right.weight
    if isinstance(left, One) and isinstance(right, One):
        preferred, other = left.run, right.run

        def run(value: Json, meter: Meter) -> Json:
            found = preferred(value, meter)
            return other(value, meter) if found is None or found is False else found

        return One(run, weight)
    several, instead = as_many(left).run, as_many(right).run

    def run_several(value: Json, meter: Meter, out: list[Json]) -> None:
        found: list[Json] = []
        before = len(out)
        try:
            several(value, meter, found)
        finally:
            out.extend([result for result in found if truth(result)])
        if len(out) == before:
            instead(value, meter, out)

    return Many(run_several, weight)


def logic(left: One | Many, right: One | Many, *, conjunction: bool) -> One | Many:
    """`and` with `conjunction`, else `or`."""
    weight = left.weight + right.weight
    if isinstance(left, One) and isinstance(right, One):
        first, second = left.run, right.run

        def run(value: Json, meter: Meter) -> Json:
            decided = truth(first(value, meter))
            return truth(second(value, meter)) if decided is conjunction else decided

        return One(run, weight)
    decide = as_many(right).run

    def decided_by(value: Json, meter: Meter, out: list[Json], *, decided: bool) -> None:
        if decided is not conjunction:
            out.append(decided)
            return
        found: list[Json] = []
        try:
            decide(value, meter, found)
        finally:
            out.extend([truth(result) for result in found])

    many = as_many(left).run

    def run_many(value: Json, meter: Meter, out: list[Json]) -> None:
        found: list[Json] = []
        try:
            many(value, meter, found)
        finally:
            spend(meter, len(found) * weight)
            for result in found:
                decided_by(value, meter, out, decided=truth(result))

    return Many(run_many, weight)


def combined(function: Callable[[Json, Json, Meter], Json], left: One | Many, right: One | Many) -> One | Many:
    """A function of two operands; jq evaluates the right one first."""
    weight = left.weight + right.weight + 1
    if isinstance(left, One) and isinstance(right, One):
        one, other = left.run, right.run

        def run(value: Json, meter: Meter) -> Json:
            operand = other(value, meter)
            return function(one(value, meter), operand, meter)

        return One(run, weight)
    lefts, rights = as_many(left).run, as_many(right).run

    def run_many(value: Json, meter: Meter, out: list[Json]) -> None:
        operands: list[Json] = []
        try:
            rights(value, meter, operands)
        finally:
            spend(meter, len(operands) * weight)
            for operand in operands:
                _with_each(value, meter, out, operand)

    def _with_each(value: Json, meter: Meter, out: list[Json], operand: Json) -> None:
        found: list[Json] = []
        try:
            lefts(value, meter, found)
        finally:
            spend(meter, len(found))
            for result in found:
                out.append(function(result, operand, meter))  # noqa: PERF401 - likewise

    return Many(run_many, weight)


def compared_with(operator: str, left: One, constant: Json) -> One:
    """A comparison with a constant."""
    one, holds = left.run, COMPARISONS[operator]
    wanted = operator == "=="
    if (constant is None or type(constant) is bool) and operator in ("==", "!="):
        return One(lambda value, meter: (one(value, meter) is constant) is wanted, left.weight + 1)
    if type(constant) is str and operator in ("==", "!="):
        return One(lambda value, meter: (one(value, meter) == constant) is wanted, left.weight + 1)
    return One(lambda value, meter: holds(compared(one(value, meter), constant, meter)), left.weight + 1)


def choice(condition: One | Many, body: One | Many, otherwise: One | Many) -> One | Many:
    """`if condition then body else otherwise end`: one of the two for each result of the condition."""
    weight = condition.weight + body.weight + otherwise.weight
    if isinstance(condition, Many):
        return _choices(condition, as_many(body).run, as_many(otherwise).run, weight)
    decide = condition.run
    if isinstance(body, One) and isinstance(otherwise, One):
        then, other = body.run, otherwise.run
        return One(
            lambda value, meter: then(value, meter) if truth(decide(value, meter)) else other(value, meter), weight
        )
    several, instead = as_many(body).run, as_many(otherwise).run
    return Many(
        lambda value, meter, out: (several if truth(decide(value, meter)) else instead)(value, meter, out), weight
    )


def _choices(condition: Many, body: Values, otherwise: Values, weight: int) -> Many:
    decide = condition.run

    def run(value: Json, meter: Meter, out: list[Json]) -> None:
        found: list[Json] = []
        try:
            decide(value, meter, found)
        finally:
            spend(meter, len(found) * weight)
            for result in found:
                (body if truth(result) else otherwise)(value, meter, out)

    return Many(run, weight)


def attempt(body: Many, handled: list[Json] | None) -> Many:
    """The results up to an error, and what is `handled` in its place."""
    several = body.run
    instead = handled or []

    def run(value: Json, meter: Meter, out: list[Json]) -> None:
        try:
            several(value, meter, out)
        except Fault:
            spend(meter, FAULT_STEPS)
            out.extend(instead)

    return Many(run, body.weight)


def bound(source: One | Many, slot: int, body: One | Many) -> One | Many:
    """The body for each result of the source, which it finds in a slot of the meter."""
    weight = source.weight + body.weight
    if isinstance(source, One) and isinstance(body, One):
        bind, single = source.run, body.run

        def run(value: Json, meter: Meter) -> Json:
            meter[slot] = bind(value, meter)
            return single(value, meter)

        return One(run, weight)
    several, inner = as_many(source).run, as_many(body).run

    def run_many(value: Json, meter: Meter, out: list[Json]) -> None:
        found: list[Json] = []
        try:
            several(value, meter, found)
        finally:
            spend(meter, len(found) * weight)
            for result in found:
                meter[slot] = result
                inner(value, meter, out)

    return Many(run_many, weight)


def array(body: Many) -> One:
    """All results in one array."""
    several = body.run

    def run(value: Json, meter: Meter) -> Json:
        found: list[Json] = []
        several(value, meter, found)
        return found

    return One(run, body.weight + 1)


def kept_if(keeps: Callable[[Json], bool]) -> Many:
    """The input or nothing."""

    def run(value: Json, meter: Meter, out: list[Json]) -> None:
        if keeps(value):
            out.append(value)

    return Many(run)


def called(function: Callable[[Json, Json, Meter], Json], argument: One) -> One:
    """A function of the input and one argument."""
    evaluate = argument.run
    return One(lambda value, meter: function(value, evaluate(value, meter), meter), argument.weight + 1)


def raised(value: Json, meter: Meter) -> Json:
    """`error`, whatever the input."""
    raise Fault("the expression raised an error")


def saying(words: str) -> Callable[[Json, Meter], Json]:
    """`error("…")`: the reason is in the definition's own words."""

    def run(value: Json, meter: Meter) -> Json:
        raise Fault(words[:MAX_REASON_LENGTH])

    return run


def decided(conditions: Many, *, wanted: bool) -> One:
    """Whether one condition is `wanted`: then what would have come after it, even an error, does not matter."""
    several = conditions.run

    def run(value: Json, meter: Meter) -> Json:
        found: list[Json] = []
        try:
            several(value, meter, found)
        except Fault:
            if not any(truth(result) is wanted for result in found):
                raise
        return any(truth(result) is wanted for result in found) is wanted

    return One(run, conditions.weight + 1)


def first_of(body: Many) -> Many:
    """`first(body)`: an error after the first result doesn't matter."""
    several = body.run

    def run(value: Json, meter: Meter, out: list[Json]) -> None:
        found: list[Json] = []
        try:
            several(value, meter, found)
        except Fault:
            if not found:
                raise
        out.extend(found[:1])

    return Many(run, body.weight + 1)


def last_of(value: Json, meter: Meter, out: list[Json]) -> None:
    """The last element of an array, or nothing."""
    out.extend(value[-1:])


def ordered(signature: str, by: Many) -> One:
    """`sort_by(by)` and its like."""
    several, steps = by.run, by.weight

    def run(value: Json, meter: Meter) -> Json:
        if type(value) is not list:
            raise Fault(f"an array is needed, not {type_name(value)}")
        spend(meter, len(value) * (steps + 2))
        keyed: list[tuple[list[Json], Json]] = []
        for element in value:
            key: list[Json] = []
            several(element, meter, key)
            keyed.append((key, element))
        return ORDERED[signature](keyed, meter)

    return One(run, steps + 1)


def is_empty(body: Many) -> One:
    """`isempty(body)`."""
    several = body.run

    def run(value: Json, meter: Meter) -> Json:
        found: list[Json] = []
        try:
            several(value, meter, found)
        except Fault:
            if not found:
                raise
        return not found

    return One(run, body.weight + 1)
