"""The chain of owners as a tree."""

from tests.webhook.live.made_up import MadeUp, reference_to
from webhook.live.tree import Branch, owner_tree


def outline(branch: Branch) -> list[object]:
    """Kind and name, with what is below."""
    return [f"{branch.kind.kind} {branch.name}", *([outline(child) for child in branch.children])]


def test_the_tree_is_whole_whichever_object_was_named() -> None:
    """From a pod as from the top."""
    cluster = MadeUp()
    cron_job = cluster.add("CronJob", "nightly")
    job = cluster.add("Job", "nightly-1", owner=cron_job)
    pods = [cluster.pod(f"nightly-1-{number}", owner=job) for number in (10, 2)]
    index = cluster.index()

    expected = ["CronJob nightly", ["Job nightly-1", ["Pod nightly-1-2"], ["Pod nightly-1-10"]]]

    assert outline(owner_tree(pods[0], index)) == expected
    assert outline(owner_tree(cron_job, index)) == expected


def test_an_owner_that_was_not_read_is_named() -> None:
    """The tree says that it is not the whole."""
    cluster = MadeUp()
    pod = cluster.pod("p", owner=MadeUp().add("Widget", "w"))

    found = owner_tree(pod, cluster.index())

    assert (outline(found), found.beyond) == (["Pod p"], "Widget w")


def test_pods_that_own_pods_are_drawn() -> None:
    """As a LeaderWorkerSet's leaders do."""
    cluster = MadeUp()
    leader = cluster.pod("serve-0")
    stateful_set = cluster.add("StatefulSet", "serve-0", owner=leader)
    cluster.pod("serve-0-1", owner=stateful_set)

    assert outline(owner_tree(leader, cluster.index())) == [
        "Pod serve-0",
        ["StatefulSet serve-0", ["Pod serve-0-1"]],
    ]


def test_a_circle_ends() -> None:
    """Objects that own each other are drawn once."""
    cluster = MadeUp()
    one = cluster.add("Job", "one")
    two = cluster.add("Job", "two", owner=one)
    one["metadata"]["ownerReferences"] = [reference_to(two)]

    assert len(str(outline(owner_tree(one, cluster.index())))) < 100
