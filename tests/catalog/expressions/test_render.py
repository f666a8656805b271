"""libjq is given what was understood, not what was written; both mean the same, but where gojq means something else."""

import pytest
from hypothesis import event, given, settings

from catalog.definition import Json
from catalog.expressions.check import checked
from catalog.expressions.engine import refusal
from catalog.expressions.render import PRELUDE, render
from tests.catalog.expressions.random_expressions import by_jq, documents, expressions, same, token_soup


def rendered(text: str) -> str:
    """The text that libjq is given for an expression that may be used."""
    tree, problems = checked(text)
    assert tree is not None, problems
    return render(tree)


@pytest.mark.slow
@given(expressions, documents)
@settings(max_examples=150)
def test_what_is_rendered_means_what_was_written(text: str, document: Json) -> None:
    """jq gives the same for both, on documents whose keys are in order."""
    tree, _ = checked(text)
    if tree is None:
        event("refused")
        return
    written, understood = by_jq(text, document), by_jq(PRELUDE + render(tree), document)
    event("error" if written == "error" else "results")
    assert same(written, understood), render(tree)


@pytest.mark.slow
@given(token_soup)
@settings(max_examples=500)
def test_what_is_understood_is_jq(text: str) -> None:
    """A text that the check lets through compiles in libjq, as it stands and as it is rendered."""
    tree, _ = checked(text)
    event("understood" if tree is not None else "refused")
    if tree is not None:
        assert refusal(text) == ""
        assert refusal(render(tree)) == ""


@pytest.mark.slow
@given(token_soup)
@settings(max_examples=500)
def test_what_is_jq_is_understood(text: str) -> None:
    """A text without anything that is left out on purpose is understood when libjq compiles it."""
    left_out = (
        "..",
        "$__loc__",
        "=",
        "?//",
        "label",
        "break",
        "def",
        "import",
        "foreach",
        "reduce",
        "$x",
        "#",
        "a",
        "as",
    )
    if refusal(text) == "":
        _, problems = checked(text)
        event("jq")
        assert problems == () or any(word in text for word in left_out)
