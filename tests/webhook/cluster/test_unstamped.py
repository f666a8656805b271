"""Pods that upkeep gives stamps to are told by their metadata: those that wait, and those that came in our absence."""

from itertools import pairwise
from typing import Any

import pytest

from catalog import load
from catalog.library import Catalog, CompiledDefinition
from webhook.cluster.namespaces import Namespaces
from webhook.cluster.unstamped import MOST_SKIPPED, Unstamped

CATALOG = Catalog.of([CompiledDefinition(definition) for definition in load.packaged().definitions])
BEFORE, SINCE, AFTER = (f"2026-01-01T0{hour}:00:00Z" for hour in (1, 2, 3))
KEY = "workload-stamp.io/"


def pod(created: str = AFTER, owner: str = "", **metadata: Any) -> dict[str, Any]:
    """A pod's metadata; `owner` as `group/version Kind`."""
    api_version, _, kind = owner.partition(" ")
    reference = {"apiVersion": api_version, "kind": kind, "name": "x", "uid": "u", "controller": True}
    owners = {"ownerReferences": [reference]} if owner else {}
    return {"metadata": {"name": "p", "uid": "u", "creationTimestamp": created, **owners, **metadata}}


def waiting(reasons: str) -> dict[str, Any]:
    """Annotations of a pod that says what it lacks."""
    return {"annotations": {f"{KEY}unresolved": reasons, f"{KEY}gpus": "0"}}


@pytest.mark.parametrize(
    "found,is_ours",
    [
        (pod(**waiting('{"workload-id":"no name yet"}')), True),
        (pod(BEFORE, **waiting('{"workload-id":"not read"}')), True),
        (pod(**waiting('{"gpu-total":"unknown"}')), False),
        (pod(**waiting("nonsense")), False),
        (pod(**waiting("[]")), False),
        (pod(), True),
        (pod(owner="batch/v1 Job"), True),
        (pod(owner="v1 Pod"), True),
        (pod(owner="example.com/v1 Unknown"), False),
        (pod(BEFORE), False),
        (pod(SINCE), False),
        (pod(labels={f"{KEY}ignore": "true"}), False),
        (pod(labels={f"{KEY}ignore": "false"}), True),
        (pod(labels={f"{KEY}role": "worker"}), False),
        (pod(annotations={"kubernetes.io/config.mirror": "x"}), False),
        (pod(deletionTimestamp=AFTER), False),
    ],
    ids=[
        "generate-name", "owner-unread", "only-a-number", "no-json", "no-map", "while-we-were-away", "owned",
        "through-a-pod", "of-an-unknown-kind", "before-us", "in-our-first-second", "opted-out", "not-opted-out",
        "stamped-in-part", "mirror", "being-deleted",
    ],
)  # fmt: skip
def test_which_pods_are_looked_at(*, found: dict[str, Any], is_ours: bool) -> None:
    """Those that say so, and those without anything of ours that came after our registration."""
    assert Unstamped("workload-stamp.io", lambda: SINCE).is_pod(found, CATALOG) is is_ours


def test_while_we_are_not_registered_no_pod_came_while_we_were_away() -> None:
    """An administrator has switched us off: what comes then is not ours."""
    assert not Unstamped("workload-stamp.io", lambda: None).is_pod(pod(), CATALOG)


def test_the_more_often_in_vain_the_rarer_is_looked() -> None:
    """A thousand pods whose owner is gone must not be read in every sweep."""
    unstamped = Unstamped("workload-stamp.io", lambda: SINCE)
    due = [sweep for sweep in range(200) if unstamped.is_due("u")]
    gaps = [later - earlier for earlier, later in pairwise(due)]
    assert due[:4] == [0, 2, 5, 10]
    assert gaps == sorted(gaps)
    assert gaps[-1] == MOST_SKIPPED + 1
    unstamped.only(set())
    assert unstamped.is_due("u")


@pytest.mark.parametrize(
    "name,labels,by_default,opted_in",
    [
        ("team-a", {}, True, False),
        ("team-a", {f"{KEY}stamp": "true"}, True, True),
        ("team-a", {f"{KEY}ignore": "true"}, False, False),
        ("team-a", {f"{KEY}ignore": "true", f"{KEY}stamp": "true"}, False, False),
        ("stamps", {f"{KEY}stamp": "true"}, False, False),
        ("kube-system", {f"{KEY}stamp": "true"}, False, False),
    ],
)
def test_which_namespaces_are_ours(*, name: str, labels: dict[str, str], by_default: bool, opted_in: bool) -> None:
    """As the webhook configuration's selectors have it."""
    for opt_in, expected in ((False, by_default), (True, opted_in)):
        namespaces = Namespaces("stamps", ("kube-system",), "workload-stamp.io", opt_in=opt_in)
        assert not namespaces.in_scope(name)
        namespaces.seen({"metadata": {"name": name, "labels": labels}})
        assert namespaces.in_scope(name) is expected
        assert namespaces.in_scope("")
        namespaces.gone({"metadata": {"name": name}})
        assert not namespaces.in_scope(name)
