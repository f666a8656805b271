"""What a pod belongs to: the same by its stamps and by its owners."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from catalog.expressions import IsolatedRequest, Outcome
from catalog.library import Catalog
from catalog.resources import NO_DEVICES
from tests.catalog.made_up import definition, leaf, train
from tests.webhook.live.made_up import MadeUp, template
from webhook.live.membership import Membership, StampReader
from webhook.live.owners import OwnerIndex
from webhook.live.pods import LivePod, live_pods
from webhook.live.snapshot import Snapshot
from webhook.stamps import Policy


def memberships(cluster: MadeUp) -> dict[str, LivePod]:
    """Each pod by name."""
    return {pod.name: pod for pod in live_pods(cluster.pods, cluster.index())}


def a_jobset(cluster: MadeUp) -> None:
    """The contract's example."""
    cluster.pods_of_jobset(cluster.jobset())


def a_ray_job(cluster: MadeUp) -> None:
    """A RayJob over its RayCluster, which states the gang."""
    group = {"groupName": "gpu-group", "replicas": 2, "minReplicas": 0, "maxReplicas": 4, "template": template(2)}
    spec = {"headGroupSpec": {"template": template()}, "workerGroupSpecs": [group]}
    job = cluster.add("RayJob", "tune", {"rayClusterSpec": spec})
    ray_cluster = cluster.add("RayCluster", "tune-x", spec, owner=job)
    head = {"ray.io/node-type": "head", "ray.io/group": "headgroup", "ray.io/cluster": "tune-x"}
    worker = {"ray.io/node-type": "worker", "ray.io/group": "gpu-group", "ray.io/cluster": "tune-x"}
    cluster.pod("tune-x-head", owner=ray_cluster, labels=head)
    cluster.pod("tune-x-worker", template(2)["spec"], owner=ray_cluster, labels=worker)


def a_bare_pod(cluster: MadeUp) -> None:
    """A pod that is its own workload."""
    cluster.pod("notebook", template(1)["spec"])


@pytest.mark.parametrize("make", [a_jobset, a_ray_job, a_bare_pod])
@pytest.mark.parametrize("prefix", ["workload-stamp.io", "stamps.example.com"])
def test_stamps_and_owners_say_the_same(make: Callable[[MadeUp], None], prefix: str) -> None:
    """A pod's place is the same read from its stamps and worked out without them; only the source differs."""
    cluster = MadeUp(Policy(prefix=prefix))
    make(cluster)
    computed = memberships(cluster)
    cluster.stamp()
    stamped = memberships(cluster)

    assert all(pod.membership is not None and pod.membership.stamped for pod in stamped.values())
    for name, pod in computed.items():
        assert pod.membership is not None
        assert not pod.membership.stamped
        assert replace(pod.membership, stamped=True) == stamped[name].membership


def test_the_ray_clusters_gang_is_the_ray_jobs_pods() -> None:
    """The workload is the RayJob, the gang its RayCluster's."""
    cluster = MadeUp()
    a_ray_job(cluster)

    worker = memberships(cluster)["tune-x-worker"].membership

    assert worker is not None
    assert (worker.workload.kind, worker.workload.name, worker.role, worker.instance) == (
        "RayJob",
        "tune",
        "worker",
        "gpu-group",
    )
    assert worker.gang.startswith("tune-x-")
    assert worker.gang_size == 3


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"kind": "JobSet"}', '{"apiGroup":"","kind":"Pod","namespace":"n","name":""}']
)
def test_stamps_that_name_no_workload_are_not_believed(text: str) -> None:
    """A damaged annotation is as good as none: the owners tell."""
    cluster = MadeUp()
    a_jobset(cluster)
    pod = cluster.pods[0]
    pod["metadata"]["labels"]["workload-stamp.io/workload-id"] = "odd"
    pod["metadata"]["annotations"]["workload-stamp.io/workload"] = text

    membership = memberships(cluster)[pod["metadata"]["name"]].membership

    assert membership is not None
    assert not membership.stamped
    assert membership.workload.name == "train"


def test_odd_numbers_in_stamps_are_unknown() -> None:
    """Whoever writes stamps by hand breaks no sum."""
    cluster = MadeUp()
    a_jobset(cluster)
    cluster.stamp()
    pod = cluster.pods[0]
    pod["metadata"]["labels"] |= {"workload-stamp.io/gang-size": "-3", "workload-stamp.io/gpu-total": "NaN"}

    membership = memberships(cluster)[pod["metadata"]["name"]].membership

    assert membership is not None
    assert membership.gang_size is None
    assert membership.gpu_total is None


def test_a_pod_of_an_undescribed_owner_belongs_to_nothing() -> None:
    """Its controller may be anything."""
    cluster = MadeUp()
    widget = MadeUp().add("Widget", "w")
    cluster.pod("w-0", owner=widget)

    pod = memberships(cluster)["w-0"]

    assert pod.membership is None
    assert not pod.stray


def test_a_pod_whose_owner_was_not_read_says_so() -> None:
    """What admission could not tell, nobody guesses."""
    cluster = MadeUp()
    a_jobset(cluster)
    cluster.objects = [obj for obj in cluster.objects if obj["kind"] != "JobSet"]

    pod = memberships(cluster)["train-leader-0-0-x"]

    assert pod.membership is None
    assert pod.stray == "owner JobSet train could not be read"


def test_expressions_for_another_process_are_evaluated_where_the_caller_says() -> None:
    """A definition that is not plain: what it selects by is asked of whoever evaluates for us."""
    slow = '.metadata.labels["group"] | test("^gp")'
    selector = {"componentTypeSelector": {"keyPath": slow, "value": "true"}}
    compiled = definition(children=[leaf("main", podSelector=selector)])
    asked: list[IsolatedRequest] = []

    def evaluate(request: IsolatedRequest) -> dict[str, Outcome]:
        asked.append(request)
        return dict.fromkeys(request.sources, (True,))

    owner = train(main={})
    cluster = MadeUp()
    pod = cluster.pod("t-0", owner=owner, labels={"group": "gpu"})
    snapshot = Snapshot(objects=(owner,), pods=(pod,))
    index = OwnerIndex(snapshot, Catalog.of([compiled]), Policy(), evaluate)

    membership = StampReader(index).computed(pod, NO_DEVICES)

    assert [request.sources for request in asked] == [(slow,)]
    assert isinstance(membership, Membership)
    assert membership.role == "main"
