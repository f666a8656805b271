"""Workloads and GPUs counted for metrics, with bounded labels."""

from decimal import Decimal

from catalog.status import statuses
from tests.golden.cases import packaged_catalog
from tests.webhook.live.made_up import MadeUp, template
from webhook.live.census import MAX_NAMESPACES, MAX_ROLES, OTHER, Census, Fact, RunningPod, census, fact_of
from webhook.live.headline import headline


def facts(cluster: MadeUp) -> dict[str, Fact]:
    """What a watch of every kind would keep."""
    index, catalog = cluster.index(), packaged_catalog()
    found: dict[str, Fact] = {}
    for obj in cluster.objects:
        structure = index.structure(obj)
        assert structure is not None
        status = headline(statuses(structure.compiled, obj))
        found[structure.uid] = fact_of(structure, obj, status, catalog)
    return found


def running(role: str = "workers", namespace: str = "team-a", gpus: int = 4) -> RunningPod:
    """A running pod of a JobSet."""
    return RunningPod(kind="JobSet", namespace=namespace, role=role, gpus=Decimal(gpus))


def test_workloads_are_counted_by_kind_status_and_namespace() -> None:
    """Parts are not counted, runs of a schedule are."""
    cluster = MadeUp()
    jobset = cluster.jobset()
    cluster.pods_of_jobset(jobset)
    cron_job = cluster.add("CronJob", "nightly", {"jobTemplate": {"spec": {"template": template()}}})
    cluster.add("Job", "nightly-1", {"template": template()}, owner=cron_job)

    found = census(facts(cluster), [])

    assert found.workloads == {
        ("JobSet", "Initializing", "team-a"): 1,
        ("CronJob", "Initializing", "team-a"): 1,
        ("Job", "Initializing", "team-a"): 1,
    }


def test_gpus_are_counted_by_kind_namespace_and_role() -> None:
    """Asked by workloads, running in pods."""
    cluster = MadeUp()
    cluster.jobset()

    found = census(facts(cluster), [running(), running(), running("leader")])

    assert found.gpus_asked == {("JobSet", "team-a", "leader"): 4, ("JobSet", "team-a", "workers"): 8}
    assert found.gpus_running == {("JobSet", "team-a", "leader"): 4, ("JobSet", "team-a", "workers"): 8}


def test_what_rests_asks_for_nothing() -> None:
    """A suspended Job waits for no GPU, and a schedule's runs ask for themselves."""
    cluster = MadeUp()
    suspended = {"conditions": [{"type": "Suspended", "status": "True"}]}
    cluster.add("Job", "paused", {"suspend": True, "template": template(8)}, status=suspended)
    cluster.add("CronJob", "nightly", {"jobTemplate": {"spec": {"template": template(1)}}})

    assert census(facts(cluster), []).gpus_asked == {}


def test_the_object_below_answers_where_the_definition_says_so() -> None:
    """A TrainJob's GPUs are its JobSet's, and are counted once."""
    cluster = MadeUp()
    train_job = cluster.add("TrainJob", "sft", {"runtimeRef": {"name": "torch"}})
    cluster.jobset("sft", node=2, owner=train_job)

    assert census(facts(cluster), []).gpus_asked == {("TrainJob", "team-a", "node"): 8}


def test_labels_are_bounded() -> None:
    """However many namespaces and roles there are, the rarest count as others and nothing is lost."""
    pods = [running(f"role-{n}", f"namespace-{n}") for n in range(2 * MAX_NAMESPACES)] + [running("often", "busy")] * 2

    found = census({}, pods)

    namespaces = {namespace for _, namespace, _ in found.gpus_running}
    roles = {role for _, _, role in found.gpus_running}
    assert {"busy", OTHER} <= namespaces
    assert len(namespaces) == MAX_NAMESPACES + 1
    assert len(roles) == MAX_ROLES + 1
    assert sum(found.gpus_running.values()) == 4 * len(pods)


def test_nothing_is_counted_of_nothing() -> None:
    """No series where there are no workloads."""
    assert census({}, []) == Census()
