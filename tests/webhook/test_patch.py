"""Patches: applied they give the stamps, twice is once, and nothing outside the prefix is touched."""

import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.patch import MAX_ANNOTATIONS, PatchRefused, apply, escaped, stamp_patch
from webhook.stamps import Stamps

PREFIX = "workload-stamp.io"
KEYS = st.sampled_from(["workload-id", "role", "gpus", "a~b", "x/y", "~1", "gang-size"])
FOREIGN_KEYS = st.text(alphabet="ab/~.-", min_size=1, max_size=12)
VALUES = st.text(max_size=8)
STAMPS = st.builds(
    Stamps,
    labels=st.dictionaries(KEYS, VALUES, max_size=4),
    annotations=st.dictionaries(KEYS, VALUES, max_size=4),
)
PRESENT = st.none() | st.dictionaries(FOREIGN_KEYS | KEYS.map(lambda key: f"{PREFIX}/{key}"), VALUES, max_size=5)


@st.composite
def objects(draw: st.DrawFn) -> dict[str, Any]:
    """Objects with and without label and annotation maps, some of them carrying keys under our prefix."""
    metadata: dict[str, Any] = {"name": "train"}
    for field in ("labels", "annotations"):
        present = draw(PRESENT)
        if present is not None or draw(st.booleans()):
            metadata[field] = present
    return {"kind": "Pod", "metadata": metadata, "spec": {"containers": []}}


@given(objects(), STAMPS)
def test_patch_applied_gives_the_stamps_and_leaves_everything_else(obj: dict[str, Any], stamps: Stamps) -> None:
    """An independent JSON Patch library is the judge."""
    patched = jsonpatch.apply_patch(copy.deepcopy(obj), list(stamp_patch(obj, stamps, PREFIX).operations))

    for field, stamped in (("labels", stamps.labels), ("annotations", stamps.annotations)):
        found = patched["metadata"].get(field) or {}
        before = obj["metadata"].get(field) or {}
        assert {f"{PREFIX}/{key}": value for key, value in stamped.items()} == {
            key: value for key, value in found.items() if key.startswith(f"{PREFIX}/")
        }
        assert {key: value for key, value in before.items() if not key.startswith(f"{PREFIX}/")} == {
            key: value for key, value in found.items() if not key.startswith(f"{PREFIX}/")
        }
    rest = {key: value for key, value in patched.items() if key != "metadata"}
    assert rest == {"kind": "Pod", "spec": {"containers": []}}


@given(objects(), STAMPS)
def test_second_patch_is_empty_and_the_object_is_not_changed(obj: dict[str, Any], stamps: Stamps) -> None:
    """Reinvocation finds nothing to do; planning a patch changes nothing."""
    before = copy.deepcopy(obj)
    patched = apply(obj, stamp_patch(obj, stamps, PREFIX).operations)

    assert before == obj
    assert stamp_patch(patched, stamps, PREFIX).operations == ()


@given(objects(), STAMPS)
def test_our_own_application_agrees_with_the_library(obj: dict[str, Any], stamps: Stamps) -> None:
    """The proof inside is as strict as the judge outside."""
    operations = list(stamp_patch(obj, stamps, PREFIX).operations)

    assert jsonpatch.apply_patch(copy.deepcopy(obj), operations) == apply(obj, operations)


def test_present_map_is_never_replaced() -> None:
    """What another webhook has put there meanwhile stays."""
    operations = stamp_patch({"metadata": {"labels": {}}}, Stamps(labels={"role": "leader"}), PREFIX).operations

    assert operations == ({"op": "add", "path": "/metadata/labels/workload-stamp.io~1role", "value": "leader"},)


def test_the_users_own_key_is_kept() -> None:
    """`ignore` belongs to the users, whatever its value."""
    obj = {"metadata": {"labels": {f"{PREFIX}/ignore": "false", f"{PREFIX}/role": "forged"}}}

    assert [operation["path"] for operation in stamp_patch(obj, Stamps(), PREFIX).operations] == [
        "/metadata/labels/workload-stamp.io~1role"
    ]


def test_displaced_keys_are_named() -> None:
    """The sender is told which of his values went."""
    obj = {"metadata": {"labels": {f"{PREFIX}/role": "forged"}, "annotations": {f"{PREFIX}/gpus": "4"}}}
    patch = stamp_patch(obj, Stamps(labels={"role": "leader"}, annotations={"gpus": "4"}), PREFIX)

    assert (f"{PREFIX}/role",) == patch.displaced


@pytest.mark.parametrize("metadata", [None, [], "x", {"labels": []}, {"annotations": "x"}])
def test_metadata_of_another_type_is_refused(metadata: object) -> None:
    """Such a patch would not apply, so none is made."""
    with pytest.raises(PatchRefused):
        stamp_patch({"metadata": metadata}, Stamps(labels={"role": "x"}), PREFIX)


def test_full_annotations_leave_room_for_labels_only() -> None:
    """The API server refuses an object whose annotations pass the limit (agones-dev/agones#2935)."""
    obj = {"metadata": {"annotations": {"big": "x" * (MAX_ANNOTATIONS - 5)}}}
    patch = stamp_patch(obj, Stamps(labels={"role": "x"}, annotations={"gpus": "4"}), PREFIX)

    assert patch.without_annotations
    assert [(op["op"], op["path"]) for op in patch.operations] == [("add", "/metadata/labels")]


@given(st.text())
def test_escaped_keys_come_back(key: str) -> None:
    """A key with `~` and `/` is one token of a pointer."""
    token = escaped(key)

    assert "/" not in token
    assert key == token.replace("~1", "/").replace("~0", "~")


@pytest.mark.parametrize("op", ["remove", "replace"])
def test_an_operation_on_what_is_not_there_is_refused(op: str) -> None:
    """Strict, as the API server is."""
    with pytest.raises(PatchRefused):
        apply({"metadata": {"labels": {}}}, [{"op": op, "path": "/metadata/labels/x", "value": "y"}])


def test_an_operation_below_a_missing_map_is_refused() -> None:
    """The one sure way to break a cluster that fails open (kubernetes/kubernetes#129459)."""
    with pytest.raises(PatchRefused):
        apply({"metadata": {}}, [{"op": "add", "path": "/metadata/labels/x", "value": "y"}])
