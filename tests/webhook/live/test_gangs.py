"""Gangs: how far they got, what they lack, and how they compare with schedulers' groups."""

from typing import Any

import pytest

from catalog.structure import Unknown
from tests.catalog.made_up import definition, groups, resolved, train
from tests.webhook.live.made_up import MadeUp, template, unschedulable
from webhook.live.gangs import Agreement, GangsAsked, GangState, LiveGang, compared, gangs_asked, lack_of
from webhook.live.nodes import nodes_with
from webhook.live.scheduler_groups import GroupReference, scheduler_groups


def a_gang(cluster: MadeUp, *, placed: int, waiting: int = 0, name: str = "train") -> None:
    """A JobSet of three workers with four GPUs each, of which so many pods are there."""
    jobset = cluster.jobset(name, workers=3)
    for number in range(placed + waiting):
        job = cluster.add("Job", f"{name}-{number}", owner=jobset)
        labels = {"jobset.sigs.k8s.io/replicatedjob-name": "workers"}
        place = {"node": "node-0"} if number < placed else {"node": "", "phase": "Pending", **unschedulable()}
        cluster.pod(f"{name}-{number}-x", template(4)["spec"], owner=job, labels=labels, **place)


def gang_of(cluster: MadeUp, name: str = "train") -> LiveGang:
    """The workload's only gang."""
    (gang,) = cluster.workload(name).gangs
    return gang


def test_a_gang_whose_pods_all_run_runs() -> None:
    """It lacks nothing."""
    cluster = MadeUp()
    a_gang(cluster, placed=3)

    gang = gang_of(cluster)

    assert (gang.size, len(gang.present), gang.placed, gang.running) == (3, 3, 3, 3)
    assert gang.state is GangState.RUNNING
    assert lack_of(gang, ()) is None


def test_a_gang_on_nodes_is_whole_before_it_runs() -> None:
    """Placement is what a gang scheduler is for."""
    cluster = MadeUp()
    a_gang(cluster, placed=3)
    cluster.pods[0]["status"] = {"phase": "Pending"}

    assert gang_of(cluster).state is GangState.WHOLE


@pytest.mark.parametrize("free, fits, can_be_whole", [(8, 2, True), (4, 1, False), (0, 0, False)])
def test_what_a_gang_lacks_is_held_against_the_nodes(free: int, fits: int, can_be_whole: bool) -> None:  # noqa: FBT001
    """One pod is on no node, one is not made and taken to be as large: there is room for both, or not."""
    cluster = MadeUp()
    cluster.node("node-0", gpus=4 + free)
    a_gang(cluster, placed=1, waiting=1)

    gang = gang_of(cluster)
    lack = lack_of(gang, nodes_with(cluster.nodes, cluster.inventory().pods, cluster.policy.accelerators))

    assert gang.state is GangState.INCOMPLETE
    assert lack is not None
    assert (lack.missing, [pod.name for pod in lack.waiting]) == (1, ["train-1-x"])
    assert (lack.fits, lack.can_be_whole) == (fits, can_be_whole)


def test_without_nodes_nobody_says_whether_there_is_room() -> None:
    """Unknown is not no."""
    cluster = MadeUp()
    a_gang(cluster, placed=1, waiting=2)

    lack = lack_of(gang_of(cluster), None)

    assert lack is not None
    assert lack.can_be_whole is None


def test_a_gang_that_has_ended_lacks_nothing() -> None:
    """Its pods have done their work."""
    cluster = MadeUp()
    a_gang(cluster, placed=3)
    for pod in cluster.pods:
        pod["status"] = {"phase": "Succeeded"}

    gang = gang_of(cluster)

    assert gang.state is GangState.OVER
    assert lack_of(gang, ()) is None


def test_the_size_is_that_of_the_newest_pod() -> None:
    """Earlier pods carry what was asked for before a scale."""
    cluster = MadeUp()
    a_gang(cluster, placed=3)
    cluster.stamp()
    old = cluster.pods[0]["metadata"]
    old["creationTimestamp"] = "2025-12-31T00:00:00Z"
    old["labels"]["workload-stamp.io/gang-size"] = "2"

    assert gang_of(cluster).size == 3


