# ruff: noqa: ARG005 - all closures have one signature
"""Turns a tree into closures, or says that a part of it is only evaluated by libjq."""

from collections.abc import Callable, Sequence
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
from catalog.expressions.outcome import MAX_NUMBER
from catalog.expressions.plain.closures import (
    EACH,
    Many,
    One,
    Value,
    alternative,
    array,
    as_many,
    attempt,
    bound,
    called,
    chained,
    choice,
    combined,
    compared_with,
    decided,
    each_optional,
    fields,
    first_of,
    in_turn,
    is_empty,
    kept_if,
    keyed,
    last_of,
    logic,
    no_run,
    object_key,
    or_constant,
    ordered,
    raised,
    saying,
    then,
)
from catalog.expressions.plain.functions import KEEPING, OF_INPUT, OF_INPUT_AND_ARGUMENT, added
from catalog.expressions.plain.operators import ARITHMETIC, COMPARISONS, comparison, index, negated, sliced, truth
from catalog.expressions.plain.values import Beyond, Meter, printed, spend

MAX_STEPS = 400_000
"""Steps of one evaluation of all expressions of a program: at most about 40 ms."""

Plain: TypeAlias = Callable[[Json, Meter], tuple[Json, ...]]
"""All results for a document. Raises `Fault`, `Beyond`, `Exhausted` or `RecursionError`."""


class NotPlain(Exception):
    """The expression has a part that is only evaluated by libjq."""


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
                return in_turn([as_many(self.of(part, names)) for part in parts])
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
                return self._array(body, names)
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
                    runs.append((self._one(key, names).run, no_run))
                case Field(name, optional=False):
                    runs.append((None, fields((name,)).run))
                case _:
                    raise NotPlain
        return One(keyed(runs), 2 * len(runs))

    # Operators

    def _binary(self, node: Binary, names: dict[str, int]) -> One | Many:
        left, right = self.of(node.left, names), self.of(node.right, names)
        if node.operator == "//":
            if isinstance(node.right, Literal) and isinstance(left, One):
                return or_constant(left, node.right.value)
            return alternative(left, right)
        if node.operator in ("and", "or"):
            return logic(left, right, conjunction=node.operator == "and")
        if node.operator in COMPARISONS:
            if isinstance(node.right, Literal) and isinstance(left, One):
                return compared_with(node.operator, left, node.right.value)
            return combined(comparison(node.operator), left, right)
        if node.operator in "-*/" and (_not_a_number(node.left) or _not_a_number(node.right)):
            raise NotPlain
        return combined(ARITHMETIC[node.operator], left, right)

    # Control

    def _if(self, branches: Sequence[tuple[Node, Node]], otherwise: Node, names: dict[str, int]) -> One | Many:
        chosen = self.of(otherwise, names)
        for condition, body in reversed(branches):
            chosen = choice(self.of(condition, names), self.of(body, names), chosen)
        return chosen

    def _try(self, body: Node, handler: Node | None, names: dict[str, int]) -> Many:
        attempted = as_many(self.of(body, names))
        if handler is None:
            return attempt(attempted, None)
        if not isinstance(handler, Literal):
            raise NotPlain  # it may read libjq's message
        return attempt(attempted, [handler.value])

    def _bind(self, source: Node, name: str, body: Node, names: dict[str, int]) -> One | Many:
        values = self.of(source, names)
        self.slots += 1
        slot = self.slots
        inner = self.of(body, {**names, name: slot})
        return bound(values, slot, inner)

    # Values that are put together

    def _array(self, body: Node | None, names: dict[str, int]) -> One:
        parts = body.parts if isinstance(body, Comma) else () if body is None else (body,)
        compiled = [self.of(part, names) for part in parts]
        singles = [part for part in compiled if isinstance(part, One)]
        if len(singles) < len(compiled):
            return array(in_turn([as_many(part) for part in compiled]))
        runs = [single.run for single in singles]
        weight = 1 + sum(single.weight for single in singles)
        return One(lambda value, meter: [run(value, meter) for run in runs], weight)

    def _object(self, entries: Sequence[tuple[Node, Node]], names: dict[str, int]) -> One:
        if not all(isinstance(key, Literal) and isinstance(key.value, str) for key, _ in entries):
            return self._object_with_computed_keys(entries, names)
        parts: list[tuple[str, Value]] = []
        weight = 4
        for key, node in entries:
            assert isinstance(key, Literal)
            value = self._one(node, names)
            parts.append((str(key.value), value.run))
            weight += value.weight
        return One(lambda value, meter: {key: run(value, meter) for key, run in parts}, weight)

    def _object_with_computed_keys(self, entries: Sequence[tuple[Node, Node]], names: dict[str, int]) -> One:
        parts = [(self._one(key, names), self._one(node, names)) for key, node in entries]
        runs = [(key.run, value.run) for key, value in parts]
        weight = 4 + sum(key.weight + value.weight for key, value in parts)
        return One(lambda value, meter: {object_key(key(value, meter)): run(value, meter) for key, run in runs}, weight)

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
            return kept_if(KEEPING[signature])
        if signature in OF_INPUT_AND_ARGUMENT:
            if signature == "join/1" and not (
                isinstance(call.arguments[0], Literal) and isinstance(call.arguments[0].value, str)
            ):
                raise NotPlain
            return called(OF_INPUT_AND_ARGUMENT[signature], self._one(call.arguments[0], names))
        if signature == "error/1" and (words := _words(call.arguments[0])) is not None:
            return One(saying(words))
        arguments = [self.of(argument, names) for argument in call.arguments]
        return _filter(signature, arguments)


