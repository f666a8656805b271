"""jq's view of plain JSON values: types, order, equality, containment, and how they are printed.

Python's own comparison would take true for 1. Comparing and printing visit a whole value, so they count what they
visit in `meter[0]` and give up when it is spent.
"""

import json
import math
from collections.abc import Callable
from functools import cmp_to_key
from typing import TypeAlias

from catalog.definition import Json
from catalog.expressions.outcome import MAX_NUMBER

Meter: TypeAlias = list[Json]
"""The first element is the number of steps left, each of at most about 0.2 µs; the others hold values of variables."""


class Fault(Exception):
    """The expression fails on this document, as jq would; the message tells nothing of the document but types."""


class Beyond(Exception):
    """jq has a result here, which Python does not compute. Like `Exhausted`, no part of an expression may catch it."""


class Exhausted(Exception):
    """The steps are spent."""


_RANKS = {type(None): 0, bool: 1, int: 3, float: 3, str: 4, list: 5, dict: 6}
_NAMES = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def type_name(value: Json) -> str:
    """jq's name of a value's type."""
    return _NAMES.get(type(value), "no JSON")


def spend(meter: Meter, steps: int) -> None:
    """Raises `Exhausted` when fewer steps than that are left."""
    meter[0] -= steps
    if meter[0] < 0:
        raise Exhausted


def exact(number: float) -> int | float:
    """A computed number; raises `Beyond` when jq could not hold it exactly."""
    if -MAX_NUMBER <= number <= MAX_NUMBER:
        return number
    raise Beyond("a number beyond 2^53")


def compared(left: Json, right: Json, meter: Meter) -> int:
    """Less than, equal to or greater than 0, in jq's order of all values."""
    kind = type(left)
    if kind is type(right) and (kind is str or kind is int):
        return 1 if left > right else -1 if left < right else 0
    rank, other = _rank(left), _rank(right)
    if rank != other:
        return rank - other
    if rank == 5:
        return _compared_arrays(left, right, meter)
    if rank == 6:
        return _compared_objects(left, right, meter)
    return 0 if left is None else int(left > right) - int(left < right)


def _rank(value: Json) -> int:
    if value is True:
        return 2
    rank = _RANKS.get(type(value))
    if rank is None:
        raise Fault("a value is not JSON")
    return rank


def _compared_arrays(left: list[Json], right: list[Json], meter: Meter) -> int:
    spend(meter, 4 * min(len(left), len(right)) + 8)
    for one, other in zip(left, right, strict=False):
        if order := compared(one, other, meter):
            return order
    return len(left) - len(right)


def _compared_objects(left: dict[str, Json], right: dict[str, Json], meter: Meter) -> int:
    spend(meter, 4 * (len(left) + len(right)) + 8)
    keys, others = sorted(left), sorted(right)
    if keys != others:
        return 1 if keys > others else -1
    for key in keys:
        if order := compared(left[key], right[key], meter):
            return order
    return 0


def in_order(elements: list[Json], meter: Meter) -> list[Json]:
    """The elements sorted; equal ones stay in the order they had."""
    count = len(elements)
    spend(meter, count * count.bit_length())
    if {type(element) for element in elements} in ({str}, {int}):
        return sorted(elements)
    spend(meter, 4 * count * count.bit_length())
    return sorted(elements, key=cmp_to_key(lambda left, right: compared(left, right, meter)))


def extreme(elements: list[Json], meter: Meter, better: Callable[[int], bool]) -> Json:
    """The element that is `better` than all before it by the sign of their comparison; null for none."""
    spend(meter, 4 * len(elements))
    best: Json = None
    for at, element in enumerate(elements):
        if at == 0 or better(compared(element, best, meter)):
            best = element
    return best


def contains(whole: Json, part: Json, meter: Meter) -> bool:
    """jq's `contains`: substrings, and parts of arrays and objects at every depth."""
    if _rank(whole) != _rank(part):
        raise Fault(f"{type_name(whole)} and {type_name(part)} cannot have their containment checked")
    return _contains(whole, part, meter)


def _contains(whole: Json, part: Json, meter: Meter) -> bool:
    spend(meter, 4)
    if _rank(whole) != _rank(part):
        return False
    if type(whole) is str:
        return part in whole
    if type(whole) is dict:
        return all(key in whole and _contains(whole[key], part[key], meter) for key in part)
    if type(whole) is list:
        return all(any(_contains(element, wanted, meter) for element in whole) for wanted in part)
    return compared(whole, part, meter) == 0


def printed(value: Json, meter: Meter) -> str:
    """jq's `tostring`: a string itself, everything else as compact JSON with sorted keys."""
    return value if type(value) is str else _json(value, meter)


def _json(value: Json, meter: Meter) -> str:
    spend(meter, 16)
    if type(value) is str:
        spend(meter, len(value) // 16)
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if type(value) is list:
        return f"[{','.join([_json(element, meter) for element in value])}]"
    if type(value) is dict:
        return f"{{{','.join([f'{_json(key, meter)}:{_json(value[key], meter)}' for key in sorted(value)])}}}"
    if type(value) is int or type(value) is float:
        return _number(value)
    if value is None:
        return "null"
    if type(value) is bool:
        return "true" if value else "false"
    raise Fault("a value is not JSON")


def _number(number: float) -> str:
    text = str(int(number) if math.isfinite(number) and number == int(number) else number)
    if "e" in text or "n" in text:
        # jq's releases print these differently.
        raise Beyond("a very small number is printed differently by different jq")
    return text
