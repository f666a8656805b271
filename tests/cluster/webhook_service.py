"""The webhook as a cluster has it: replicas behind one address, registered, with the rights of the manifests.

    with WebhookService.running(installation, "--observe", replicas=2) as service:
        service.leader.kill()
        service.metric("workload_stamp_repairs_total", result="mended")

One replica is called directly, several through the balancer that plays kube-proxy. Nothing of it stays behind.
"""

import json
import re
import ssl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPSConnection
from typing import Any, Self

from tests.cluster.api_client import ApiError
from tests.cluster.balancer import Backend, Balancer
from tests.cluster.fault_proxy import FaultProxy
from tests.cluster.installation import DEFINITIONS, Installation, InstalledReplica
from tests.cluster.ports import LOOPBACK
from tests.cluster.waiting import eventually

PROMPT = (
    "--reconcile-interval=1s",
    "--reconcile-rate=200",
    "--lame-duck=2s",
    "--lease-duration=4s",
    "--lease-renewal=1s",
)
"""Arguments of replicas that tests wait for: upkeep looks often, and leadership changes hands quickly."""


class WebhookService:
    """Replicas of one configuration. Use `running`."""

    def __init__(
        self,
        installation: Installation,
        arguments: tuple[str, ...],
        *,
        balancer: Balancer | None,
        through: FaultProxy | None,
    ) -> None:
        """Starts nothing."""
        self.installation = installation
        self.balancer = balancer
        self.through = through
        self.replicas: list[InstalledReplica] = []
        self._arguments = arguments
        self._backends: dict[str, Backend] = {}
        self._made = 0

    @classmethod
    @contextmanager
    def running(
        cls,
        installation: Installation,
        *arguments: str,
        replicas: int = 1,
        through: FaultProxy | None = None,
        stamps: bool = True,
    ) -> Iterator[Self]:
        """So many replicas, registered and following every kind; `stamps=False` when they are not to write anything.

        They speak to the API server `through` a proxy when one is given.
        """
        eventually(lambda: _can_be_listed(installation), what="WorkloadDefinitions to be served")
        installation.clear()
        with ExitStack() as stack:
            balancer = stack.enter_context(Balancer(delay_seconds=0.2, probe_seconds=0.2)) if replicas > 1 else None
            service = cls(installation, (*PROMPT, *arguments), balancer=balancer, through=through)
            stack.callback(service._stop)
            for replica in [service.add() for _ in range(replicas)]:
                replica.wait_until_ready()
            service.wait_until_effective(stamps=stamps)
            yield service

    def add(self) -> InstalledReplica:
        """Start one more; it gets connections once it is ready."""
        url = f"https://{LOOPBACK}:{self.balancer.port}/mutate" if self.balancer else ""
        replica = self.installation.replica(f"replica-{self._made}", *self._way(), *self._arguments, url=url)
        self._made += 1
        self.installation.control_plane.adopt(replica)
        self.replicas.append(replica)
        replica.start()
        if self.balancer:
            self._backends[replica.name] = Backend(port=replica.port, health_port=replica.health_port)
            self.balancer.add(self._backends[replica.name])
        return replica

    def _way(self) -> tuple[str, ...]:
        """The argument that sends a replica through the proxy; the last one of a flag wins."""
        if self.through is None:
            return ()
        document = json.loads(self.installation.kubeconfig.read_text())
        document["clusters"][0]["cluster"] = {"server": f"http://{LOOPBACK}:{self.through.port}"}
        kubeconfig = self.installation.control_plane.folder / "through-proxy.kubeconfig"
        kubeconfig.touch(mode=0o600)
        kubeconfig.write_text(json.dumps(document))
        return (f"--kubeconfig={kubeconfig}",)

    def withdraw(self, replica: InstalledReplica) -> None:
        """What deleting its pod does first: kube-proxy is about to hear of it."""
        assert self.balancer is not None
        self.balancer.withdraw(self._backends[replica.name])
        self.replicas.remove(replica)

    @property
    def leader(self) -> InstalledReplica:
        """The replica that does upkeep, once there is one."""
        return eventually(
            lambda: next((each for each in self.replicas if each.running and _leads(each)), None), what="a leader"
        )

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples over the replicas that run."""
        return sum(replica.metric(name, **labels) for replica in self.replicas if replica.running)

    def follows_everything(self) -> bool:
        """Whether each replica's watches of all served kinds show what there is."""
        return all(_follows_everything(replica) for replica in self.replicas if replica.running)

    def wait_until_effective(self, *, stamps: bool = True) -> None:
        """Wait until the API server asks us, and all kinds are followed."""
        self.installation.wait_registered()
        eventually(self.follows_everything, what="every kind to be followed")
        if stamps:
            eventually(self._is_asked, what="the API server to ask the webhook")
        if self.balancer:
            self.balancer.wait_for(len(self.replicas))

    def wait_until_known(self, plural: str) -> None:
        """Wait until a kind that came later is registered and followed."""
        eventually(lambda: plural in json.dumps(self.installation.configuration), what=f"{plural} to be registered")
        eventually(self.follows_everything, what="every kind to be followed")

    def _is_asked(self) -> bool:
        pod = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "probe", "namespace": "default", "labels": {"workload-stamp.io/stamp": "true"}},
            "spec": {"containers": [{"name": "main", "image": "registry.example/main:1"}]},
        }
        client = self.installation.control_plane.client
        made = client.post("/api/v1/namespaces/default/pods", pod, query={"dryRun": "All"})
        return "workload-stamp.io/workload-id" in made["metadata"]["labels"]

    def _stop(self) -> None:
        for replica in [each for each in self.installation.control_plane.processes if re.match("replica-", each.name)]:
            self.installation.control_plane.dismiss(replica)
        self.installation.clear()


def _can_be_listed(installation: Installation) -> bool:
    try:
        installation.control_plane.client.get(DEFINITIONS)
    except ApiError:
        return False  # a definition's storage takes a moment
    return True


def _leads(replica: InstalledReplica) -> bool:
    try:
        return replica.metric("workload_stamp_leading") == 1
    except OSError:
        return False


def _follows_everything(replica: InstalledReplica) -> bool:
    watches = replica.metric("workload_stamp_watches")
    return watches > 0 and watches == replica.metric("workload_stamp_watches_complete")


def ask(replica: InstalledReplica, obj: Any, *, group: str, version: str, plural: str, namespace: str = "") -> Any:
    """What one replica answers when the creation of `obj` is reviewed: the response of the AdmissionReview."""
    kind = {"group": group, "version": version, "kind": obj["kind"]}
    resource = {"group": group, "version": version, "resource": plural}
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "0",
            "kind": kind,
            "resource": resource,
            "name": obj["metadata"].get("name", ""),
            "namespace": namespace,
            "operation": "CREATE",
            "userInfo": {"username": "tests"},
            "object": obj,
            "dryRun": True,
        },
    }
    anyone = ssl.create_default_context()
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    connection = HTTPSConnection(LOOPBACK, replica.port, context=anyone, timeout=10)
    try:
        connection.request("POST", "/mutate?timeout=3s", json.dumps(review), {"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read())["response"]
    finally:
        connection.close()
