"""Decides from the tree alone whether an expression's cost is linear in its input, whatever the input.

For each part: on which sources (the input `.`, a variable `$x`) the number of its results, their size and the work
depend. A part that depends on a source may not be repeated once for each of a number of results: that would be an
iteration inside an iteration. Everything that isn't shown to be linear is not linear.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import reduce

from catalog.expressions.nodes import (
    Array,
    Binary,
    Bind,
    Call,
    Comma,
    Each,
    Field,
    Fold,
    Format,
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
from catalog.expressions.vocabulary import FORMATS, FUNCTIONS, Function, Work

MAX_GROWTH = 32
"""How many times larger than its input a result may get, in size or in number, and still count as linear."""

_Sources = frozenset[str]
_NONE: _Sources = frozenset()
_INPUT: _Sources = frozenset(".")
_SHARED = "a whole for each of many"
"""Stands for a source that is referred to once for each of many results: no copy is made, but it must not be read."""
_ARITHMETIC = frozenset("-*/%")
_COMPARISON = frozenset(("==", "!=", "<", "<=", ">", ">="))
_SORT_PASSES = 16
"""Comparisons for each element, for as many elements as fit into what is evaluated in the serving process."""


class NotLinear(Exception):
    """The cost may grow faster than the input, or can't be bounded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """`many`, `size`, `work`: sources in proportion to which there are results, they are large, they cost time.

    `times` results for each unit of `many` (or in all, when it is empty); `growth` bounds size as a multiple of the
    sources'; `passes` bounds work likewise. `gives` is the type of every result, if known.
    """

    many: _Sources = _NONE
    size: _Sources = _NONE
    work: _Sources = _NONE
    times: int = 1
    growth: int = 1
    passes: int = 1
    gives: str = ""


def linear_passes(tree: Node, *, copies: bool) -> int | None:
    """How often a linear expression goes over its input at most, or None for an expression that isn't linear.

    With `copies` the evaluation is libjq's: texts and arrays are copied, operators do what they do for every type.
    Without, it is the plain one: operators but `+` take numbers only, and what copies counts as it runs.
    """
    try:
        return _Analysis(copies).of(tree, {}).passes
    except NotLinear:
        return None


@dataclass(frozen=True, slots=True)
class _Analysis:
    copies: bool

    def of(self, node: Node, scope: Mapping[str, Cost]) -> Cost:
        cost = self._of(node, scope)
        if max(cost.times, cost.growth) > MAX_GROWTH or (self.copies and _SHARED in cost.size):
            raise NotLinear
        return cost

    def _of(self, node: Node, scope: Mapping[str, Cost]) -> Cost:
        match node:
            case Identity():
                return Cost(size=_INPUT)
            case Literal(value):
                return _literal(value, copies=self.copies)
            case Variable(name):
                return scope[name]
            case Path(start, steps):
                return self._path(self.of(start, scope), steps, scope)
            case Pipe(stages):
                return reduce(self._piped, (self.of(stage, scope) for stage in stages))
            case Comma(parts):
                return _either([self.of(part, scope) for part in parts], alternatives=False)
            case Binary():
                return self._binary(node, self.of(node.left, scope), self.of(node.right, scope))
            case Negate(body):
                inner = self.of(body, scope)
                return replace(inner, size=_NONE, growth=inner.times, passes=inner.passes + 1, gives="number")
            case If() | Try() | Bind() | Fold():
                return self._control(node, scope)
            case _:
                return self._built(node, scope)

    # Paths

    def _path(self, cost: Cost, steps: tuple[Step, ...], scope: Mapping[str, Cost]) -> Cost:
        for step in steps:
            cost = self._stepped(replace(cost, gives="", passes=cost.passes + 1), step, scope)
        return cost

    def _stepped(self, cost: Cost, step: Step, scope: Mapping[str, Cost]) -> Cost:
        match step:
            case Field():
                return cost
            case Each():
                return self._piped(cost, Cost(many=_INPUT, size=_INPUT, work=_INPUT))
            case Index(key):
                # Keys are evaluated first, once for the whole path.
                return self._keyed(cost, [self.of(key, scope)])
            case Slice(start, end):
                keyed = self._keyed(cost, [self.of(bound, scope) for bound in (start, end) if bound is not None])
                return self._piped(keyed, Cost(size=_INPUT, work=_INPUT))

    def _keyed(self, cost: Cost, keys: list[Cost]) -> Cost:
        for key in keys:
            if key.many or key.times > 1:
                raise NotLinear
            cost = replace(cost, work=cost.work | key.work, passes=cost.passes + key.passes)
        return cost

    # Combinations

    def _piped(self, first: Cost, second: Cost) -> Cost:
        """`second` on every result of `first`."""
        if first.many:
            second = self._repeated(second, but_on=_INPUT)
        if _SHARED in first.size and "." in second.many | second.work:
            raise NotLinear
        size = _put(second.size, ".", first.size)
        return Cost(
            many=first.many | _put(second.many, ".", first.size),
            size=size,
            work=first.work | _put(second.work, ".", first.size | first.many),
            times=first.times * second.times,
            growth=first.growth * second.growth if size else first.times * second.times,
            passes=first.passes + max(first.growth, first.times) * second.passes,
            gives=second.gives,
        )

    def _repeated(self, cost: Cost, *, but_on: _Sources = _NONE) -> Cost:
        """The cost of one of many evaluations; `but_on` is what differs from one to the next."""
        if (cost.many | cost.work) - but_on:
            raise NotLinear
        if cost.size - but_on:
            return replace(cost, size=(cost.size & but_on) | {_SHARED})
        return cost

    def _beside(self, costs: list[Cost]) -> Cost:
        """Every combination of results, all evaluated on the same input; the size is that of all together."""
        many = [cost for cost in costs if cost.many]
        if len(many) > 1:
            raise NotLinear
        if many:
            costs = [cost if cost.many else self._repeated(cost) for cost in costs]
        return Cost(
            many=_union(cost.many for cost in costs),
            size=_union(cost.size for cost in costs),
            work=_union(cost.work for cost in costs),
            times=_product(cost.times for cost in costs),
            growth=sum(cost.growth for cost in costs) * _product(cost.times for cost in costs),
            passes=sum(cost.passes for cost in costs) + 1,
        )

    def _binary(self, node: Binary, left: Cost, right: Cost) -> Cost:
        if node.operator == "//":
            return _either([left, right], alternatives=True)
        both = self._beside([left, right])
        scalar = replace(both, size=_NONE, growth=both.times)
        if node.operator in ("and", "or"):
            return replace(scalar, gives="boolean")
        read = both.work | (both.size if self.copies else _NONE)
        if node.operator in _COMPARISON:
            return replace(scalar, gives="boolean", work=both.work if not (left.size and right.size) else read)
        if left.gives == right.gives == "number" or (node.operator in _ARITHMETIC and not self.copies):
            return replace(scalar, gives="number")
        if node.operator in "*-":
            # Repetition of texts and differences of arrays cost more than their operands' sizes.
            raise NotLinear
        return replace(both, work=read, growth=both.growth + 1)

    def _control(self, node: If | Try | Bind | Fold, scope: Mapping[str, Cost]) -> Cost:
        match node:
            case If(branches, otherwise):
                return self._if([self.of(condition, scope) for condition, _ in branches], branches, otherwise, scope)
            case Try(body, None):
                return self.of(body, scope)
            case Try(body, Literal() as handler):
                return _either([self.of(body, scope), self.of(handler, scope)], alternatives=False)
            case Bind(source, name, body):
                return self._bound(self.of(source, scope), name, body, scope)
            case _:
                # What an update makes of its own result, or a handler of a message, isn't followed.
                raise NotLinear

    def _if(
        self,
        conditions: list[Cost],
        branches: tuple[tuple[Node, Node], ...],
        otherwise: Node,
        scope: Mapping[str, Cost],
    ) -> Cost:
        if any(condition.many for condition in conditions):
            raise NotLinear
        bodies = [self.of(body, scope) for _, body in branches] + [self.of(otherwise, scope)]
        one = _either(bodies, alternatives=True)
        times = _product(condition.times for condition in conditions)
        return replace(
            one,
            work=one.work | _union(condition.work for condition in conditions),
            times=one.times * times,
            growth=one.growth * times,
            passes=one.passes + sum(condition.passes for condition in conditions),
        )

    def _bound(self, source: Cost, name: str, body: Node, scope: Mapping[str, Cost]) -> Cost:
        symbol = frozenset((f"${name}",))
        known = Cost(size=symbol if source.size else _NONE, gives=source.gives)
        inner = self.of(body, {**scope, name: known})
        if source.many:
            inner = self._repeated(inner, but_on=symbol)
        if _SHARED in source.size and symbol & (inner.many | inner.work):
            raise NotLinear
        return Cost(
            many=source.many | _put(inner.many, f"${name}", source.size),
            size=_put(inner.size, f"${name}", source.size),
            work=source.work | _put(inner.work, f"${name}", source.size | source.many),
            times=source.times * inner.times,
            growth=source.growth * inner.growth,
            passes=source.passes + max(source.growth, source.times) * inner.passes,
            gives=inner.gives,
        )

    # Values that are put together

    def _built(self, node: Node, scope: Mapping[str, Cost]) -> Cost:
        match node:
            case Array(body) if body is None:
                return Cost(gives="array")
            case Array(body) if body is not None:
                return self._collected(self.of(body, scope))
            case Object(entries):
                both = self._beside([self.of(part, scope) for entry in entries for part in entry] or [Cost()])
                return replace(both, gives="object")
            case Text(format_name, parts):
                return self._text(format_name, [self.of(part, scope) for part in parts if not isinstance(part, str)])
            case Format(name):
                return self._called(Function(Work.TRANSFORM, "string", FORMATS[name]))
            case Call():
                return self._call(node, scope)
        raise NotLinear

    def _text(self, format_name: str, parts: list[Cost]) -> Cost:
        both = self._beside(parts)
        growth = 1 + both.growth * (FORMATS[format_name] if self.copies else 1)
        return replace(both, work=both.work | (both.size if self.copies else _NONE), growth=growth, gives="string")

    # Functions

    def _called(self, function: Function) -> Cost:
        """The cost of a call without its arguments."""
        growth = function.growth if self.copies else min(function.growth, 2)
        passes = _SORT_PASSES if function.growth == 2 and function.gives == "array" else growth
        match function.work:
            case Work.CONSTANT:
                return Cost(gives=function.gives)
            case Work.MEASURE:
                return Cost(work=_INPUT, gives=function.gives)
            case Work.PICK:
                return Cost(size=_INPUT, gives=function.gives)
            case Work.TRANSFORM | Work.SEPARATE:
                return Cost(work=_INPUT, size=_INPUT, growth=growth, passes=1 + passes, gives=function.gives)
            case _:
                raise NotLinear

    def _call(self, call: Call, scope: Mapping[str, Cost]) -> Cost:
        function = FUNCTIONS[call.signature]
        if call.name == "range":
            # The check lets literal bounds through only.
            return Cost(times=_range_length(call.arguments), gives="number")
        arguments = [self.of(argument, scope) for argument in call.arguments]
        if function.work is Work.FILTER:
            return self._filter(call.signature, function, arguments)
        called = self._called(function)
        for argument in arguments:
            if argument.many or argument.times > 1 or (function.work is Work.SEPARATE and argument.size):
                raise NotLinear
            called = replace(called, work=called.work | argument.work, passes=called.passes + argument.passes)
        return called

    def _filter(self, signature: str, function: Function, arguments: list[Cost]) -> Cost:  # noqa: C901 - a table
        each = Cost(many=_INPUT, size=_INPUT, work=_INPUT)
        argument = arguments[0]
        match signature:
            case "select/1":
                if argument.many:
                    raise NotLinear
                return replace(argument, size=_INPUT, growth=argument.times, passes=argument.passes + 1, gives="")
            case "map/1":
                return self._collected(self._piped(each, argument))
            case "with_entries/1":
                mapped = self._piped(replace(each, growth=2), argument)
                return replace(self._collected(mapped), growth=2 * mapped.growth, gives="object")
            case "add/1":
                return replace(self._collected(argument), passes=2 * argument.passes, gives="")
            case "any/1" | "all/1":
                return _verdict(self._piped(each, argument))
            case "any/2" | "all/2":
                return _verdict(self._piped(argument, arguments[1]))
            case "isempty/1":
                return _verdict(argument)
            case "IN/1":
                return _verdict(replace(argument, work=argument.work | argument.size))
            case "first/1" | "last/1":
                return replace(argument, many=_NONE, times=1)
            case _:
                sorted_by = self._piped(each, argument)
                return replace(
                    self._collected(sorted_by),
                    size=_INPUT,
                    growth=2,
                    passes=_SORT_PASSES * sorted_by.passes,
                    gives=function.gives,
                )

    def _collected(self, inner: Cost) -> Cost:
        return replace(
            inner,
            many=_NONE,
            size=inner.size | inner.many,
            times=1,
            growth=max(inner.growth, inner.times),
            passes=inner.passes + 1,
            gives="array",
        )


def _literal(value: object, *, copies: bool) -> Cost:
    gives = {str: "string", bool: "boolean", int: "number", float: "number"}.get(type(value), "")
    return Cost(growth=1 + len(value) // 32 if copies and isinstance(value, str) else 1, gives=gives)


def _either(costs: list[Cost], *, alternatives: bool) -> Cost:
    """All of them one after the other on the same input; of `alternatives`, one gives the results."""
    together = max if alternatives else sum
    gives = {cost.gives for cost in costs}
    return Cost(
        many=_union(cost.many for cost in costs),
        size=_union(cost.size for cost in costs),
        work=_union(cost.work for cost in costs),
        times=together(cost.times for cost in costs),
        growth=together(cost.growth for cost in costs),
        passes=sum(cost.passes for cost in costs) + 1,
        gives=gives.pop() if len(gives) == 1 else "",
    )


def _verdict(inner: Cost) -> Cost:
    return Cost(work=inner.work | inner.many, passes=inner.passes + 1, gives="boolean")


def _put(sources: _Sources, name: str, replacement: _Sources) -> _Sources:
    return (sources - {name}) | replacement if name in sources else sources


def _union(sets: Iterable[_Sources]) -> _Sources:
    return _NONE.union(*sets)


def _product(numbers: Iterable[int]) -> int:
    return reduce(lambda left, right: left * right, numbers, 1)


def _range_length(arguments: tuple[Node, ...]) -> int:
    bounds = [argument.value for argument in arguments if isinstance(argument, Literal)]
    numbers = [float(bound) for bound in bounds if isinstance(bound, int | float)]
    start, end, step = (0.0, numbers[0], 1.0) if len(numbers) == 1 else (*numbers, 1.0)[:3]
    return max(1, int(abs((end - start) / step)) + 1)
