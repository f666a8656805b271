# ruff: noqa: ARG001, ARG005 - all of a table have one signature
"""jq's functions on plain JSON values, for evaluation without libjq. libjq is their reference in the tests.

Each takes its input, then its arguments' values, then the meter. They share parts of what they are given and change
nothing. Missing here: what needs arguments that are evaluated in a way of their own (`map`, `select`, `any(…)`).
"""

import math
import re
from collections.abc import Callable
from functools import cmp_to_key
from typing import TypeAlias

from catalog.definition import Json
from catalog.expressions.plain.operators import elements, index, is_number, plus, truth
from catalog.expressions.plain.values import (
    Beyond,
    Fault,
    Meter,
    compared,
    contains,
    exact,
    extreme,
    in_order,
    printed,
    spend,
    type_name,
)

OfInput: TypeAlias = Callable[[Json, Meter], Json]
OfInputAndArgument: TypeAlias = Callable[[Json, Json, Meter], Json]

_NUMERAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")


# Functions of the input


def _length(value: Json, meter: Meter) -> Json:
    if value is None:
        return 0
    if is_number(value):
        return abs(value)
    if type(value) in (str, list, dict):
        return len(value)
    raise Fault(f"{type_name(value)} has no length")


def _keys(value: Json, meter: Meter) -> Json:
    if type(value) is dict:
        spend(meter, 4 * len(value))
        return sorted(value)
    if type(value) is list:
        spend(meter, len(value))
        return list(range(len(value)))
    raise Fault(f"{type_name(value)} has no keys")


def _to_entries(value: Json, meter: Meter) -> Json:
    keys = _keys(value, meter)
    spend(meter, 8 * len(keys))
    return [{"key": key, "value": value[key]} for key in keys]