def _steps(steps: Sequence[Step]) -> list[One | Many]:
    stages: list[One | Many] = []
    row: list[str] = []
    for step in steps:
        if isinstance(step, Field) and not step.optional:
            row.append(step.name)
            continue
        if row:
            stages.append(fields(tuple(row)))
            row = []
        stages.append(_step(step))
    return [*stages, fields(tuple(row))] if row else stages


def _step(step: Step) -> One | Many:
    match step:
        case Each(optional):
            return Many(each_optional) if optional else EACH
        case Field(name, optional=True):
            return attempt(as_many(fields((name,))), None)
        case Index(Literal(key), optional):
            one = One(lambda value, meter: index(value, key))
            return attempt(as_many(one), None) if optional else one
        case Slice(start, end, optional):
            bounds = _bound_of(start), _bound_of(end)
            one = One(lambda value, meter: sliced(value, *bounds, meter))
            return attempt(as_many(one), None) if optional else one
    raise NotPlain


def _bound_of(node: Node | None) -> int | None:
    if node is None or (isinstance(node, Literal) and node.value is None):
        return None
    if isinstance(node, Literal) and type(node.value) is int:
        return node.value
    raise NotPlain


def _words(node: Node) -> str | None:
    """The text of a string without interpolation: it is the definition's own, so a reason may repeat it."""
    return node.value if isinstance(node, Literal) and isinstance(node.value, str) else None


def _not_a_number(node: Node) -> bool:
    match node:
        case Literal(value):
            return type(value) not in (int, float)
        case Text() | Array() | Object():
            return True
    return False


def _filter(signature: str, arguments: Sequence[One | Many]) -> One | Many:  # noqa: C901, PLR0912 - a table
    match signature:
        case "select/1":
            return _select(arguments[0])
        case "map/1":
            return array(as_many(then(EACH, arguments[0])))
        case "add/1":
            return then(array(as_many(arguments[0])), One(added))
        case "any/1" | "all/1":
            return decided(as_many(then(EACH, arguments[0])), wanted=signature == "any/1")
        case "any/2" | "all/2":
            return decided(as_many(chained(arguments)), wanted=signature == "any/2")
        case "first/1":
            return first_of(as_many(arguments[0]))
        case "last/1":
            return chained([array(as_many(arguments[0])), Many(last_of)])
        case "with_entries/1":
            entries = array(as_many(then(EACH, arguments[0])))
            return chained([One(OF_INPUT["to_entries/0"]), entries, One(OF_INPUT["from_entries/0"])])
        case "sort_by/1" | "group_by/1" | "unique_by/1" | "min_by/1" | "max_by/1":
            return ordered(signature, as_many(arguments[0]))
        case "isempty/1":
            return is_empty(as_many(arguments[0]))
        case "empty/0":
            return Many(lambda value, meter, out: None)
        case "error/0":
            return One(raised)
        case "error/1":
            return then(arguments[0], One(raised))
    raise NotPlain


def _select(condition: One | Many) -> One | Many:
    if isinstance(condition, Many):
        return choice(condition, One(lambda value, meter: value), Many(lambda value, meter, out: None))
    decide = condition.run

    def run(value: Json, meter: Meter, out: list[Json]) -> None:
        if truth(decide(value, meter)):
            out.append(value)

    return Many(run, condition.weight + 1)
