"""The policies that ship read stamps and know no framework; they stop people, and no controller."""

import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.cluster.api_client import ApiClient, ApiError, api_path
from tests.cluster.conftest import StartController
from tests.cluster.control_plane import ControlPlane
from tests.cluster.installation import USER, Installation, InstalledReplica
from tests.cluster.jobsets import JOBSETS, jobset, stamps
from tests.cluster.kubectl import Kubectl
from tests.cluster.waiting import eventually
from tests.cluster.webhook_replica import REPOSITORY
from tests.cluster.webhook_service import WebhookService

POLICIES = ("policies/gpu-limit", "policies/protect", "policies/warn-unstamped")
CONTAINER = {"name": "main", "image": "registry.example/main:1"}


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """The base and every policy; the policies are gone afterwards, as they hold for the whole cluster."""
    installation = Installation.of(control_plane)
    installation.clear()
    for policy in POLICIES:
        installation.apply(policy)
    yield installation
    installation.clear()
    kinds = "validatingadmissionpolicies,validatingadmissionpolicybindings"
    control_plane.kubectl("delete", kinds, "-l", "app.kubernetes.io/part-of=workload-stamp")


@pytest.fixture
def replica(installation: Installation, controller: StartController) -> Iterator[InstalledReplica]:
    """A registered replica, and JobSets that are stamped by it; nothing of it stays behind."""
    controller("jobset")
    with WebhookService.running(installation) as service:
        eventually(lambda: _covers_jobsets(installation), what="JobSets to be registered")
        yield service.leader


def _covers_jobsets(installation: Installation) -> bool:
    webhooks = (installation.configuration or {}).get("webhooks", ())
    return any("jobsets" in rule["resources"] for webhook in webhooks for rule in webhook["rules"])


def pod(name: str, **metadata: object) -> dict[str, object]:
    """A pod without an owner."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"containers": [CONTAINER]},
    }


@pytest.mark.usefixtures("installation")
def test_policies_have_no_type_errors(client: ApiClient) -> None:
    """The API server's own check of every expression finds nothing to warn of."""
    path = api_path("admissionregistration.k8s.io/v1", "validatingadmissionpolicies")
    query = {"labelSelector": "app.kubernetes.io/part-of=workload-stamp"}

    def checked() -> bool:
        items = client.get(path, query=query)["items"]
        return len(items) == 4 and all("typeChecking" in each.get("status", {}) for each in items)

    eventually(checked, what="the types of all policies to be checked")
    for each in client.get(path, query=query)["items"]:
        assert each["status"]["typeChecking"].get("expressionWarnings", []) == [], each["metadata"]["name"]


@pytest.mark.usefixtures("replica")
def test_a_workload_above_the_limit_is_refused(client: ApiClient, namespace: str) -> None:
    """17 pods of 4 GPUs are 68 and too many, 16 are 64 and allowed; the policy knows nothing of JobSets."""
    jobsets = api_path(JOBSETS, "jobsets", namespace=namespace)

    with pytest.raises(ApiError, match="this workload asks for 68 GPUs, 64 are allowed"):
        client.post(jobsets, jobset("large", workers=16))
    assert stamps(client.post(jobsets, jobset("largest", workers=15)))["gpu-total"] == "64"


@pytest.mark.usefixtures("replica")
def test_what_was_above_the_limit_may_still_change(
    installation: Installation, client: ApiClient, namespace: str
) -> None:
    """A workload that is older than the limit can be labelled and deleted, with the number that it has."""
    binding = api_path(
        "admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings", name="workload-stamp-gpu-limit"
    )
    client.delete(binding)
    path = api_path(JOBSETS, "jobsets", namespace=namespace, name="older")
    eventually(lambda: _created(client, path, workers=16), what="the limit to be lifted")
    installation.apply("policies/gpu-limit")
    refused = {**jobset("newer", workers=16)}
    eventually(lambda: _refused(client, path.rpartition("/")[0], refused), what="the limit to hold")

    labelled = client.merge_patch(path, {"metadata": {"labels": {"team": "a"}}})

    assert stamps(labelled)["gpu-total"] == "68"


def _created(client: ApiClient, path: str, *, workers: int) -> bool:
    collection, _, name = path.rpartition("/")
    try:
        client.post(collection, {**jobset(name, workers=workers), "metadata": {"name": name}})
    except ApiError as problem:
        assert problem.code == 403, problem  # noqa: PT017 - the wait is for another outcome
        return False
    return True


def _refused(client: ApiClient, collection: str, document: object) -> bool:
    try:
        client.post(collection, document, query={"dryRun": "All"})
    except ApiError as problem:
        return problem.code == 403
    return False