def added(values: list[Json], meter: Meter) -> Json:
    """All values added up, null for none; in one go where all have one type."""
    kinds = {type(value) for value in values if value is not None}
    present = [value for value in values if value is not None]
    if kinds == {str}:
        spend(meter, sum(map(len, present)) // 16)
        return "".join(present)
    if kinds == {list}:
        spend(meter, sum(map(len, present)))
        return [element for value in present for element in value]
    if kinds == {dict}:
        spend(meter, sum(map(len, present)))
        return {key: element for value in present for key, element in value.items()}
    total: Json = None
    for value in present:
        total = plus(total, value, meter)
    return total


def _add(value: Json, meter: Meter) -> Json:
    return added(elements(value, meter), meter)


def _min(value: Json, meter: Meter) -> Json:
    if type(value) is list and len(value) == 2:  # the smaller of two, as in most definitions
        one, other = value
        if type(one) is int and type(other) is int:
            return min(one, other)
    return extreme(_array(value), meter, lambda order: order < 0)


def _max(value: Json, meter: Meter) -> Json:
    return extreme(_array(value), meter, lambda order: order >= 0)


def _sort(value: Json, meter: Meter) -> Json:
    return in_order(_array(value), meter)


def _unique(value: Json, meter: Meter) -> Json:
    ordered = in_order(_array(value), meter)
    return [element for at, element in enumerate(ordered) if at == 0 or compared(ordered[at - 1], element, meter) != 0]


def _reverse(value: Json, meter: Meter) -> Json:
    if value is None:
        return []
    if type(value) is not list:
        raise Beyond(f"whether {type_name(value)} can be reversed differs between different jq")
    spend(meter, len(value))
    return value[::-1]


def _from_entries(value: Json, meter: Meter) -> Json:
    found = {}
    for entry in elements(value, meter):
        if not (type(entry) is dict and type(entry.get("key")) is str and "value" in entry):
            raise Beyond("entries without a key that is a string and a value")
        found[entry["key"]] = entry["value"]
    return found


def _array(value: Json) -> list[Json]:
    if type(value) is list:
        return value
    raise Fault(f"an array is needed, not {type_name(value)}")


def _any(value: Json, meter: Meter) -> Json:
    return any(truth(element) for element in elements(value, meter))


def _all(value: Json, meter: Meter) -> Json:
    return all(truth(element) for element in elements(value, meter))


def _to_number(value: Json, meter: Meter) -> Json:
    if is_number(value):
        return value
    if type(value) is not str or len(value) > 64 or not _NUMERAL.fullmatch(value):
        raise Fault(f"{type_name(value)} cannot be read as a number")
    return exact(float(value) if set(value) & set(".eE") else int(value))


def _to_boolean(value: Json, meter: Meter) -> Json:
    if type(value) is bool:
        return value
    if value in ("true", "false") and type(value) is str:
        return value == "true"
    raise Fault(f"{type_name(value)} cannot be read as a boolean")


def _ascii_downcase(value: Json, meter: Meter) -> Json:
    spend(meter, len(_string(value)) // 8)
    return value.lower() if value.isascii() else value.translate(_LOWER)


def _ascii_upcase(value: Json, meter: Meter) -> Json:
    spend(meter, len(_string(value)) // 8)
    return value.upper() if value.isascii() else value.translate(_UPPER)


def _string(value: Json) -> str:
    if type(value) is str:
        return value
    raise Fault(f"a string is needed, not {type_name(value)}")


def _rounding(function: Callable[[float], int]) -> OfInput:
    def rounded(value: Json, meter: Meter) -> Json:
        if not is_number(value):
            raise Fault(f"a number is needed, not {type_name(value)}")
        return exact(function(value))

    return rounded


def _half_away_from_zero(number: float) -> int:
    # Adding a half first would round 0.49999999999999994 up.
    whole = math.trunc(number)
    return whole + (int(math.copysign(1, number)) if abs(number - whole) >= 0.5 else 0)


OF_INPUT: dict[str, OfInput] = {
    "add/0": _add,
    "all/0": _all,
    "any/0": _any,
    "ascii_downcase/0": _ascii_downcase,
    "ascii_upcase/0": _ascii_upcase,
    "ceil/0": _rounding(math.ceil),
    "first/0": lambda value, meter: index(value, 0),
    "floor/0": _rounding(math.floor),
    "from_entries/0": _from_entries,
    "keys/0": _keys,
    "last/0": lambda value, meter: index(value, -1),
    "length/0": _length,
    "max/0": _max,
    "min/0": _min,
    "not/0": lambda value, meter: not truth(value),
    "reverse/0": _reverse,
    "round/0": _rounding(_half_away_from_zero),
    "sort/0": _sort,
    "to_entries/0": _to_entries,
    "toboolean/0": _to_boolean,
    "tojson/0": lambda value, meter: printed([value], meter)[1:-1],
    "tonumber/0": _to_number,
    "tostring/0": printed,
    "trunc/0": _rounding(math.trunc),
    "type/0": lambda value, meter: type_name(value),
    "unique/0": _unique,
}

# Functions of the input that keep it or drop it

KEEPING: dict[str, Callable[[Json], bool]] = {
    "arrays/0": lambda value: type(value) is list,
    "booleans/0": lambda value: type(value) is bool,
    "iterables/0": lambda value: type(value) is list or type(value) is dict,
    "nulls/0": lambda value: value is None,
    "numbers/0": is_number,
    "objects/0": lambda value: type(value) is dict,
    "scalars/0": lambda value: type(value) is not list and type(value) is not dict,
    "strings/0": lambda value: type(value) is str,
    "values/0": lambda value: value is not None,
}

# Functions of the input and one argument


def _has(value: Json, key: Json, meter: Meter) -> Json:
    if value is None:
        return False
    if type(key) is str and type(value) is dict:
        return key in value
    if is_number(key) and type(value) is list:
        return 0 <= int(key) < len(value)
    raise Fault(f"cannot check whether {type_name(value)} has a {type_name(key)} key")


def _starts_with(value: Json, start: Json, meter: Meter) -> Json:
    return _strings(value, start)[0].startswith(start)


def _ends_with(value: Json, end: Json, meter: Meter) -> Json:
    return _strings(value, end)[0].endswith(end)


def _without_start(value: Json, start: Json, meter: Meter) -> Json:
    spend(meter, len(_strings(value, start)[0]) // 16)
    return value.removeprefix(start)


def _without_end(value: Json, end: Json, meter: Meter) -> Json:
    spend(meter, len(_strings(value, end)[0]) // 16)
    return value.removesuffix(end)


def _split(value: Json, separator: Json, meter: Meter) -> Json:
    text = _strings(value, separator)[0]
    spend(meter, len(text) // 16 + (text.count(separator) if separator else len(text)))
    if not separator:
        return list(text)
    return text.split(separator) if text else []


def _strings(value: Json, argument: Json) -> tuple[str, str]:
    if type(value) is str and type(argument) is str:
        return value, argument
    raise Fault(f"strings are needed, not {type_name(value)} and {type_name(argument)}")


def _join(value: Json, separator: Json, meter: Meter) -> Json:
    texts = []
    for element in elements(value, meter):
        if type(element) is list or type(element) is dict:
            raise Fault(f"string and {type_name(element)} cannot be added")
        texts.append("" if element is None else printed(element, meter))
    spend(meter, (sum(map(len, texts)) + len(texts) * len(separator)) // 16)
    return separator.join(texts)


OF_INPUT_AND_ARGUMENT: dict[str, OfInputAndArgument] = {
    "contains/1": contains,
    "endswith/1": _ends_with,
    "has/1": _has,
    "in/1": lambda key, value, meter: _has(value, key, meter),
    "join/1": _join,
    "ltrimstr/1": _without_start,
    "nth/1": lambda value, key, meter: index(value, key),
    "rtrimstr/1": _without_end,
    "split/1": _split,
    "startswith/1": _starts_with,
}
"""`join/1` only with a string for its argument."""


# Functions of an array whose elements have been given keys

Keyed: TypeAlias = list[tuple[list[Json], Json]]


def _by_key(keyed: Keyed, meter: Meter) -> Keyed:
    def order(left: tuple[list[Json], Json], right: tuple[list[Json], Json]) -> int:
        return compared(left[0], right[0], meter)

    spend(meter, 4 * len(keyed) * len(keyed).bit_length())
    return sorted(keyed, key=cmp_to_key(order))


def _grouped(keyed: Keyed, meter: Meter) -> list[list[Json]]:
    groups: list[list[Json]] = []
    last: list[Json] | None = None
    for key, element in _by_key(keyed, meter):
        if last is None or compared(last, key, meter) != 0:
            groups.append([])
        groups[-1].append(element)
        last = key
    return groups


def _best(keyed: Keyed, meter: Meter, better: Callable[[int], bool]) -> Json:
    best: tuple[list[Json], Json] | None = None
    for pair in keyed:
        if best is None or better(compared(pair[0], best[0], meter)):
            best = pair
    return best[1] if best is not None else None


ORDERED: dict[str, Callable[[Keyed, Meter], Json]] = {
    "group_by/1": _grouped,
    "max_by/1": lambda keyed, meter: _best(keyed, meter, lambda order: order >= 0),
    "min_by/1": lambda keyed, meter: _best(keyed, meter, lambda order: order < 0),
    "sort_by/1": lambda keyed, meter: [element for _, element in _by_key(keyed, meter)],
    "unique_by/1": lambda keyed, meter: [group[0] for group in _grouped(keyed, meter)],
}
