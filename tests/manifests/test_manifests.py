"""Manifests are plain, agree with each other and with the settings, and ask for no more than they need."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.manifests.documents import KUSTOMIZATIONS, built, every_document, named, of_kind
from tests.manifests.generated import MANIFESTS
from webhook.cluster.configuration import NAME
from webhook.settings import Settings

SETTINGS = Settings()
REPOSITORY = MANIFESTS.parent
RBAC_KINDS = {"Role", "ClusterRole"}


def deployment() -> Any:
    """The Deployment of the base."""
    return named("Deployment", "workload-stamp")


def container() -> Any:
    """Its only container."""
    (only,) = deployment()["spec"]["template"]["spec"]["containers"]
    return only


def test_every_file_holds_objects_with_kind_and_name() -> None:
    """Each YAML document is an object that kubectl can apply, or a patch of one."""
    for path, document in every_document():
        assert document["apiVersion"], path
        assert document["kind"], path
        assert document["metadata"]["name"], path


@pytest.mark.parametrize("kustomization", KUSTOMIZATIONS)
def test_every_kustomization_builds(kustomization: str) -> None:
    """kubectl builds it without a warning, and every namespaced object has our namespace."""
    for document in built(kustomization):
        namespace = document["metadata"].get("namespace", "workload-stamp-system")
        assert namespace == "workload-stamp-system", document["metadata"]


def test_every_file_is_used_by_a_kustomization() -> None:
    """Nothing lies about that nobody applies; examples and the image's Containerfile are for people."""
    used = {
        (path.parent / name).resolve()
        for path in MANIFESTS.rglob("kustomization.yaml")
        for name in re.findall(r"^- (?:path: )?(\S+\.yaml)$|^  path: (\S+)$", path.read_text(), flags=re.MULTILINE)
        for name in name
        if name
    }
    loose = [path for path, _ in every_document() if path not in used and "examples" not in path.parts]
    assert loose == []


def test_images_name_a_version_and_no_registry() -> None:
    """The image is a placeholder without a host, tagged with the project's version."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert container()["image"] == f"workload-stamp:{project['version']}"
    text = (MANIFESTS / "image" / "Containerfile").read_text()
    images = re.findall(r"^FROM (\S+)", text, flags=re.MULTILINE)
    assert images
    for image in images:
        assert "/" not in image, image
        assert re.search(r":[0-9]", image), image
    assert f"workload-stamp:{project['version']}" in text


def test_no_manifest_pulls_the_latest() -> None:
    """Nowhere in the tree is an image tagged `latest`, or without a tag."""
    for path in MANIFESTS.rglob("*"):
        if path.is_file():
            assert not re.search(r"image:\s*\S+:latest|image:\s*[^:\s]+$", path.read_text(), flags=re.MULTILINE), path


def test_selectors_find_the_webhooks_pods() -> None:
    """Deployment, Service, budget, policy and monitor all select the labels of the pod template."""
    labels = deployment()["spec"]["template"]["metadata"]["labels"]
    service = named("Service", "workload-stamp")
    selectors = [
        deployment()["spec"]["selector"]["matchLabels"],
        service["spec"]["selector"],
        named("PodDisruptionBudget", "workload-stamp")["spec"]["selector"]["matchLabels"],
        named("NetworkPolicy", "workload-stamp")["spec"]["podSelector"]["matchLabels"],
        *(
            constraint["labelSelector"]["matchLabels"]
            for constraint in deployment()["spec"]["template"]["spec"]["topologySpreadConstraints"]
        ),
    ]
    assert selectors == [labels] * len(selectors)
    (monitor,) = of_kind("ServiceMonitor")
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} <= {
        port["name"] for port in service["spec"]["ports"]
    }


def test_names_and_ports_are_the_settings_defaults() -> None:
    """What the webhook takes for granted without a flag is what the manifests make."""
    ports = {port["name"]: port["containerPort"] for port in container()["ports"]}
    assert ports == {"webhook": SETTINGS.bind_address.port, "metrics": SETTINGS.metrics_bind_address.port}
    assert named("Namespace", SETTINGS.namespace)
    service = named("Service", SETTINGS.service_name)
    assert {port["name"]: port["targetPort"] for port in service["spec"]["ports"]} == {
        "webhook": "webhook",
        "metrics": "metrics",
    }
    assert service["spec"]["ports"][0]["port"] == 443
    policy = named("NetworkPolicy", "workload-stamp")
    assert {port["port"] for port in policy["spec"]["ingress"][0]["ports"]} == set(ports.values())


def test_a_leaving_replica_is_given_the_time_it_takes() -> None:
    """Lame duck, drain and closing fit into the grace period, and no new replica is waited for by losing one."""
    pod = deployment()["spec"]["template"]["spec"]
    assert pod["terminationGracePeriodSeconds"] >= SETTINGS.lame_duck + SETTINGS.drain + 5
    assert deployment()["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    probe = container()["readinessProbe"]
    assert probe["periodSeconds"] * probe["failureThreshold"] <= SETTINGS.lame_duck / 2


def test_the_pod_may_do_nothing_it_need_not() -> None:
    """No root, no capabilities, no writable root file system, no CPU limit that would throttle it."""
    pod = deployment()["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == 65534
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    context = container()["securityContext"]
    assert context["readOnlyRootFilesystem"] is True
    assert context["allowPrivilegeEscalation"] is False
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert container()["resources"] == {"requests": {"cpu": "100m", "memory": "96Mi"}, "limits": {"memory": "256Mi"}}
    assert "hostNetwork" not in pod


def test_secrets_lease_and_configuration_are_allowed_by_name() -> None:
    """The role's names are those that the code uses, and only creation is allowed for any name."""
    rules = named("Role", "workload-stamp")["rules"]
    secrets = {f"{SETTINGS.service_name}-authority", f"{SETTINGS.service_name}-serving"}
    assert {name for rule in rules for name in rule.get("resourceNames", ())} == secrets | {SETTINGS.lease_name}
    assert all(rule["verbs"] == ["create"] for rule in rules if "resourceNames" not in rule)
    own = named("ClusterRole", "workload-stamp-own")["rules"]
    (configurations,) = (rule for rule in own if rule["resources"] == ["mutatingwebhookconfigurations"])
    assert configurations["resourceNames"] == [NAME]


