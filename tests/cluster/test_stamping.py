"""What people create is stamped as the contract says, however they create it, by the real controllers' own requests."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.api_client import ApiClient, ApiError, api_path
from tests.cluster.conftest import StartController
from tests.cluster.control_plane import ControlPlane
from tests.cluster.installation import Installation, kustomized
from tests.cluster.jobsets import JOBSETS, jobset, stamps
from tests.cluster.kubectl import Kubectl
from tests.cluster.nodes import FAIL_AFTER
from tests.cluster.waiting import eventually
from tests.cluster.webhook_service import WebhookService
from tests.cluster.workloads import cron_job, pod, scaled
from webhook.identity import workload_id

PREFIX = "workload-stamp.io"
COLUMNS = ["workload-id", "workload-kind", "role", "gang-size", "gpu-total"]


@pytest.fixture(scope="module")
def service(control_plane: ControlPlane, controller: StartController) -> Iterator[WebhookService]:
    """One replica, and the real JobSet controller."""
    installation = Installation.of(control_plane)
    controller("jobset")
    with WebhookService.running(installation) as service:
        yield service


@pytest.fixture(autouse=True)
def _used(service: WebhookService) -> None:
    """Every test here has the webhook."""


def pods(client: ApiClient, namespace: str, count: int) -> list[Any]:
    """The namespace's pods that are not being deleted, once there are so many."""

    def found() -> list[list[Any]] | None:
        items = client.get(api_path("v1", "pods", namespace=namespace))["items"]
        living = [item for item in items if "deletionTimestamp" not in item["metadata"]]
        return [living] if len(living) == count else None

    return eventually(found, what=f"{count} pods")[0]


def train(client: ApiClient, namespace: str, name: str = "train") -> Any:
    """The JobSet as it is now."""
    return client.get(api_path(JOBSETS, "jobsets", namespace=namespace, name=name))


def assert_example(root: Any, members: list[Any], namespace: str) -> None:
    """The table of the contract's section 8."""
    identity = workload_id("jobset.x-k8s.io", "JobSet", namespace, root["metadata"]["name"])
    labels = {key: value for key, value in stamps(root).items() if key in COLUMNS}
    common = {"workload-id": identity, "workload-kind": "JobSet", "gang-size": "3", "gpu-total": "12"}
    assert labels == common
    assert json.loads(stamps(root)["roles"]) == [
        {"role": "leader", "pods": 1, "gpus": 4},
        {"role": "workers", "pods": 2, "gpus": 8},
    ]
    for role, count in (("leader", 1), ("workers", 2)):
        found = [each for each in members if stamps(each)["role"] == role]
        assert len(found) == count
        for each in found:
            assert {key: stamps(each)[key] for key in COLUMNS} == {**common, "role": role}
            assert json.loads(stamps(each)["workload"])["uid"] == root["metadata"]["uid"]
            assert stamps(each)["gpus"] == "4"


# ------------------------------------------------------------------------------------------ the contract's example

