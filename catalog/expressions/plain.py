# ruff: noqa: ARG001, ARG005 - all closures have one signature
"""Evaluates expressions in Python, on the document itself: nothing is copied, parsed or changed.

A tree becomes closures once; evaluating calls them. Two shapes: `One` gives exactly one result and returns it, `Many`
appends its results as they come, so that those before an error are kept, as in jq. The caller's meter bounds the work
whatever the document. Knows a part of the language; what it doesn't know raises `NotPlain` when it is compiled.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from catalog.definition import Json
from catalog.expressions.nodes import (
    Array,
    Binary,
    Bind,
    Call,
    Comma,
    Each,
    Field,
    Identity,
    If,
    Index,
    Literal,
    Negate,
    Node,
    Object,
    Path,
    Pipe,
    Slice,
    Step,
    Text,
    Try,
    Variable,
)
from catalog.expressions.plain_functions import (
    ARITHMETIC,
    COMPARISONS,
    KEEPING,
    OF_INPUT,
    OF_INPUT_AND_ARGUMENT,
    ORDERED,
    added,
    comparison,
    elements,
    index,
    negated,
    sliced,
    truth,
)
from catalog.expressions.values import MAX_NUMBER, Beyond, Fault, Meter, compared, printed, spend, type_name

MAX_STEPS = 200_000
"""Steps of one evaluation of all expressions of a program; a step takes 0.05 to 0.2 µs."""

Value: TypeAlias = Callable[[Json, Meter], Json]
Values: TypeAlias = Callable[[Json, Meter, list[Json]], None]
Plain: TypeAlias = Callable[[Json, Meter], tuple[Json, ...]]
"""All results for a document. Raises `Fault`, `Beyond`, `Exhausted` or `RecursionError`."""


class NotPlain(Exception):
    """The expression has a part that is only evaluated by libjq."""


@dataclass(frozen=True, slots=True)
class One:
    """Exactly one result. `weight` is the number of parts, which bounds the steps of one run without iteration."""

    run: Value
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Many:
    """Any number of results."""

    run: Values
    weight: int = 1


def compile_plain(tree: Node) -> tuple[Plain, int]:
    """The evaluation of a tree, and how many slots for variables it needs in the meter. Raises `NotPlain`."""
    compiler = _Compiler()
    compiled = compiler.of(tree, {})
    return _finished(compiled), compiler.slots


def new_meter(slots: int) -> Meter:
    """A meter with no steps yet and room for variables."""
    return [0] * (1 + slots)


def _finished(compiled: One | Many) -> Plain:
    if isinstance(compiled, One):
        single = compiled.run
        return lambda document, meter: (_result(single(document, meter)),)
    several = compiled.run

    def collect(document: Json, meter: Meter) -> tuple[Json, ...]:
        found: list[Json] = []
        several(document, meter, found)
        return tuple([_result(value) for value in found])

    return collect


def _result(value: Json) -> Json:
    kind = type(value)
    if kind is int or kind is float:
        if not -MAX_NUMBER <= value <= MAX_NUMBER:
            raise Beyond("a result is a number beyond 2^53")
        if kind is float and value.is_integer():
            return int(value)
    return value


class _Compiler:
    """Turns nodes into closures. `names` maps variables to their place in the meter."""

    def __init__(self) -> None:
        self.slots = 0

    def of(self, node: Node, names: dict[str, int]) -> One | Many:
        match node:
            case Identity():
                return One(lambda value, meter: value)
            case Literal(constant):
                return One(lambda value, meter: constant)
            case Variable(name):
                slot = names[name]
                return One(lambda value, meter: meter[slot])
            case Path() | Pipe():
                return chained(self.stages(node, names))
            case Comma(parts):
                return _comma([_several(self.of(part, names)) for part in parts])
            case Binary():
                return self._binary(node, names)
            case Negate(body):
                return chained([self.of(body, names), One(lambda value, meter: negated(value))])
            case Call():
                return self._call(node, names)
            case _:
                return self._structure(node, names)

    def _structure(self, node: Node, names: dict[str, int]) -> One | Many:
        match node:
            case If(branches, otherwise):
                return self._if(branches, otherwise, names)
            case Try(body, handler):
                return self._try(body, handler, names)
            case Bind(source, name, body):
                return self._bind(source, name, body, names)
            case Array(body):
                return _array(_several(self.of(body, names)) if body is not None else None)
            case Object(entries):
                return self._object(entries, names)
            case Text("text", parts):
                return self._text(parts, names)
        raise NotPlain

    def _one(self, node: Node, names: dict[str, int]) -> One:
        compiled = self.of(node, names)
        if isinstance(compiled, Many):
            raise NotPlain
        return compiled

    # Paths and pipes

    def stages(self, node: Node, names: dict[str, int]) -> list[One | Many]:
        """A path or pipe taken apart into what is done one after the other, fields in a row as one."""
        match node:
            case Identity():
                return []
            case Pipe(parts):
                return [stage for part in parts for stage in self.stages(part, names)]
            case Path(start, steps):
                if any(isinstance(step, Index) and not isinstance(step.key, Literal) for step in steps):
                    return [self._computed_path(start, steps, names)]
                return [*self.stages(start, names), *_steps(steps)]
            case _:
                return [self.of(node, names)]

    def _computed_path(self, start: Node, steps: Sequence[Step], names: dict[str, int]) -> One:
        """A path whose keys are computed: they are evaluated on the input of the whole path."""
        runs: list[tuple[Value | None, Value]] = [(None, self._one(start, names).run)]
        for step in steps:
            match step:
                case Index(key, optional=False):
                    runs.append((self._one(key, names).run, _unused))
                case Field(name, optional=False):
                    runs.append((None, _fields((name,)).run))
                case _:
                    raise NotPlain
        return One(_keyed(runs), 2 * len(runs))

    # Operators

    def _binary(self, node: Binary, names: dict[str, int]) -> One | Many:
        left, right = self.of(node.left, names), self.of(node.right, names)
        if node.operator == "//":
            return _alternative(left, right)
        if node.operator in ("and", "or"):
            return _logic(left, right, conjunction=node.operator == "and")
        if node.operator in COMPARISONS:
            if isinstance(node.right, Literal) and isinstance(left, One):
                return _compared_with(node.operator, left, node.right.value)
            return _combined(comparison(node.operator), left, right)
        if node.operator in "-*/" and (_not_a_number(node.left) or _not_a_number(node.right)):
            raise NotPlain
        return _combined(ARITHMETIC[node.operator], left, right)

    # Control

    def _if(self, branches: Sequence[tuple[Node, Node]], otherwise: Node, names: dict[str, int]) -> One | Many:
        chosen = self.of(otherwise, names)
        for condition, body in reversed(branches):
            chosen = _choice(self._one(condition, names), self.of(body, names), chosen)
        return chosen

    def _try(self, body: Node, handler: Node | None, names: dict[str, int]) -> Many:
        attempted = _several(self.of(body, names))
        if handler is None:
            return _attempt(attempted, None)
        if not isinstance(handler, Literal):
            raise NotPlain  # it may read libjq's message
        return _attempt(attempted, [handler.value])

    def _bind(self, source: Node, name: str, body: Node, names: dict[str, int]) -> One | Many:
        bound = self.of(source, names)
        self.slots += 1
        slot = self.slots
        inner = self.of(body, {**names, name: slot})
        return _bound(bound, slot, inner)

    # Values that are put together

    def _object(self, entries: Sequence[tuple[Node, Node]], names: dict[str, int]) -> One:
        if not all(isinstance(key, Literal) and isinstance(key.value, str) for key, _ in entries):
            return self._object_with_computed_keys(entries, names)
        parts: list[tuple[str, Value]] = []
        weight = 1
        for key, node in entries:
            assert isinstance(key, Literal)
            value = self._one(node, names)
            parts.append((str(key.value), value.run))
            weight += value.weight
        return One(lambda value, meter: {key: run(value, meter) for key, run in parts}, weight)

    def _object_with_computed_keys(self, entries: Sequence[tuple[Node, Node]], names: dict[str, int]) -> One:
        parts = [(self._one(key, names), self._one(node, names)) for key, node in entries]
        runs = [(key.run, value.run) for key, value in parts]
        weight = 1 + sum(key.weight + value.weight for key, value in parts)
        return One(lambda value, meter: {_key(key(value, meter)): run(value, meter) for key, run in runs}, weight)

    def _text(self, parts: Sequence[str | Node], names: dict[str, int]) -> One:
        runs: list[Value] = []
        weight = 1
        for part in parts:
            compiled = self._one(Literal(part) if isinstance(part, str) else part, names)
            runs.append(compiled.run)
            weight += compiled.weight

        def run(value: Json, meter: Meter) -> Json:
            texts = [printed(part(value, meter), meter) for part in runs]
            spend(meter, sum(map(len, texts)) // 16)
            return "".join(texts)

        return One(run, weight)

    # Functions

    def _call(self, call: Call, names: dict[str, int]) -> One | Many:
        signature = call.signature
        if signature in OF_INPUT:
            return One(OF_INPUT[signature])
        if signature in KEEPING:
            return _kept_if(KEEPING[signature])
        if signature in OF_INPUT_AND_ARGUMENT:
            if signature == "join/1" and not (
                isinstance(call.arguments[0], Literal) and isinstance(call.arguments[0].value, str)
            ):
                raise NotPlain
            return _called(OF_INPUT_AND_ARGUMENT[signature], self._one(call.arguments[0], names))
        arguments = [self.of(argument, names) for argument in call.arguments]
        return _filter(signature, arguments)


# The closures. `One` after `One` stays `One`; everything else is `Many`.


def _key(value: Json) -> str:
    if isinstance(value, str):
        return value
    raise Fault(f"the key of an object is {type_name(value)}, not a string")


def _unused(value: Json, meter: Meter) -> Json:
    raise AssertionError("a step with a key has no run of its own")


def _several(compiled: One | Many) -> Many:
    if isinstance(compiled, Many):
        return compiled
    single = compiled.run

    def run(value: Json, meter: Meter, out: list[Json]) -> None:
        out.append(single(value, meter))

    return Many(run, compiled.weight)


def _each(value: Json, meter: Meter, out: list[Json]) -> None:
    out.extend(elements(value, meter))


def _each_optional(value: Json, meter: Meter, out: list[Json]) -> None:
    if type(value) is list or type(value) is dict:
        out.extend(elements(value, meter))


_EACH = Many(_each)


def _steps(steps: Sequence[Step]) -> list[One | Many]:
    stages: list[One | Many] = []
    row: list[str] = []
    for step in steps:
        if isinstance(step, Field) and not step.optional:
            row.append(step.name)
            continue
        if row:
            stages.append(_fields(tuple(row)))
            row = []
        stages.append(_step(step))
    return [*stages, _fields(tuple(row))] if row else stages


def _step(step: Step) -> One | Many:
    match step:
        case Each(optional):
            return Many(_each_optional) if optional else _EACH
        case Field(name, optional=True):
            return _attempt(_several(_fields((name,))), None)
        case Index(Literal(key), optional):
            one = One(lambda value, meter: index(value, key))
            return _attempt(_several(one), None) if optional else one
        case Slice(start, end, optional):
            bounds = _bound_of(start), _bound_of(end)
            one = One(lambda value, meter: sliced(value, *bounds, meter))
            return _attempt(_several(one), None) if optional else one
    raise NotPlain


def _bound_of(node: Node | None) -> int | None:
    if node is None or (isinstance(node, Literal) and node.value is None):
        return None
    if isinstance(node, Literal) and type(node.value) is int:
        return node.value
    raise NotPlain


def _fields(names: tuple[str, ...]) -> One:
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

    return One(run, len(names))


def _field(name: str) -> One:
    def run(value: Json, meter: Meter) -> Json:
        if type(value) is dict:
            return value.get(name)
        if value is None:
            return None
        raise Fault(f"cannot index {type_name(value)} with a string")

    return One(run)


def _keyed(runs: Sequence[tuple[Value | None, Value]]) -> Value:
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
        chain = _then(stage, chain)
    return chain


def _then(first: One | Many, second: One | Many) -> One | Many:
    weight = first.weight + second.weight
    if isinstance(first, One):
        before = first.run
        if isinstance(second, One):
            after = second.run
            return One(lambda value, meter: after(before(value, meter), meter), weight)
        following = second.run
        return Many(lambda value, meter, out: following(before(value, meter), meter, out), weight)
    if first is _EACH:
        return _for_each_element(second, weight)
    return _for_each_result(first.run, _several(second).run, weight)


def _for_each_element(second: One | Many, weight: int) -> Many:
    steps = second.weight
    if isinstance(second, One):
        one = second.run

        def run_one(value: Json, meter: Meter, out: list[Json]) -> None:
            found = elements(value, meter)
            spend(meter, len(found) * steps)
            for element in found:
                out.append(one(element, meter))  # noqa: PERF401 - what came before an error has to stay

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


def _comma(parts: Sequence[Many]) -> Many:
    runs = [part.run for part in parts]

    def run(value: Json, meter: Meter, out: list[Json]) -> None:
        for part in runs:
            part(value, meter, out)

    return Many(run, sum(part.weight for part in parts))


def _alternative(left: One | Many, right: One | Many) -> One | Many:
    weight = left.weight + right.weight
    if isinstance(left, One) and isinstance(right, One):
        preferred, other = left.run, right.run

        def run(value: Json, meter: Meter) -> Json:
            found = preferred(value, meter)
            return other(value, meter) if found is None or found is False else found

        return One(run, weight)
    several, instead = _several(left).run, _several(right).run

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


def _logic(left: One | Many, right: One | Many, *, conjunction: bool) -> One | Many:
    weight = left.weight + right.weight
    if isinstance(left, One) and isinstance(right, One):
        first, second = left.run, right.run

        def run(value: Json, meter: Meter) -> Json:
            decided = truth(first(value, meter))
            return truth(second(value, meter)) if decided is conjunction else decided

        return One(run, weight)
    decide = _several(right).run

    def decided_by(value: Json, meter: Meter, out: list[Json], *, decided: bool) -> None:
        if decided is not conjunction:
            out.append(decided)
            return
        found: list[Json] = []
        try:
            decide(value, meter, found)
        finally:
            out.extend([truth(result) for result in found])

    many = _several(left).run

    def run_many(value: Json, meter: Meter, out: list[Json]) -> None:
        found: list[Json] = []
        try:
            many(value, meter, found)
        finally:
            spend(meter, len(found) * weight)
            for result in found:
                decided_by(value, meter, out, decided=truth(result))

    return Many(run_many, weight)


def _combined(function: Callable[[Json, Json, Meter], Json], left: One | Many, right: One | Many) -> One | Many:
    weight = left.weight + right.weight + 1
    if isinstance(left, One) and isinstance(right, One):
        one, other = left.run, right.run

        def run(value: Json, meter: Meter) -> Json:
            operand = other(value, meter)
            return function(one(value, meter), operand, meter)

        return One(run, weight)
    lefts, rights = _several(left).run, _several(right).run

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


def _compared_with(operator: str, left: One, constant: Json) -> One:
    one, holds = left.run, COMPARISONS[operator]
    if type(constant) is str and operator in ("==", "!="):
        wanted = operator == "=="
        return One(lambda value, meter: (one(value, meter) == constant) is wanted, left.weight + 1)
    return One(lambda value, meter: holds(compared(one(value, meter), constant, meter)), left.weight + 1)


def _not_a_number(node: Node) -> bool:
    match node:
        case Literal(value):
            return type(value) not in (int, float)
        case Text() | Array() | Object():
            return True
    return False


def _choice(condition: One, body: One | Many, otherwise: One | Many) -> One | Many:
    weight = condition.weight + body.weight + otherwise.weight
    decide = condition.run
    if isinstance(body, One) and isinstance(otherwise, One):
        then, other = body.run, otherwise.run
        return One(
            lambda value, meter: then(value, meter) if truth(decide(value, meter)) else other(value, meter), weight
        )
    several, instead = _several(body).run, _several(otherwise).run
    return Many(
        lambda value, meter, out: (several if truth(decide(value, meter)) else instead)(value, meter, out), weight
    )


def _attempt(body: Many, handled: list[Json] | None) -> Many:
    several = body.run
    instead = handled or []

    def run(value: Json, meter: Meter, out: list[Json]) -> None:
        try:
            several(value, meter, out)
        except Fault:
            out.extend(instead)

    return Many(run, body.weight)


def _bound(source: One | Many, slot: int, body: One | Many) -> One | Many:
    weight = source.weight + body.weight
    if isinstance(source, One) and isinstance(body, One):
        bind, single = source.run, body.run

        def run(value: Json, meter: Meter) -> Json:
            meter[slot] = bind(value, meter)
            return single(value, meter)

        return One(run, weight)
    several, inner = _several(source).run, _several(body).run

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


def _array(body: Many | None) -> One:
    if body is None:
        return One(lambda value, meter: [])
    several = body.run

    def run(value: Json, meter: Meter) -> Json:
        found: list[Json] = []
        several(value, meter, found)
        return found

    return One(run, body.weight + 1)


def _kept_if(keeps: Callable[[Json], bool]) -> Many:
    def run(value: Json, meter: Meter, out: list[Json]) -> None:
        if keeps(value):
            out.append(value)

    return Many(run)


def _called(function: Callable[[Json, Json, Meter], Json], argument: One) -> One:
    evaluate = argument.run
    return One(lambda value, meter: function(value, evaluate(value, meter), meter), argument.weight + 1)


def _filter(signature: str, arguments: Sequence[One | Many]) -> One | Many:  # noqa: C901, PLR0912 - a table
    match signature:
        case "select/1":
            return _select(arguments[0])
        case "map/1":
            return _array(_several(_then(_EACH, arguments[0])))
        case "add/1":
            return _then(_array(_several(arguments[0])), One(added))
        case "any/1" | "all/1":
            return _decided(_several(_then(_EACH, arguments[0])), wanted=signature == "any/1")
        case "any/2" | "all/2":
            return _decided(_several(chained(arguments)), wanted=signature == "any/2")
        case "first/1":
            return _first(_several(arguments[0]))
        case "last/1":
            return chained([_array(_several(arguments[0])), Many(_last)])
        case "with_entries/1":
            entries = _array(_several(_then(_EACH, arguments[0])))
            return chained([One(OF_INPUT["to_entries/0"]), entries, One(OF_INPUT["from_entries/0"])])
        case "sort_by/1" | "group_by/1" | "unique_by/1" | "min_by/1" | "max_by/1":
            return _ordered(signature, _several(arguments[0]))
        case "isempty/1":
            return _is_empty(_several(arguments[0]))
        case "empty/0":
            return Many(lambda value, meter, out: None)
        case "error/0":
            return One(_raised)
        case "error/1":
            return _then(arguments[0], One(_raised))
    raise NotPlain


def _raised(value: Json, meter: Meter) -> Json:
    raise Fault("the expression raised an error")


def _select(condition: One | Many) -> Many:
    if isinstance(condition, Many):
        raise NotPlain
    decide = condition.run

    def run(value: Json, meter: Meter, out: list[Json]) -> None:
        if truth(decide(value, meter)):
            out.append(value)

    return Many(run, condition.weight + 1)


def _decided(conditions: Many, *, wanted: bool) -> One:
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


def _first(body: Many) -> Many:
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


def _last(value: Json, meter: Meter, out: list[Json]) -> None:
    out.extend(value[-1:])


def _ordered(signature: str, by: Many) -> One:
    several, steps = by.run, by.weight

    def run(value: Json, meter: Meter) -> Json:
        if type(value) is not list:
            raise Fault(f"an array is needed, not {type_name(value)}")
        spend(meter, len(value) * steps)
        keyed: list[tuple[list[Json], Json]] = []
        for element in value:
            key: list[Json] = []
            several(element, meter, key)
            keyed.append((key, element))
        return ORDERED[signature](keyed, meter)

    return One(run, steps + 1)


def _is_empty(body: Many) -> One:
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
