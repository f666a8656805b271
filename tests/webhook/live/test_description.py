"""One workload in full."""

from tests.webhook.live.made_up import MadeUp, condition, row, template, unschedulable
from webhook.live.description import Description, describe
from webhook.live.nodes import nodes_with
from webhook.live.scheduler_groups import scheduler_groups


def described(cluster: MadeUp, name: str = "train", *topology: str) -> Description:
    """The workload of that name."""
    found = cluster.inventory()
    nodes = nodes_with(cluster.nodes, found.pods, cluster.policy.accelerators) if cluster.nodes else None
    return describe(cluster.workload(name), cluster.index(), nodes, scheduler_groups(cluster.groups), topology)


def test_pods_stand_under_their_component_and_instance() -> None:
    """The contract's example: one component, two instances."""
    cluster = MadeUp()
    cluster.pods_of_jobset(cluster.jobset())

    (component,) = described(cluster).components

    assert component.name == "replicatedjob"
    assert [row(each.id, each.role, each.pods_asked, each.gpus_each) for each in component.instances] == [
        ("leader", "leader", 1, 4),
        ("workers", "workers", 2, 4),
    ]
    assert [[pod.name for pod in each.pods] for each in component.instances] == [
        ["train-leader-0-0-x"],
        ["train-workers-0-0-x", "train-workers-1-0-x"],
    ]


def test_pods_of_no_known_component_are_not_lost() -> None:
    """Those whose stamps say something that the object does not."""
    cluster = MadeUp()
    cluster.pods_of_jobset(cluster.jobset())
    cluster.stamp()
    cluster.pods[0]["metadata"]["labels"]["workload-stamp.io/role"] = "odd"

    assert [pod.name for pod in described(cluster).others] == ["train-leader-0-0-x"]


def test_placement_is_summed_by_node_and_by_topology() -> None:
    """Pods and GPUs in each place; pods on no node are in none."""
    cluster = MadeUp()
    for number in range(3):
        cluster.node(f"node-{number}", labels={"topology.kubernetes.io/zone": f"zone-{number // 2}"})
    pods = cluster.pods_of_jobset(cluster.jobset(workers=4))
    for pod, node in zip(pods, ("node-0", "node-1", "node-2", ""), strict=True):
        pod["spec"]["nodeName"] = node

    found = described(cluster)

    assert [row(place.name, place.pods, place.gpus) for place in found.nodes] == [
        ("node-0", 1, 4),
        ("node-1", 1, 4),
        ("node-2", 1, 4),
    ]
    (zones,) = found.topology.values()
    assert [row(place.name, place.pods, place.gpus) for place in zones] == [("zone-0", 2, 8), ("zone-1", 1, 4)]


def test_any_label_of_nodes_can_be_summed_by() -> None:
    """Somebody's node pools, when asked for."""
    cluster = MadeUp()
    cluster.node("node-0", labels={"pool": "a"})
    cluster.pods_of_jobset(cluster.jobset())

    assert [place.name for place in described(cluster, "train", "pool").topology["pool"]] == ["a"]


def test_what_the_gang_lacks_is_among_it() -> None:
    """One pod is on no node, and there is no room for it."""
    cluster = MadeUp()
    cluster.node("node-0", gpus=8)
    pods = cluster.pods_of_jobset(cluster.jobset())
    pods[2]["spec"]["nodeName"] = ""
    pods[2]["status"] = {"phase": "Pending", **unschedulable()}

    (gang,) = described(cluster).gangs

    assert gang.lack is not None
    assert ([pod.name for pod in gang.lack.waiting], gang.lack.fits) == (["train-workers-1-0-x"], 0)


def test_the_native_status_stands_behind_ours() -> None:
    """Phase and conditions as the framework writes them."""
    cluster = MadeUp()
    conditions = [condition("Failed", reason="FailedJobs", message="jobset failed")]
    cluster.jobset()["status"] = {"terminalState": "Failed", "conditions": conditions}

    found = described(cluster)

    assert found.conditions == tuple(conditions)
    assert [each.value for each in found.workload.statuses] == ["Failed"]


def test_without_nodes_there_is_no_topology() -> None:
    """Who may not read nodes sees their names on the pods all the same."""
    cluster = MadeUp()
    cluster.pods_of_jobset(cluster.jobset())

    found = described(cluster)

    assert [place.name for place in found.nodes] == ["node-0"]
    assert found.topology == {}


def test_a_component_without_instances_has_its_pods() -> None:
    """The one of a Deployment."""
    cluster = MadeUp()
    deployment = cluster.add("Deployment", "web", {"replicas": 2, "template": template()})
    replica_set = cluster.add("ReplicaSet", "web-1", {"template": template()}, owner=deployment)
    cluster.pod("web-1-a", owner=replica_set)

    (component,) = described(cluster, "web").components

    assert [(each.id, each.role, [pod.name for pod in each.pods]) for each in component.instances] == [
        ("", "deployment", ["web-1-a"])
    ]
