"""Cuts a document down to the parts that are read, and writes it as the JSON text that libjq takes.

Shares what it keeps with the document. Knows nothing of expressions.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from catalog.definition import Json
from catalog.expressions.reads import Part

MAX_PARTS = 50_000
"""Parts of a document that are looked at one by one."""


class TooLarge(Exception):
    """The document has more than can be handed on, in the time there is."""


class Unwritable(Exception):
    """The document can't be written as JSON; the message says why, without its content."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What to keep of a value; scalars always are.

    With `whole` all of it. Else of an object the `fields`, and with `every` the other keys too; of an array, with
    `every`, all elements.
    """

    whole: bool
    fields: "Mapping[str, Shape]"
    every: "Shape | None"


def shape(part: Part) -> Shape:
    """The final form of what was found to be read."""
    if part.whole:
        return Shape(whole=True, fields={}, every=None)
    every = shape(part.every) if part.every is not None else None
    fields = {name: shape(_merged(inner, part.every)) for name, inner in part.fields.items()}
    return Shape(whole=False, fields=fields, every=every)


def _merged(one: Part, other: Part | None) -> Part:
    if other is None:
        return one
    every = one.every if other.every is None else _merged(other.every, one.every)
    names = {**one.fields, **other.fields}
    fields = {
        name: _merged(inner, one.fields.get(name) if name in other.fields else None) for name, inner in names.items()
    }
    return Part(one.whole or other.whole, fields, every)


def pruned(document: Json, kept: Shape) -> Json:
    """The document without what `kept` leaves out. Raises `TooLarge`."""
    return _Pruning().of(document, kept)


class _Pruning:
    def __init__(self) -> None:
        self._left = MAX_PARTS

    def of(self, value: Json, kept: Shape) -> Json:
        if kept.whole:
            return value
        if type(value) is dict:
            return self._object(value, kept)
        if type(value) is list:
            if kept.every is None:
                return []
            self._count(len(value))
            return [self.of(element, kept.every) for element in value]
        return value

    def _object(self, value: dict[str, Json], kept: Shape) -> Json:
        if kept.every is None:
            return {name: self.of(value[name], inner) for name, inner in kept.fields.items() if name in value}
        self._count(len(value))
        return {name: self.of(inner, kept.fields.get(name, kept.every)) for name, inner in value.items()}

    def _count(self, parts: int) -> None:
        self._left -= parts
        if self._left < 0:
            raise TooLarge


def written(value: Json) -> bytes:
    """JSON text with sorted keys, whole numbers without a fraction. Raises `Unwritable`."""
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
        # libjq prints a number as it was written, gojq by its value.
        return orjson.dumps(_whole_numbers(value), option=orjson.OPT_SORT_KEYS) if b".0" in text else text
    except (orjson.JSONEncodeError, RecursionError) as error:
        raise Unwritable("the document is nested too deeply or is not JSON") from error


def _whole_numbers(value: Json) -> Json:
    if type(value) is float and value.is_integer():
        return int(value)
    if type(value) is list:
        return [_whole_numbers(element) for element in value]
    if type(value) is dict:
        return {name: _whole_numbers(inner) for name, inner in value.items()}
    return value
