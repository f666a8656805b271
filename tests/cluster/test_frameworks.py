"""Pods that real controllers make are counted; the stamps that the webhook gave them and their objects say the same."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import orjson
import pytest
import yaml

from catalog.definition import RootStamps
from tests.cluster.api_client import ApiClient, api_path
from tests.cluster.conftest import StartController
from tests.cluster.control_plane import ControlPlane
from tests.cluster.counting import Counted, gpus_of
from tests.cluster.framework_workloads import Asked, all_workloads
from tests.cluster.installation import Installation
from tests.cluster.jobsets import stamps
from tests.cluster.kubectl import Kubectl
from tests.cluster.nodes import NODES
from tests.cluster.waiting import eventually
from tests.docs.pages import DOCS, File, steps
from tests.golden.cases import packaged_catalog
from webhook.identity import workload_id
from webhook.lineage import kind_named

WORKLOADS = tuple(all_workloads())
SECONDS_UNTIL_RUNNING = 90.0
SECONDS_UNTIL_COVERED = 20.0
"""From the first start of a controller, which brings its definitions, until the API server asks the webhook."""

Object = dict[str, Any]


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Iterator[Installation]:
    """One replica for all tests, with exactly the rights of the manifests."""
    installation = Installation.of(control_plane)
    installation.clear()
    replica = installation.replica("frameworks")
    control_plane.adopt(replica)
    replica.start()
    replica.wait_until_ready()
    yield installation
    control_plane.dismiss(replica)
    installation.clear()


def _is_covered(installation: Installation, api_version: str, plural: str) -> bool:
    """Whether the API server asks the webhook about the kind."""
    group = api_version.rpartition("/")[0]
    configuration = installation.configuration or {"webhooks": []}
    rules = [rule for webhook in configuration["webhooks"] for rule in webhook["rules"]]
    return any(group in rule["apiGroups"] and plural in rule["resources"] for rule in rules)


def _running(client: ApiClient, namespace: str, asked: Asked, *, below: str) -> Counted | None:
    """The pods once as many run as are asked for; more than that fails at once."""
    counted = Counted(client, namespace, below=below)
    assert len(counted.pods) <= asked.pod_count, [pod["metadata"]["name"] for pod in counted.pods]
    running = [pod for pod in counted.pods if pod["status"].get("phase") == "Running"]
    return counted if len(running) == asked.pod_count else None


def _first_run(client: ApiClient, asked: Asked, namespace: str) -> str:
    """The uid of the first object that a schedule makes."""
    path = api_path(asked.api_version, f"{asked.top.lower()}s", namespace=namespace)
    runs = eventually(lambda: client.get(path)["items"], what=f"the first run of {asked.name}", seconds=30)
    return str(min(run["metadata"]["creationTimestamp"] + " " + run["metadata"]["uid"] for run in runs).split()[1])


@pytest.fixture
def counted(
    asked: Asked, controller: StartController, installation: Installation, client: ApiClient, namespace: str
) -> Iterator[Counted]:
    """The object's pods, all of them running."""
    if asked.controller:
        controller(asked.controller)
    what = f"the webhook to be asked about {asked.plural}"
    eventually(
        lambda: _is_covered(installation, asked.api_version, asked.plural), what=what, seconds=SECONDS_UNTIL_COVERED
    )
    path = api_path(asked.api_version, asked.plural, namespace=namespace)
    client.post(path, asked.document(namespace))
    run = _first_run(client, asked, namespace) if asked.top else ""
    what = f"{asked.pod_count} running pods of {asked.name}"
    yield eventually(lambda: _running(client, namespace, asked, below=run), what=what, seconds=SECONDS_UNTIL_RUNNING)
    client.delete(f"{path}/{asked.name}", query={"propagationPolicy": "Background"})


@pytest.mark.parametrize("asked", WORKLOADS, ids=lambda asked: asked.name)
def test_stamps_are_what_was_counted(asked: Asked, counted: Counted, client: ApiClient, namespace: str) -> None:
    """Roles, GPUs, gangs and identity of pods and object equal the count of the pods that the controller made."""
    _check_pods(asked, counted)
    reference = orjson.loads(next(iter(counted.values("workload"))) or "{}")
    top_kind = asked.top or asked.kind
    assert (reference["kind"], reference["namespace"]) == (top_kind, namespace)
    root = next(owner for owner in counted.owners() if owner["metadata"]["uid"] == reference["uid"])
    _check_root(asked, counted, root)
    _check_owners(counted)
    identity = workload_id(reference["apiGroup"], top_kind, namespace, root["metadata"]["name"])
    selected = client.get(
        api_path("v1", "pods", namespace=namespace),
        query={"labelSelector": f"workload-stamp.io/workload-id={identity}"},
    )
    assert len(selected["items"]) == asked.pod_count


