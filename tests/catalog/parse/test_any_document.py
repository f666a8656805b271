"""Laws: whatever is read, the answer is a definition or problems, and never anything else."""

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.definition import Definition, Json
from catalog.parse import KINDS, DefinitionError, parse
from catalog.parse.fields import objects
from catalog.parse.problem import below
from tests.catalog.parse.documents import complete, with_gang_fields

pytestmark = pytest.mark.slow

FIELD_NAMES = sorted({field.name for shape in objects() for field in shape.fields})
TEXTS = st.text(max_size=6) | st.sampled_from([".a", ".a[]", "true", "run", "driver", "part", "", "\0", "\ud800"])
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELD_NAMES) | TEXTS, inner, max_size=4)
    ),
    max_leaves=12,
)
VALID = (complete(), with_gang_fields())


def places(value: Json, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value inside a document."""
    yield place
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, child in children:
        yield from places(child, (*place, step))


PLACES = [(index, place) for index, document in enumerate(VALID) for place in places(document) if place]


def put(index: int, place: tuple[Any, ...], value: Json) -> Json:
    """A valid document with another value at the place."""
    document = copy.deepcopy(VALID[index])
    inner: Any = document
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return document


def read(document: Json) -> Definition | DefinitionError:
    """Either answer; anything else that is raised fails the test, as does a changed document."""
    before = copy.deepcopy(document)
    try:
        answer: Definition | DefinitionError = parse(document, "anywhere")
    except DefinitionError as refused:
        answer = refused
    assert repr(document) == repr(before)
    if isinstance(answer, DefinitionError):
        assert answer.problems
        assert all(str(problem).encode() for problem in answer.problems), "printable anywhere"
        assert all("\0" not in str(problem) for problem in answer.problems)
        assert all(problem.path for problem in answer.problems)
    return answer


@given(JSON_VALUES)
def test_any_json_is_read_or_refused(document: Json) -> None:
    """No document makes parsing fail."""
    assert isinstance(read(document), DefinitionError)


@given(st.sampled_from(KINDS), st.dictionaries(st.sampled_from(FIELD_NAMES), JSON_VALUES, max_size=6))
def test_any_document_of_a_kind_of_ours_is_read_or_refused(kind: tuple[str, str], document: Json) -> None:
    """Nor does one that claims to be a definition."""
    read({**document, "apiVersion": kind[0], "kind": kind[1]})


@given(st.sampled_from(PLACES), JSON_VALUES)
def test_a_valid_definition_with_one_value_replaced_is_read_or_refused(
    place: tuple[int, tuple[Any, ...]], value: Json
) -> None:
    """Wrong types at any depth are problems."""
    read(put(*place, value))


def is_looked_at(steps: tuple[Any, ...]) -> bool:
    """Whether the language says anything about what is at the place."""
    if steps[0] == "metadata":
        return steps[1:] in ((), ("name",))
    in_action = steps[-1] == "value" and "suspendDefinition" in steps
    return steps[0] != "status" and not in_action


@pytest.mark.parametrize("index, steps", [place for place in PLACES if is_looked_at(place[1])])
def test_a_wrong_type_is_named_with_its_place(index: int, steps: tuple[Any, ...]) -> None:
    """A number stands for nothing in the language, at no place."""
    path = ""
    for step in steps:
        path = f"{path}[{step}]" if isinstance(step, int) else below(path, step)

    answer = read(put(index, steps, 1.5))

    assert isinstance(answer, DefinitionError)
    assert [problem.path for problem in answer.problems].count(path) == 1


@given(st.sampled_from(PLACES), st.text(max_size=10))
def test_an_unknown_field_is_found_wherever_it_is(place: tuple[int, tuple[Any, ...]], name: str) -> None:
    """In every object of the language but the metadata and the status, which are the cluster's."""
    index, steps = place
    inner: Any = VALID[index]
    for step in steps:
        inner = inner[step]
    closed = not {"metadata", "status", "matchLabels"} & {step for step in steps[:2] + steps[-1:] if step != "spec"}
    if isinstance(inner, dict) and closed and "value" not in steps and name not in FIELD_NAMES:
        answer = read(put(index, steps, {**inner, name: 1}))

        assert isinstance(answer, DefinitionError)
        assert any("is no field of" in problem.what for problem in answer.problems)


def test_deep_documents_are_read_or_refused() -> None:
    """Depth is no way to exhaust the stack: only what the language has is looked into."""
    deep: Json = "x"
    for _ in range(100_000):
        deep = [deep]

    for index, steps in PLACES:
        with contextlib.suppress(DefinitionError):
            parse(put(index, steps, deep), "anywhere")
    while isinstance(deep, list):
        deep = deep.pop()  # taken apart from the outside: the interpreter itself would recurse
