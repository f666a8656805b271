"""Evaluation in Python gives what jq gives."""

from hypothesis import event, given, settings

from catalog.definition import Json
from catalog.expressions.check import checked
from catalog.expressions.cost import linear_passes
from catalog.expressions.nodes import Node
from catalog.expressions.plain import MAX_STEPS, Beyond, Fault, NotPlain, compile_plain, new_meter
from catalog.expressions.render import PRELUDE, render
from tests.catalog.expressions.random_expressions import Results, by_jq, documents, expressions, same


def plainly(tree: Node, document: Json) -> Results:
    """What Python makes of a tree. Raises `NotPlain`, or `Beyond` where it leaves the answer to jq."""
    run, slots = compile_plain(tree)
    meter = new_meter(slots)
    meter[0] = MAX_STEPS
    try:
        return [*run(document, meter)]
    except Fault:
        return "error"


@given(expressions, documents)
@settings(max_examples=600)
def test_random_expressions_give_what_jq_gives(text: str, document: Json) -> None:
    """Results in order, or a failure where jq has an error."""
    tree, _ = checked(text)
    if tree is None or linear_passes(tree, copies=False) is None:
        return
    try:
        found = plainly(tree, document)
    except (NotPlain, Beyond) as left:
        event(type(left).__name__)
        return
    expected = by_jq(PRELUDE + render(tree), document)
    event("error" if expected == "error" else "results")
    assert same(found, expected), text
