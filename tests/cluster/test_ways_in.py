"""Two more ways in for careful people: only labelled namespaces, and looking on without writing."""

import json
from typing import Any

import pytest

from tests.cluster.api_client import ApiClient, api_path
from tests.cluster.control_plane import ControlPlane
from tests.cluster.installation import Installation
from tests.cluster.jobsets import STAMP, stamps
from tests.cluster.waiting import eventually
from tests.cluster.webhook_service import WebhookService
from tests.cluster.workloads import pod, scaled

DEPLOYMENTS = "deployments"


@pytest.fixture(scope="module")
def installation(control_plane: ControlPlane) -> Installation:
    """The manifests, with nothing running."""
    return Installation.of(control_plane)


def test_opting_in(installation: Installation, client: ApiClient, namespace: str) -> None:
    """With --namespaces-opt-in a namespace is stamped once it is labelled, and not before."""
    path = api_path("v1", "pods", namespace=namespace)
    with WebhookService.running(installation, "--namespaces-opt-in", stamps=False):
        client.post(api_path("apps/v1", DEPLOYMENTS, namespace=namespace), scaled("Deployment", "web", replicas=0))
        assert stamps(client.post(path, pod("before"))) == {}
        client.merge_patch(
            api_path("v1", "namespaces", name=namespace), {"metadata": {"labels": {f"{STAMP}stamp": "true"}}}
        )
        eventually(lambda: stamps(client.post(path, pod(), query={"dryRun": "All"})), what="a stamped pod")
        web = api_path("apps/v1", DEPLOYMENTS, namespace=namespace, name="web")
        eventually(lambda: "workload-id" in stamps(client.get(web)), what="what was there before to be mended")


def test_observing(installation: Installation, client: ApiClient, namespace: str) -> None:
    """With --observe everything is worked out, logged and counted, and nothing is written, by upkeep neither."""
    path = api_path("v1", "pods", namespace=namespace)
    with WebhookService.running(installation, "--observe", stamps=False) as service:
        eventually(
            lambda: (
                stamps(client.post(path, pod(gpus=1))) == {}
                and service.metric("workload_stamp_admissions_total", outcome="observed") > 0
            ),
            what="an observed pod",
        )
        web = api_path("apps/v1", DEPLOYMENTS, namespace=namespace)
        client.post(web, scaled("Deployment", "web", replicas=0))
        line = eventually(lambda: _logged(service, "Deployment", namespace), what="the admission in the log")
        assert line["outcome"] == "observed"
        assert stamps(client.get(f"{web}/web")) == {}
    assert all(stamps(each) == {} for each in client.get(path)["items"])


def _logged(service: WebhookService, kind: str, namespace: str) -> Any:
    """The line of the admission of an object of that kind, once it is written."""
    lines = [json.loads(line) for line in service.replicas[0].log.read_text().splitlines()]
    return next((line for line in lines if (line.get("kind"), line.get("namespace")) == (kind, namespace)), None)
