"""The manifests are accepted by a real API server, and the webhook does all its work with the rights they give it."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from catalog.load import packaged
from tests.cluster.api_client import ApiClient, api_path
from tests.cluster.conftest import StartController
from tests.cluster.control_plane import ControlPlane
from tests.cluster.installation import (
    CONFIGURATION,
    DEFINITIONS,
    LEASE,
    MANIFESTS,
    NAMESPACE,
    SECRETS,
    Installation,
    InstalledReplica,
    kustomized,
    trusted,
)
from tests.cluster.jobsets import JOBSETS, jobset, stamps
from tests.cluster.kubectl import Kubectl
from tests.cluster.waiting import eventually
from tests.cluster.webhook_service import WebhookService

PODS = "pods"
FOREIGN_SECRETS = api_path("v1", "secrets", namespace="kube-system")


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """The base, applied as a person would."""
    installation = Installation.of(control_plane)
    yield installation
    installation.clear()


@pytest.fixture
def replica(installation: Installation) -> Iterator[InstalledReplica]:
    """One replica, registered, with all its watches complete; nothing of it stays behind."""
    with WebhookService.running(installation) as service:
        yield service.leader


# ------------------------------------------------------------------------------------------- what is applied


@pytest.mark.parametrize(
    "kustomization,project",
    [
        ("base", ""),
        ("overlays/cert-manager", "cert-manager"),
        ("overlays/opt-in", ""),
        ("overlays/observe", ""),
        ("overlays/high-availability", ""),
        ("overlays/monitoring", "prometheus-operator"),
        ("overlays/protect", ""),
        ("policies/gpu-limit", ""),
        ("policies/warn-unstamped", ""),
    ],
)
def test_every_kustomization_is_accepted(
    kustomization: str, project: str, installation: Installation, definitions: Callable[[str], None]
) -> None:
    """The API server knows every field of every object, and would take it as it is."""
    if project:
        definitions(project)
    kubectl = installation.control_plane.kubectl
    applied = kubectl(
        "apply", "--server-side", "--force-conflicts", "--validate=strict", "--dry-run=server", "-f", "-",
        stdin=kustomized(kustomization),
    )  # fmt: skip
    assert len(applied.splitlines()) == sum(
        line.startswith("kind: ") for line in kustomized(kustomization).splitlines()
    )


def test_applying_again_changes_nothing(installation: Installation, client: ApiClient) -> None:
    """An upgrade is an apply: no conflict with what Kubernetes filled in, no new generation."""
    paths = [
        api_path("rbac.authorization.k8s.io/v1", "clusterroles", name="workload-stamp"),
        api_path("apps/v1", "deployments", namespace=NAMESPACE, name="workload-stamp"),
    ]
    before = [_without_bookkeeping(client.get(path)) for path in paths]

    installation.apply("base")

    assert [_without_bookkeeping(client.get(path)) for path in paths] == before


def _without_bookkeeping(obj: Any) -> Any:
    metadata = {key: value for key, value in obj["metadata"].items() if key not in ("managedFields", "resourceVersion")}
    return {**obj, "metadata": metadata, "status": None}


def test_the_deployments_pods_are_admitted(installation: Installation, client: ApiClient) -> None:
    """Two pods run in a namespace that enforces the restricted standard, in a class that a quota must allow."""
    path = api_path("apps/v1", "deployments", namespace=NAMESPACE, name="workload-stamp")
    eventually(lambda: client.get(path)["status"].get("availableReplicas") == 2, what="two pods to be available")
    assert installation.control_plane.kubectl("get", "resourcequota", "-n", NAMESPACE, "-o", "name")


@pytest.mark.usefixtures("installation")
def test_every_packaged_definition_may_be_a_resource(kubectl: Kubectl) -> None:
    """Taken from the package and applied, a definition is accepted as strictly as the server can."""
    folder = MANIFESTS.parent / "catalog" / "definitions"
    applied = kubectl("apply", "--server-side", "--validate=strict", "--dry-run=server", "-f", str(folder))
    assert len(applied.splitlines()) == len(packaged().definitions)


@pytest.mark.usefixtures("installation")
def test_kubectl_explains_the_language(kubectl: Kubectl) -> None:
    """Each field says what it is and on what its expression is evaluated."""
    text = kubectl("explain", "workloaddefinition.spec.structureDefinition.childComponents.scaleDefinition")
    assert "replicasPath" in text
    assert "evaluated on the described object" in " ".join(text.split())


FAULTY_SPECS = [
    {"structureDefinition": {"rootComponent": {"name": "x", "nonsense": 1}}},
    {"structureDefinition": {"rootComponent": {"name": 5, "spawnsWorkloads": "yes", "kind": None}}},
    {"structureDefinition": {}},
    {"structureDefinition": {"rootComponent": {"instanceIdPath": ".a["}, "childComponents": [{"ownerRef": True}]}},
]


@pytest.mark.usefixtures("installation")
@pytest.mark.parametrize("spec", FAULTY_SPECS, ids=["unknown-field", "wrong-types", "nothing", "bad-jq"])
def test_a_faulty_definition_is_stored_whole(spec: Any, client: ApiClient) -> None:
    """Nothing is refused or pruned: the status has to be able to tell every problem."""
    definition = {**_definition("faulty"), "spec": spec}

    stored = client.post(DEFINITIONS, definition)

    client.delete(f"{DEFINITIONS}/faulty")
    assert stored["spec"] == spec


def _definition(name: str) -> dict[str, Any]:
    return {"apiVersion": "workload-stamp.io/v1alpha1", "kind": "WorkloadDefinition", "metadata": {"name": name}}


# ------------------------------------------------------------------------------------------------- the rights


class Right(NamedTuple):
    """A verb on a resource, in a namespace or everywhere, on one object or on any."""

    verb: str
    group: str
    resource: str
    namespace: str = ""
    name: str = ""

    def __str__(self) -> str:
        return " ".join(word for word in self if word)


ADMISSION, CONFIGURATIONS = "admissionregistration.k8s.io", "mutatingwebhookconfigurations"
NEEDED = [
    Right("get", ADMISSION, CONFIGURATIONS, name="zz-workload-stamp"),
    Right("create", ADMISSION, CONFIGURATIONS, name="zz-workload-stamp"),
    Right("patch", ADMISSION, CONFIGURATIONS, name="zz-workload-stamp"),
    Right("update", "", "secrets", NAMESPACE, SECRETS[0]),
    Right("create", "", "secrets", NAMESPACE),
    Right("update", "coordination.k8s.io", "leases", NAMESPACE, "workload-stamp"),
    Right("watch", "apps", "deployments"),
    Right("patch", "workload-stamp.io", "workloaddefinitions/status", name="any"),
    Right("patch", "", "pods", "team-a", "any"),
]
NOT_NEEDED = [
    Right("patch", ADMISSION, CONFIGURATIONS, name="another"),
    Right("list", ADMISSION, CONFIGURATIONS),
    Right("delete", ADMISSION, CONFIGURATIONS, name="zz-workload-stamp"),
    Right("get", "", "secrets", NAMESPACE, "another"),
    Right("list", "", "secrets", NAMESPACE),
    Right("get", "", "secrets", "kube-system", SECRETS[0]),
    Right("create", "", "secrets", "kube-system"),
    Right("create", "", "pods", "team-a"),
    Right("watch", "", "pods"),
    Right("delete", "", "pods", "team-a", "any"),
    Right("patch", "", "pods/status", "team-a", "any"),
    Right("update", "apps", "deployments", "team-a", "any"),
    Right("delete", "apps", "deployments", "team-a", "any"),
    Right("patch", "workload-stamp.io", "workloaddefinitions", name="any"),
    Right("get", "", "configmaps", "team-a", "any"),
    Right("create", "rbac.authorization.k8s.io", "clusterroles"),
    Right("get", "", "nodes", name="node-0"),
]


@pytest.mark.parametrize("right", NEEDED, ids=str)
def test_a_needed_right_is_given(right: Right, installation: Installation) -> None:
    """The service account may do what the webhook does."""
    assert installation.may(*right[:3], namespace=right.namespace, name=right.name)


@pytest.mark.parametrize("right", NOT_NEEDED, ids=str)
def test_a_right_that_is_not_needed_is_not_given(right: Right, installation: Installation) -> None:
    """Whoever takes over the webhook can neither read Secrets, nor make or delete pods, nor change other webhooks."""
    assert not installation.may(*right[:3], namespace=right.namespace, name=right.name)


# -------------------------------------------------------------------------------------- work with these rights


def test_a_jobset_and_its_pods_are_stamped(
    replica: InstalledReplica, controller: StartController, client: ApiClient, namespace: str
) -> None:
    """The contract's example, with the real controller, under the rights of the manifests and no other."""
    controller("jobset")
    eventually(lambda: "jobsets" in json.dumps(client.get(CONFIGURATION)), what="JobSets to be registered")

    client.post(api_path(JOBSETS, "jobsets", namespace=namespace), jobset("train"))

    pods = eventually(lambda: _pods(client, namespace, 3), what="three pods")
    root = stamps(client.get(api_path(JOBSETS, "jobsets", namespace=namespace, name="train")))
    assert (root["gang-size"], root["gpu-total"], root["workload-kind"]) == ("3", "12", "JobSet")
    assert sorted(stamps(pod)["role"] for pod in pods) == ["leader", "workers", "workers"]
    assert {stamps(pod)["workload-id"] for pod in pods} == {root["workload-id"]}
    assert_nothing_was_forbidden(replica)


