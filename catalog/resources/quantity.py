"""Kubernetes quantities as exact decimals, and how an amount of devices is written in a stamp.

The notation is that of Kubernetes 1.36, apimachinery/pkg/api/resource/quantity.go: a decimal number with a sign,
then a decimal unit (`n u m k M G T P E`), a binary unit (`Ki Mi Gi Ti Pi Ei`) or a decimal exponent (`e3`, `E-3`).
"""

import re
from collections.abc import Iterable
from decimal import ROUND_HALF_UP, ROUND_UP, Context, Decimal
from functools import lru_cache, reduce
from math import isfinite

from catalog.definition import Json
from catalog.resources.message import shown

LARGEST = Decimal(2**63 - 1)
"""No quantity is larger, in either direction (quantity.go)."""

_DECIMAL_UNITS = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY_UNITS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_UNITS = {
    **{unit: Decimal(1).scaleb(power) for unit, power in _DECIMAL_UNITS.items()},
    **{unit: Decimal(2**power) for unit, power in _BINARY_UNITS.items()},
}
_NOTATION = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?[0-9]{1,3}))?")
_LONGEST = 64  # characters: far more than any quantity needs, and few enough for exact arithmetic

_NANO = Decimal("1e-9")
_THOUSANDTH = Decimal("0.001")

# Exact for every product and sum of ours: a quantity has at most 64 digits, a unit or a count of pods 19.
_EXACT = Context(prec=200)


class QuantityError(ValueError):
    """A value that is no Kubernetes quantity; the message says which value and what would be one."""


def quantity(value: Json) -> Decimal:
    """The number that a quantity stands for, exactly; what is finer than a nano is rounded up, as Kubernetes does.

    Takes text and numbers, as objects have them. Raises `QuantityError`.
    """
    if isinstance(value, str):
        return _parsed(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise QuantityError(_complaint(value))
    if isinstance(value, int) and abs(value) > LARGEST:
        raise QuantityError(_complaint(value))
    return _parsed(repr(value))


@lru_cache(maxsize=1024)  # an object states the same few amounts again and again
def _parsed(text: str) -> Decimal:
    match = _NOTATION.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if match is None:
        raise QuantityError(_complaint(text))
    number, unit, exponent = match.groups()
    amount = _EXACT.multiply(Decimal(number), _UNITS[unit or ""])
    if exponent:
        amount = _EXACT.scaleb(amount, Decimal(exponent))
    if abs(amount) > LARGEST:
        raise QuantityError(_complaint(text))
    return amount if amount == _EXACT.quantize(amount, _NANO) else amount.quantize(_NANO, ROUND_UP, _EXACT)


def _complaint(value: Json) -> str:
    return f'{shown(value, 40)} is not a Kubernetes quantity such as 4, "500m" or "2Gi"'


def multiply(amount: Decimal, count: Decimal | int) -> Decimal:
    """`count` times the amount, exactly."""
    return _EXACT.multiply(amount, count)


def add(amounts: Iterable[Decimal]) -> Decimal:
    """The sum of the amounts, exactly."""
    return reduce(_EXACT.add, amounts, Decimal(0))


def device_text(amount: Decimal) -> str:
    """The amount as stamps have it: at most three decimal places, no needless zeros, never an exponent.

    Something is never written as nothing: what rounds to zero is written as `0.001`.
    """
    if amount == int(amount):
        return str(int(amount))
    rounded = amount.quantize(_THOUSANDTH, ROUND_HALF_UP, _EXACT) or _THOUSANDTH
    return f"{rounded:f}".rstrip("0").rstrip(".")
