"""The inventory: one row a workload, with what it asks for and the pods that it has."""

from decimal import Decimal

import pytest

from catalog.definition import Status
from catalog.structure import Unknown
from tests.webhook.live.made_up import MadeUp, condition, row, template
from webhook.live.gangs import GangsAsked
from webhook.live.workloads import native_status


def rows(cluster: MadeUp) -> list[tuple[str, str]]:
    """Kind and name of each workload."""
    return [(each.reference.kind, each.reference.name) for each in cluster.inventory().workloads]


@pytest.mark.parametrize("stamped", [True, False])
def test_the_contracts_jobset_is_one_row(stamped: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """1 leader + 2 workers, 12 GPUs, Running, three pods, one gang of three; with the webhook and without."""
    cluster = MadeUp()
    jobset = cluster.jobset()
    cluster.pods_of_jobset(jobset)
    jobset["status"] = {"replicatedJobsStatus": [{"name": "leader", "ready": 1}, {"name": "workers", "ready": 2}]}
    if stamped:
        cluster.stamp()

    assert rows(cluster) == [("JobSet", "train")]
    train = cluster.workload("train")
    assert train.status is Status.RUNNING
    assert [row(role.role, role.pods_asked, role.gpus_asked, len(role.pods)) for role in train.roles] == [
        ("leader", 1, 4, 1),
        ("workers", 2, 8, 2),
    ]
    assert row(train.pods_asked, train.ready, train.gpus_asked, train.gpus_running) == (3, 3, 12, 12)
    assert train.gangs_asked == (GangsAsked(group="jobs", count=1, size=3),)
    assert [gang.is_whole for gang in train.gangs] == [True]


def test_parts_of_a_workload_have_no_row() -> None:
    """Its Jobs are told apart from Jobs of their own."""
    cluster = MadeUp()
    cluster.pods_of_jobset(cluster.jobset())
    cluster.add("Job", "alone", {"template": template()})

    assert rows(cluster) == [("Job", "alone"), ("JobSet", "train")]
    assert len(cluster.inventory().parts) == 3


def test_the_runs_of_a_schedule_are_workloads_of_their_own() -> None:
    """The schedule has a row without pods, with the numbers of one run."""
    cluster = MadeUp()
    spec = {"template": template(2)}
    cron_job = cluster.add("CronJob", "nightly", {"jobTemplate": {"spec": spec}})
    run = cluster.add("Job", "nightly-1", spec, owner=cron_job)
    cluster.pod("nightly-1-x", template(2)["spec"], owner=run)

    nightly, first = cluster.workload("nightly"), cluster.workload("nightly-1")

    assert nightly.is_schedule
    assert not nightly.asks
    assert row(nightly.gpus_asked, nightly.pods, nightly.gangs_asked) == (2, (), ())
    assert [pod.name for pod in first.pods] == ["nightly-1-x"]


def test_a_bare_pod_is_a_workload() -> None:
    """Somebody's notebook holds GPUs like any other."""
    cluster = MadeUp()
    cluster.pod("notebook", template(1)["spec"])

    notebook = cluster.workload("notebook")

    assert row(notebook.reference.kind, notebook.status, notebook.gpus_running) == ("Pod", Status.RUNNING, 1)


def test_a_workload_whose_object_may_not_be_read_is_there_all_the_same() -> None:
    """Stamped pods tell what they belong to; what only the object knows stays unknown."""
    cluster = MadeUp()
    cluster.pods_of_jobset(cluster.jobset())
    cluster.stamp()
    cluster.objects.clear()

    train = cluster.workload("train")

    assert train.status is Status.UNDEFINED
    assert isinstance(train.pods_asked, Unknown)
    assert row(train.gpus_asked, train.gpus_running, train.ready) == (12, 12, 3)
    assert [role.role for role in train.roles] == ["leader", "workers"]


def test_pods_of_an_earlier_run_are_not_the_present_ones() -> None:
    """A run that reuses a name shares the id, not the pods that are still leaving."""
    cluster = MadeUp()
    jobset = cluster.jobset()
    cluster.pods_of_jobset(jobset)
    cluster.stamp()
    cluster.objects.clear()
    cluster.jobset()

    now, before = cluster.inventory().workloads[1], cluster.inventory().workloads[0]
    if now.obj is None:
        now, before = before, now

    assert (now.id, now.ready) == (before.id, 0)
    assert before.obj is None
    assert before.ready == 3


def test_the_object_below_answers_where_the_definition_says_so() -> None:
    """A TrainJob's roles, numbers and gang are its JobSet's."""
    cluster = MadeUp()
    train_job = cluster.add("TrainJob", "sft", {"runtimeRef": {"name": "torch"}, "trainer": {"numNodes": 2}})
    jobset = cluster.jobset("sft", node=2, owner=train_job)
    cluster.pods_of_jobset(jobset)

    sft = cluster.workload("sft")

    assert row(sft.reference.kind, sft.pods_asked, sft.gpus_asked, sft.ready) == ("TrainJob", 2, 8, 2)
    assert sft.gangs_asked == (GangsAsked(group="jobs", count=1, size=2),)


def test_without_the_object_that_answers_nothing_is_guessed() -> None:
    """A TrainJob whose JobSet is not there yet."""
    cluster = MadeUp()
    cluster.add("TrainJob", "sft", {"runtimeRef": {"name": "torch"}})

    sft = cluster.workload("sft")

    assert isinstance(sft.pods_asked, Unknown)
    assert isinstance(sft.gpus_asked, Unknown)
    assert sft.roles_unknown


def test_a_described_object_below_an_unread_owner_is_no_workload() -> None:
    """It belongs to something; that it can't be read does not make a part a whole."""
    cluster = MadeUp()
    jobset = cluster.jobset()
    cluster.pods_of_jobset(jobset)
    cluster.objects.remove(jobset)

    found = cluster.inventory()

    assert found.workloads == ()
    assert {pod.stray for pod in found.strays} == {"owner JobSet train could not be read"}


def test_pods_of_no_described_owner_are_strays() -> None:
    """They hold GPUs too."""
    cluster = MadeUp()
    cluster.pod("w", template(3)["spec"], owner=MadeUp().add("Widget", "w"))

    found = cluster.inventory()

    assert found.workloads == ()
    assert [pod.gpus for pod in found.strays] == [Decimal(3)]


def test_degraded_is_the_headline_of_what_runs() -> None:
    """It tells more than that something runs; both are among the statuses."""
    cluster = MadeUp()
    status = {"availableReplicas": 1, "conditions": [condition("Available")]}
    cluster.add("Deployment", "web", {"replicas": 3, "template": template()}, status=status)

    web = cluster.workload("web")

    assert web.statuses == (Status.RUNNING, Status.DEGRADED)
    assert web.status is Status.DEGRADED


def test_the_frameworks_own_words_are_at_hand() -> None:
    """Conditions as the object has them."""
    cluster = MadeUp()
    cluster.add("Job", "j", {"template": template()}, status={"conditions": [condition("Complete")]})

    phase, conditions = native_status(cluster.workload("j"), cluster.index())

    assert phase == ""
    assert [entry["type"] for entry in conditions] == ["Complete"]