def _pods(client: ApiClient, namespace: str, count: int) -> list[Any] | None:
    pods: list[Any] = client.get(api_path("v1", PODS, namespace=namespace))["items"]
    return pods if len(pods) == count else None


def assert_nothing_was_forbidden(replica: InstalledReplica) -> None:
    """No request of the replica was refused for want of a right."""
    assert replica.metric("workload_stamp_watch_restarts_total", reason="forbidden") == 0
    assert replica.metric("workload_stamp_owner_reads_total", result="forbidden") == 0
    assert replica.metric("workload_stamp_repairs_total", result="refused") == 0
    text = replica.log.read_text()
    assert "cannot " not in text, [line for line in text.splitlines() if "cannot " in line]


def test_upkeep_mends_what_admission_could_not(replica: InstalledReplica, client: ApiClient, namespace: str) -> None:
    """A root and a bare pod made with generateName get their id by a patch, which takes rights of its own."""
    pod = {"containers": [{"name": "main", "image": "registry.example/main:1"}]}
    root = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"generateName": "web-"},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod},
        },
    }
    made = [
        client.post(api_path("apps/v1", "deployments", namespace=namespace), root),
        client.post(
            api_path("v1", PODS, namespace=namespace),
            {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "bare-"}, "spec": pod},
        ),
    ]
    paths = [
        api_path("apps/v1", "deployments", namespace=namespace, name=made[0]["metadata"]["name"]),
        api_path("v1", PODS, namespace=namespace, name=made[1]["metadata"]["name"]),
    ]

    for path, obj in zip(paths, made, strict=True):
        identity = eventually(
            lambda path=path: stamps(client.get(path)).get("workload-id"),  # type: ignore[misc]
            what=f"the id of {path}",
            seconds=90,
        )
        assert identity.startswith(f"{obj['metadata']['name']}-")
    assert_nothing_was_forbidden(replica)