def test_the_gangs_of_a_leader_worker_set_are_its_groups() -> None:
    """Two groups of two pods each, told before any pod is there."""
    cluster = MadeUp()
    spec = {"replicas": 2, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template(1)}}
    cluster.add("LeaderWorkerSet", "serve", spec)

    assert cluster.workload("serve").gangs_asked == (GangsAsked(group="group", count=2, size=2),)


def test_the_stages_of_a_jobset_are_gangs_of_their_own() -> None:
    """A stage that waits for another is not in its gang."""
    cluster = MadeUp()
    jobset = cluster.jobset(first=1, second=4)
    jobset["spec"]["replicatedJobs"][1]["dependsOn"] = [{"name": "first", "status": "Complete"}]

    asked = cluster.workload("train").gangs_asked

    assert asked == (GangsAsked(group="jobs", count=1, size=1), GangsAsked(group="jobs", count=1, size=4))


def test_a_deployment_has_no_gang() -> None:
    """Its pods start by themselves."""
    cluster = MadeUp()
    cluster.add("Deployment", "web", {"replicas": 3, "template": template()})

    assert cluster.workload("web").gangs_asked == ()


def asked(structure_of: dict[str, Any], *groups: dict[str, Any], **spec: Any) -> tuple[GangsAsked, ...] | Unknown:
    """The gangs that an object of a made-up kind asks for."""
    compiled = definition(children=[structure_of], gang={"podGroups": list(groups)})
    return gangs_asked([resolved(compiled, train(**spec))])


ENTRIES = [
    {"name": "a", "replicas": 4, "template": template(), "stage": "one", "size": 2},
    {"name": "b", "replicas": 3, "template": template(), "stage": "", "size": 3},
]
MEMBER = [{"componentName": "group"}]


def test_gangs_of_one_size_for_each_instance() -> None:
    """As many as the instance's pods make."""
    sizes = {"name": "g", "members": MEMBER, "sizePath": ".spec.groups[].size"}

    assert asked(groups(), sizes, groups=ENTRIES) == (
        GangsAsked(group="g", count=2, size=2),
        GangsAsked(group="g", count=1, size=3),
    )


def test_an_instance_that_names_no_gang_has_none() -> None:
    """The object says which instances are together."""
    named = {"name": "g", "members": MEMBER, "gangIdPath": ".spec.groups[].stage"}

    assert asked(groups(), named, groups=ENTRIES) == (GangsAsked(group="g", count=1, size=4),)


@pytest.mark.parametrize(
    "group",
    [
        {"sizePath": ".spec.absent"},
        {"sizePath": ".spec.groups[].absent"},
        {"gangIdPath": ".spec.absent"},
        {"isEnabledExpression": ".spec.groups[] | true"},
    ],
)
def test_gangs_that_can_t_be_told_are_unknown(group: dict[str, Any]) -> None:
    """No number is guessed."""
    assert isinstance(asked(groups(), {"name": "g", "members": MEMBER, **group}, groups=ENTRIES), Unknown)


@pytest.mark.parametrize("replicas", [None, "many"])
def test_gangs_of_unknown_pods_are_unknown(replicas: Any) -> None:
    """Without the number of pods nobody knows how many gangs they make."""
    entries = [{**entry, "replicas": replicas} for entry in ENTRIES]
    whole = {"name": "g", "members": MEMBER, "sizePath": "2"}
    each = {"name": "g", "members": MEMBER, "sizePath": ".spec.groups[].size"}
    named = {"name": "g", "members": MEMBER, "gangIdPath": ".spec.groups[].stage"}

    for group in (whole, each, named):
        assert isinstance(asked(groups(), group, groups=entries), Unknown)


