"""As many pods as the API server takes: every one is stamped, and memory stays where it is."""

from collections.abc import Iterator

import pytest

from tests.cluster.api_client import ApiClient, api_path
from tests.cluster.burst import DRY_RUN, create
from tests.cluster.control_plane import ControlPlane
from tests.cluster.installation import Installation
from tests.cluster.jobsets import stamps
from tests.cluster.rings import RINGS, member, ring, ring_framework
from tests.cluster.webhook_service import WebhookService

HALF = 1000
GROWTH = 1.03
"""By how much memory may grow while as many pods come again; a cache of pods would take more."""


@pytest.fixture(scope="module")
def service(control_plane: ControlPlane) -> Iterator[WebhookService]:
    """One replica with its defaults, called directly."""
    with WebhookService.running(Installation.of(control_plane)) as service, ring_framework(control_plane):
        service.wait_until_known("rings")
        yield service


def test_two_thousand_pods(service: WebhookService, client: ApiClient, namespace: str) -> None:
    """Of one gang, each with all its stamps; nothing is kept of them."""
    owner = client.post(api_path(RINGS, "rings", namespace=namespace), ring("large", members=2 * HALF))
    path = api_path("v1", "pods", namespace=namespace)
    (replica,) = service.replicas

    first = create(client, path, lambda number: member(owner, f"pod-{number}"), HALF, query=DRY_RUN)
    half_way = replica.resident_bytes()
    second = create(client, path, lambda number: member(owner, f"pod-{HALF + number}"), HALF, query=DRY_RUN)

    print(f"{second.rate:.0f}/s, p50 {second.quantile(0.5) * 1000:.1f} ms, p99 {second.quantile(0.99) * 1000:.1f} ms")
    assert {stamps(each).get("gang-size") for each in (*first.made, *second.made)} == {str(2 * HALF + 1)}
    assert {len(stamps(each)) for each in second.made} == {len(stamps(first.made[0]))}
    assert replica.resident_bytes() < half_way * GROWTH
    assert service.metric("workload_stamp_failures_total") == 0
    assert service.metric("workload_stamp_lineages_broken_total") == 0