def _check_pods(asked: Asked, counted: Counted) -> None:
    expected = {role: tuple(sorted(gpus, reverse=True)) for role, gpus in asked.pods.items()}
    assert counted.gpus_by_role == expected
    assert [stamps(pod).get("gpus") for pod in counted.pods] == [str(gpus_of(pod)) for pod in counted.pods]
    assert counted.values("gpu-total") == {str(counted.gpus)}
    assert sorted(counted.gangs.values()) == sorted(asked.gangs)
    for pod in counted.pods:
        written = stamps(pod)
        assert written["gang-size"] == str(counted.gangs.get(written.get("gang", ""), 1)), pod["metadata"]["name"]
    assert counted.values("workload-kind") == {asked.top or asked.kind}
    assert len(counted.values("workload-id")) == 1
    assert counted.values("unresolved") == {None}


def _check_root(asked: Asked, counted: Counted, root: Object) -> None:
    """The object's numbers are those of its pods, where its definition lets them be written."""
    written = stamps(root)
    assert {written["workload-id"]} == counted.values("workload-id")
    kind = kind_named(root["apiVersion"], root["kind"])
    compiled = packaged_catalog().find(kind) if kind is not None else None
    assert compiled is not None
    is_owned = bool(root["metadata"].get("ownerReferences"))
    if is_owned or compiled.answered_by is not None or compiled.definition.root_stamps is not RootStamps.FULL:
        return
    assert written["pods-total"] == str(len(counted.pods))
    assert written["gpu-total"] == str(counted.gpus)
    roles = {role["role"]: (role["pods"], Decimal(role["gpus"])) for role in orjson.loads(written["roles"])}
    assert roles == {role: (len(gpus), Decimal(sum(gpus))) for role, gpus in counted.gpus_by_role.items()}
    stated_by_itself = compiled.states_gangs and set(asked.gangs)
    assert written.get("gang-size") == (str(asked.gangs[0]) if len(stated_by_itself or ()) == 1 else None)


def _check_owners(counted: Counted) -> None:
    """Every described object between the workload and its pods says which workload it belongs to."""
    (identity,) = counted.values("workload-id")
    for owner in counted.owners():
        kind = kind_named(owner["apiVersion"], owner["kind"])
        compiled = packaged_catalog().find(kind) if kind is not None else None
        if compiled is not None and compiled.definition.root_stamps is not RootStamps.NONE:
            expected = None if compiled.spawns_workloads else identity
            assert stamps(owner).get("workload-id") == expected, f"{owner['kind']} {owner['metadata']['name']}"


def _pod_template(gpus: int) -> Object:
    container = {"name": "main", "image": "registry.example/train:1", "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    return {"metadata": {"labels": {"app": "main"}}, "spec": {"containers": [container]}}


def test_a_run_of_a_cronjob_is_a_workload(
    installation: Installation, client: ApiClient, kubectl: Kubectl, namespace: str
) -> None:
    """A CronJob carries the numbers of one run and no id; the Job that a run makes is the workload of its pods."""
    installation.wait_registered()
    template = _pod_template(2)
    template["spec"]["restartPolicy"] = "Never"
    job = {"parallelism": 2, "completions": 2, "completionMode": "Indexed", "template": template}
    client.post(
        api_path("batch/v1", "cronjobs", namespace=namespace),
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "nightly"},
            "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": job}},
        },
    )
    kubectl("create", "job", "--from=cronjob/nightly", "tonight", "-n", namespace)

    eventually(lambda: len(Counted(client, namespace).pods) == 2, what="the pods of the run")
    counted = Counted(client, namespace)
    by_kind = {owner["kind"]: stamps(owner) for owner in counted.owners()}
    assert counted.gpus_by_role == {"job": (2, 2)}
    assert counted.values("workload-kind") == {"Job"}
    assert (counted.values("gpu-total"), counted.values("gang-size")) == ({"4"}, {"2"})
    assert {by_kind["Job"]["workload-id"]} == counted.values("workload-id")
    assert "workload-id" not in by_kind["CronJob"]
    assert (by_kind["CronJob"]["pods-total"], by_kind["CronJob"]["gpu-total"]) == ("2", "4")


