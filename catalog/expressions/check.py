"""The static rules: what an expression may not contain, each finding a sentence for the person who wrote it.

Reads the tree, never the text, so that no spelling, comment or interpolation hides anything.
"""

import difflib
from collections.abc import Iterator
from functools import lru_cache

from catalog.definition import MAX_EXPRESSION_LENGTH
from catalog.expressions import engine
from catalog.expressions.nodes import Binary, Bind, Call, Fold, Format, Literal, Node, Text, Variable, children
from catalog.expressions.plain import NotPlain, compile_plain
from catalog.expressions.render import render
from catalog.expressions.syntax import parse
from catalog.expressions.tokens import SyntaxProblem
from catalog.expressions.vocabulary import ASSIGNS, FORMATS, FUNCTIONS, MAX_RANGE, REFUSED

_ASSIGNMENT = frozenset(("=", "|=", "+=", "-=", "*=", "/=", "%=", "//="))
_ARITIES: dict[str, list[str]] = {}
for _signature in FUNCTIONS:
    _ARITIES.setdefault(_signature.partition("/")[0], []).append(_signature.partition("/")[2])


@lru_cache(maxsize=4096)
def checked(text: str) -> tuple[Node | None, tuple[str, ...]]:
    """The tree of an expression that may be used, or None and what is wrong with it."""
    if len(text) > MAX_EXPRESSION_LENGTH:
        found = f"the expression has {len(text)} characters; keep it within {MAX_EXPRESSION_LENGTH}"
        return None, (found,)
    try:
        tree = parse(text)
    except SyntaxProblem as problem:
        return None, (str(problem),)
    found_in_tree = tuple(dict.fromkeys(_findings(tree, frozenset())))
    if found_in_tree:
        return None, found_in_tree
    refused = "" if _is_plain(tree) else engine.refusal(text) or engine.refusal(render(tree))
    return (None, (refused,)) if refused else (tree, ())


def _is_plain(tree: Node) -> bool:
    """Whether libjq, which takes a millisecond to compile anything, needs not be asked: it will not evaluate it."""
    try:
        compile_plain(tree)
    except NotPlain:
        return False
    return True


def problems(text: str) -> tuple[str, ...]:
    """What is wrong with an expression, a sentence each with its column; empty when it may be used."""
    return checked(text)[1]


def _findings(node: Node, scope: frozenset[str]) -> Iterator[str]:
    yield from _own_findings(node, scope)
    match node:
        case Bind(source, name, body):
            yield from _findings(source, scope)
            yield from _findings(body, scope | {name})
        case Fold(source=source, name=name, start=start):
            yield from _findings(source, scope)
            yield from _findings(start, scope)
            for child in children(node)[2:]:
                yield from _findings(child, scope | {name})
        case _:
            for child in children(node):
                yield from _findings(child, scope)


def _own_findings(node: Node, scope: frozenset[str]) -> Iterator[str]:
    match node:
        case Call():
            yield from _call_findings(node)
        case Variable(name, column) if name not in scope:
            yield f"column {column}: `${name}` {_why_not_variable(name)}"
        case Format(name, column) | Text(name, _, column) if name not in FORMATS:
            yield f"column {column}: `@{name}` is not a format of this language; known are {_listed(FORMATS)}"
        case Binary(operator, _, _, column) if operator in _ASSIGNMENT:
            yield f"column {column}: `{operator}` {ASSIGNS}"


def _call_findings(call: Call) -> Iterator[str]:
    if call.signature not in FUNCTIONS:
        yield f"column {call.column}: `{call.name}` {_why_not_function(call)}"
    elif call.name == "range" and (why := _unbounded_range(call.arguments)):
        yield f"column {call.column}: `range` {why}"


def _why_not_function(call: Call) -> str:
    if call.name in REFUSED and call.name not in _ARITIES:
        return REFUSED[call.name]
    if call.name in _ARITIES:
        return f"takes {' or '.join(_ARITIES[call.name])} argument(s) here, not {len(call.arguments)}"
    near = difflib.get_close_matches(call.name, _ARITIES, n=1)
    hint = f"did you mean `{near[0]}`?" if near else "a fixed key is written `.name`, a text in quotes"
    return f"is not a function of this language; {hint}"


def _why_not_variable(name: str) -> str:
    return REFUSED.get(f"${name}", f"is not defined here; define it with `… as ${name} | …`")


def _unbounded_range(arguments: tuple[Node, ...]) -> str:
    bounds = [argument.value for argument in arguments if isinstance(argument, Literal)]
    numbers = [bound for bound in bounds if isinstance(bound, int | float) and not isinstance(bound, bool)]
    if len(numbers) < len(arguments):
        return "has a computed bound; write its bounds as numbers"
    start, end = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
    step = numbers[2] if len(numbers) == 3 else 1
    if step == 0 or abs((end - start) / step) > MAX_RANGE:
        return f"gives more than {MAX_RANGE} numbers; keep it within that"
    return ""


def _listed(names: dict[str, int]) -> str:
    return ", ".join(f"`@{name}`" for name in names)
