"""libjq is given the parts of the document that are read, and gives what it gives for the whole."""

import orjson
import pytest
from hypothesis import event, given, settings

from catalog.definition import Json
from catalog.expressions.check import checked
from catalog.expressions.prune import MAX_PARTS, TooLarge, Unwritable, pruned, shape, written
from catalog.expressions.reads import read_parts
from catalog.expressions.render import PRELUDE, render
from tests.catalog.expressions.random_expressions import by_jq, documents, expressions, same


def kept_by(text: str, document: Json) -> Json:
    """The document as libjq is given it for one expression."""
    tree, problems = checked(text)
    assert tree is not None, problems
    return pruned(document, shape(read_parts([tree])))


TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "busybox"}]}}
JOBSET = {
    "metadata": {"name": "train", "labels": {"queue": "a"}, "managedFields": [{"manager": "kubectl"}]},
    "spec": {"replicatedJobs": [{"name": "leader", "replicas": 1, "template": TEMPLATE}, {"name": "worker"}]},
    "status": {"conditions": [{"type": "Completed", "status": "False"}]},
}


@pytest.mark.parametrize(
    "text, kept",
    [
        (".metadata.name", {"metadata": {"name": "train"}}),
        (".metadata.labels", {"metadata": {"labels": {"queue": "a"}}}),
        (".spec.replicatedJobs[].name", {"spec": {"replicatedJobs": [{"name": "leader"}, {"name": "worker"}]}}),
        (".spec.replicatedJobs | length", {"spec": {"replicatedJobs": [{}, {}]}}),
        (".spec.replicatedJobs[] | select(.template) | .name",
         {"spec": {"replicatedJobs": [{"name": "leader", "template": {}}, {"name": "worker"}]}}),
        ('.spec.replicatedJobs[] | if .template == null then "" else .name end',
         {"spec": {"replicatedJobs": [{"name": "leader", "template": {}}, {"name": "worker"}]}}),
        ('any(.status.conditions[]; .type == "Completed" and .status == "True")',
         {"status": {"conditions": [{"type": "Completed", "status": "False"}]}}),
        (".metadata | keys", {"metadata": {"name": "train", "labels": {}, "managedFields": []}}),
        (".metadata.labels | to_entries", {"metadata": {"labels": {"queue": "a"}}}),
        (".spec as $s | .metadata.name, ($s.replicatedJobs[0].name)",
         {"metadata": {"name": "train"}, "spec": {"replicatedJobs": [{"name": "leader"}, {"name": "worker"}]}}),
        (".missing.field // 1", {}),
        ("1", {}),
        (".", JOBSET),
        (".[.metadata.name]", JOBSET),
        ("reduce .metadata.labels as $l (0; . + 1)", {"metadata": {"labels": {"queue": "a"}}}),
    ],
)  # fmt: skip
def test_what_is_not_read_is_left_out(text: str, kept: Json) -> None:
    """Templates, which are large, are kept only by what returns or prints them."""
    assert kept_by(text, JOBSET) == kept


@pytest.mark.slow
@given(expressions, documents)
@settings(max_examples=200)
def test_pruning_changes_no_result(text: str, document: Json) -> None:
    """For random expressions and documents, results and errors are those of the whole document."""
    tree, _ = checked(text)
    if tree is None:
        return
    part = pruned(document, shape(read_parts([tree])))
    event("something was left out" if part != document else "nothing was left out")
    program = PRELUDE + render(tree)
    assert same(by_jq(program, part), by_jq(program, document))


@given(documents)
def test_pruning_leaves_the_document_alone(document: Json) -> None:
    """What is kept is shared, what is cut is cut from a copy."""
    before = orjson.dumps(document)
    kept_by(".a[].b, (.b | keys), .c", document)
    assert orjson.dumps(document) == before


def test_the_text_has_sorted_keys_and_whole_numbers() -> None:
    """libjq iterates in the order of the text and prints numbers as they are written; gojq does neither."""
    assert written({"b": 2.0, "a": [1.5, {"d": 1, "c": -0.0}], "v": "1.0"}) == (
        b'{"a":[1.5,{"c":0,"d":1}],"b":2,"v":"1.0"}'
    )


def test_a_document_with_too_many_parts_is_too_large() -> None:
    """Looking at each of very many parts would take longer than there is."""
    with pytest.raises(TooLarge):
        kept_by(".a[].b", {"a": [{}] * (MAX_PARTS + 1)})


def test_what_is_no_json_is_unwritable() -> None:
    """Very deep nesting, half characters and numbers beyond 64 bits."""
    deep: Json = []
    for _ in range(5000):
        deep = [deep]
    for document in (deep, {"a": "\ud800"}, {"a": 2**70}):
        with pytest.raises(Unwritable):
            written(document)