def test_a_daemonset_does_not_say_how_many_nodes_there_are(
    installation: Installation, client: ApiClient, namespace: str
) -> None:
    """Its pods carry their own GPUs and role; the total is left out, with its reason."""
    installation.wait_registered()
    spec = {"selector": {"matchLabels": {"app": "main"}}, "template": _pod_template(1)}
    document = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "probe"}, "spec": spec}
    client.post(api_path("apps/v1", "daemonsets", namespace=namespace), document)

    eventually(lambda: len(Counted(client, namespace).pods) == NODES, what="a pod on each node")
    counted = Counted(client, namespace)
    assert counted.gpus_by_role == {"daemonset": (1,) * NODES}
    assert (counted.values("gpus"), counted.values("gpu-total")) == ({"1"}, {None})
    assert [list(orjson.loads(reasons or "{}")) for reasons in counted.values("unresolved")] == [["gpu-total"]]


def test_a_bare_pod_is_its_own_workload(installation: Installation, client: ApiClient, namespace: str) -> None:
    """A pod that nobody owns is a workload of one."""
    installation.wait_registered()
    template = _pod_template(4)
    document = {"apiVersion": "v1", "kind": "Pod", **template, "metadata": {"name": "alone"}}
    client.post(api_path("v1", "pods", namespace=namespace), document)

    (pod,) = Counted(client, namespace).pods
    written = stamps(pod)
    assert written["workload-id"] == workload_id("", "Pod", namespace, "alone")
    assert (written["role"], written["gang-size"], written["gpus"], written["gpu-total"]) == ("pod", "1", "4", "4")


def _served(kind: str) -> Object:
    """A CRD of the guide's made-up group that takes whatever one writes."""
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.lab.example"},
        "spec": {
            "group": "lab.example",
            "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def _owned_by(owner: Object) -> list[Object]:
    metadata = owner["metadata"]
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
    return [{**reference, "name": metadata["name"], "uid": metadata["uid"]}]


def test_the_guides_framework_is_stamped_seconds_after_it_is_described(
    installation: Installation, client: ApiClient, kubectl: Kubectl, namespace: str
) -> None:
    """The files of docs/add-a-framework.md are applied, its object and pods created: they get what the page says."""
    files = {step.name: step.content for step in steps(DOCS / "add-a-framework.md") if isinstance(step, File)}
    for kind in ("Ensemble", "Section"):
        kubectl("apply", "-f", "-", stdin=_served(kind))
    for name in ("role.yaml", "definition.yaml"):
        kubectl("apply", "-f", "-", stdin=files[name])
    what = "the definition to take effect"
    eventually(lambda: _is_covered(installation, "lab.example/v1", "ensembles"), what=what, seconds=20)

    def create(plural: str, document: Object, owner: Object | None = None) -> Object:
        metadata = {key: value for key, value in document["metadata"].items() if key in ("name", "labels")}
        references = {"ownerReferences": _owned_by(owner)} if owner is not None else {}
        path = api_path(document["apiVersion"], plural, namespace=namespace)
        created: Object = client.post(path, {**document, "metadata": {**metadata, **references}})
        return created

    ensemble = create("ensembles", yaml.safe_load(files["ensemble.yaml"]))
    section = create("sections", yaml.safe_load(files["owners.yaml"]), ensemble)
    conductor, player = yaml.safe_load_all(files["pods.yaml"])
    written = [stamps(create("pods", conductor, ensemble)), stamps(create("pods", player, section))]

    assert [pod["role"] for pod in written] == ["conductor", "section"]
    assert {(pod["gang-size"], pod["gpu-total"], pod["workload-id"]) for pod in written} == {
        ("6", "9", workload_id("lab.example", "Ensemble", namespace, "fifth"))
    }
    assert written[1]["instance"] == "strings"
    assert stamps(ensemble)["gpu-total"] == "9"
    for kind in ("Ensemble", "Section"):
        kubectl("delete", "crd", f"{kind.lower()}s.lab.example", "--wait=false")
    kubectl("delete", "workloaddefinition", "lab-example-ensemble-v1")
