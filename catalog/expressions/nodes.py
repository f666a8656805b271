"""The parts of a jq expression as frozen values: what the parser makes and everything else reads.

No behaviour but `children` and `walk`. `column` is where the part was written, counted from 1, for messages.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

Scalar: TypeAlias = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Identity:
    """`.`: the input."""


@dataclass(frozen=True, slots=True)
class Literal:
    """`null`, `true`, `false`, a number, or a string without interpolation."""

    value: Scalar


@dataclass(frozen=True, slots=True)
class Variable:
    """`$name`: what it is bound to."""

    name: str
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Format:
    """`@name` as a function of its input."""

    name: str
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Text:
    r"""`"… \(part) …"` or `@format "… \(part) …"`; `parts` are literal text and expressions."""

    format: str
    parts: "tuple[str | Node, ...]"
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """`name` or `name(argument; …)`: a function."""

    name: str
    arguments: "tuple[Node, ...]" = ()
    column: int = field(default=0, compare=False)

    @property
    def signature(self) -> str:
        """`name/number of arguments`, as jq writes it."""
        return f"{self.name}/{len(self.arguments)}"


@dataclass(frozen=True, slots=True)
class Field:
    """`.name`, `."name"`, `["name"]`; with `optional` also `?`, which silences this step's error only."""

    name: str
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Index:
    """`[key]`, where the key is evaluated on the input of the whole path."""

    key: "Node"
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Slice:
    """`[start:end]`, at least one of the two."""

    start: "Node | None"
    end: "Node | None"
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Each:
    """`[]`: every element of an array, every value of an object."""

    optional: bool = False


Step: TypeAlias = Field | Index | Slice | Each


@dataclass(frozen=True, slots=True)
class Path:
    """`start` followed by steps; the start of `.a.b` is the identity."""

    start: "Node"
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Pipe:
    """`stage | stage | …`: each on the results of the one before it."""

    stages: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Comma:
    """`part, part, …`: the results of one after the other."""

    parts: "tuple[Node, ...]"


@dataclass(frozen=True, slots=True)
class Binary:
    """Arithmetic, comparison, `and`, `or`, `//`; also assignment, which no check lets through."""

    operator: str
    left: "Node"
    right: "Node"
    column: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Negate:
    """`-body`: the negative number."""

    body: "Node"


@dataclass(frozen=True, slots=True)
class If:
    """`if condition then body elif … else otherwise end`; without `else`, the input."""

    branches: "tuple[tuple[Node, Node], ...]"
    otherwise: "Node"


@dataclass(frozen=True, slots=True)
class Try:
    """`try body catch handler`; without `catch`, and for `body?`, an error ends the results silently."""

    body: "Node"
    handler: "Node | None" = None


@dataclass(frozen=True, slots=True)
class Bind:
    """`source as $name | body`: the body once for each result of the source."""

    source: "Node"
    name: str
    body: "Node"


@dataclass(frozen=True, slots=True)
class Fold:
    """`reduce source as $name (start; update)`, or `foreach` with an optional third part `extract`."""

    keyword: str
    source: "Node"
    name: str
    start: "Node"
    update: "Node"
    extract: "Node | None" = None


@dataclass(frozen=True, slots=True)
class Array:
    """`[body]`; without body, `[]`."""

    body: "Node | None" = None


@dataclass(frozen=True, slots=True)
class Object:
    """`{key: value, …}`; `{a}`, `{"a"}`, `{$a}` are written out in full."""

    entries: "tuple[tuple[Node, Node], ...]"


Node: TypeAlias = (
    Identity
    | Literal
    | Variable
    | Format
    | Text
    | Call
    | Path
    | Pipe
    | Comma
    | Binary
    | Negate
    | If
    | Try
    | Bind
    | Fold
    | Array
    | Object
)


def children(node: Node) -> tuple[Node, ...]:  # noqa: C901 - one case for each kind of node
    """The expressions directly inside a node, in the order in which they are written."""
    match node:
        case Identity() | Literal() | Variable() | Format():
            return ()
        case Text(parts=parts):
            return tuple(part for part in parts if not isinstance(part, str))
        case Call(arguments=inner) | Pipe(stages=inner) | Comma(parts=inner):
            return inner
        case Path(start, steps):
            return (start, *(key for step in steps for key in _keys(step)))
        case Binary(left=left, right=right):
            return left, right
        case Negate(body):
            return (body,)
        case If(branches, otherwise):
            return (*(part for branch in branches for part in branch), otherwise)
        case Try(body, handler):
            return (body,) if handler is None else (body, handler)
        case Bind(source, _, body):
            return source, body
        case Fold(source=source, start=start, update=update, extract=extract):
            return (source, start, update) if extract is None else (source, start, update, extract)
        case Array(content):
            return () if content is None else (content,)
        case Object(entries):
            return tuple(part for entry in entries for part in entry)


def _keys(step: Step) -> tuple[Node, ...]:
    match step:
        case Index(key):
            return (key,)
        case Slice(start, end):
            return tuple(bound for bound in (start, end) if bound is not None)
        case _:
            return ()


def walk(node: Node) -> Iterator[tuple[Node, int]]:
    """Every node with its depth (the root has 1), without recursion."""
    waiting: list[tuple[Node, int]] = [(node, 1)]
    while waiting:
        current, depth = waiting.pop()
        yield current, depth
        waiting.extend((child, depth + 1) for child in reversed(children(current)))
