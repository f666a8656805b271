"""What libjq says becomes outcomes: reasons without content, numbers that are exact."""

import pytest
from hypothesis import given

from catalog.definition import Json
from catalog.expressions import Failure
from catalog.expressions.engine import Engine, reason_without_content
from tests.catalog.expressions.random_expressions import sorted_text, values

SECRET = "hunter2 (and 'more')"


@pytest.mark.parametrize(
    "text, reason",
    [
        (".s.x", "cannot index string with string"),
        (".s[]", "cannot iterate over string"),
        (".n[]", "cannot iterate over null"),
        (".n | keys", "null has no keys"),
        ("true | length", "boolean has no length"),
        (".s - 1", "string and number cannot be subtracted"),
        (".s + 1", "string and number cannot be added"),
        (".o * true", "object and boolean cannot be multiplied"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        (".s | tonumber", "string cannot be read as a number"),
        (".s | floor", "a number is needed, not string"),
        (".s | sort", "string cannot be sorted"),
        ('.o | test("a")', "object cannot be matched"),
        ('.n | startswith("a")', "startswith needs strings"),
        ("error(.s)", "the expression raised an error"),
        ("error(.o)", "the expression raised an error"),
        ("error(null)", "the expression raised an error"),
        ('error("Cannot index " + .s)', "the expression raised an error"),
    ],
)
def test_reasons_name_types_only(text: str, reason: str) -> None:
    """libjq's own messages quote the document."""
    document = sorted_text({"s": SECRET, "o": {"k": SECRET}, "n": None})
    assert Engine.compile([text]).run(document) == (Failure(reason),)


@given(values)
def test_no_message_of_an_expression_becomes_a_reason(value: Json) -> None:
    """Whatever is raised, with whatever text, libjq's known messages apart."""
    assert reason_without_content(f"{SECRET}{value}") == "the expression raised an error"


def test_a_message_that_imitates_libjqs_gives_its_types_only() -> None:
    """The content in parentheses is dropped, also when it has parentheses and newlines itself."""
    message = f'string ("{SECRET})\n(") and number (1) cannot be added'
    assert reason_without_content(message) == "string and number cannot be added"


def test_each_expression_has_its_own_outcome() -> None:
    """Errors, no results, several results, and errors after results side by side."""
    engine = Engine.compile([".a", "empty", ".a, .b", ".a, error", "error | 1", "[.a] | .[0]"])
    results = engine.run('{"a":1,"b":2.0}')
    failed = Failure("the expression raised an error")
    assert results == ((1,), (), (1, 2), failed, failed, (1,))


@pytest.mark.parametrize(
    "text", ["1e15 * 10", "[1e15 * 10]", '{a: "9007199254740993"} | {b: (.a | tonumber)}', "-1e15 * 10"]
)
def test_a_number_that_is_not_exact_is_a_failure_at_any_depth(text: str) -> None:
    """Of what jq has computed nothing beyond 2^53 is taken."""
    assert Engine.compile([text]).run("null") == (Failure("a result is a number beyond 2^53"),)
