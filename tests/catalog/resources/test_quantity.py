"""Quantities in every Kubernetes notation, and amounts of devices as stamps have them."""

import contextlib
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.definition import Json
from catalog.resources import QuantityError, add, device_text, multiply, quantity

JSON_SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
COUNTS = st.integers(min_value=0, max_value=2**31 - 1)
DEVICE_AMOUNTS = st.decimals(min_value=0, max_value=10**6, places=9, allow_nan=False, allow_infinity=False)


@pytest.mark.parametrize(
    "written, number",
    [
        ("0", "0"),
        ("4", "4"),
        ("+1", "1"),
        ("-1", "-1"),
        ("0.5", "0.5"),
        (".5", "0.5"),
        ("2.", "2"),
        ("0004", "4"),
        (" 4 ", "4"),
        ("1n", "0.000000001"),
        ("1u", "0.000001"),
        ("500m", "0.5"),
        ("1k", "1000"),
        ("1M", "1000000"),
        ("1G", "1000000000"),
        ("1T", "1000000000000"),
        ("1P", "1000000000000000"),
        ("1E", "1000000000000000000"),
        ("1Ki", "1024"),
        ("2Gi", "2147483648"),
        ("0.5Mi", "524288"),
        ("1Ti", "1099511627776"),
        ("1Pi", "1125899906842624"),
        ("1Ei", "1152921504606846976"),
        ("1e3", "1000"),
        ("1E3", "1000"),
        ("1E+3", "1000"),
        ("15e-1", "1.5"),
        (4, "4"),
        (0.5, "0.5"),
        (1e3, "1000"),
        (0.1, "0.1"),
        (2**63 - 1, "9223372036854775807"),
    ],
    ids=repr,
)
def test_every_notation_is_read(written: Json, number: str) -> None:
    """Decimal and binary units, exponents, signs, text and numbers give the exact number."""
    assert quantity(written) == Decimal(number)


@pytest.mark.parametrize("written", ["0.1n", "1e-30", ".0000000001", 1e-12])
def test_what_is_finer_than_a_nano_is_rounded_up(written: Json) -> None:
    """Who asks for something gets something, as in Kubernetes."""
    assert quantity(written) == Decimal("1e-9")


@pytest.mark.parametrize(
    "written",
    [
        "", " ", "four", "1 2", "1K", "1ki", "1gi", "1GB", "1e", "e3", "k", ".", "+", "--1", "1.2.3", "0x10", "1_000",
        "٣", "1e1.5", "1e9999", "9" * 65, "10E", "8Ei", 2**63, -(2**63), 1e300, float("nan"), float("inf"),
        None, True, False, [], {}, ["1"],
    ],
    ids=repr,
)  # fmt: skip
def test_what_is_no_quantity_is_refused_with_its_value(written: Json) -> None:
    """The message says that it is no quantity and what would be one."""
    with pytest.raises(QuantityError, match='is not a Kubernetes quantity such as 4, "500m" or "2Gi"'):
        quantity(written)


def test_a_long_value_is_cut_in_the_message() -> None:
    """A message stays short whatever the object says."""
    with pytest.raises(QuantityError) as refused:
        quantity("x" * 1_000_000)

    assert len(str(refused.value)) < 120


@given(JSON_SCALARS | st.lists(st.text()) | st.dictionaries(st.text(), st.text()))
def test_nothing_but_a_quantity_error_is_raised(value: Json) -> None:
    """Any JSON value is either a number or refused."""
    with contextlib.suppress(QuantityError):
        assert quantity(value).is_finite()


@given(st.integers(min_value=-(10**6), max_value=10**6), st.sampled_from(["m", "", "k", "Ki"]))
def test_units_multiply(number: int, unit: str) -> None:
    """A unit is a factor."""
    factor = quantity(f"1{unit}")

    assert number * factor == quantity(f"{number}{unit}")


@given(st.integers(min_value=0, max_value=10**6))
def test_a_number_and_its_text_are_the_same_quantity(number: int) -> None:
    """Objects write `4` and `"4"` for the same amount."""
    assert quantity(number) == quantity(str(number))


@pytest.mark.parametrize(
    "amount, text",
    [
        ("0", "0"),
        ("0.000", "0"),
        ("4", "4"),
        ("1.0", "1"),
        ("1E+3", "1000"),
        ("100", "100"),
        ("0.5", "0.5"),
        ("0.500", "0.5"),
        ("1.25", "1.25"),
        ("0.3333", "0.333"),
        ("0.6666", "0.667"),
        ("0.9999", "1"),
        ("2.0004", "2"),
        ("0.0001", "0.001"),
        ("1E-9", "0.001"),
        ("123456789012345678901234567890.5", "123456789012345678901234567890.5"),
    ],
)
def test_an_amount_is_written_without_exponent_and_needless_zeros(amount: str, text: str) -> None:
    """At most three places; something is never written as nothing."""
    assert device_text(Decimal(amount)) == text


@given(DEVICE_AMOUNTS)
def test_a_written_amount_is_a_label_value_near_the_amount(amount: Decimal) -> None:
    """What is written is within half a thousandth, or the least that can be written."""
    text = device_text(amount)

    assert text.replace(".", "", 1).isdigit()
    assert len(text) <= 63
    assert abs(Decimal(text) - amount) <= Decimal("0.0005") or text == "0.001"


@given(st.lists(st.tuples(DEVICE_AMOUNTS, COUNTS), max_size=20))
def test_sums_of_products_are_exact(parts: list[tuple[Decimal, int]]) -> None:
    """No digit is lost, in whichever order amounts are added; the nano is the unit of whole numbers here."""
    nanos = sum(int(amount.scaleb(9)) * count for amount, count in parts)

    assert add(multiply(amount, count) for amount, count in parts) == Decimal(nanos).scaleb(-9)


def test_ten_tenths_are_one() -> None:
    """Ten pods with a tenth of a GPU have one GPU."""
    assert device_text(multiply(quantity("0.1"), 10)) == "1"
