"""Certificates keep themselves: made once, renewed and replaced under load, and nothing is lost by it."""

import socket
import ssl
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from cryptography import x509

from certs.authority import AUTHORITY_LIFETIME, SERVING_LIFETIME, Authority, KeyPair, service_names
from tests.cluster.api_client import ApiClient, api_path
from tests.cluster.control_plane import ControlPlane
from tests.cluster.creations import Creations
from tests.cluster.installation import CONFIGURATION, NAMESPACE, SECRETS, Installation, InstalledReplica, trusted
from tests.cluster.jobsets import stamps
from tests.cluster.ports import LOOPBACK
from tests.cluster.waiting import eventually
from tests.cluster.webhook_service import WebhookService
from tests.cluster.workloads import pod

NAMES = (*service_names("workload-stamp", NAMESPACE), LOOPBACK)
AUTHORITY, SERVING = (api_path("v1", "secrets", namespace=NAMESPACE, name=name) for name in SECRETS)


@pytest.fixture(scope="module")
def service(control_plane: ControlPlane) -> Iterator[WebhookService]:
    """Two replicas that were started together."""
    with WebhookService.running(Installation.of(control_plane), replicas=2) as service:
        yield service


@contextmanager
def load(client: ApiClient, namespace: str) -> Iterator[Creations]:
    """Pods are created all the time; in the end none was refused, slow or without stamps."""
    path = api_path("v1", "pods", namespace=namespace)
    with Creations(client, path, lambda number: pod(f"pod-{number}"), rate=40) as creations:
        creations.more(5)
        yield creations
        creations.more(20)
    assert creations.refused == []
    assert [each.obj["metadata"]["name"] for each in creations.made if "workload-id" not in stamps(each.obj)] == []


def served(replica: InstalledReplica) -> bytes:
    """The certificate that a replica serves, PEM."""
    return ssl.get_server_certificate((LOOPBACK, replica.port)).encode()


def published(client: ApiClient) -> bytes:
    """What the API server trusts."""
    (bundle,) = set(trusted(client.get(CONFIGURATION)))
    return bundle


def is_trusted(replica: InstalledReplica, bundle: bytes) -> bool:
    """Whether a client that trusts the bundle, and asks for the replica's name, accepts what it serves."""
    try:
        context = ssl.create_default_context(cadata=bundle.decode())
        with (
            socket.create_connection((LOOPBACK, replica.port)) as plain,
            context.wrap_socket(plain, server_hostname=NAMES[0]),
        ):
            return True
    except ssl.SSLError:
        return False


def count(bundle: bytes) -> int:
    """Certificates in a bundle."""
    return bundle.count(b"BEGIN CERTIFICATE")


def put(client: ApiClient, path: str, data: dict[str, bytes], kind: str) -> None:
    """Make or replace one of our Secrets, as an older version of us left it."""
    labels = {"app.kubernetes.io/managed-by": "workload-stamp"}
    metadata = {"name": path.rpartition("/")[2], "namespace": NAMESPACE, "labels": labels}
    document = {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": metadata}
    encoded = {key: b64encode(value).decode() for key, value in data.items()}
    client.apply(path, {**document, "data": encoded})


def put_serving(client: ApiClient, pair: KeyPair, authority: bytes) -> None:
    """Replace the serving certificate."""
    data = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority}
    put(client, SERVING, data, "kubernetes.io/tls")


def stored_authority(client: ApiClient) -> KeyPair:
    """The authority as it is kept."""
    data = client.get(AUTHORITY)["data"]
    return KeyPair(certificate=b64decode(data["ca.crt"]), key=b64decode(data["ca.key"]))


def test_replicas_that_start_together_share_one_authority(service: WebhookService, client: ApiClient) -> None:
    """One CA, one certificate, served by both, trusted by what is published."""
    assert count(published(client)) == 1
    assert published(client) == stored_authority(client).certificate
    first, second = service.replicas
    eventually(lambda: served(first) == served(second), what="one certificate")
    assert is_trusted(first, published(client))
    assert is_trusted(second, published(client))
    assert service.metric("workload_stamp_certificate_expiry_seconds") > 2 * (SERVING_LIFETIME.total_seconds() - 3600)


