"""The laws of an admission: whatever is sent, it is admitted, the patch applies, and only our own keys change."""

import asyncio
import base64
import copy
from typing import Any

import jsonpatch
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.definition import JsonObject
from catalog.library import Catalog
from tests.golden.cases import all_cases, packaged_catalog
from webhook.admission import Admission
from webhook.admit import admit, needs_lineage
from webhook.documents import DocumentOwners, NoOwnersKnown
from webhook.lineage import NO_OWNERS
from webhook.review import BadReview, Review, decode
from webhook.stamps import Policy

POLICY = Policy()
PREFIX = f"{POLICY.prefix}/"
STEPS = [(case, step) for case in all_cases() for step in case.steps]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=70)
    | st.sampled_from(["", "true", "0.5", "1e3", "-1", "500m", "nvidia.com/gpu", f"{PREFIX}role", "2Gi"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def paths(value: Any, prefix: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in a document."""
    found: list[tuple[str | int, ...]] = [prefix] if prefix else []
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        found += paths(child, (*prefix, key))
    return found


@st.composite
def damaged(draw: st.DrawFn) -> tuple[Any, Review]:
    """A golden case's review with some of its object's values, at any depth, replaced by anything or taken away."""
    case, step = draw(st.sampled_from(STEPS))
    obj = copy.deepcopy(step.review.obj)
    for _ in range(draw(st.integers(1, 3))):
        places = paths(obj)
        if not places:
            break
        *way, last = draw(st.sampled_from(places))
        holder = obj
        for key in way:
            holder = holder[key]
        if draw(st.booleans()) and isinstance(holder, dict):
            del holder[last]
        else:
            holder[last] = draw(JSON)
    return case, _with_object(step.review, obj)


def _with_object(review: Review, obj: Any) -> Review:
    operation = "CREATE" if review.kind.kind == "Pod" else review.operation
    return Review(
        uid=review.uid,
        kind=review.kind,
        subresource="",
        name=review.name,
        namespace=review.namespace,
        operation=operation,
        username=review.username,
        obj=obj,
    )


def answer(review: Review, cluster: Any) -> dict[str, Any]:
    """What is answered to a review, with the owners that a case has."""
    catalog = packaged_catalog()
    lineage = NO_OWNERS
    if needs_lineage(review, catalog, POLICY.prefix):
        lineage = DocumentOwners(cluster, POLICY).lineage_of(review.obj, review.namespace, catalog)
    response: dict[str, Any] = orjson.loads(admit(review, lineage, catalog, POLICY).body)["response"]
    return response


def outside_prefix(obj: JsonObject) -> JsonObject:
    """The object without our keys, and without maps that hold nothing else."""
    stripped = copy.deepcopy(obj)
    metadata = stripped.get("metadata")
    for field in ("labels", "annotations"):
        if isinstance(metadata, dict) and isinstance(metadata.get(field), dict):
            kept = {key: value for key, value in metadata[field].items() if not key.startswith(PREFIX)}
            metadata[field] = kept
        if isinstance(metadata, dict) and not metadata.get(field):
            metadata.pop(field, None)
    return stripped


@given(damaged())
def test_a_damaged_object_is_admitted_with_a_patch_that_applies_and_touches_our_keys_only(
    sample: tuple[Any, Review],
) -> None:
    """Wrong types at any depth are an answer, never an exception."""
    case, review = sample
    before = copy.deepcopy(review.obj)
    response = answer(review, case.cluster)

    assert response["allowed"] is True
    assert before == review.obj
    if "patch" not in response:
        return
    patch = orjson.loads(base64.b64decode(response["patch"]))
    patched = jsonpatch.apply_patch(copy.deepcopy(review.obj), patch)
    assert patch
    assert outside_prefix(before) == outside_prefix(patched)
    for field in ("labels", "annotations"):
        ours = {k: v for k, v in (patched["metadata"].get(field) or {}).items() if k.startswith(PREFIX)}
        assert all(isinstance(value, str) for value in ours.values())
        if field == "labels":
            assert all(len(value) <= 63 for value in ours.values())
    assert "patch" not in answer(_with_object(review, patched), case.cluster)


@given(damaged())
def test_the_same_review_gets_the_same_answer(sample: tuple[Any, Review]) -> None:
    """Every replica, and a dry run, answers alike."""
    case, review = sample

    assert answer(review, case.cluster) == answer(review, case.cluster)


@given(st.binary(max_size=300) | JSON.map(lambda value: orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATACLASS)))
def test_any_body_is_answered_or_a_bad_review(body: bytes) -> None:
    """The server maps a bad review to HTTP 400; nothing else may come out."""
    admission = Admission(packaged_catalog, POLICY, NoOwnersKnown(), _Nothing())
    try:
        found = asyncio.run(admission(body, 0.0))
    except BadReview:
        return

    assert orjson.loads(found.body)["response"]["allowed"] is True


class _Nothing:
    """Isolation for catalogues that need none."""

    async def outcomes(self, *_: Any) -> dict[str, Any]:
        """Never called."""
        raise NotImplementedError


def pod_review(**changes: Any) -> Review:
    """A bare pod's creation, with some fields of the review replaced."""
    fields: dict[str, Any] = {
        "uid": "u",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "operation": "CREATE",
        "namespace": "team-a",
        "name": "p",
        "userInfo": {"username": "ada"},
        "object": {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}},
    }
    request = {**fields, **changes}
    return decode(orjson.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}))


