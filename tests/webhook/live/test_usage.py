"""Who asks for GPUs and who holds them: every row adds up."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webhook.live.made_up import MadeUp, condition, row, template
from webhook.live.nodes import nodes_with
from webhook.live.usage import By, Usage, total, usage_by

TABLES: tuple[By, ...] = ("namespace", "kind", "workload", "node")


def usage(cluster: MadeUp, by: By) -> tuple[Usage, ...]:
    """The rows of one table."""
    found = cluster.inventory()
    return usage_by(found, by, nodes_with(cluster.nodes, found.pods, cluster.policy.accelerators))


def a_busy_cluster() -> MadeUp:
    """A JobSet that runs, one that waits for a node, a notebook, a pod of an undescribed owner, and a finished Job."""
    cluster = MadeUp()
    cluster.node("node-0", gpus=16)
    cluster.node("node-1", gpus=8)
    cluster.pods_of_jobset(cluster.jobset())
    cluster.pods_of_jobset(cluster.jobset("waiting", workers=2), node="", phase="Pending")
    cluster.pod("notebook", template(1)["spec"], node="node-1", namespace="team-b")
    cluster.pod("w", template(2)["spec"], node="node-1", owner=MadeUp().add("Widget", "w"))
    done = cluster.add("Job", "done", {"template": template(8)}, status={"conditions": [condition("Complete")]})
    cluster.pod("done-x", template(8)["spec"], owner=done, phase="Succeeded")
    return cluster


def test_rows_by_namespace() -> None:
    """Asked, placed and running of each, and those that belong to no workload."""
    rows = usage(a_busy_cluster(), "namespace")

    assert [row(each.names, each.asked, each.placed, each.running, each.idle) for each in rows] == [
        (("team-a",), 20, 12, 12, 0),
        ((), None, 2, 2, 0),
        (("team-b",), 1, 1, 1, 0),
    ]


def test_what_is_held_without_running_is_idle() -> None:
    """Pods that start, or leave, hold GPUs that nobody uses."""
    cluster = MadeUp()
    cluster.node("node-0")
    starting, leaving, _ = cluster.pods_of_jobset(cluster.jobset(gpus=2))
    starting["status"] = {"phase": "Pending"}
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    (one,) = usage(cluster, "kind")

    assert row(one.placed, one.running, one.idle) == (6, 2, 4)


def test_what_rests_or_has_ended_asks_for_nothing() -> None:
    """A suspended Job and a finished one are not waiting for GPUs."""
    cluster = MadeUp()
    cluster.add("Job", "done", {"template": template(8)}, status={"conditions": [condition("Complete")]})
    suspended = {"conditions": [condition("Suspended")]}
    cluster.add("Job", "paused", {"suspend": True, "template": template(8)}, status=suspended)

    assert usage(cluster, "workload") == ()


def test_an_unknown_number_is_said_to_be_missing() -> None:
    """A part is not given for the whole."""
    cluster = MadeUp()
    cluster.add("TrainJob", "sft", {"runtimeRef": {"name": "torch"}})

    (one,) = usage(cluster, "kind")

    assert one.is_partial
    assert one.asked == 0


def test_rows_by_node_tell_what_is_free() -> None:
    """Allocatable, placed and free of each node."""
    rows = usage(a_busy_cluster(), "node")

    assert [row(each.names, each.allocatable, each.placed, each.free) for each in rows] == [
        (("node-0",), 16, 12, 4),
        (("node-1",), 8, 3, 5),
    ]


@pytest.mark.parametrize("by", TABLES)
def test_every_table_adds_up_to_what_the_nodes_gave_away(by: By) -> None:
    """However it is sorted, the total placed is the sum over the nodes."""
    cluster = a_busy_cluster()

    assert total(usage(cluster, by)).placed == sum(each.placed for each in usage(cluster, "node")) == 15


pods = st.lists(
    st.tuples(
        st.sampled_from(["team-a", "team-b"]),
        st.sampled_from(["node-0", "node-1", ""]),
        st.sampled_from(["Pending", "Running", "Succeeded", "Failed"]),
        st.integers(0, 8),
        st.booleans(),
    ),
    max_size=12,
)


@given(pods)
def test_tables_of_any_cluster_add_up(made: list[tuple[str, str, str, int, bool]]) -> None:
    """Placed is running and idle; every table has the same total; no pod that has ended holds anything."""
    cluster = MadeUp()
    cluster.node("node-0", gpus=100)
    cluster.node("node-1", gpus=100)
    widget = MadeUp().add("Widget", "w")
    for number, (namespace, node, phase, gpus, owned) in enumerate(made):
        owner = widget if owned else None
        spec = template(gpus)["spec"]
        cluster.pod(f"p-{number}", spec, namespace=namespace, node=node, phase=phase, owner=owner)

    totals = {by: total(usage(cluster, by)) for by in TABLES}

    held = sum(gpus for _, node, phase, gpus, _ in made if node and phase in ("Pending", "Running"))
    assert {each.placed for each in totals.values()} == {Decimal(held)}
    assert all(each.placed == each.running + each.idle for each in totals.values())
