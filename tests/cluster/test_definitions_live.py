"""Definitions come, change and go while the webhook runs, and every replica follows within two seconds."""

import json
import time
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.api_client import ApiClient, api_path
from tests.cluster.control_plane import ControlPlane
from tests.cluster.installation import DEFINITIONS, Installation
from tests.cluster.jobsets import stamps
from tests.cluster.rings import FOLDER, RINGS, member, ring, ring_kind
from tests.cluster.waiting import eventually
from tests.cluster.webhook_service import WebhookService, ask

SECONDS = 2.0
KARTAS = api_path("run.ai/v1alpha1", "kartas")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mounted folder of definitions, empty at first."""
    return tmp_path_factory.mktemp("definitions")


@pytest.fixture(scope="module")
def service(control_plane: ControlPlane, folder: Path) -> Iterator[WebhookService]:
    """Two replicas, in a cluster that serves rings and the stand-in for Kartas."""
    installation = Installation.of(control_plane)
    with (
        ring_kind(control_plane),
        karta_kind(control_plane),
        WebhookService.running(installation, f"--definitions-dir={folder}", replicas=2) as service,
    ):
        control_plane.client.apply(ROLE, role())
        yield service
        control_plane.client.delete(ROLE)


ROLE = api_path("rbac.authorization.k8s.io/v1", "clusterroles", name="workload-stamp-ring")


def role() -> Any:
    """The right to read rings, as the example has it."""
    _, role = _framework()
    return role


def definition(members: str = ".spec.members // 1", **root: Any) -> Any:
    """The example's definition, with another expression for the members and other fields of its root component."""
    definition, _ = _framework()
    structure = definition["spec"]["structureDefinition"]
    structure["rootComponent"].update(root)
    structure["childComponents"][1]["scaleDefinition"]["replicasPath"] = members
    return definition


TWICE = ".spec.members * 2"


def _framework() -> list[Any]:
    return list(yaml.safe_load_all((FOLDER / "framework.yaml").read_text()))


@contextmanager
def karta_kind(control_plane: ControlPlane) -> Iterator[None]:
    """Upstream's kind, served: a stand-in for its CRD that takes any spec."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": "Karta", "plural": "kartas", "singular": "karta", "listKind": "KartaList"}
    document = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "kartas.run.ai"},
        "spec": {"group": "run.ai", "scope": "Cluster", "names": names, "versions": [version]},
    }
    path = api_path("apiextensions.k8s.io/v1", "customresourcedefinitions", name="kartas.run.ai")
    control_plane.client.apply(path, document)
    control_plane.kubectl("wait", "--for=condition=Established", "crd/kartas.run.ai", "--timeout=30s")
    yield
    control_plane.client.delete(path)


def answers(service: WebhookService, document: Any) -> list[str]:
    """What each replica says of a ring: its gpu-total, or nothing where it does not know the kind."""
    found = []
    for replica in service.replicas:
        response = ask(replica, document, group="training.example.com", version="v1", plural="rings", namespace="team")
        assert response["allowed"]
        operations = json.loads(b64decode(response["patch"])) if "patch" in response else []
        values = [each["value"] for each in operations if each["path"] == "/metadata/labels"]
        found.append(values[0].get("workload-stamp.io/gpu-total", "none") if values else "")
    return found


Act = Callable[[], Any]


def follows(service: WebhookService, act: Act, expected: str) -> None:
    """Do something, and see both replicas follow in time."""
    document = ring("ring", members=4, gpus=2)
    begun = time.monotonic()
    act()
    eventually(lambda: answers(service, document) == [expected] * 2, what=f"gpu-total {expected!r}", seconds=SECONDS)
    print(f"followed after {time.monotonic() - begun:.2f} s")


def test_a_definition_comes_changes_and_goes(service: WebhookService, client: ApiClient, namespace: str) -> None:
    """Applied, changed, damaged, repaired, deleted: the damaged one changes nothing and says why."""
    path = f"{DEFINITIONS}/ring"
    follows(service, lambda: client.apply(path, definition()), "8")

    rings, pods = api_path(RINGS, "rings", namespace=namespace), api_path("v1", "pods", namespace=namespace)
    owner = eventually(lambda: _stamped(client, rings), what="rings to be registered", seconds=5)
    assert stamps(owner)["workload-kind"] == "Ring"
    assert stamps(client.post(pods, member(owner)))["gang-size"] == "5"

    follows(service, lambda: client.apply(path, definition(TWICE)), "16")

    client.apply(path, definition(rootStamp="full", instanceIdPath=5))
    status = eventually(lambda: _judged(client.get(path)), what="the status of the damaged definition")
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    assert conditions == {"Accepted": "False", "InForce": "True"}
    assert any("rootStamp" in problem for problem in status["problems"])
    assert answers(service, ring("ring")) == ["16", "16"]

    follows(service, lambda: client.apply(path, definition()), "8")
    eventually(lambda: _judged(client.get(path), accepted="True"), what="the status of the repaired definition")

    follows(service, lambda: client.delete(path), "")
    eventually(lambda: stamps(client.post(rings, ring("after"), query={"dryRun": "All"})) == {}, what="the end")
    assert stamps(client.post(pods, member(owner))) == {}


def _stamped(client: ApiClient, rings: str) -> Any:
    """A ring, as soon as rings are stamped."""
    if not stamps(client.post(rings, ring("first"), query={"dryRun": "All"})):
        return None
    return client.post(rings, ring("first"))


def _judged(obj: Any, accepted: str = "False") -> Any:
    status = obj.get("status") or {}
    if status.get("observedGeneration") != obj["metadata"]["generation"]:
        return None
    conditions = {each["type"]: each["status"] for each in status["conditions"]}
    return status if conditions["Accepted"] == accepted else None


def test_a_karta_describes_as_well(service: WebhookService, client: ApiClient) -> None:
    """Upstream's own kind, live; a WorkloadDefinition of the same kind goes before it."""
    karta = {
        "apiVersion": "run.ai/v1alpha1",
        "kind": "Karta",
        "metadata": {"name": "ring"},
        "spec": definition()["spec"],
    }
    follows(service, lambda: client.apply(f"{KARTAS}/ring", karta), "8")

    follows(service, lambda: client.apply(f"{DEFINITIONS}/ring", definition(TWICE)), "16")
    follows(service, lambda: client.delete(f"{DEFINITIONS}/ring"), "8")

    follows(service, lambda: client.delete(f"{KARTAS}/ring"), "")


def test_a_folder_is_followed(service: WebhookService, client: ApiClient, folder: Path) -> None:
    """A mounted folder goes before everything in the cluster; a file that can't be read changes nothing."""
    follows(service, lambda: client.apply(f"{DEFINITIONS}/ring", definition()), "8")
    file = folder / "ring.yaml"

    follows(service, lambda: file.write_text(yaml.safe_dump(definition(TWICE))), "16")
    file.write_text("{ nonsense")
    eventually(
        lambda: all("definitions refused" in replica.log.read_text() for replica in service.replicas), what="the log"
    )
    assert answers(service, ring("ring")) == ["16", "16"]
    status = eventually(lambda: client.get(f"{DEFINITIONS}/ring").get("status"), what="a status")
    assert {each["reason"] for each in status["conditions"]} <= {"Valid", "Superseded", "InForce"}

    follows(service, file.unlink, "8")
    follows(service, lambda: client.delete(f"{DEFINITIONS}/ring"), "")