@pytest.mark.usefixtures("replica")
def test_stamps_of_a_pod_are_not_changed_by_people(kubectl: Kubectl, namespace: str) -> None:
    """Neither set, nor changed, nor removed, nor through a subresource; other labels are theirs."""
    kubectl("apply", "-n", namespace, "-f", "-", stdin=pod("bare"))
    through_status = '{"metadata":{"labels":{"workload-stamp.io/role":"x"}}}'
    for words in (
        ("label", "pod", "bare", "workload-stamp.io/gpu-total=8", "--overwrite"),
        ("label", "pod", "bare", "workload-stamp.io/workload-id-"),
        ("annotate", "pod", "bare", "workload-stamp.io/gang=mine"),
        ("patch", "pod", "bare", "--subresource=status", "-p", through_status),
    ):
        refused = kubectl.run(*words, "-n", namespace)
        assert refused.returncode == 1, words
        assert "stamps of existing pods are changed by the webhook only" in refused.stderr
    kubectl("label", "pod", "bare", "team=a", "-n", namespace)


@pytest.mark.usefixtures("replica")
def test_stamps_are_not_written_where_nothing_is_stamped(
    control_plane: ControlPlane, client: ApiClient, namespace: str
) -> None:
    """In an opted-out namespace, and on an object that opts out, people write none; opting out itself they may."""
    out = f"{namespace}-out"
    control_plane.create_namespace(out, labels={"workload-stamp.io/ignore": "true"})
    pods, pods_out = (api_path("v1", "pods", namespace=name) for name in (namespace, out))
    forged = {"workload-stamp.io/gpu-total": "0"}
    opted_out = {"workload-stamp.io/ignore": "true"}

    with pytest.raises(ApiError, match=r"leave out workload-stamp\.io/gpu-total"):
        client.post(pods_out, pod("forged", labels=forged))
    with pytest.raises(ApiError, match=r"leave out workload-stamp\.io/gpu-total"):
        client.post(pods, pod("forged", labels={**forged, **opted_out}))
    assert stamps(client.post(pods_out, pod("plain"))) == {}
    assert stamps(client.post(pods, pod("plain", labels=opted_out))) == {"ignore": "true"}
    client.delete(api_path("v1", "namespaces", name=out))


@pytest.mark.usefixtures("replica")
def test_controllers_work_on_under_all_policies(controller: StartController, client: ApiClient, namespace: str) -> None:
    """With every policy in force a JobSet gets its pods, they run, and it can be suspended and resumed."""
    controller("jobset")
    path = api_path(JOBSETS, "jobsets", namespace=namespace, name="train")
    pods = api_path("v1", "pods", namespace=namespace)
    client.post(path.rpartition("/")[0], jobset("train"))

    def running(count: int) -> bool:
        return [pod["status"].get("phase") for pod in client.get(pods)["items"]] == ["Running"] * count

    eventually(lambda: running(3), what="three pods to run")
    client.merge_patch(path, {"spec": {"suspend": True}})
    eventually(lambda: client.get(pods)["items"] == [], what="the pods to be gone")
    client.merge_patch(path, {"spec": {"suspend": False}})
    eventually(lambda: running(3), what="three pods to run again")


def test_a_pod_without_stamps_is_told(installation: Installation, kubectl: Kubectl, namespace: str) -> None:
    """While the webhook is away a creation goes through with a warning; in an opted-out namespace without one."""
    assert installation.configuration is None

    made = kubectl.run("apply", "-n", namespace, "-f", "-", stdin=pod("unstamped"))
    kubectl("label", "namespace", namespace, "workload-stamp.io/ignore=true")

    assert made.returncode == 0
    assert "this pod has no stamps" in made.stderr

    def silent() -> bool:
        return "no stamps" not in kubectl.run("run", "x", "--image=x:1", "--dry-run=server", "-n", namespace).stderr

    eventually(silent, what="the namespace's label to count")


@pytest.mark.usefixtures("replica")
def test_the_webhooks_upkeep_may_change_stamps(client: ApiClient, namespace: str) -> None:
    """The id that a generated name makes known late is written by the service account, under the policy."""
    pods = api_path("v1", "pods", namespace=namespace)
    document = pod("")
    document["metadata"] = {"generateName": "bare-"}
    name = client.post(pods, document)["metadata"]["name"]

    eventually(lambda: "workload-id" in stamps(client.get(f"{pods}/{name}")), what="the pod's id", seconds=90)


def test_backfill_works_as_the_webhooks_account(
    installation: Installation, control_plane: ControlPlane, client: ApiClient, namespace: str
) -> None:
    """Under protection an admin gives existing pods their stamps by acting as the service account, not as himself."""
    assert installation.configuration is None
    path = api_path("v1", "pods", namespace=namespace, name="older")
    client.post(path.rpartition("/")[0], pod("older"))
    kubeconfig = control_plane.files.kubeconfig("admin")

    def backfill(*further: str) -> subprocess.CompletedProcess[str]:
        command = (sys.executable, "-m", "webhook", "backfill", "-n", namespace, "--kubeconfig", str(kubeconfig))
        return subprocess.run(
            (*command, *further), capture_output=True, text=True, check=False, cwd=REPOSITORY, timeout=120
        )

    as_admin = backfill()
    unstamped = stamps(client.get(path))
    as_account = backfill("--as", USER)

    assert as_admin.returncode == 1
    assert "stamps of existing pods are changed by the webhook only" in as_admin.stdout + as_admin.stderr
    assert unstamped == {}
    assert as_account.returncode == 0, as_account.stderr
    assert "workload-id" in stamps(client.get(path))