WAYS = {
    "apply": ("apply",),
    "create": ("create",),
    "server-side-apply": ("apply", "--server-side"),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_example_of_the_contract(way: str, kubectl: Kubectl, client: ApiClient, namespace: str) -> None:
    """A JobSet of one leader and two workers, 4 GPUs a pod: the JobSet, its pods, and a selector that finds them."""
    kubectl(*WAYS[way], "-n", namespace, "-f", "-", stdin=jobset("train"))

    members = pods(client, namespace, 3)
    root = train(client, namespace)
    assert_example(root, members, namespace)
    selector = f"{PREFIX}/workload-id={stamps(root)['workload-id']},{PREFIX}/role=workers"
    assert len(kubectl("get", "pods", "-n", namespace, "-l", selector, "-o", "name").split()) == 2
    jobs = client.get(api_path("batch/v1", "jobs", namespace=namespace))["items"]
    assert {stamps(job)["workload-id"] for job in jobs} == {stamps(root)["workload-id"]}


@pytest.mark.parametrize("way", ["apply", "server-side-apply"])
def test_applying_again_changes_nothing(way: str, kubectl: Kubectl, client: ApiClient, namespace: str) -> None:
    """Stamps are nobody's fields: no conflict, no new generation, and they stay."""
    document = scaled("Deployment", "web", replicas=0, gpus=1)
    path = api_path("apps/v1", "deployments", namespace=namespace, name="web")
    kubectl(*WAYS[way], "-n", namespace, "-f", "-", stdin=document)
    before = client.get(path)

    kubectl(*WAYS[way], "-n", namespace, "-f", "-", stdin=document)

    after = client.get(path)
    assert stamps(after) == stamps(before) != {}
    assert after["metadata"]["generation"] == before["metadata"]["generation"]


def test_a_dry_run_shows_what_would_be_written(kubectl: Kubectl, client: ApiClient, namespace: str) -> None:
    """The same stamps as the real creation, and nothing is there afterwards."""
    shown = kubectl.json("create", "-n", namespace, "--dry-run=server", "-f", "-", stdin=jobset("train"))

    assert client.get(api_path(JOBSETS, "jobsets", namespace=namespace))["items"] == []
    kubectl("create", "-n", namespace, "-f", "-", stdin=jobset("train"))
    assert stamps(shown) == stamps(train(client, namespace))


def test_a_generated_name(kubectl: Kubectl, client: ApiClient, namespace: str) -> None:
    """The id comes with the reconciler, which takes the reason away; the pods have it from their creation."""
    document = jobset("")
    document["metadata"] = {"generateName": "train-"}
    made = kubectl.json("create", "-n", namespace, "-f", "-", stdin=document)
    name = made["metadata"]["name"]
    assert "workload-id" not in stamps(made)
    assert "no name yet" in json.loads(stamps(made)["unresolved"])["workload-id"]

    members = pods(client, namespace, 3)
    eventually(lambda: "workload-id" in stamps(train(client, namespace, name)), what="the JobSet's id")

    root = train(client, namespace, name)
    assert "unresolved" not in stamps(root)
    assert_example(root, members, namespace)


def test_suspending_and_resuming(kubectl: Kubectl, client: ApiClient, namespace: str) -> None:
    """The numbers are those of the resumed object throughout."""
    document = jobset("train")
    document["spec"]["suspend"] = True
    kubectl("apply", "-n", namespace, "-f", "-", stdin=document)
    suspended = stamps(train(client, namespace))
    assert (suspended["gang-size"], suspended["gpu-total"]) == ("3", "12")

    path = api_path(JOBSETS, "jobsets", namespace=namespace, name="train")
    client.merge_patch(path, {"spec": {"suspend": False}})
    assert_example(train(client, namespace), pods(client, namespace, 3), namespace)
    client.merge_patch(path, {"spec": {"suspend": True}})
    pods(client, namespace, 0)
    client.merge_patch(path, {"spec": {"suspend": False}})

    assert_example(train(client, namespace), pods(client, namespace, 3), namespace)
    assert stamps(train(client, namespace)) == suspended


def test_a_restart_after_a_pod_has_failed(kubectl: Kubectl, client: ApiClient, namespace: str) -> None:
    """The JobSet makes all its pods again: other pods, the same workload."""
    document = jobset("train")
    document["spec"]["failurePolicy"] = {"maxRestarts": 2}
    for each in document["spec"]["replicatedJobs"]:
        each["template"]["spec"]["backoffLimit"] = 0
    kubectl("apply", "-n", namespace, "-f", "-", stdin=document)
    first = pods(client, namespace, 3)
    eventually(
        lambda: all(each["status"].get("phase") == "Running" for each in pods(client, namespace, 3)), what="them to run"
    )

    victim = first[0]["metadata"]["name"]
    kubectl("annotate", "pod", "-n", namespace, victim, f"{FAIL_AFTER}=0s")

    before = {each["metadata"]["uid"] for each in first}
    eventually(
        lambda: not before & {each["metadata"]["uid"] for each in pods(client, namespace, 3)},
        what="three new pods",
        seconds=60,
    )
    assert_example(train(client, namespace), pods(client, namespace, 3), namespace)


def test_a_policy_reads_the_total_and_knows_no_framework(kubectl: Kubectl, client: ApiClient, namespace: str) -> None:
    """Above 64 GPUs a JobSet is refused by a policy that names no JobSet; 64 are let in."""
    kubectl("apply", "--server-side", "-f", "-", stdin=kustomized("policies/gpu-limit"))
    path = api_path(JOBSETS, "jobsets", namespace=namespace)
    try:
        eventually(lambda: _refused(client, path, jobset("large", workers=16)), what="the policy to hold")
        client.post(path, jobset("as-large-as-may-be", workers=15))
    finally:
        kubectl("delete", "--ignore-not-found", "-f", "-", stdin=kustomized("policies/gpu-limit"))


def _refused(client: ApiClient, path: str, document: Any) -> bool:
    """Whether creating it is refused for its GPUs; a dry run."""
    try:
        client.post(path, document, query={"dryRun": "All"})
    except ApiError as error:
        return "64" in error.message
    return False


# ----------------------------------------------------------------------------------------------------- built-in kinds


@pytest.mark.parametrize("gpus", [0, 2])
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_pods_that_serve(kind: str, gpus: int, client: ApiClient, namespace: str) -> None:
    """Two replicas: each in no gang, the total that of both, with and without GPUs."""
    path = api_path("apps/v1", f"{kind.lower()}s", namespace=namespace)
    root = client.post(path, scaled(kind, "web", replicas=2, gpus=gpus))

    members = pods(client, namespace, 2)
    identity = workload_id("apps", kind, namespace, "web")
    assert (stamps(root)["workload-id"], stamps(root)["gpu-total"]) == (identity, str(2 * gpus))
    for each in members:
        found = stamps(each)
        assert [found[key] for key in COLUMNS] == [identity, kind, kind.lower(), "1", str(2 * gpus)]
        assert found["gpus"] == str(gpus)
        assert "gang" not in found
        assert "unresolved" not in found


def test_each_run_of_a_cron_job_is_a_workload(kubectl: Kubectl, client: ApiClient, namespace: str) -> None:
    """The CronJob is a schedule: it has no id, and its Job is the workload of the pods."""
    root = client.post(
        api_path("batch/v1", "cronjobs", namespace=namespace), cron_job("nightly", parallelism=2, gpus=1)
    )
    assert "workload-id" not in stamps(root)
    assert (stamps(root)["pods-total"], stamps(root)["gpu-total"]) == ("2", "2")

    kubectl("create", "job", "-n", namespace, "run", "--from=cronjob/nightly")

    for each in pods(client, namespace, 2):
        found = stamps(each)
        assert [found[key] for key in COLUMNS] == [
            workload_id("batch", "Job", namespace, "run"),
            "Job",
            "job",
            "2",
            "2",
        ]


def test_a_bare_pod_is_its_own_workload(client: ApiClient, namespace: str) -> None:
    """Named at once; with a generated name its id comes with the reconciler."""
    path = api_path("v1", "pods", namespace=namespace)
    named, generated = client.post(path, pod("one", gpus=1)), client.post(path, pod(gpus=1))
    identity = workload_id("", "Pod", namespace, "one")
    assert [stamps(named)[key] for key in COLUMNS] == [identity, "Pod", "pod", "1", "1"]
    assert "workload-id" not in stamps(generated)

    name = generated["metadata"]["name"]
    mended = workload_id("", "Pod", namespace, name)
    eventually(lambda: stamps(client.get(f"{path}/{name}")).get("workload-id") == mended, what="the pod's id")
    eventually(lambda: "unresolved" not in stamps(client.get(f"{path}/{name}")), what="the reason's removal")


def test_a_pod_of_an_unknown_controller_is_left_alone(client: ApiClient, namespace: str) -> None:
    """It may be anything; not even its GPUs are written."""
    unknown = {"apiVersion": "example.com/v1", "kind": "Unknown", "metadata": {"name": "x", "uid": "1-2-3"}}
    made = client.post(api_path("v1", "pods", namespace=namespace), pod("one", gpus=1, owner=unknown))
    assert stamps(made) == {}


# -------------------------------------------------------------------------------------------------- people's own doing


def test_our_keys_are_ours(kubectl: Kubectl, client: ApiClient, namespace: str) -> None:
    """What a user writes under our prefix is replaced or removed, and he is told."""
    labels = {f"{PREFIX}/gpu-total": "0", f"{PREFIX}/made-up": "x", "mine": "kept"}
    ended = kubectl.run("create", "-n", namespace, "-f", "-", stdin=pod("one", gpus=8, labels=labels))

    assert ended.returncode == 0
    assert f"{PREFIX}/gpu-total is set by workload-stamp" in ended.stderr
    made = client.get(api_path("v1", "pods", namespace=namespace, name="one"))
    assert stamps(made)["gpu-total"] == "8"
    assert "made-up" not in stamps(made)
    assert made["metadata"]["labels"]["mine"] == "kept"


def test_an_edit_of_our_labels_is_undone(kubectl: Kubectl, client: ApiClient, namespace: str) -> None:
    """On a described object the next admission puts them right."""
    path = api_path("apps/v1", "deployments", namespace=namespace)
    before = stamps(client.post(path, scaled("Deployment", "web", replicas=0, gpus=1)))
    kubectl("label", "--overwrite", "-n", namespace, "deployment/web", f"{PREFIX}/gpu-total=99")
    assert stamps(client.get(f"{path}/web")) == before


def test_an_object_that_opts_out(client: ApiClient, namespace: str) -> None:
    """The one key that is the users' own."""
    labels = {f"{PREFIX}/ignore": "true"}
    made = client.post(api_path("v1", "pods", namespace=namespace), pod("one", gpus=1, labels=labels))
    assert stamps(made) == {"ignore": "true"}


def test_a_namespace_that_opts_out(client: ApiClient, namespace: str) -> None:
    """Neither admission nor upkeep touches what is in it, nor what is in kube-system."""
    client.merge_patch(
        api_path("v1", "namespaces", name=namespace), {"metadata": {"labels": {f"{PREFIX}/ignore": "true"}}}
    )
    path = api_path("v1", "pods", namespace=namespace)
    eventually(lambda: stamps(client.post(path, pod("one"), query={"dryRun": "All"})) == {}, what="the label to hold")
    client.post(path, pod("one", gpus=1))
    client.post(api_path("apps/v1", "deployments", namespace=namespace), scaled("Deployment", "web", gpus=1))

    members = pods(client, namespace, 2)

    system = client.post(api_path("v1", "pods", namespace="kube-system"), pod("one"), query={"dryRun": "All"})
    assert [stamps(each) for each in (*members, system)] == [{}, {}, {}]
    assert stamps(client.get(api_path("apps/v1", "deployments", namespace=namespace, name="web"))) == {}
