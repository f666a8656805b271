"""Which parts of a document an expression can read, so that only those are given to libjq.

Follows values from the document through an expression. Where it can't follow, the whole value is taken as read: an
expression never sees less than it reads. Knows nothing of what is allowed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from catalog.expressions.nodes import (
    Binary,
    Bind,
    Call,
    Comma,
    Each,
    Field,
    Fold,
    Identity,
    If,
    Index,
    Literal,
    Node,
    Path,
    Pipe,
    Slice,
    Step,
    Try,
    Variable,
    children,
)

_COMPARISON = frozenset(("==", "!=", "<", "<=", ">", ">="))
_TYPE_ONLY = frozenset(("type/0", "not/0"))
_PASSING = frozenset(
    ("values/0", "nulls/0", "booleans/0", "numbers/0", "strings/0", "arrays/0", "objects/0", "scalars/0", "iterables/0")
)


@dataclass(slots=True)
class Part:
    """A place in the document, as it is found out what is read of it.

    A place that is reached but not `whole` is read for its type and, if it is a string or a number, its value.
    `every` stands for each element of an array and each value of an object; `fields` for single keys besides.
    """

    whole: bool = False
    fields: "dict[str, Part]" = field(default_factory=dict)
    every: "Part | None" = None

    def at(self, name: str) -> "Part":
        """The place of one key."""
        return self.fields.setdefault(name, Part())

    def each(self) -> "Part":
        """The place of all elements."""
        if self.every is None:
            self.every = Part()
        return self.every


_Places: TypeAlias = tuple[Part, ...]
_Scope: TypeAlias = Mapping[str, _Places]


def read_parts(trees: Iterable[Node]) -> Part:
    """What all the expressions together read of the document they run on."""
    document = Part()
    for tree in trees:
        _use(_trace(tree, (document,), {}))
    return document


def _use(places: _Places) -> None:
    for place in places:
        place.whole = True


def _trace(node: Node, at: _Places, scope: _Scope) -> _Places:  # noqa: C901 - one case for each kind of node
    """The places that the results of a node may be; nothing for results that are made anew."""
    match node:
        case Identity():
            return at
        case Variable(name):
            return scope[name]
        case Path(start, steps):
            places = _trace(start, at, scope)
            for step in steps:
                places = _step(step, places, at, scope)
            return places
        case Pipe(stages):
            for stage in stages:
                at = _trace(stage, at, scope)
            return at
        case Comma(parts):
            return tuple(place for part in parts for place in _trace(part, at, scope))
        case Binary():
            return _binary(node, at, scope)
        case Call():
            return _call(node, at, scope)
        case If() | Try() | Bind() | Fold():
            return _control(node, at, scope)
    _use(at if not children(node) and not isinstance(node, Literal) else ())
    _use_all(children(node), at, scope)
    return ()


def _use_all(nodes: Iterable[Node], at: _Places, scope: _Scope) -> None:
    for node in nodes:
        _use(_trace(node, at, scope))


def _step(step: Step, places: _Places, at: _Places, scope: _Scope) -> _Places:
    match step:
        case Field(name):
            return tuple(place.at(name) for place in places)
        case Each() | Index(Literal()):
            return _elements(places)
        case Index(key):
            _use(_trace(key, at, scope))
            _use(places)
            return ()
        case Slice(start, end):
            _use_all((bound for bound in (start, end) if bound is not None), at, scope)
            _elements(places)
            return places


def _elements(places: _Places) -> _Places:
    return tuple(place.each() for place in places)


def _binary(node: Binary, at: _Places, scope: _Scope) -> _Places:
    left, right = _trace(node.left, at, scope), _trace(node.right, at, scope)
    if node.operator == "//":
        return left + right
    if node.operator in ("and", "or"):
        return ()
    against_scalar = isinstance(node.left, Literal) or isinstance(node.right, Literal)
    if not (node.operator in _COMPARISON and against_scalar):
        _use(left + right)
    return ()


def _control(node: If | Try | Bind | Fold, at: _Places, scope: _Scope) -> _Places:
    match node:
        case If(branches, otherwise):
            for condition, _ in branches:
                _trace(condition, at, scope)
            bodies = [body for _, body in branches] + [otherwise]
            return tuple(place for body in bodies for place in _trace(body, at, scope))
        case Try(body, handler):
            places = _trace(body, at, scope)
            return places if handler is None else places + _trace(handler, (), scope)
        case Bind(source, name, body):
            return _trace(body, at, {**scope, name: _trace(source, at, scope)})
        case Fold(source=source, name=name, start=start):
            _use_all((source, start), at, scope)
            _use_all(children(node)[2:], (), {**scope, name: ()})
            return ()


def _call(call: Call, at: _Places, scope: _Scope) -> _Places:
    arguments = call.arguments
    match call.signature:
        case "select/1":
            _trace(arguments[0], at, scope)
            return at
        case "map/1":
            _use(_trace(arguments[0], _elements(at), scope))
            return ()
        case "any/1" | "all/1":
            _trace(arguments[0], _elements(at), scope)
            return ()
        case "any/2" | "all/2":
            _trace(arguments[1], _trace(arguments[0], at, scope), scope)
            return ()
        case "first/1" | "last/1":
            return _trace(arguments[0], at, scope)
        case "isempty/1":
            _trace(arguments[0], at, scope)
            return ()
        case "first/0" | "last/0":
            return _elements(at)
        case "length/0" | "keys/0" | "any/0" | "all/0":
            _elements(at)
            return ()
    return _other_call(call, at, scope)


def _other_call(call: Call, at: _Places, scope: _Scope) -> _Places:
    if call.signature in _PASSING:
        return at
    if call.signature in _TYPE_ONLY:
        return ()
    _use(at)
    _use_all(call.arguments, at, scope)
    return ()
