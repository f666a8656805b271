"""What is called linear is linear, whatever the document; what isn't known to be is not called so."""

import pytest
from hypothesis import event, given, settings

from catalog.definition import Json
from catalog.expressions.check import checked
from catalog.expressions.cost import linear_passes
from catalog.expressions.plain import Beyond, Fault, NotPlain, compile_plain, new_meter
from tests.catalog.expressions.random_expressions import documents, expressions

LINEAR = [
    ".spec.replicas // 1",
    ".spec.replicatedJobs[] | (.replicas // 1) * (.template.spec.parallelism // 1)",
    "(.spec.replicas // 1) * (.spec.template.cliques[].spec.replicas // 1)",
    "(.spec.replicas // 1) as $r | .spec.groups[] | $r * .replicas",
    ". as $root | .spec.groups[] | .replicas * $root.spec.replicas",
    '. as $root | .spec.groups[] | $root.metadata.name + "-" + .name',
    '.metadata.name + "-" + .spec.groups[].name',
    "[.a[] | select(.b) | .c] | add",
    ".a[] as $x | $x.b[] | . + 1",
    "[.a[] | .b[]] | sort | unique",
    ".a | to_entries[] | .key",
    ".a[] | .b as $x | .c * $x",
    "[.a, .b, .c] | map(.[]) | length",
    ".a | any(.[]; .b == 1)",
    "range(3) as $i | .a[$i]",
]
NOT_LINEAR = [
    ".a[] as $x | .a[] as $y | [$x, $y]",
    ".a[] as $x | .a[]",
    ".a[] + .a[]",
    ".a[] == .b[]",
    ".a[] and .b[]",
    "[.a[], .b[]] as $all | .a[] | $all[]",
    ".a as $x | .b[] | $x[]",
    ".a as $x | .b[] | ($x | length), ($x | add)",
    ".a as $x | .b[] | [$x[] | . + 1]",
    "[.a[] | .b] as $x | .c[] | $x | any",
    ".a as $x | [.b[] | $x] | .[][]",
    ". as $x | .a[] | $x | tojson | length",
    "select(.a[])",
    "if .a[] then .b[] else . end",
    ".a[.b[]]",
    ".a[.b[]:]",
    "{a: .a[], b: .b[]}",
    '"\\(.a[])\\(.b[])"',
    ". + . | . + . | . + . | . + . | . + . | . + .",
    "[., .] | [., .] | [., .] | [., .] | [., .] | [., .]",
    "(., .) | (., .) | (., .) | (., .) | (., .) | (., .)",
    "range(1000)",
    "range(100) | range(100)",
    "reduce .a[] as $x (0; . + $x)",
    "foreach .a[] as $x (0; . + $x)",
    'test("a")',
    '.a | sub("a"; "b")',
    ".a | flatten",
    ".a | transpose",
    "try .a catch .",
]


def steps(text: str, document: Json) -> int:
    """What evaluating costs, in steps. Raises what plain evaluation raises."""
    tree, _ = checked(text)
    assert tree is not None
    run, slots = compile_plain(tree)
    meter = new_meter(slots)
    meter[0] = 10**12
    try:
        run(document, meter)
    except Fault:
        event("error")
    return 10**12 - int(meter[0])


def grown(document: Json, factor: int) -> Json:
    """The same document with the elements of its outermost arrays repeated, so many times larger."""
    if isinstance(document, list):
        return document * factor
    if isinstance(document, dict):
        return {key: grown(value, factor) for key, value in document.items()}
    return document * factor if isinstance(document, str) else document


@pytest.mark.parametrize("text", LINEAR)
def test_iterating_once_is_linear(text: str) -> None:
    """Also with what is constant beside it: another field, a variable."""
    tree, problems = checked(text)
    assert tree is not None, problems
    assert linear_passes(tree, copies=False) is not None


@pytest.mark.parametrize("text", NOT_LINEAR)
def test_iterating_inside_an_iteration_is_not_linear(text: str) -> None:
    """Nor is doubling again and again, nor what jq does in loops of its own."""
    tree, problems = checked(text)
    assert tree is not None, problems
    assert linear_passes(tree, copies=False) is None
    assert linear_passes(tree, copies=True) is None


@pytest.mark.parametrize("text", ['"x" * .n', ".a * .b", ".a - .b", ".a[] * .n"])
def test_operators_that_copy_are_linear_for_numbers_only(text: str) -> None:
    """libjq would repeat a text as often as the document says."""
    tree, _ = checked(text)
    assert tree is not None
    assert linear_passes(tree, copies=True) is None


@pytest.mark.slow
@given(expressions, documents)
@settings(max_examples=200)
def test_a_linear_expression_takes_twice_as_long_for_twice_as_much(text: str, document: Json) -> None:
    """Sorting takes a little longer than that."""
    tree, _ = checked(text)
    if tree is None or linear_passes(tree, copies=False) is None:
        return
    try:
        some, many = steps(text, grown(document, 32)), steps(text, grown(document, 64))
    except (NotPlain, Beyond):
        return
    event("depends on the size" if many > some else "does not")
    assert many <= 2.6 * some + 200