def test_certificates_and_leadership_are_kept(replica: InstalledReplica, client: ApiClient) -> None:
    """The Secrets are made, what clients trust is published, and the replica leads."""
    for name in SECRETS:
        assert client.get(api_path("v1", "secrets", namespace=NAMESPACE, name=name))["data"]
    assert all(b"BEGIN CERTIFICATE" in bundle for bundle in trusted(client.get(CONFIGURATION)))
    assert client.get(LEASE)["spec"]["holderIdentity"]
    assert replica.metric("workload_stamp_leading") == 1
    assert replica.metric("workload_stamp_registered") == 1
    assert_nothing_was_forbidden(replica)


def test_a_lost_secret_is_made_again(replica: InstalledReplica, client: ApiClient) -> None:
    """Deleting both Secrets needs no hand: they come back, and so do valid certificates."""
    paths = [api_path("v1", "secrets", namespace=NAMESPACE, name=name) for name in SECRETS]
    before = [client.get(path)["metadata"]["uid"] for path in paths]
    for path in paths:
        client.delete(path)

    collection = api_path("v1", "secrets", namespace=NAMESPACE)

    def made_again() -> bool:
        found = {each["metadata"]["name"]: each["metadata"]["uid"] for each in client.get(collection)["items"]}
        return all(name in found for name in SECRETS) and not set(before) & set(found.values())

    eventually(made_again, what="both Secrets to be made again", seconds=60)
    assert_nothing_was_forbidden(replica)


# ---------------------------------------------------------------------------- a framework that nobody knew


