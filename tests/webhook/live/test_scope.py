"""Which namespaces are stamped in."""

from typing import Any

import pytest

from webhook.live.scope import scope_of

NAMESPACES: list[dict[str, Any]] = [
    {"metadata": {"name": "team-a", "labels": {"kubernetes.io/metadata.name": "team-a"}}},
    {"metadata": {"name": "team-b", "labels": {"workload-stamp.io/ignore": "true"}}},
    {"metadata": {"name": "team-c", "labels": {"workload-stamp.io/stamp": "true"}}},
    {"metadata": {"name": "kube-system"}},
]


def registration(*terms: dict[str, Any]) -> dict[str, Any]:
    """A webhook configuration with those terms for namespaces."""
    return {"webhooks": [{"name": "pods.workload-stamp.io", "namespaceSelector": {"matchExpressions": list(terms)}}]}


def test_without_a_registration_the_defaults_hold() -> None:
    """All namespaces but the system's, our own, and those that opt out."""
    scope = scope_of(None, NAMESPACES, "workload-stamp.io")

    assert scope.includes("team-a")
    assert not scope.includes("team-b")
    assert not scope.includes("kube-system")
    assert not scope.includes("workload-stamp-system")
    assert scope.includes("")


@pytest.mark.parametrize(
    "term, included",
    [
        ({"key": "workload-stamp.io/stamp", "operator": "In", "values": ["true"]}, ["team-c"]),
        ({"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["team-a"]}, ["team-b", "team-c"]),
        ({"key": "workload-stamp.io/ignore", "operator": "Exists"}, ["team-b"]),
        ({"key": "workload-stamp.io/ignore", "operator": "DoesNotExist"}, ["team-a", "team-c"]),
    ],
)
def test_the_registration_says_where(term: dict[str, Any], included: list[str]) -> None:
    """As the API server evaluates its selector; the namespace's name is always a label of it."""
    scope = scope_of(registration(term), NAMESPACES, "workload-stamp.io")

    assert [name for name in ("team-a", "team-b", "team-c") if scope.includes(name)] == included


def test_a_namespace_that_may_not_be_read_is_ruled_out_by_its_name_alone() -> None:
    """Its labels are not known."""
    terms = (
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["kube-system"]},
        {"key": "workload-stamp.io/stamp", "operator": "In", "values": ["true"]},
    )
    scope = scope_of(registration(*terms), [], "workload-stamp.io")

    assert scope.includes("team-a")
    assert not scope.includes("kube-system")
