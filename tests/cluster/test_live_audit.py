"""Audit finds what was broken by hand, backfill repairs it, and nothing else is touched."""

import json
from typing import Any

import pytest

from tests.cluster.api_client import ApiClient
from tests.cluster.conftest import StartController
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kubectl import Kubectl
from tests.cluster.live_command import LiveCommand
from tests.cluster.live_objects import KINDS, Pods, spec_of
from tests.cluster.waiting import eventually

PREFIX = "workload-stamp.io"
SECONDS = 60.0


@pytest.fixture
def live(control_plane: ControlPlane) -> LiveCommand:
    """The admin's command line."""
    return LiveCommand(control_plane.files.kubeconfig("admin"))


def create(client: ApiClient, namespace: str, kind: str, pods: Pods, name: str) -> None:
    """Create a small object of a kind."""
    client.post(KINDS[kind].path(namespace), KINDS[kind].document(name, spec_of(kind, pods)))


def findings(live: LiveCommand, namespace: str) -> dict[str, set[tuple[str, str]]]:
    """Key and finding of each object's differences, by kind and name; exit code 1 exactly when there are any."""
    ended = live("audit", "-n", namespace, "-o", "json")
    items = json.loads(ended.out)["items"]
    assert ended.code == (1 if items else 0), ended.err
    return {
        f"{item['kind']}/{item['name']}": {(each["key"], each["finding"]) for each in item["differences"]}
        for item in items
    }


def label(kubectl: Kubectl, namespace: str, target: str, *labels: str) -> None:
    """Set or remove labels by hand."""
    kubectl("label", "-n", namespace, target, "--overwrite", *labels)


def test_what_was_broken_by_hand_is_found_and_mended(
    controller: StartController, client: ApiClient, kubectl: Kubectl, live: LiveCommand, namespace: str
) -> None:
    """From a cluster without stamps to one with right ones; a second backfill does nothing; no pod is restarted."""
    controller("jobset")
    create(client, namespace, "JobSet", Pods(gpus=1), "train")
    create(client, namespace, "Deployment", Pods(), "web")
    eventually(
        lambda: [row["pods"]["ready"] for row in live.json("get", "-n", namespace)["items"]] == [3, 3],
        what="six ready pods",
        seconds=SECONDS,
    )
    pods = kubectl("get", "pods", "-n", namespace, "-o", "name").split()
    deployment = kubectl.json("get", "deployment", "web", "-n", namespace)
    missing = findings(live, namespace)

    planned = live.json("backfill", "-n", namespace, "--dry-run")
    assert findings(live, namespace) == missing
    done = live.json("backfill", "-n", namespace)
    again = live.json("backfill", "-n", namespace)

    assert set(missing) == {"JobSet/train", "Deployment/web", *(pod.replace("pod/", "Pod/") for pod in pods)}
    assert all(finding == "missing" for each in missing.values() for _, finding in each)
    assert (planned["stamped"], done["stamped"], again["stamped"]) == (8, 8, 0)
    assert done["failed"] == []
    assert findings(live, namespace) == {}

    leader = next(pod for pod in pods if "leader" in pod)
    label(kubectl, namespace, leader, f"{PREFIX}/role=boss", f"{PREFIX}/gpu-total-")
    label(kubectl, namespace, "jobset/train", f"{PREFIX}/team=red", f"{PREFIX}/gang-size=99")
    broken = findings(live, namespace)
    mended = live.json("backfill", "-n", namespace)

    assert broken == {
        leader.replace("pod/", "Pod/"): {("role", "wrong"), ("gpu-total", "missing")},
        "JobSet/train": {("team", "foreign"), ("gang-size", "wrong")},
    }
    assert mended["stamped"] == 2
    assert findings(live, namespace) == {}
    assert sorted(kubectl("get", "pods", "-n", namespace, "-o", "name").split()) == sorted(pods)
    after = kubectl.json("get", "deployment", "web", "-n", namespace)
    assert after["spec"] == deployment["spec"]
    assert our_fields(kubectl.json("get", "jobset", "train", "-n", namespace, "--show-managed-fields")) == {
        "f:labels",
        "f:annotations",
    }


def our_fields(obj: dict[str, Any]) -> set[str]:
    """What our field manager owns of an object, below its metadata; it must own nothing else."""
    ours = [entry for entry in obj["metadata"]["managedFields"] if entry["manager"] == "workload-stamp"]
    assert [set(entry["fieldsV1"]) for entry in ours] == [{"f:metadata"}]
    return set(ours[0]["fieldsV1"]["f:metadata"])


def test_pods_from_before_a_scale_are_stale_and_kept(
    client: ApiClient, kubectl: Kubectl, live: LiveCommand, namespace: str
) -> None:
    """They carry what was true at their creation; --stale brings them up to date."""
    create(client, namespace, "Deployment", Pods(gpus=1), "web")
    eventually(lambda: live.row("deploy", namespace, "web")["pods"]["ready"] == 3, what="three ready pods")  # type: ignore[index]
    live.text("backfill", "-n", namespace)
    kubectl("scale", "deployment/web", "--replicas=4", "-n", namespace)
    eventually(lambda: live.row("deploy", namespace, "web")["pods"]["ready"] == 4, what="four ready pods")  # type: ignore[index]

    found = findings(live, namespace)
    kept = live.json("backfill", "-n", namespace)
    left = findings(live, namespace)
    updated = live.json("backfill", "-n", namespace, "--stale")

    stale = [name for name, each in found.items() if each == {("gpu-total", "stale")}]
    assert len(stale) == 3
    assert found["Deployment/web"] == {("gpu-total", "stale"), ("pods-total", "stale"), ("roles", "stale")}
    assert (kept["stamped"], kept["staleLeft"]) == (2, 3)  # the Deployment, and the pod that has no stamps at all
    assert set(left) == set(stale)
    assert updated["stamped"] == 3
    assert findings(live, namespace) == {}


def test_what_opts_out_is_left_alone(client: ApiClient, kubectl: Kubectl, live: LiveCommand, namespace: str) -> None:
    """A pod with the label, and then the whole namespace."""
    create(client, namespace, "Job", Pods(), "j")
    label(kubectl, namespace, "job/j", f"{PREFIX}/ignore=true")
    assert "Job/j" not in findings(live, namespace)
    kubectl("label", "namespace", namespace, f"{PREFIX}/ignore=true")

    assert findings(live, namespace) == {}
    assert live.json("backfill", "-n", namespace)["stamped"] == 0
