"""Stamps held against what they should be."""

import pytest

from tests.webhook.live.made_up import MadeUp, Object, template
from webhook.live.audit import Audit, Auditor, Finding, Unchecked, audit
from webhook.stamps import described_stamps

PREFIX = "workload-stamp.io"


def audited(cluster: MadeUp, *, out_of_scope: str = "") -> Audit:
    """The audit of everything."""
    return audit(cluster.snapshot(), cluster.index(), lambda namespace: namespace != out_of_scope)


def findings(cluster: MadeUp) -> dict[str, dict[str, str]]:
    """What is the matter with each object, by name: the finding of each key."""
    return {
        each.name: {difference.key: difference.finding.value for difference in each.differences}
        for each in audited(cluster).faulty
    }


def stamped_jobset(cluster: MadeUp, *, generation: int = 1) -> Object:
    """The contract's example, as it is after its admission."""
    jobset = cluster.jobset()
    jobset["metadata"]["generation"] = generation
    cluster.pods_of_jobset(jobset)
    cluster.stamp()
    structure = cluster.index().structure(jobset)
    assert structure is not None
    stamps = described_stamps(structure)
    jobset["metadata"]["labels"] = {f"{PREFIX}/{key}": value for key, value in stamps.labels.items()}
    jobset["metadata"]["annotations"] = {f"{PREFIX}/{key}": value for key, value in stamps.annotations.items()}
    return jobset


def label(obj: Object, key: str, value: str | None) -> None:
    """Set one of our labels by hand, or take it away."""
    if value is None:
        del obj["metadata"]["labels"][f"{PREFIX}/{key}"]
    else:
        obj["metadata"]["labels"][f"{PREFIX}/{key}"] = value


def test_what_admission_stamped_is_good() -> None:
    """Nothing is found, and everything was looked at."""
    cluster = MadeUp()
    stamped_jobset(cluster)

    found = audited(cluster)

    assert found.faulty == ()
    assert (found.looked_at, found.left_alone, found.unchecked) == (7, 0, ())


def test_a_cluster_from_before_the_webhook_lacks_everything() -> None:
    """Pods, and objects that may be stamped after their creation; the JobSet's Jobs may not."""
    cluster = MadeUp()
    cluster.pods_of_jobset(cluster.jobset())

    found = findings(cluster)

    assert set(found) == {"train", "train-leader-0-0-x", "train-workers-0-0-x", "train-workers-1-0-x"}
    assert set(found["train"].values()) == {"missing"}
    assert found["train-leader-0-0-x"].keys() >= {"workload-id", "role", "gang-size", "gpu-total", "gpus", "workload"}


def test_a_key_that_was_taken_away_is_missing() -> None:
    """One finding, with what it should be."""
    cluster = MadeUp()
    label(stamped_jobset(cluster), "gpu-total", None)

    (one,) = audited(cluster).faulty
    (difference,) = one.differences

    assert (difference.key, difference.field, difference.finding) == ("gpu-total", "labels", Finding.MISSING)
    assert (difference.found, difference.wanted) == (None, "12")


@pytest.mark.parametrize("key, value", [("workload-id", "other-0123456789"), ("role", "boss"), ("gang-size", "99")])
def test_a_value_that_was_never_right_is_wrong(key: str, value: str) -> None:
    """Written by hand, on an object that has not changed since it was made."""
    cluster = MadeUp()
    stamped_jobset(cluster)
    label(cluster.pods[0], key, value)

    assert findings(cluster) == {"train-leader-0-0-x": {key: "wrong"}}


def test_a_number_from_before_a_scale_is_stale() -> None:
    """Pods keep what was true when they were created; identity does not depend on counts."""
    cluster = MadeUp()
    stamped_jobset(cluster, generation=2)
    pod = cluster.pods[0]
    label(pod, "gang-size", "2")
    label(pod, "gpu-total", "8")
    label(pod, "role", "boss")

    assert findings(cluster)["train-leader-0-0-x"] == {"gang-size": "stale", "gpu-total": "stale", "role": "wrong"}