@pytest.mark.parametrize(
    "changes",
    [
        {"operation": "UPDATE"},
        {"operation": "DELETE", "object": None},
        {"operation": "CONNECT", "object": {"metadata": {}}},
        {"subResource": "binding"},
        {"subResource": "ephemeralcontainers", "operation": "UPDATE"},
        {"object": {"metadata": {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"}}},
        {"object": {"metadata": {"name": "p", "annotations": {"kubernetes.io/config.mirror": "x"}}}},
        {"object": {"metadata": {"name": "p", "labels": {f"{PREFIX}ignore": "true"}}}},
        {"object": {"metadata": None}},
        {"object": None},
        {"object": []},
    ],
)
def test_what_must_be_left_alone_is_left_alone(changes: dict[str, Any]) -> None:
    """Pods on update, subresources, deletion, mirror pods, opted-out objects (contract, section 7)."""
    assert answer(pod_review(**changes), ()) == {"uid": "u", "allowed": True}


def test_a_user_who_writes_our_keys_is_warned_and_a_controller_is_not() -> None:
    """Controllers copy metadata about."""
    forged = {"metadata": {"name": "p", "labels": {f"{PREFIX}gpu-total": "99"}}, "spec": {"containers": [{}]}}
    person = answer(pod_review(object=forged), ())
    controller = answer(pod_review(object=forged, userInfo={"username": "system:serviceaccount:a:b"}), ())

    assert [f"{PREFIX}gpu-total is set by workload-stamp; your value was replaced"] == person["warnings"]
    assert "warnings" not in controller
    assert person["patch"] == controller["patch"]


def test_a_forged_stamp_on_a_pod_of_an_unknown_controller_is_removed() -> None:
    """The prefix is ours: what we did not compute goes."""
    reference = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "1", "controller": True}
    pod = {
        "metadata": {"name": "p", "labels": {f"{PREFIX}workload-id": "x", "app": "y"}, "ownerReferences": [reference]},
        "spec": {"containers": []},
    }
    patch = orjson.loads(base64.b64decode(answer(pod_review(object=pod), ())["patch"]))

    assert patch == [{"op": "remove", "path": "/metadata/labels/workload-stamp.io~1workload-id"}]


def test_a_node_owner_counts_as_none() -> None:
    """Mirror pods, and static pods seen late, are owned by their node."""
    reference = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "1", "controller": True}
    review = pod_review(object={"metadata": {"name": "p", "ownerReferences": [reference]}, "spec": {"containers": []}})

    assert not needs_lineage(review, packaged_catalog(), POLICY.prefix)
    assert "patch" in answer(review, ())


def test_an_owner_that_is_missing_leaves_the_pods_own_stamps() -> None:
    """Where the top is unknown only gpus, accelerators and the reason are written (contract, section 7)."""
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1", "controller": True}
    spec = {"containers": [{"resources": {"limits": {"nvidia.com/gpu": 2}}}]}
    review = pod_review(object={"metadata": {"generateName": "j-", "ownerReferences": [reference]}, "spec": spec})
    (operation,) = orjson.loads(base64.b64decode(answer(review, ())["patch"]))

    assert operation["path"] == "/metadata/annotations"
    assert {f"{PREFIX}{key}" for key in ("gpus", "accelerators", "unresolved")} == operation["value"].keys()


def test_observing_computes_and_patches_nothing() -> None:
    """For careful people: everything is counted, nothing is changed."""
    found = admit(pod_review(), NO_OWNERS, packaged_catalog(), Policy(observe=True))

    assert found.outcome == "observed"
    assert "patch" not in orjson.loads(found.body)["response"]


def test_without_a_definition_nothing_is_stamped() -> None:
    """An empty catalogue describes nothing, not even pods."""
    found = admit(pod_review(), NO_OWNERS, Catalog.of(), POLICY)

    assert "patch" not in orjson.loads(found.body)["response"]


def test_another_prefix_is_used_throughout() -> None:
    """The prefix is a setting."""
    found = admit(pod_review(), NO_OWNERS, packaged_catalog(), Policy(prefix="stamps.example.com"))
    patch = orjson.loads(base64.b64decode(orjson.loads(found.body)["response"]["patch"]))

    assert all(key.startswith("stamps.example.com/") for operation in patch for key in operation["value"])


@pytest.mark.parametrize("change", [{"uid": 77.0}, {"uid": None}, {"name": 3}, {"apiVersion": None}, {"kind": []}])
def test_a_controller_that_cannot_be_read_is_one_all_the_same(change: dict[str, Any]) -> None:
    """Such a pod is nobody's bare pod: nothing is written."""
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "1", "controller": True, **change}
    review = pod_review(object={"metadata": {"name": "p", "ownerReferences": [reference]}, "spec": {"containers": []}})

    assert "patch" not in answer(review, ())
