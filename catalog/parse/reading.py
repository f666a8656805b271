"""Reads a document by the table of fields: right types, known names, usable expressions; every fault is noted.

Knows the table and nothing of what the fields mean. What is faulty is read as a stand-in (`FAULTY`, an expression
without text, an object without fields), so that reading goes on, finds the rest, and complains of nothing twice.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, TypeAlias

from catalog import expressions
from catalog.definition import Expression, Json
from catalog.parse.fields import (
    DEFINITION,
    MOST_ENTRIES,
    Anything,
    Choice,
    Field,
    Flag,
    Jq,
    JsonValue,
    LabelMap,
    ListOf,
    Object,
    Shape,
    Text,
    objects,
)
from catalog.parse.problem import MOST_PROBLEMS, Problem, below, listed, nearest
from catalog.resources.message import shown

Values: TypeAlias = Mapping[str, Any]
"""An object's fields, each one of the table: absent ones are None, False, () or {}, by their shape."""

Builder: TypeAlias = Callable[[Values], Any]
"""Makes the value of an object from its fields."""

ObjectRule: TypeAlias = Callable[[Values, str], Iterable[Problem]]
"""What is wrong with an object whose fields are each right; it gets the fields and the object's path."""

FAULTY = "\0"
"""What a faulty text is read as; no text may have this character."""