def test_a_certificate_that_is_due_is_renewed_under_load(
    service: WebhookService, client: ApiClient, namespace: str
) -> None:
    """In the last third of its life it is replaced at once, and no review is lost by it."""
    authority = Authority.from_pair(stored_authority(client))
    due = authority.issue_serving(NAMES, datetime.now(UTC) - SERVING_LIFETIME * 0.7)
    with load(client, namespace):
        put_serving(client, due, authority.certificate)
        eventually(lambda: b64decode(client.get(SERVING)["data"]["tls.crt"]) != due.certificate, what="a renewal")
        renewed = b64decode(client.get(SERVING)["data"]["tls.crt"])
        eventually(
            lambda: all(_same(served(replica), renewed) for replica in service.replicas), what="both to serve it"
        )
    assert stored_authority(client).certificate == authority.certificate


def _same(one: bytes, other: bytes) -> bool:
    """Whether two PEM texts hold the same certificate."""
    return x509.load_pem_x509_certificate(one) == x509.load_pem_x509_certificate(other)


@pytest.mark.parametrize("what", ["deleted", "damaged"])
def test_a_lost_serving_secret(what: str, service: WebhookService, client: ApiClient, namespace: str) -> None:
    """Deleted or damaged by hand: it is made again at once by the same authority."""
    before = client.get(SERVING)["data"]["tls.crt"]
    with load(client, namespace):
        if what == "deleted":
            client.delete(SERVING)
        else:
            client.merge_patch(SERVING, {"data": {"tls.key": "bm9uc2Vuc2U="}})
        eventually(lambda: _certificate(client) not in ("", before), what="another certificate")
    assert all(is_trusted(replica, published(client)) for replica in service.replicas)


def _certificate(client: ApiClient) -> str:
    items: list[Any] = client.get(api_path("v1", "secrets", namespace=NAMESPACE))["items"]
    found = [each["data"]["tls.crt"] for each in items if each["metadata"]["name"] == SECRETS[1]]
    return found[0] if found else ""


@pytest.mark.parametrize("why", ["due", "deleted"])
def test_an_authority_is_replaced_under_load(
    why: str, service: WebhookService, client: ApiClient, namespace: str
) -> None:
    """Both are trusted until every replica serves under the new one; no review is lost on the way."""
    before = stored_authority(client)
    if why == "due":
        before = _aged_authority(client, service)
    with load(client, namespace):
        if why == "deleted":
            client.delete(AUTHORITY)
        after = eventually(lambda: _published_beside(client, before), what="both authorities to be published")
        assert all(is_trusted(replica, before.certificate) for replica in service.replicas)
        if why == "due":  # the other way goes on likewise, and the wait for clients is long
            eventually(
                lambda: all(is_trusted(replica, after.certificate) for replica in service.replicas),
                what="both replicas to serve under the new authority",
                seconds=60,
            )
            assert before.certificate in published(client)


def _published_beside(client: ApiClient, before: KeyPair) -> KeyPair | None:
    """Another authority than the one before, once both are published."""
    secrets = client.get(api_path("v1", "secrets", namespace=NAMESPACE))["items"]
    if SECRETS[0] not in [each["metadata"]["name"] for each in secrets]:
        return None
    after, bundle = stored_authority(client), published(client)
    both = before.certificate in bundle and after.certificate in bundle
    return after if both and after != before else None


def _aged_authority(client: ApiClient, service: WebhookService) -> KeyPair:
    """An authority near its end, which is what is served under and trusted when the load begins."""
    now = datetime.now(UTC)
    authority = Authority.create(now - AUTHORITY_LIFETIME * 0.7)
    leader, follower = service.leader, next(each for each in service.replicas if each is not service.leader)
    for replica in (leader, follower):
        replica.kill()
    put(client, AUTHORITY, {"ca.crt": authority.certificate, "ca.key": authority.pair.key}, "Opaque")
    put_serving(client, authority.issue_serving(NAMES, now), authority.certificate)
    client.delete(CONFIGURATION)
    for replica in (leader, follower):
        replica.start()
    for replica in (leader, follower):
        replica.wait_until_ready()
    service.wait_until_effective()
    return authority.pair
