"""The wire: what is no review is refused in one sentence, what is answered has the shape the API server checks."""

import base64
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.definition import GroupVersionKind
from webhook.review import BadReview, Review, Verdict, admitted_unpatched, clipped, decode, encode

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


def review(**request: Any) -> bytes:
    """An AdmissionReview of a pod, with some fields of its request replaced."""
    fields = {
        "uid": "u-1",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "CREATE",
        "namespace": "team-a",
        "userInfo": {"username": "ada"},
        "object": {"metadata": {"name": "train"}},
    }
    return orjson.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**fields, **request}}
    )


def test_review_is_read() -> None:
    """Every field that the core uses."""
    expected = Review(
        uid="u-1",
        kind=GroupVersionKind("", "v1", "Pod"),
        subresource="",
        name="",
        namespace="team-a",
        operation="CREATE",
        username="ada",
        obj={"metadata": {"name": "train"}},
    )

    assert expected == decode(review())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b"null",
        b"{}",
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}',
        b'{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": []}',
        b'{"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": {"uid": "x"}}',
        review(uid=None),
        review(uid=""),
        review(uid=7),
        review(kind="Pod"),
    ],
)
def test_what_is_no_review_is_refused_in_one_sentence(body: bytes) -> None:
    """The sender's fault, named."""
    with pytest.raises(BadReview) as refusal:
        decode(body)

    assert "\n" not in str(refusal.value)


@given(st.dictionaries(st.sampled_from(["uid", "kind", "operation", "object", "userInfo", "name", "dryRun"]), JSON))
def test_wrong_types_at_any_depth_are_a_review_or_refused(request: dict[str, Any]) -> None:
    """Never another exception."""
    try:
        found = decode(review(**request))
    except BadReview:
        return

    assert isinstance(found, Review)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_review_or_refused(body: bytes) -> None:
    """Never another exception."""
    with pytest.raises(BadReview):
        decode(body)


def test_answer_without_operations_has_neither_patch_nor_patch_type() -> None:
    """The API server refuses one without the other, and an empty patch."""
    assert orjson.loads(encode("u-1", Verdict()))["response"] == {"uid": "u-1", "allowed": True}


def test_answer_with_operations_carries_them() -> None:
    """Base64 of a JSON Patch."""
    operations = [{"op": "add", "path": "/metadata/labels", "value": {}}]
    response = orjson.loads(encode("u-1", Verdict(operations=operations)))["response"]  # type: ignore[arg-type]

    assert response["patchType"] == "JSONPatch"
    assert operations == orjson.loads(base64.b64decode(response["patch"]))


@given(st.text(max_size=500))
def test_warnings_are_short_and_on_one_line(text: str) -> None:
    """The API server advises 120 characters."""
    found = clipped(text)

    assert len(found) <= 120
    assert "\n" not in found


def test_a_failure_of_ours_still_admits() -> None:
    """Whatever went wrong, the object is admitted as it is."""
    response = orjson.loads(admitted_unpatched(review(object={"metadata": None}), "we failed"))["response"]

    assert response == {"uid": "u-1", "allowed": True, "warnings": ["we failed"]}


@pytest.mark.parametrize(
    "username, person",
    [("ada@example.com", True), ("", True), ("system:serviceaccount:a:b", False), ("system:node:n", False)],
)
def test_people_are_told_from_components(username: str, *, person: bool) -> None:
    """Warnings go to people only."""
    assert person is decode(review(userInfo={"username": username})).by_person