@pytest.fixture
def ring(control_plane: ControlPlane) -> Iterator[Path]:
    """The made-up framework's CRD, served; the folder of the example. It is gone afterwards."""
    folder = MANIFESTS / "examples" / "ring"
    kubectl = control_plane.kubectl
    kubectl("apply", "--server-side", "-f", str(folder / "crd.yaml"))
    kubectl("wait", "--for=condition=Established", "crd/rings.training.example.com", "--timeout=30s")
    yield folder
    kubectl("delete", "--ignore-not-found", "-f", str(folder / "framework.yaml"))
    kubectl("delete", "-f", str(folder / "crd.yaml"))


@pytest.mark.usefixtures("replica")
def test_one_file_adds_a_framework(ring: Path, kubectl: Kubectl, client: ApiClient, namespace: str) -> None:
    """Applied while the webhook runs, a definition with its ClusterRole is enough; deleted, all ends."""
    rings = api_path("training.example.com/v1", "rings", namespace=namespace)
    before = client.post(rings, _ring("before"))
    assert stamps(before) == {}

    kubectl("apply", "--server-side", "-f", str(ring / "framework.yaml"))

    eventually(lambda: "rings" in json.dumps(client.get(CONFIGURATION)), what="rings to be registered", seconds=10)
    after = eventually(lambda: _stamped(client, rings, "after"), what="a ring to be stamped at its creation")
    assert (stamps(after)["gang-size"], stamps(after)["gpu-total"]) == ("5", "8")
    pod = client.post(api_path("v1", PODS, namespace=namespace), _member(after))
    assert (stamps(pod)["role"], stamps(pod)["workload-kind"], stamps(pod)["gpu-total"]) == ("member", "Ring", "8")
    eventually(
        lambda: stamps(client.get(f"{rings}/before")).get("gpu-total") == "8",
        what="the older ring to be mended under the added ClusterRole",
        seconds=90,
    )
    columns = eventually(lambda: _accepted(kubectl), what="the definition to be accepted")
    assert columns[:4] == ["ring", "Ring.v1.training.example.com", "True", "true"]

    kubectl("delete", "-f", str(ring / "framework.yaml"))
    eventually(lambda: "rings" not in json.dumps(client.get(CONFIGURATION)), what="rings to be left alone")


def _ring(name: str) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "main", "image": "ring:1"}]}}
    member = {
        "spec": {"containers": [{"name": "m", "image": "ring:1", "resources": {"limits": {"nvidia.com/gpu": 2}}}]}
    }
    return {
        "apiVersion": "training.example.com/v1",
        "kind": "Ring",
        "metadata": {"name": name},
        "spec": {"coordinator": template, "members": 4, "member": member},
    }


def _stamped(client: ApiClient, rings: str, name: str) -> Any:
    """A ring that admission has stamped; one that was not is taken away for the next try."""
    made = client.post(rings, _ring(name))
    if "gpu-total" in stamps(made):
        return made
    client.delete(f"{rings}/{name}")
    return None


def _member(ring: Any) -> dict[str, Any]:
    owner = {
        "apiVersion": "training.example.com/v1", "kind": "Ring", "name": ring["metadata"]["name"],
        "uid": ring["metadata"]["uid"], "controller": True,
    }  # fmt: skip
    metadata = {
        "name": "member-0",
        "labels": {"training.example.com/part": "member"},
        "ownerReferences": [owner],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": ring["spec"]["member"]["spec"]}


def _accepted(kubectl: Kubectl) -> list[str]:
    (line,) = kubectl("get", "workloaddefinitions", "--no-headers").splitlines()
    words = line.split()
    return words if "True" in words else []


@pytest.mark.usefixtures("replica")
def test_a_faulty_definition_says_what_is_wrong(client: ApiClient) -> None:
    """Every problem is in the status, with its path, what was found, and what would be right."""
    root = {
        "name": "x",
        "kind": {"group": "training.example.com", "version": "v1", "kind": "Ring"},
        "rootStamp": "full",
    }
    spec = {"structureDefinition": {"rootComponent": {**root, "instanceIdPath": 5}}}
    client.post(DEFINITIONS, {**_definition("faulty"), "spec": spec})

    status = eventually(lambda: client.get(f"{DEFINITIONS}/faulty").get("status"), what="a status")

    assert status["inForce"] is False
    text = "\n".join(status["problems"])
    assert "spec.structureDefinition.rootComponent.rootStamp" in text
    assert "rootStamps" in text
    assert "spec.structureDefinition.rootComponent.instanceIdPath" in text
    accepted = {each["type"]: each for each in status["conditions"]}["Accepted"]
    assert (accepted["status"], accepted["reason"]) == ("False", "Invalid")
