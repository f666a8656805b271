"""Writes the reference of the definition language from its tables of fields and of jq functions.

What the fields mean together is told by hand, around it.
"""

import re
from collections.abc import Iterator

from catalog.expressions.vocabulary import FUNCTIONS, REFUSED
from catalog.parse.fields import (
    DEFINITION,
    Anything,
    Choice,
    Field,
    Flag,
    Input,
    Jq,
    JsonValue,
    LabelMap,
    ListOf,
    Object,
    Shape,
    Text,
)


def fields() -> str:
    """A table for each object of the language, outermost first."""
    return "\n\n".join(_section(path, shape) for path, shape in _objects(DEFINITION, ""))


def _objects(shape: Shape, path: str) -> Iterator[tuple[str, Object]]:
    """Each object with its path; one that occurs in several places where it is first."""
    seen: set[str] = set()
    waiting = [(path, shape)]
    while waiting:
        place, found = waiting.pop(0)
        while isinstance(found, ListOf):
            place, found = f"{place}[]", found.entry
        if not isinstance(found, Object) or found.name in seen:
            continue
        seen.add(found.name)
        if found.closed:
            yield place, found
        inner = [(f"{place}.{field.name}" if place else field.name, field.shape) for field in found.fields]
        waiting = [*inner, *waiting]


def _section(path: str, shape: Object) -> str:
    rows = [f"#### {_title(path, shape)}", "", f"`{path or 'the document'}`", ""]
    rows += ["| field | form | meaning |", "|---|---|---|"]
    rows += [_row(field) for field in shape.fields]
    return "\n".join(rows)


def _title(path: str, shape: Object) -> str:
    return shape.name if path else "document"


def _row(field: Field) -> str:
    marks = "".join((", required" if field.required else "", ", ours" if field.ours else ""))
    return f"| `{field.name}`{marks} | {_form(field.shape)} | {field.meaning} |"


def _form(shape: Shape) -> str:
    match shape:
        case Text():
            return shape.wanted
        case Jq():
            return "jq, on the pod" if shape.input is Input.POD else "jq, on the object"
        case Flag():
            return "`true` or `false`"
        case Choice():
            return ", ".join(f"`{word}`" for word in shape.words) + "; absent is the first"
        case JsonValue():
            return "JSON"
        case LabelMap():
            return "labels and their values"
        case Anything():
            return "anything"
        case ListOf():
            return (
                f"list of {_form(shape.entry)}"
                if not isinstance(shape.entry, Object)
                else f"list of {_link(shape.entry)}"
            )
        case Object():
            return _link(shape)


def _link(shape: Object) -> str:
    if not shape.closed:
        return "object"
    return f"[{shape.name}](#{re.sub(r'[^a-z0-9-]', '', shape.name.lower())})"


def functions() -> str:
    """The jq functions that an expression may use, by name."""
    names = dict.fromkeys(f"`{signature.split('/')[0]}`" for signature in FUNCTIONS)
    return ", ".join(sorted(names, key=str.lower))


def refused() -> str:
    """What jq has and an expression may not use, with what to do instead."""
    allowed = {signature.split("/")[0] for signature in FUNCTIONS}
    by_reason: dict[str, list[str]] = {}
    for name, reason in REFUSED.items():
        by_reason.setdefault(reason, []).append(f"`{name}`" + (" with two arguments" if name in allowed else ""))
    rows = [f"| {', '.join(names)} | {reason.replace('|', chr(92) + '|')} |" for reason, names in by_reason.items()]
    return "\n".join(["| not allowed | because |", "|---|---|", *rows])
