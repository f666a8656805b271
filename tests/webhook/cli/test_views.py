"""Views as people see them, from made-up clusters."""

from datetime import UTC, datetime

import pytest
from rich.cells import cell_len

from catalog.structure import Unknown
from tests.webhook.live.made_up import CREATED, MadeUp, condition, template, unschedulable
from webhook.cli import terminal
from webhook.cli.audit import summary
from webhook.cli.description_text import View, lines
from webhook.cli.gang_text import gang_sentence, lack_sentence, size_text
from webhook.cli.get import gangs_text, gpus_text, in_short, roles_text, table_row
from webhook.live.audit import audit
from webhook.live.description import GangView, describe, gang_view
from webhook.live.nodes import nodes_with
from webhook.live.scheduler_groups import scheduler_groups

NOW = datetime(2026, 1, 1, 0, 5, tzinfo=UTC)


def view(cluster: MadeUp, name: str = "train", *, limit: int | None = None) -> list[str]:
    """The description of a workload, line by line."""
    found = cluster.inventory()
    nodes = nodes_with(cluster.nodes, found.pods, cluster.policy.accelerators) if cluster.nodes else None
    description = describe(cluster.workload(name), found.index, nodes, scheduler_groups(cluster.groups))
    event = {"lastTimestamp": CREATED, "type": "Warning", "reason": "FailedScheduling", "message": "no room. And more"}
    events = [{**event, "involvedObject": {"kind": "Pod", "name": pod}} for pod in ("a", "b")]
    return [line.plain for line in lines(View(description=description, events=tuple(events), aside=""), limit, NOW)]


def a_waiting_jobset() -> MadeUp:
    """Three pods, one of them on no node of the two there are."""
    cluster = MadeUp()
    for number, zone in enumerate("ab"):
        cluster.node(f"node-{number}", labels={"topology.kubernetes.io/zone": f"zone-{zone}"})
    pods = cluster.pods_of_jobset(cluster.jobset(gpus=8))
    pods[1]["spec"]["nodeName"] = "node-1"
    pods[2]["spec"]["nodeName"] = ""
    pods[2]["status"] = {"phase": "Pending", **unschedulable()}
    cluster.objects[0]["status"] = {
        "replicatedJobsStatus": [
            {"name": "leader", "ready": 1, "active": 1},
            {"name": "workers", "ready": 1, "active": 2},
        ],
        "conditions": [condition("StartupPolicyCompleted", reason="Done", message="all Jobs\nwere created")],
    }
    return cluster


def test_a_row_has_everything_at_a_glance() -> None:
    """1 leader + 2 workers, two of three pods, 16 of 24 GPUs, no gang of one whole."""
    row = table_row(a_waiting_jobset().workload("train"), NOW)

    assert [str(cell) for cell in row] == [
        "team-a",
        "JobSet",
        "train",
        "Degraded",
        "1 leader + 2 workers",
        "2/3",
        "16/24",
        "0/1 of 3",
        "5m",
    ]


def test_three_hundred_workloads_in_short() -> None:
    """How many there are in which state, and the GPUs of all."""
    cluster = a_waiting_jobset()
    for number in range(300):
        status = {"conditions": [condition("Suspended")]}
        cluster.add("Job", f"j-{number}", {"suspend": True, "template": template(1)}, status=status)

    assert in_short(cluster.inventory().workloads) == ("301 workloads: 300 suspended, 1 degraded · 16/24 GPUs running")


def test_a_description_tells_it_all() -> None:
    """What it is, its pods by component, where they are, what the gang lacks, why, and the last events."""
    assert view(a_waiting_jobset()) == [
        "JobSet team-a/train  Degraded  5m",
        "1 leader + 2 workers · 2/3 pods ready · 16/24 GPUs running · 1 gang of 3",
        "id train-4a9ff231a1",
        "",
        "COMPONENT / POD          STATE      NODE    GPUS  AGE  WAITS FOR",
        "replicatedjob",
        "  leader                 1/1 ready             8",
        "    train-leader-0-0-x   Running    node-0     8   5m",
        "  workers                1/2 ready             8",
        "    train-workers-0-0-x  Running    node-1     8   5m",
        "    train-workers-1-0-x  Pending               8   5m  0/8 nodes are available: 8 Insufficient nvidia.com/gpu",
        "",
        "Placement",
        "PLACE                           PODS  GPUS",
        "by node",
        "  node-0                           1     8",
        "  node-1                           1     8",
        "by topology.kubernetes.io/zone",
        "  zone-a                           1     8",
        "  zone-b                           1     8",
        "",
        "Gangs",
        "  train-4a9ff231a1  incomplete  2 of 3 on nodes, 2 running; 1 pod on no node, no room",
        "",
        "Status",
        "  Running, Degraded",
        "  CONDITION               STATUS  REASON  MESSAGE",
        "  StartupPolicyCompleted  True    Done    all Jobs were created",
        "",
        "Events",
        "  LAST  REASON            OBJECT     MESSAGE",
        "    5m  FailedScheduling  2 objects  no room",
    ]


