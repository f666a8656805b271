"""Owners in a snapshot: followed as admission follows them."""

from tests.golden.cases import packaged_catalog
from tests.webhook.live.made_up import MadeUp, reference_to
from webhook.documents import DocumentOwners
from webhook.lineage import MAX_OWNERS
from webhook.live.owners import OwnerIndex
from webhook.live.snapshot import Snapshot
from webhook.stamps import Policy


def test_a_lineage_is_that_of_the_documents() -> None:
    """The same owners, nearest first, as the command line's own walk through documents finds."""
    cluster = MadeUp()
    (pod, *_) = cluster.pods_of_jobset(cluster.jobset())

    found = cluster.index().lineage(pod)

    expected = DocumentOwners(cluster.objects, Policy()).lineage_of(pod, "team-a", packaged_catalog())
    assert [(owner.kind, owner.name, owner.uid) for owner in found.owners] == [
        (owner.kind, owner.name, owner.uid) for owner in expected.owners
    ]
    assert [each.kind.kind for each in found.described] == ["Job", "JobSet"]


def test_pods_of_one_controller_share_their_lineage() -> None:
    """Ten thousand pods cost as many lineages as they have controllers."""
    cluster = MadeUp()
    job = cluster.add("Job", "many", {"template": {}})
    pods = [cluster.pod(f"many-{number}", owner=job) for number in range(3)]
    index = cluster.index()

    assert index.lineage(pods[0]) is index.lineage(pods[2])


def test_an_owner_of_which_only_metadata_was_read_leads_on() -> None:
    """A ReplicaSet tells who owns it, and nothing else is asked of it."""
    cluster = MadeUp()
    deployment = cluster.add("Deployment", "web", {"template": {}})
    replica_set = cluster.add("ReplicaSet", "web-1", owner=deployment)
    pod = cluster.pod("web-1-x", owner=replica_set)
    snapshot = Snapshot(objects=(deployment,), owners=(replica_set,), pods=(pod,))

    found = OwnerIndex(snapshot, packaged_catalog(), Policy()).lineage(pod)

    assert [owner.kind.kind for owner in found.owners] == ["ReplicaSet", "Deployment"]
    assert [each.kind.kind for each in found.described] == ["Deployment"]


def test_a_circle_of_owners_is_broken() -> None:
    """Objects that own each other end the walk with a reason."""
    cluster = MadeUp()
    one = cluster.add("Job", "one")
    two = cluster.add("Job", "two", owner=one)
    one["metadata"]["ownerReferences"] = [reference_to(two)]
    pod = cluster.pod("p", owner=one)

    assert cluster.index().lineage(pod).broken == "owner Job one owns itself in a circle"


def test_too_many_owners_are_broken() -> None:
    """The walk has an end."""
    cluster = MadeUp()
    owner = None
    for number in range(MAX_OWNERS + 2):
        owner = cluster.add("Job", f"job-{number}", owner=owner)
    pod = cluster.pod("p", owner=owner)

    assert cluster.index().lineage(pod).broken == f"more than {MAX_OWNERS} owners"


def test_an_object_that_has_changed_is_resolved_anew() -> None:
    """What followed from its former state is forgotten."""
    cluster = MadeUp()
    jobset = cluster.jobset(leader=1)
    index = cluster.index()
    before = index.structure(jobset)
    changed = cluster.jobset(leader=3) | {"metadata": jobset["metadata"]}

    index.renew(changed)
    after = index.structure(changed)

    assert before is not None
    assert after is not None
    assert (before.pods_total, after.pods_total) == (1, 3)
