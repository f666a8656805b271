"""How found values are shown in messages."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.definition import Json
from catalog.resources.message import shown


@pytest.mark.parametrize(
    "value, text",
    [
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        (-4, "-4"),
        (10**100, "a number of more than 80 digits"),
        ("a\nb", '"a\\nb"'),
        ("é", '"é"'),
        ("x" * 81, '"' + "x" * 80 + '…"'),
        ({}, "an object with 0 fields"),
        ({"a": 1}, "an object with 1 field"),
        ([[]], "a list with 1 entry"),
        ([1, 2], "a list with 2 entries"),
        ({1, 2}, "a set"),
    ],
    ids=str,
)
def test_values_are_shown_as_json(value: Json, text: str) -> None:
    """Scalars as they are, containers by their size, long texts cut."""
    assert shown(value) == text


@given(st.text(alphabet=st.characters()) | st.integers() | st.floats())
def test_what_is_shown_is_short_and_printable(value: Json) -> None:
    """Whatever was found: one line, at most the limit and what JSON adds to it, writable to any terminal."""
    text = shown(value, 20)

    assert text.encode()
    assert "\n" not in text
    assert len(text) <= 20 * len(json.dumps("\0")) + 4