_MOST_UNKNOWN = 20  # unknown fields of one object that are reported one by one
_LABEL_KEY = re.compile(r"(?:[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


class TooManyProblems(Exception):
    """Reading has stopped: there are as many problems as are told."""


class Reading:
    """One reading of one document; `problems` grows while it goes on.

    It stops, with `TooManyProblems`, where there are more than anybody reads.
    `builders` and `rules` are found by the name of an object; the value of one without a builder is its fields.
    """

    def __init__(self, builders: Mapping[str, Builder], rules: Mapping[str, ObjectRule]) -> None:
        self.problems: list[Problem] = []
        self._builders = builders
        self._rules = rules

    def note(self, path: str, what: str, found: str | None, remedy: str) -> None:
        """Add a problem."""
        self.problems.append(Problem(path, what, found, remedy))

    def read(self, shape: Shape, value: Json, path: str) -> Any:
        """The value that a present field or entry stands for."""
        match shape:
            case Text():
                return self._text(shape, value, path)
            case Jq():
                return self._expression(value, path)
            case Flag():
                return self._flag(value, path)
            case Choice():
                return self._choice(shape, value, path)
            case JsonValue():
                return self._json_text(value, path)
            case LabelMap():
                return self._labels(value, path)
            case ListOf():
                return self._list(shape, value, path)
            case Object():
                return self._object(shape, value, path)
            case Anything():
                return value

    # ------------------------------------------------------------------------------------------- scalars

    def _string(self, value: Json, path: str) -> str:
        """The value if it is a string of Unicode characters; else the fault is noted."""
        if isinstance(value, str):
            if _is_clean(value):
                return value
            self.note(path, "has characters that are no text", shown(value), "write it anew")
        elif isinstance(value, bool):
            remedy = "quote it: without quotes YAML takes on, off, yes, no, true and false for booleans"
            self.note(path, "is a boolean where a string belongs", shown(value), remedy)
        elif isinstance(value, int | float):
            self.note(path, "is a number where a string belongs", shown(value), "quote it")
        else:
            self.note(path, "is no string", shown(value), "write a string")
        return FAULTY

    def _text(self, shape: Text, value: Json, path: str) -> str:
        text = self._string(value, path)
        if text not in ("", FAULTY) and not re.fullmatch(shape.form, text):
            self.note(path, "has the wrong form", shown(text), f"write {shape.wanted}")
            return FAULTY
        return text

    def _expression(self, value: Json, path: str) -> Expression:
        text = self._string(value, path)
        if text == FAULTY:
            return Expression("", path)
        if not text:
            self.note(path, "is empty", shown(text), "write a jq expression")
        for problem in expressions.problems(text) if text else ():
            what, _, remedy = problem.partition("; ")
            self.note(path, what, shown(text), remedy or "correct the expression")
        return Expression(text, path)

    def _flag(self, value: Json, path: str) -> bool:
        if not isinstance(value, bool):
            self.note(path, "is no boolean", shown(value), "write true or false, without quotes")
        return value is True

    def _choice(self, shape: Choice, value: Json, path: str) -> str:
        text = self._string(value, path)
        if text in shape.words:
            return text
        if text != FAULTY:
            self.note(path, "is none of the known words", shown(text), f"write {listed(shape.words, 'or')}")
        return shape.words[0]

    def _json_text(self, value: Json, path: str) -> str:
        """Upstream has had both: JSON as a text, and the value itself."""
        try:
            meant = json.loads(value) if isinstance(value, str) else value
            return json.dumps(meant, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        except (ValueError, RecursionError):
            remedy = f"write it as JSON, for example '{json.dumps('Suspended')}' for a string"
            self.note(path, "is no JSON", shown(value), remedy)
            return "null"

    def _labels(self, value: Json, path: str) -> Mapping[str, str]:
        if not isinstance(value, dict) or not value:
            self.note(path, "is no map of labels", shown(value), "write at least one label, as name: value")
            return {FAULTY: FAULTY}
        labels = {}
        for name, label in value.items():
            there = below(path, name)
            labels[name] = self._string(label, there)
            if not _LABEL_KEY.fullmatch(name):
                self.note(there, "is no name of a label", shown(name), "write a name such as example.com/role")
            if labels[name] != FAULTY and not _LABEL_VALUE.fullmatch(labels[name]):
                self.note(there, "is no value that a label can have", shown(label), "write the label as pods have it")
        return labels

    # ---------------------------------------------------------------------------------- lists and objects

    def _list(self, shape: ListOf, value: Json, path: str) -> tuple[Any, ...]:
        if not isinstance(value, list):
            self.note(path, "is no list", shown(value), "write a list, even for one entry")
            return (self._stand_in(shape.entry, path),)
        if len(value) < shape.at_least:
            self.note(path, "has too few entries", shown(value), f"write at least {shape.at_least}")
        if len(value) > MOST_ENTRIES:
            self.note(path, "has too many entries", shown(value), f"write at most {MOST_ENTRIES}")
        entries = value[:MOST_ENTRIES]
        if shape.unique_by is not None:
            self._note_repeated(entries, shape.unique_by, path)
        return tuple(self.read(shape.entry, entry, f"{path}[{index}]") for index, entry in enumerate(entries))

    def _note_repeated(self, entries: list[Json], names: tuple[str, ...], path: str) -> None:
        seen: dict[tuple[str, ...], int] = {}
        for index, entry in enumerate(entries):
            fields = entry if isinstance(entry, dict) else {}
            parts = tuple(fields.get(name) or "" for name in names) if names else (entry,)
            if not any(parts) or not all(isinstance(part, str) for part in parts):
                continue  # its own fault, noted elsewhere
            first = seen.setdefault(parts, index)
            if first != index:
                there = f"{path}[{index}]" if len(names) != 1 else f"{path}[{index}].{names[0]}"
                found = listed(tuple(shown(part) for part in parts))
                self.note(there, f"repeats entry {first}", found, "write each only once")

    def _object(self, shape: Object, value: Json, path: str) -> Any:
        if len(self.problems) > MOST_PROBLEMS:
            raise TooManyProblems
        if isinstance(value, dict):
            if shape.closed:
                self._note_unknown(shape, value, path)
            values = {field.name: self._field(field, value, path) for field in shape.fields}
            self.problems.extend(self._rules.get(shape.name, _no_rule)(values, path))
            return self._builders.get(shape.name, _as_it_is)(values)
        names = tuple(field.name for field in shape.fields)
        needed = tuple(field.name for field in shape.fields if field.required)
        self.note(path, "is no object", shown(value), f"write an object with {listed(needed or names)}")
        return self._stand_in(shape, path)

    def _field(self, field: Field, owner: Mapping[str, Json], path: str) -> Any:
        there = below(path, field.name)
        value = owner.get(field.name)
        if field.name in owner and not _is_absent(value, field.shape):
            return self.read(field.shape, value, there)
        if not field.required:
            return _absent(field.shape)
        if value is None:
            self.note(there, "is missing", None, f"write {field.meaning}")
        else:
            self.note(there, "is empty", shown(value), f"write {field.meaning}")
        return self._stand_in(field.shape, there)

    def _stand_in(self, shape: Shape, path: str) -> Any:
        """What is read in place of a faulty value: it has been complained of and must cause no further complaint.

        Of an object that has to state something that is stated; of one that has to state nothing, everything is.
        """
        match shape:
            case Text():
                return FAULTY
            case Jq():
                return Expression("", path)
            case LabelMap():
                return {FAULTY: FAULTY}
            case JsonValue():
                return "null"
            case ListOf():
                return (self._stand_in(shape.entry, path),)
            case Object():
                stated = [field for field in shape.fields if field.required] or shape.fields
                values = {
                    field.name: self._stand_in(field.shape, path) if field in stated else _absent(field.shape)
                    for field in shape.fields
                }
                return self._builders.get(shape.name, _as_it_is)(values)
            case _:
                return _absent(shape)

    def _note_unknown(self, shape: Object, value: Mapping[str, Json], path: str) -> None:
        known = {field.name for field in shape.fields}
        unknown = [name for name in value if name not in known]
        for name in unknown[:_MOST_UNKNOWN]:
            remedy = _right_name(name, shape)
            self.note(below(path, name), f"is no field of {shape.name}", shown(value[name]), remedy)
        if len(unknown) > _MOST_UNKNOWN:
            others = f"{len(unknown) - _MOST_UNKNOWN} more"
            self.note(path or shape.name, "has further unknown fields", others, "leave them out")


def as_found(value: str | Expression) -> str | None:
    """A text or an expression as a message shows it; None when it was faulty, which has been said already."""
    text = value.text if isinstance(value, Expression) else value
    return None if text == FAULTY or (isinstance(value, Expression) and not text) else shown(text)


def _no_rule(values: Values, path: str) -> Iterable[Problem]:  # noqa: ARG001 - the form of a rule
    return ()


def _as_it_is(values: Values) -> Values:
    return values


def _is_clean(text: str) -> bool:
    """Whether it has neither the character that stands for a fault nor half of a surrogate pair."""
    return FAULTY not in text and (text.isascii() or text.encode(errors="ignore").decode() == text)


def _is_absent(value: Json, shape: Shape) -> bool:
    """Whether a present field says nothing: null, or empty where emptiness means nothing."""
    match shape:
        case JsonValue():
            return False
        case Text() | Jq() | Choice():
            return value is None or (value == "" and not (isinstance(shape, Text) and shape.may_be_empty))
        case _:
            return value is None


def _absent(shape: Shape) -> Any:
    match shape:
        case Flag():
            return False
        case Choice():
            return shape.words[0]
        case ListOf():
            return ()
        case LabelMap():
            return {}
        case _:
            return None


def _right_name(name: str, shape: Object) -> str:
    """What to do about an unknown field: the nearest known name, the object that has such a field, or all names."""
    names = {field.name.lower(): field.name for field in shape.fields}
    exact = names.get(name.lower())
    elsewhere = _objects_with(name)
    if exact is None and elsewhere:
        return f"move it to {listed(elsewhere, 'or')}"
    near = name.lower() if exact else nearest(name.lower(), names)
    if near is not None:
        return f"write {names[near]} if that is meant"
    return f"write {listed(tuple(names.values()), 'or')}"


@cache
def _homes() -> Mapping[str, tuple[str, ...]]:
    """Field name → objects that have it, each once."""
    homes: dict[str, dict[str, None]] = {}
    for shape in objects(DEFINITION):
        for field in shape.fields:
            homes.setdefault(field.name, {})[shape.name] = None
    return {name: tuple(objects_) for name, objects_ in homes.items()}


def _objects_with(name: str) -> tuple[str, ...]:
    found = _homes().get(name, ())
    return found if len(found) <= 2 else ()  # a name such as "path" tells nothing