@pytest.mark.parametrize(
    "time, part, finding",
    [
        ("2026-01-02T00:00:00Z", "f:spec", "stale"),
        ("2026-01-02T00:00:00Z", "f:metadata", "wrong"),
        ("2026-01-01T00:00:00Z", "f:spec", "stale"),
        ("2025-12-31T00:00:00Z", "f:metadata", "wrong"),
    ],
)
def test_who_wrote_to_the_spec_last_is_in_its_managed_fields(time: str, part: str, finding: str) -> None:
    """Annotations let a Deployment's generation grow; only a change of the spec after the pod explains its number."""
    cluster = MadeUp()
    jobset = stamped_jobset(cluster, generation=2)
    created = {"manager": "kubectl", "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:spec": {}}}
    jobset["metadata"]["managedFields"] = [created, {"manager": "someone", "time": time, "fieldsV1": {part: {}}}]
    label(cluster.pods[0], "gang-size", "2")

    assert findings(cluster) == {"train-leader-0-0-x": {"gang-size": finding}}


def test_pods_of_a_changed_object_may_be_only_stale() -> None:
    """Which is what backfill leaves alone unless told otherwise."""
    cluster = MadeUp()
    stamped_jobset(cluster, generation=2)
    label(cluster.pods[0], "gang-size", "2")

    (one,) = audited(cluster).faulty

    assert one.is_only_stale


def test_a_key_that_nobody_gives_is_foreign() -> None:
    """The prefix is ours, save the users' own key."""
    cluster = MadeUp()
    jobset = stamped_jobset(cluster)
    label(jobset, "team", "red")
    cluster.pods[0]["metadata"]["annotations"][f"{PREFIX}/ignore"] = "false"

    assert findings(cluster) == {"train": {"team": "foreign"}}


def test_stamps_on_a_pod_of_an_undescribed_owner_are_foreign() -> None:
    """Its controller copied them from somewhere."""
    cluster = MadeUp()
    widget = MadeUp().add("Widget", "w")
    cluster.pod("w", owner=widget, labels={f"{PREFIX}/workload-id": "w-1"})

    assert findings(cluster) == {"w": {"workload-id": "foreign"}}


def test_reasons_that_no_longer_hold_are_stale() -> None:
    """A pod whose owner could not be read at its admission."""
    cluster = MadeUp()
    stamped_jobset(cluster)
    cluster.pods[0]["metadata"]["annotations"][f"{PREFIX}/unresolved"] = '{"workload-id":"forbidden"}'

    assert findings(cluster) == {"train-leader-0-0-x": {"unresolved": "stale"}}


def test_an_owned_object_is_judged_by_its_identity_alone() -> None:
    """Its controller copies its owner's metadata onto it, again and again; and what is not there may not be added."""
    cluster = MadeUp()
    stamped_jobset(cluster)
    job = next(obj for obj in cluster.objects if obj["kind"] == "Job")
    job["metadata"]["labels"] = {f"{PREFIX}/gpu-total": "12", f"{PREFIX}/workload-id": "other-1"}

    (one,) = audited(cluster).faulty

    assert {each.key: each.finding.value for each in one.differences} == {"workload-id": "wrong"}
    assert one.wanted is None


def test_what_opts_out_is_left_alone() -> None:
    """An object, a namespace, a mirror pod, and what is about to be deleted."""
    cluster = MadeUp()
    cluster.pod("a", labels={f"{PREFIX}/ignore": "true"})
    cluster.pod("b", namespace="kube-system")
    cluster.pod("c", annotations={"kubernetes.io/config.mirror": "x"})
    cluster.pod("d")["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    found = audited(cluster, out_of_scope="kube-system")

    assert (found.looked_at, found.left_alone, found.faulty) == (0, 4, ())


def test_what_can_t_be_judged_is_said_and_is_no_finding() -> None:
    """An owner that may not be read."""
    cluster = MadeUp()
    stamped_jobset(cluster)
    cluster.objects = [obj for obj in cluster.objects if obj["kind"] != "JobSet"]

    found = audited(cluster)

    assert found.faulty == ()
    assert {each.reason for each in found.unchecked} == {"owner JobSet train could not be read"}
    assert len(found.unchecked) == 6


def test_an_object_is_judged_again_as_it_is_then() -> None:
    """Somebody else put it right meanwhile."""
    cluster = MadeUp()
    job = cluster.add("Job", "j", {"template": template()})
    index = cluster.index()
    auditor = Auditor(index)
    before = auditor.verdict(job)
    assert before is not None
    assert not isinstance(before, Unchecked)
    assert before.wanted is not None
    labels = {f"{PREFIX}/{key}": value for key, value in before.wanted.labels.items()}
    annotations = {f"{PREFIX}/{key}": value for key, value in before.wanted.annotations.items()}
    mended = {**job, "metadata": {**job["metadata"], "labels": labels, "annotations": annotations}}

    index.renew(mended)

    assert auditor.verdict(mended) is None