def test_a_gang_of_unknown_size_has_no_state() -> None:
    """Nor can it be held against a scheduler's group."""
    cluster = MadeUp()
    a_gang(cluster, placed=3)
    cluster.stamp()
    for pod in cluster.pods:
        del pod["metadata"]["labels"]["workload-stamp.io/gang-size"]
        pod["metadata"]["annotations"]["pod-group-name"] = "pg"
    cluster.group("scheduling.run.ai/v2alpha2", "pg", {"minMember": 3})

    gang = gang_of(cluster)
    (comparison,) = compared(gang, scheduler_groups(cluster.groups))

    assert gang.state is GangState.UNKNOWN
    assert comparison.agreement is Agreement.UNKNOWN
    assert lack_of(gang, ()) is None


def test_pods_of_unknown_devices_have_no_known_room() -> None:
    """What is not known does not fit, and does not fail to."""
    cluster = MadeUp()
    a_gang(cluster, placed=1, waiting=2)
    cluster.pods[1]["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = "many"

    lack = lack_of(gang_of(cluster), ())

    assert lack is not None
    assert lack.fits is None


GROUPS = {
    "Volcano": ("scheduling.volcano.sh/v1beta1", {"annotations": {"scheduling.k8s.io/group-name": "pg"}}, {}),
    "KAI": ("scheduling.run.ai/v2alpha2", {"annotations": {"pod-group-name": "pg"}}, {}),
    "coscheduling": ("scheduling.x-k8s.io/v1alpha1", {"labels": {"scheduling.x-k8s.io/pod-group": "pg"}}, {}),
    "Kubernetes": ("scheduling.k8s.io/v1alpha2", {}, {"schedulingGroup": {"podGroupName": "pg"}}),
}


@pytest.mark.parametrize("scheduler", GROUPS)
@pytest.mark.parametrize("minimum, agreement", [(3, Agreement.AGREES), (2, Agreement.DIFFERS)])
def test_a_schedulers_group_is_held_against_the_gang(scheduler: str, minimum: int, agreement: Agreement) -> None:
    """It agrees when it waits for the whole gang."""
    api_version, metadata, spec = GROUPS[scheduler]
    cluster = MadeUp()
    a_gang(cluster, placed=3)
    for pod in cluster.pods:
        for field, values in metadata.items():
            pod["metadata"][field] |= values
        pod["spec"] |= spec
    policy = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    cluster.group(api_version, "pg", policy if scheduler == "Kubernetes" else {"minMember": minimum}, phase="Running")

    (comparison,) = compared(gang_of(cluster), scheduler_groups(cluster.groups))

    assert comparison.reference == GroupReference(scheduler, "team-a", "pg")
    assert comparison.agreement is agreement
    assert comparison.group is not None
    assert comparison.group.phase == "Running"


def test_a_group_that_is_not_there_is_told() -> None:
    """Pods that name a group which nobody made will wait for ever."""
    cluster = MadeUp()
    a_gang(cluster, placed=3)
    for pod in cluster.pods:
        pod["metadata"]["annotations"]["pod-group-name"] = "gone"

    (comparison,) = compared(gang_of(cluster), scheduler_groups(cluster.groups))

    assert comparison.agreement is Agreement.MISSING


def test_a_smaller_minimum_agrees_where_the_object_states_it() -> None:
    """An elastic job may start with fewer; a scheduler that waits for those agrees."""
    cluster = MadeUp()
    a_gang(cluster, placed=2)
    cluster.stamp()
    for pod in cluster.pods:
        pod["metadata"]["annotations"] |= {"workload-stamp.io/gang-min": "2", "scheduling.k8s.io/group-name": "pg"}
    cluster.group("scheduling.volcano.sh/v1beta1", "pg", {"minMember": 2})

    gang = gang_of(cluster)
    (comparison,) = compared(gang, scheduler_groups(cluster.groups))

    assert gang.state is GangState.STARTABLE
    assert comparison.agreement is Agreement.AGREES


def test_other_kinds_of_that_name_are_no_groups() -> None:
    """Only the schedulers' own kinds are read."""
    cluster = MadeUp()
    cluster.group("example.com/v1", "pg", {"minMember": 2})
    cluster.group("scheduling.run.ai/v2alpha2", "odd", {"minMember": "three"})

    groups = scheduler_groups(cluster.groups)

    assert [group.minimum for group in groups.values()] == [None]
