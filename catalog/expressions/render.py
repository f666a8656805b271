"""Writes a checked tree as text for libjq: the only text that libjq ever evaluates.

So libjq runs what was understood, not what was written, and it runs it as gojq would: objects are iterated and printed
in the order of their keys. Knows nothing of what is allowed.
"""

import json

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
    Scalar,
    Slice,
    Step,
    Text,
    Try,
    Variable,
)

PRELUDE = """
def _each: if type == "object" then .[keys[]] else .[] end;
def _listed: if type == "object" then [_each] else . end;
def _sorted: if type == "object" then . as $o | reduce keys[] as $k ({}; .[$k] = ($o[$k] | _sorted))
  elif type == "array" then map(_sorted) else . end;
def _entries: [keys[] as $k | {key: $k, value: .[$k]}];
def _number: if type == "string" and (contains("n") or contains("N")) then error("not a number") else tonumber end;
"""
"""libjq takes keys in the order in which an object got them, and reads `nan` as a number; gojq does neither."""

_REPLACED = {
    "map/1": "[_each | {0}]",
    "add/0": "(_listed | add)",
    "any/0": "any(_each; .)",
    "all/0": "all(_each; .)",
    "any/1": "any(_each; {0})",
    "all/1": "all(_each; {0})",
    "join/1": "({0} as $_0 | _listed | join($_0))",
    "flatten/0": "(_listed | flatten)",
    "flatten/1": "({0} as $_0 | _listed | flatten($_0))",
    "to_entries/0": "_entries",
    "with_entries/1": "(_entries | map({0}) | from_entries)",
    "from_entries/0": "(_listed | from_entries)",
    "tostring/0": "(_sorted | tostring)",
    "tojson/0": "(_sorted | tojson)",
    "tonumber/0": "_number",
    "add/1": "([{0}] | add)",
}


def render(node: Node) -> str:
    """The expression as jq text that needs the definitions of `PRELUDE`; every part in its own parentheses."""
    match node:
        case Identity():
            return "."
        case Literal(value):
            return _literal(value)
        case Variable(name):
            return f"${name}"
        case Format(name):
            return f"(_sorted | @{name})"
        case Text(format_name, parts):
            return f'@{format_name} "{"".join(_text_part(part) for part in parts)}"'
        case Call():
            return _call(node)
        case Path(start, steps):
            return _path(start, steps)
        case _:
            return f"({_compound(node)})"


def _compound(node: Node) -> str:  # noqa: C901 - one case for each kind of node
    match node:
        case Pipe(stages):
            return " | ".join(render(stage) for stage in stages)
        case Comma(parts):
            return ", ".join(render(part) for part in parts)
        case Binary(operator, left, right):
            return f"{render(left)} {operator} {render(right)}"
        case Negate(body):
            return f"-{render(body)}"
        case If(branches, otherwise):
            tests = " elif ".join(f"{render(condition)} then {render(body)}" for condition, body in branches)
            return f"if {tests} else {render(otherwise)} end"
        case Try(body, handler):
            return f"try {render(body)}" + (f" catch {render(handler)}" if handler is not None else "")
        case Bind(source, name, body):
            return f"{render(source)} as ${name} | {render(body)}"
        case Fold():
            return _fold(node)
        case Array(body):
            return f"[{render(body) if body is not None else ''}]"
        case Object(entries):
            return "{" + ", ".join(f"({render(key)}): {render(value)}" for key, value in entries) + "}"
        case _:
            raise AssertionError(f"{type(node).__name__} has its own text")


def _literal(value: Scalar) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return f"({text})" if text.startswith("-") else text


def _text_part(part: str | Node) -> str:
    if isinstance(part, str):
        return json.dumps(part, ensure_ascii=False)[1:-1]
    return f"\\({render(part)} | _sorted)"


def _call(call: Call) -> str:
    arguments = [render(argument) for argument in call.arguments]
    if call.signature in _REPLACED:
        return _REPLACED[call.signature].format(*arguments)
    return f"{call.name}({'; '.join(arguments)})" if arguments else call.name


def _path(start: Node, steps: tuple[Step, ...]) -> str:
    text = render(start)
    for step in steps:
        text = _step(text, step)
    return text


def _step(text: str, step: Step) -> str:
    silenced = "?" if step.optional else ""
    match step:
        case Field(name):
            return f"{text}[{_literal(name)}]{silenced}"
        case Index(key):
            return f"{text}[{render(key)}]{silenced}"
        case Slice(start, end):
            bounds = [render(bound) if bound is not None else "" for bound in (start, end)]
            return f"{text}[{':'.join(bounds)}]{silenced}"
        case Each():
            return f"({text} | _each{silenced})"


def _fold(node: Fold) -> str:
    parts = [node.start, node.update] + ([node.extract] if node.extract is not None else [])
    return f"{node.keyword} {render(node.source)} as ${node.name} ({'; '.join(render(part) for part in parts)})"
