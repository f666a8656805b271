"""The webhook configuration: who may change what in it, how it is switched off, and what the API server says of it."""

import base64
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.api_client import ApiClient, ApiError, api_path
from tests.cluster.control_plane import ControlPlane
from tests.cluster.installation import CONFIGURATION, MANIFESTS, NAMESPACE, SECRETS, Installation, trusted
from tests.cluster.jobsets import stamps
from tests.cluster.pki import Authority
from tests.cluster.waiting import eventually
from tests.cluster.webhook_service import WebhookService
from tests.cluster.workloads import pod

TERM = {"key": "control-plane", "operator": "DoesNotExist"}  # what AKS adds to every webhook's selector
Edit = Callable[[Any], None]


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Installation:
    """The base."""
    return Installation.of(control_plane)


def edit_each(client: ApiClient, edit: Edit) -> None:
    """Have somebody edit each webhook of the configuration, again when the leader writes at the same time."""

    def written() -> bool:
        configuration = client.get(CONFIGURATION)
        for webhook in configuration["webhooks"]:
            edit(webhook)
        try:
            client.put(CONFIGURATION, configuration)
        except ApiError as problem:
            if problem.code != 409:
                raise
            return False
        return True

    eventually(written, what="the configuration to be edited")


def fails_open(client: ApiClient) -> bool:
    """Whether no webhook of the configuration makes a request depend on us."""
    return all(webhook["failurePolicy"] == "Ignore" for webhook in client.get(CONFIGURATION)["webhooks"])


def test_a_deletion_switches_off_until_a_restart(installation: Installation, client: ApiClient, namespace: str) -> None:
    """Nothing is stamped, everything is admitted, the replica goes on; started again, it stamps again."""
    pods = api_path("v1", "pods", namespace=namespace)
    with WebhookService.running(installation) as service:
        (replica,) = service.replicas
        client.delete(CONFIGURATION)
        eventually(lambda: "nothing is stamped until a restart" in replica.log.read_text(), what="the log to tell")
        assert replica.metric("workload_stamp_registered") == 0
        assert replica.ready()
        assert stamps(client.post(pods, pod("meanwhile"))) == {}
        assert installation.configuration is None

        replica.terminate()
        replica.start()
        replica.wait_until_ready()

        service.wait_until_effective()
        assert "workload-id" in stamps(client.post(pods, pod("afterwards")))
        assert stamps(client.get(f"{pods}/meanwhile")) == {}, "it was created while we were switched off"


def test_always_means_always(installation: Installation, client: ApiClient) -> None:
    """Told so, the leader makes the configuration again, within seconds and each time."""
    with WebhookService.running(installation, "--registration=always"):
        for _ in range(2):
            uid = client.get(CONFIGURATION)["metadata"]["uid"]
            client.delete(CONFIGURATION)
            installation.wait_registered(seconds=10)
            assert client.get(CONFIGURATION)["metadata"]["uid"] != uid


def fail_closed(webhook: Any) -> None:
    """The edit that makes a cluster depend on a webhook."""
    webhook["failurePolicy"] = "Fail"


def exclude_more(webhook: Any) -> None:
    """What AKS does to every webhook."""
    webhook["namespaceSelector"]["matchExpressions"].append(TERM)


def test_foreign_selector_terms_survive_mending(installation: Installation, client: ApiClient) -> None:
    """A term that somebody added stays, alone and when another edit is mended; nobody writes in circles."""
    with WebhookService.running(installation):
        edit_each(client, exclude_more)
        edit_each(client, fail_closed)

        eventually(lambda: fails_open(client), what="the failure policy to be mended", seconds=10)
        for webhook in client.get(CONFIGURATION)["webhooks"]:
            terms = webhook["namespaceSelector"]["matchExpressions"]
            assert terms.count(TERM) == 1
            assert {"key": "workload-stamp.io/ignore", "operator": "NotIn", "values": ["true"]} in terms


def test_an_injected_bundle_stays(installation: Installation, client: ApiClient) -> None:
    """With cert-manager we publish no authority: what its injector writes survives every mending."""
    certificate = "workload-stamp-system/workload-stamp-serving"
    with WebhookService.running(installation, f"--inject-ca-from={certificate}", stamps=False):
        configuration = client.get(CONFIGURATION)
        assert configuration["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] == certificate
        assert set(trusted(configuration)) == {b""}
        bundle = Authority("cert-manager").pair.certificate

        edit_each(client, lambda webhook: webhook["clientConfig"].update(caBundle=base64.b64encode(bundle).decode()))
        edit_each(client, fail_closed)

        eventually(lambda: fails_open(client), what="the failure policy to be mended", seconds=10)
        assert set(trusted(client.get(CONFIGURATION))) == {bundle}


def test_with_cert_manager_no_secret_is_read(
    installation: Installation,
    definitions: Callable[[str], None],
    client: ApiClient,
    namespace: str,
    tmp_path: Path,
) -> None:
    """Under the overlay's rights, with a mounted certificate and an injected authority, pods are stamped."""
    definitions("cert-manager")
    installation.apply("overlays/cert-manager")
    authority = Authority("cert-manager")
    certificate, key = authority.serving("workload-stamp.workload-stamp-system.svc").write(tmp_path, "tls")
    flags = (f"--cert-file={certificate}", f"--key-file={key}", "--inject-ca-from=workload-stamp-system/serving")
    bundle = base64.b64encode(authority.pair.certificate).decode()
    try:
        eventually(
            lambda: not installation.may("get", "", "secrets", namespace=NAMESPACE, name=SECRETS[0]),
            what="the right to Secrets to be gone",
        )
        with WebhookService.running(installation, *flags, stamps=False) as service:
            edit_each(client, lambda webhook: webhook["clientConfig"].update(caBundle=bundle))
            service.wait_until_effective()
            pods = api_path("v1", "pods", namespace=namespace)
            assert "workload-id" in stamps(client.post(pods, pod("bare")))
            assert "cannot " not in service.leader.log.read_text()
    finally:
        installation.apply("base")


def test_the_api_server_tells_what_the_alerts_ask_for(
    installation: Installation, client: ApiClient, namespace: str
) -> None:
    """Admissions are timed, and those that went without an answer counted, under the names and labels of the alerts."""
    pods = api_path("v1", "pods", namespace=namespace)
    with WebhookService.running(installation) as service:
        service.replicas[0].kill()
        assert stamps(client.post(pods, pod("unanswered"))) == {}

        metrics = client.get("/metrics")

    rule = yaml.safe_load((MANIFESTS / "monitoring" / "prometheus-rule.yaml").read_text())
    text = " ".join(each["expr"] for group in rule["spec"]["groups"] for each in group["rules"])
    asked = set(re.findall(r"\bapiserver_\w+", text))
    asked -= {"apiserver_admission_webhook_rejection_count", "apiserver_internal_error"}  # only after a bad patch
    assert asked == {
        "apiserver_admission_webhook_fail_open_count",
        "apiserver_admission_webhook_admission_duration_seconds_bucket",
    }
    for name in asked:
        assert re.search(rf'^{name}\{{.*name="pods\.workload-stamp\.io"', metrics, flags=re.MULTILINE), name
