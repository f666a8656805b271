# ruff: noqa: ARG001 - all of a table have one signature
"""jq's operators on plain JSON values: truth, indexing, iteration, arithmetic, comparison.

What jq computes but Python leaves to it raises `Beyond`, what jq fails on too raises `Fault`.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

from catalog.definition import Json
from catalog.expressions.outcome import MAX_NUMBER
from catalog.expressions.plain.values import Beyond, Fault, Meter, compared, exact, spend, type_name

Operator: TypeAlias = Callable[[Json, Json, Meter], Json]


def is_number(value: Json) -> bool:
    """Whether jq calls it a number: true and false are none."""
    return type(value) is int or type(value) is float


def truth(value: Json) -> bool:
    """jq's truth: everything but false and null."""
    return value is not None and value is not False


def elements(value: Json, meter: Meter) -> list[Json]:
    """What `[]` gives: an array's elements, an object's values in the order of their keys."""
    if type(value) is list:
        spend(meter, len(value))
        return value
    if type(value) is dict:
        spend(meter, 4 * len(value))
        return [value[key] for key in sorted(value)]
    raise Fault(f"cannot iterate over {type_name(value)}")


def index(value: Json, key: Json) -> Json:
    """`value[key]` for a key that is a string or a number; what jq does with others is not done here."""
    if type(key) is str and (type(value) is dict or value is None):
        return None if value is None else value.get(key)
    if is_number(key) and (type(value) is list or value is None):
        at = math.floor(key)
        return value[at] if value is not None and -len(value) <= at < len(value) else None
    kind = Beyond if type(key) in (list, dict) and (type(value) is list or value is None) else Fault
    raise kind(f"cannot index {type_name(value)} with {type_name(key)}")


def sliced(value: Json, start: int | None, end: int | None, meter: Meter) -> Json:
    """`value[start:end]`, of an array or a string."""
    if value is None:
        return None
    if type(value) is not list and type(value) is not str:
        raise Fault(f"cannot take a part of {type_name(value)}")
    spend(meter, len(value) // (16 if type(value) is str else 1))
    return value[start:end]


# Arithmetic


def plus(left: Json, right: Json, meter: Meter) -> Json:
    """`left + right` for every type that can be added."""
    if is_number(left) and is_number(right):
        return exact(left + right)
    if left is None or right is None:
        return right if left is None else left
    kind = type(left)
    if kind is type(right) and kind in (str, list, dict):
        spend(meter, (len(left) + len(right)) // (16 if kind is str else 1))
        return {**left, **right} if kind is dict else left + right
    raise Fault(f"{type_name(left)} and {type_name(right)} cannot be added")


def minus(left: Json, right: Json, meter: Meter) -> Json:
    """`left - right` for numbers; what jq does with arrays is not done here."""
    if is_number(left) and is_number(right):
        return exact(left - right)
    kind = Beyond if type(left) is list and type(right) is list else Fault
    raise kind(f"{type_name(left)} and {type_name(right)} cannot be subtracted")


def times(left: Json, right: Json, meter: Meter) -> Json:
    """`left * right` for numbers; what jq does with strings and objects is not done here."""
    if type(left) is int and type(right) is int:  # nearly always
        product = left * right
        return product if -MAX_NUMBER <= product <= MAX_NUMBER else exact(product)
    if is_number(left) and is_number(right):
        return exact(left * right)
    types = {type_name(left), type_name(right)}
    kind = Beyond if types in ({"string", "number"}, {"object"}) else Fault
    raise kind(f"{type_name(left)} and {type_name(right)} cannot be multiplied")


def divided(left: Json, right: Json, meter: Meter) -> Json:
    """`left / right` for numbers; what jq does with strings is not done here."""
    if not (is_number(left) and is_number(right)):
        kind = Beyond if type(left) is str and type(right) is str else Fault
        raise kind(f"{type_name(left)} and {type_name(right)} cannot be divided")
    if right == 0:
        raise Fault("division by zero")
    return exact(left / right)


def modulo(left: Json, right: Json, meter: Meter) -> Json:
    """`left % right`: fractions are cut off first, the sign is the left one's."""
    if not (is_number(left) and is_number(right)):
        raise Fault(f"{type_name(left)} and {type_name(right)} cannot be divided")
    if int(right) == 0:
        raise Fault("division by zero")
    rest = abs(int(left)) % abs(int(right))
    return -rest if left < 0 else rest


def negated(value: Json) -> Json:
    """`-value`, of a number."""
    if is_number(value):
        return -value
    raise Fault(f"{type_name(value)} cannot be negated")


ARITHMETIC: dict[str, Operator] = {"+": plus, "-": minus, "*": times, "/": divided, "%": modulo}

COMPARISONS: dict[str, Callable[[int], bool]] = {
    "==": lambda order: order == 0,
    "!=": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}


def comparison(operator: str) -> Operator:
    """The function behind `==`, `<` and the like, on values of every type."""
    holds = COMPARISONS[operator]
    return lambda left, right, meter: holds(compared(left, right, meter))