@pytest.mark.parametrize("room", [80, 120, 200])
def test_a_description_fits_the_terminal(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its width."""
    monkeypatch.setattr(terminal, "width", lambda: room)

    assert max(cell_len(line) for line in view(a_waiting_jobset())) <= room


def test_of_many_pods_those_that_do_not_run_come_first() -> None:
    """The rest is counted."""
    cluster = MadeUp()
    pods = cluster.pods_of_jobset(cluster.jobset(workers=5))
    pods[4]["status"] = {"phase": "Pending"}

    shown = view(cluster, limit=2)

    assert [line.split()[0] for line in shown if line.startswith("    train")] == [
        "train-workers-4-0-x",
        "train-workers-0-0-x",
    ]
    assert "    … 3 more" in shown


def test_a_workload_that_asks_for_nothing_now_is_quiet() -> None:
    """A suspended Job without pods, and a schedule: no gangs, no places, no question marks."""
    cluster = MadeUp()
    suspended = {"conditions": [condition("Suspended")]}
    cluster.add("Job", "paused", {"suspend": True, "parallelism": 4, "template": template(1)}, status=suspended)
    cluster.add("CronJob", "nightly", {"suspend": True, "jobTemplate": {"spec": {"template": template(2)}}})

    job, schedule = view(cluster, "paused"), view(cluster, "nightly")

    assert job[:2] == ["Job team-a/paused  Suspended  5m", "4 pods · 0/4 pods ready · 0/4 GPUs running"]
    assert schedule[:2] == ["CronJob team-a/nightly  Suspended  5m", "each run 1 job · 2 GPUs a run"]
    assert not {"Gangs", "Placement"} & {*job, *schedule}


def test_what_is_unknown_is_a_question_mark() -> None:
    """A TrainJob whose JobSet is not there yet."""
    cluster = MadeUp()
    cluster.add("TrainJob", "sft", {"runtimeRef": {"name": "torch"}})
    sft = cluster.workload("sft")

    assert (roles_text(sft), str(gpus_text(sft)), str(gangs_text(sft))) == ("", "?", "")
    assert isinstance(sft.pods_asked, Unknown)
    assert str(table_row(sft, NOW)[5]) == "0/?"


def the_gang(cluster: MadeUp) -> GangView:
    """The workload's only gang, beside nodes and groups."""
    found = cluster.inventory()
    nodes = nodes_with(cluster.nodes, found.pods, cluster.policy.accelerators)
    (gang,) = cluster.workload("train").gangs
    return gang_view(gang, nodes, scheduler_groups(cluster.groups))


def test_a_gang_in_a_line() -> None:
    """How far it got, what it lacks, and what schedulers say."""
    cluster = a_waiting_jobset()
    cluster.stamp()
    for pod, name in zip(cluster.pods, ("pg", "gone", "other"), strict=True):
        pod["metadata"]["annotations"] |= {"pod-group-name": name, "workload-stamp.io/gang-min": "2"}
    cluster.group("scheduling.run.ai/v2alpha2", "pg", {"minMember": 2})
    cluster.group("scheduling.run.ai/v2alpha2", "other", {"minMember": 1}, phase="Pending")

    assert size_text(the_gang(cluster)) == "3 (2 to start)"
    assert gang_sentence(the_gang(cluster)).plain == (
        "startable  2 of 3 (2 to start) on nodes, 2 running; 1 pod on no node, no room"
        "  KAI pg: agrees, KAI gone: not found, KAI other: wants 1 (Pending)"
    )


def test_what_a_gang_lacks_in_words() -> None:
    """Pods that were not made, and room for some of what is missing."""
    cluster = MadeUp()
    cluster.node("node-0", gpus=8)
    cluster.node("node-1", gpus=4)
    cluster.pods_of_jobset(cluster.jobset(workers=4))
    del cluster.pods[1:]

    assert lack_sentence(the_gang(cluster).lack) == "3 pods not made, room for 2 of 3"
    cluster.node("node-2", gpus=4)
    assert lack_sentence(the_gang(cluster).lack) == "3 pods not made, there is room"
    assert lack_sentence(None) == ""


def test_an_audit_in_a_sentence() -> None:
    """How much was looked at, and what was found of which sort."""
    cluster = MadeUp()
    cluster.pods_of_jobset(cluster.jobset())
    cluster.stamp()
    cluster.pods[0]["metadata"]["labels"]["workload-stamp.io/role"] = "boss"
    cluster.objects.clear()
    cluster.add("Job", "j", {"template": template()})

    found = audit(cluster.snapshot(), cluster.index(), lambda _: True)

    assert summary(found) == "1 object looked at, 0 left alone: 1 object with findings (5 missing)"
