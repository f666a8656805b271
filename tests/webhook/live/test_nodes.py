"""Nodes as places for pods."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from tests.webhook.live.made_up import MadeUp, row, template
from webhook.live.nodes import Amounts, Node, fitting, natural, nodes_with, topology_keys


def nodes_of(cluster: MadeUp) -> tuple[Node, ...]:
    """The cluster's nodes with its pods on them."""
    return nodes_with(cluster.nodes, cluster.inventory().pods, cluster.policy.accelerators)


def gpus(count: int) -> Amounts:
    """What a pod of so many GPUs wants."""
    return {"nvidia.com/gpu": Decimal(count)}


def test_a_node_has_what_it_allocates_and_what_its_pods_hold() -> None:
    """Pods that have ended, and pods on other nodes, hold nothing here."""
    cluster = MadeUp()
    cluster.node("node-0", gpus=8)
    cluster.pod("a", template(3)["spec"], node="node-0")
    cluster.pod("b", template(4)["spec"], node="node-0", phase="Succeeded")
    cluster.pod("c", template(2)["spec"], node="node-1")

    (node,) = nodes_of(cluster)

    assert row(node.gpus, node.placed, node.free) == (8, 3, 5)


def test_mig_slices_are_accelerators_and_no_gpus() -> None:
    """What counts as a GPU is a setting; room is judged by the resource itself."""
    cluster = MadeUp()
    node = cluster.node("node-0", gpus=0)
    node["status"]["allocatable"] |= {"nvidia.com/mig-1g.10gb": "7", "ephemeral-storage": "1Ti", "odd": "?"}

    (found,) = nodes_of(cluster)

    assert found.gpus == 0
    assert found.has["nvidia.com/mig-1g.10gb"] == 7
    assert set(found.has) == {"nvidia.com/gpu", "nvidia.com/mig-1g.10gb"}


def test_a_cordoned_or_unready_node_takes_no_pods() -> None:
    """Its free GPUs are no room."""
    cluster = MadeUp()
    cluster.node("cordoned")["spec"]["unschedulable"] = True
    cluster.node("unready")["status"]["conditions"] = [{"type": "Ready", "status": "Unknown"}]

    assert fitting(nodes_of(cluster), [gpus(1)]) == 0


def test_pods_go_where_they_leave_whole_nodes_whole() -> None:
    """A pod of two beside one of six, so that one of eight has a node."""
    cluster = MadeUp()
    cluster.node("node-0")
    cluster.node("node-1")
    cluster.pod("a", template(6)["spec"], node="node-0")

    assert fitting(nodes_of(cluster), [gpus(2), gpus(8)]) == 2
    assert fitting(nodes_of(cluster), [gpus(2), gpus(8), gpus(1)]) == 2


def test_pods_without_accelerators_always_fit() -> None:
    """Whether a processor is free is the scheduler's to say."""
    cluster = MadeUp()
    cluster.node("node-0", gpus=0)

    assert fitting(nodes_of(cluster), [{}, {}]) == 2


@given(st.lists(st.integers(0, 8), max_size=6), st.lists(st.integers(1, 8), max_size=8))
def test_no_more_fits_than_there_is(free: list[int], wanted: list[int]) -> None:
    """What is said to fit never takes more than the nodes have, and more room never fits less."""
    nodes = [
        Node(name=str(n), labels={}, takes_pods=True, gpus=Decimal(each), placed=Decimal(0), has=gpus(each))
        for n, each in enumerate(free)
    ]
    fits = fitting(nodes, [gpus(each) for each in wanted])

    assert sum(sorted(wanted)[:fits]) <= sum(free)
    assert fits <= len(wanted)


def test_places_are_told_by_labels_of_topology_the_widest_first() -> None:
    """A label that is the same on all nodes tells nothing, the hostname is the node itself."""
    cluster = MadeUp()
    for number in range(4):
        labels = {
            "topology.kubernetes.io/region": "eu",
            "topology.kubernetes.io/zone": f"zone-{number // 2}",
            "example.com/topology-rack": f"rack-{number}",
        }
        cluster.node(f"node-{number}", labels=labels)

    assert topology_keys(nodes_of(cluster)) == ("topology.kubernetes.io/zone", "example.com/topology-rack")


@given(st.lists(st.integers(0, 2000), unique=True))
def test_names_with_numbers_sort_by_the_number(numbers: list[int]) -> None:
    """`node-2` stands before `node-10`."""
    names = [f"node-{number}" for number in numbers]

    assert sorted(names, key=natural) == [f"node-{number}" for number in sorted(numbers)]