def test_no_role_has_a_wildcard_or_deletes_anything() -> None:
    """Nothing that we ship lets the webhook delete, impersonate, escalate, or do everything."""
    for role in (role for role in _all_documents() if role["kind"] in RBAC_KINDS):
        for rule in role.get("rules", ()):
            words = [*rule["verbs"], *rule["resources"], *rule["apiGroups"]]
            assert not {"*", "delete", "deletecollection", "impersonate", "bind", "escalate"} & set(words), rule


def _all_documents() -> list[Any]:
    return [document for _, document in every_document()]


@pytest.mark.parametrize(
    "overlay,flags",
    [
        ("opt-in", {"--namespaces-opt-in"}),
        ("observe", {"--observe"}),
        ("high-availability", set()),
        ("monitoring", {"--workload-metrics"}),
        ("protect", set()),
        (
            "cert-manager",
            {
                "--cert-file=/certificates/tls.crt",
                "--key-file=/certificates/tls.key",
                "--inject-ca-from=workload-stamp-system/workload-stamp-serving",
            },
        ),
    ],
)
def test_an_overlay_starts_the_webhook_with_flags_that_exist(overlay: str, flags: set[str]) -> None:
    """The settings take every flag of every overlay, and the subcommand is `serve`."""
    (deployed,) = (document for document in built(f"overlays/{overlay}") if document["kind"] == "Deployment")
    command, *arguments = deployed["spec"]["template"]["spec"]["containers"][0]["args"]
    assert command == "serve"
    assert set(arguments) == flags
    given = {}
    for argument in arguments:
        name, _, value = argument.removeprefix("--").partition("=")
        given[name.replace("-", "_")] = value or True
    settings = Settings.parse(given, {})
    assert settings.observe == ("--observe" in flags)


def test_with_cert_manager_the_webhook_has_no_right_to_secrets() -> None:
    """What it has no use for is taken from it, and the certificate has the names that the API server asks for."""
    documents = built("overlays/cert-manager")
    (role,) = (each for each in documents if each["kind"] == "Role")
    assert [rule["resources"] for rule in role["rules"]] == [["leases"], ["leases"]]
    (serving,) = (
        each for each in documents
        if (each["kind"], each["metadata"]["name"]) == ("Certificate", "workload-stamp-serving")
    )  # fmt: skip
    assert f"{SETTINGS.service_name}.{SETTINGS.namespace}.svc" in serving["spec"]["dnsNames"]
    (deployed,) = (each for each in documents if each["kind"] == "Deployment")
    (volume,) = deployed["spec"]["template"]["spec"]["volumes"]
    assert volume["secret"]["secretName"] == serving["spec"]["secretName"]


def test_overlays_can_be_combined() -> None:
    """Components add up: one kustomization may name several of them."""
    folders = {path.name for path in (MANIFESTS / "components").iterdir()}
    assert folders == {"cert-manager", "high-availability", "observe", "opt-in"}
    for name in folders:
        text = (MANIFESTS / "overlays" / name / "kustomization.yaml").read_text()
        assert f"- ../../components/{name}" in text


def test_the_containerfile_copies_what_is_there() -> None:
    """Every path that is copied from the tree exists, and the command is the project's."""
    text = (MANIFESTS / "image" / "Containerfile").read_text()
    copied = [
        word for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, flags=re.MULTILINE) for word in line.split()
    ]
    assert copied
    assert [name for name in copied if not (REPOSITORY / Path(name)).exists()] == []
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert "/bin/workload-stamp" in text
    assert "workload-stamp" in project["scripts"]
    assert "USER 65534:65534" in text
