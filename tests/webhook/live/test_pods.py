"""A pod as it is now."""

from decimal import Decimal
from typing import Any

import pytest

from tests.webhook.live.made_up import UNSCHEDULABLE, MadeUp, row, template, unschedulable
from webhook.live.pods import LivePod, live_pods


def live(cluster: MadeUp) -> LivePod:
    """The one pod."""
    (pod,) = live_pods(cluster.pods, cluster.index())
    return pod


def test_a_running_pod_is_present_placed_and_running() -> None:
    """It holds its GPUs on its node."""
    cluster = MadeUp()
    cluster.pod("p", template(4)["spec"], node="node-3")

    pod = live(cluster)

    assert row(pod.node, pod.phase, pod.gpus, pod.accelerators) == (
        "node-3",
        "Running",
        4,
        {"nvidia.com/gpu": Decimal(4)},
    )
    assert pod.is_ready
    assert pod.is_present
    assert pod.is_placed
    assert pod.is_running
    assert not pod.waits


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_holds_nothing(phase: str) -> None:
    """Its node has given its devices to others."""
    cluster = MadeUp()
    cluster.pod("p", template(4)["spec"], phase=phase)

    pod = live(cluster)

    assert pod.is_over
    assert not pod.is_placed
    assert not pod.is_present


def test_a_leaving_pod_still_holds_its_gpus() -> None:
    """It does not count as present, but its node has not got them back."""
    cluster = MadeUp()
    cluster.pod("p", template(4)["spec"])["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    pod = live(cluster)

    assert pod.is_placed
    assert not pod.is_present
    assert not pod.is_running


@pytest.mark.parametrize(
    "status, reason",
    [
        (unschedulable(), UNSCHEDULABLE),
        ({"containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}]}, "ImagePullBackOff"),
        ({"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]}, ""),
        (
            {"initContainerStatuses": [{"state": {"terminated": {"exitCode": 2, "reason": "Error"}}}]},
            "Error (exit code 2)",
        ),
        ({"reason": "Evicted", "message": "The node was low on memory."}, "The node was low on memory."),
        ({}, ""),
    ],
)
def test_a_pod_that_waits_says_for_what(status: dict[str, Any], reason: str) -> None:
    """The container's reason first, then the scheduler's, then the kubelet's."""
    cluster = MadeUp()
    cluster.pod("p", node="", phase="Pending", **status)

    assert live(cluster).waits == reason


def test_unknown_devices_are_no_number() -> None:
    """GPUs that can't be told are not counted as none."""
    cluster = MadeUp()
    cluster.pod("p", {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "many"}}}]})

    assert live(cluster).gpus is None
