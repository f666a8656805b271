"""Random expressions and documents that fit together, and what jq itself makes of them."""

import json
from typing import TypeAlias

import jq
from hypothesis import strategies as st

from catalog.definition import Json
from catalog.expressions.engine import NumberBeyondExactness, normalised

KEYS = ("a", "b", "c", "count")
TEXTS = ("", "a", "b", "x-1", "7", "é", "a,b")

Results: TypeAlias = "list[Json] | str"
"""All results, or the kind of failure: an error, or a number that can't be exact."""

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 9), st.sampled_from((0.5, 2.0, -1.25)), st.sampled_from(TEXTS)
)


def _containers(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    return st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.sampled_from(KEYS), inner, max_size=4))


values = st.recursive(scalars, _containers, max_leaves=12)
# Most expressions start with a field of the document.
documents = st.one_of(st.dictionaries(st.sampled_from(KEYS), values, min_size=2, max_size=4), values)

_keys = st.sampled_from(KEYS)
_steps = st.one_of(
    _keys.map(lambda key: f".{key}"),
    _keys.map(lambda key: f'["{key}"]'),
    st.sampled_from(("[]", "[]?", "[0]", "[-1]", "?", "[1:]", "[:-1]?")),
    _keys.map(lambda key: f".{key}?"),
)
_paths = st.builds(lambda key, steps: f".{key}{''.join(steps)}", _keys, st.lists(_steps, max_size=3))
_literals = st.sampled_from(
    ("null", "true", "false", "0", "1", "2.5", "-1", '"a"', '"x-1"', '","', "[]", "{}", "empty")
)
_names = st.sampled_from(
    [
        *("length", "add", "min", "max", "any", "all", "keys", "to_entries", "from_entries", "first", "last", "not"),
        *("type", "tostring", "tonumber", "tojson", "toboolean", "ascii_downcase", "ascii_upcase", "floor", "ceil"),
        *("round", "trunc", "values", "scalars", "arrays", "error", "sort", "unique", "reverse"),
    ]
)
_leaves = st.one_of(_paths, _paths, _literals, _names, st.just("."), st.sampled_from(("$x", "$y")))
_filters = [
    *("map", "select", "any", "all", "first", "last", "isempty", "add", "with_entries"),
    *("sort_by", "group_by", "unique_by", "min_by", "max_by"),
]
_taking = ("has", "startswith", "endswith", "ltrimstr", "rtrimstr", "split", "contains", "nth")
_operators = st.sampled_from(("+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "and", "or", "//", "|", ","))


def _composed(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.tuples(inner, _operators, inner).map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"),
        st.tuples(inner, _operators, inner).map(lambda parts: f"{parts[0]} {parts[1]} {parts[2]}"),
        inner.map(lambda body: f"[{body}]"),
        st.tuples(inner, _steps).map(lambda parts: f"({parts[0]}){parts[1]}"),
        inner.map(lambda body: f"-({body})"),
        inner.map(lambda body: f"try ({body})"),
        inner.map(lambda body: f"try ({body}) catch 5"),
        st.tuples(inner, inner, inner).map(lambda parts: f"if {parts[0]} then {parts[1]} else {parts[2]} end"),
        st.tuples(inner, inner).map(lambda parts: f"if {parts[0]} then {parts[1]} end"),
        st.tuples(inner, inner, st.sampled_from("xy")).map(lambda p: f"(({p[0]}) as ${p[2]} | {p[1]})"),
        st.tuples(inner, inner).map(lambda parts: f'{{a: ({parts[0]}), "b": ({parts[1]})}}'),
        st.tuples(inner, inner).map(lambda parts: f'"<\\({parts[0]})-\\({parts[1]})>"'),
        st.tuples(st.sampled_from(_filters), inner).map(lambda parts: f"{parts[0]}({parts[1]})"),
        st.tuples(st.sampled_from(_taking), inner).map(lambda parts: f"{parts[0]}({parts[1]})"),
        st.tuples(st.sampled_from(("any", "all")), inner, inner).map(lambda p: f"{p[0]}({p[1]}; {p[2]})"),
        inner.map(lambda body: f".[{body}]"),
        inner.map(lambda body: f".a[{body}].b"),
    )


expressions = st.recursive(_leaves, _composed, max_leaves=6).map(
    # Variables are defined around everything, so that any part may use them.
    lambda text: f". as $x | .a as $y | {text}" if "$" in text else text
)


def sorted_text(document: Json) -> str:
    """JSON text as gojq would see it: keys in order, 2.0 as 2; libjq keeps what is written."""
    return json.dumps(normalised(document), sort_keys=True)


def by_jq(text: str, document: Json) -> Results:
    """What libjq makes of a text as it stands."""
    try:
        return [normalised(result) for result in jq.compile(text).input_text(sorted_text(document)).all()]
    except NumberBeyondExactness:
        return "number beyond 2^53"
    except ValueError:
        return "error"


def same(left: Json, right: Json) -> bool:
    """Whether two values are the same JSON, 2.0 being 2: for Python, true would be 1 as well."""
    return sorted_text(left) == sorted_text(right)


_TOKENS = [
    *(".", ".a", "..", "[", "]", "(", ")", "{", "}", ":", ";", ",", "|", "?", "//", "?//", "-", "+", "*", "/", "%"),
    *("==", "!=", "<", ">=", "=", "|=", "+=", "and", "or", "not", "if", "then", "elif", "else", "end", "try", "catch"),
    *("as", "$x", "$__loc__", "reduce", "foreach", "length", "map", "1", "0.5", ".5", '"a"', '"', "\\(", "@base64"),
    *("null", "true", "label", "break", "def", "import", "# c\n", "#", "\n", " ", "\t", "a", "e1", "::", "'", "é", "~"),
]
token_soup = st.lists(st.sampled_from(_TOKENS), min_size=1, max_size=9).map("".join)
"""Texts that are seldom expressions: tokens in any order, close together."""
