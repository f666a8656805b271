"""Our own manifests applied to a control plane, and replicas that run with exactly the rights these give.

    installation = Installation.of(control_plane)
    replica = run_replica(installation.replica("replica-0"))
    installation.wait_registered()

A missing permission in `manifests/` fails the test that needs it. The Deployment's pods are KWOK's and do nothing; the
replicas are processes that speak as the Deployment's service account. Knows nothing of how the webhook works inside.
"""

import base64
import subprocess
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self

from tests.cluster.api_client import ApiError, api_path
from tests.cluster.control_plane import ControlPlane
from tests.cluster.ports import LOOPBACK, free_port
from tests.cluster.tools.table import tool
from tests.cluster.waiting import eventually
from tests.cluster.webhook_replica import REPOSITORY, WebhookReplica

MANIFESTS = REPOSITORY / "manifests"
NAMESPACE = "workload-stamp-system"
ACCOUNT = "workload-stamp"
USER = f"system:serviceaccount:{NAMESPACE}:{ACCOUNT}"
CONFIGURATION = api_path("admissionregistration.k8s.io/v1", "mutatingwebhookconfigurations", name="zz-workload-stamp")
SECRETS = ("workload-stamp-authority", "workload-stamp-serving")
LEASE = api_path("coordination.k8s.io/v1", "leases", namespace=NAMESPACE, name="workload-stamp")
DEFINITIONS = api_path("workload-stamp.io/v1alpha1", "workloaddefinitions")
RESOURCE_DEFINITION = api_path(
    "apiextensions.k8s.io/v1", "customresourcedefinitions", name="workloaddefinitions.workload-stamp.io"
)


class InstalledReplica(WebhookReplica):
    """One replica under the service account of the manifests; `port` is where it answers reviews."""

    def __init__(self, *, folder: Path, name: str, kubeconfig: Path, arguments: tuple[str, ...], url: str = "") -> None:
        """`url` is where the API server is to call instead of this replica: a balancer before several."""
        self.port, health = free_port(), free_port()
        has_certificate = any(argument.startswith("--cert-file") for argument in arguments)
        super().__init__(
            folder=folder,
            name=name,
            health_port=health,
            arguments=(
                "serve",
                f"--kubeconfig={kubeconfig}",
                f"--bind-address={LOOPBACK}:{self.port}",
                f"--metrics-bind-address={LOOPBACK}:{health}",
                f"--webhook-url={url or f'https://{LOOPBACK}:{self.port}/mutate'}",
                *([] if has_certificate else [f"--serving-names={LOOPBACK}"]),
                *arguments,
            ),
        )

    def metric(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that have these labels; 0 when there is none."""
        connection = HTTPConnection(LOOPBACK, self.health_port, timeout=5)
        try:
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        finally:
            connection.close()
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        lines = (line for line in text.splitlines() if line.startswith((f"{name} ", f"{name}{{")))
        return sum(float(line.rpartition(" ")[2]) for line in lines if all(label in line for label in wanted))


@dataclass(frozen=True, kw_only=True)
class Installation:
    """The manifests in one control plane."""

    control_plane: ControlPlane

    @classmethod
    def of(cls, control_plane: ControlPlane, kustomization: str = "base") -> Self:
        """Apply a kustomization of `manifests/` and wait until its rights hold; again is harmless."""
        installation = cls(control_plane=control_plane)
        installation.apply(kustomization)
        eventually(installation._serves_definitions, what="WorkloadDefinitions to be served")
        eventually(installation._may_work, what="the aggregated ClusterRole to be filled in and in effect")
        return installation

    def apply(self, kustomization: str) -> str:
        """Apply a kustomization as a person would; what kubectl says."""
        return self.control_plane.kubectl("apply", "--server-side", "-f", "-", stdin=kustomized(kustomization))

    @cached_property
    def kubeconfig(self) -> Path:
        """A kubeconfig with a token of the Deployment's service account."""
        return self.control_plane.service_account(NAMESPACE, ACCOUNT)

    def replica(self, name: str, *arguments: str, url: str = "") -> InstalledReplica:
        """A replica, not started, with these further arguments of `serve`."""
        return InstalledReplica(
            folder=self.control_plane.folder,
            name=name,
            kubeconfig=self.kubeconfig,
            arguments=arguments,
            url=url,
        )

    @property
    def configuration(self) -> Any:
        """The webhook configuration, None when there is none."""
        return self._read(CONFIGURATION)

    def wait_registered(self, *, seconds: float = 30.0) -> Any:
        """The webhook configuration, once it is there and covers roots too."""
        return eventually(self._registered, what="the webhook to be registered", seconds=seconds)

    def clear(self) -> None:
        """Take away what replicas made: registration, Secrets, Lease, and every WorkloadDefinition."""
        secrets = [api_path("v1", "secrets", namespace=NAMESPACE, name=name) for name in SECRETS]
        for path in (CONFIGURATION, LEASE, *secrets):
            if self._read(path) is not None:
                self.control_plane.client.delete(path)
        if self._read(RESOURCE_DEFINITION) is not None:
            eventually(self._serves_definitions, what="WorkloadDefinitions to be served")
            self.control_plane.client.delete(DEFINITIONS)

    def may(self, verb: str, group: str, resource: str, *, namespace: str = "", name: str = "") -> bool:
        """Whether the service account has the right; `resource` may be `pods/status`."""
        plural, _, subresource = resource.partition("/")
        attributes = {
            "verb": verb, "group": group, "resource": plural, "subresource": subresource, "namespace": namespace,
            "name": name,
        }  # fmt: skip
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{NAMESPACE}", "system:authenticated"]
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": USER, "groups": groups, "resourceAttributes": attributes},
        }
        path = api_path("authorization.k8s.io/v1", "subjectaccessreviews")
        return bool(self.control_plane.client.post(path, review)["status"]["allowed"])

    def _serves_definitions(self) -> bool:
        try:
            return self._read(DEFINITIONS) is not None
        except ApiError as problem:
            if problem.code != 429:
                raise
            return False  # a new or changed definition's storage takes a moment

    def _may_work(self) -> bool:
        return self.may("list", "", "pods") and self.may("list", "workload-stamp.io", "workloaddefinitions")

    def _registered(self) -> Any:
        configuration = self.configuration
        return configuration if configuration and len(configuration["webhooks"]) == 2 else None

    def _read(self, path: str) -> Any:
        try:
            return self.control_plane.client.get(path)
        except ApiError as problem:
            if problem.code != 404:
                raise
            return None


def kustomized(kustomization: str) -> str:
    """What kubectl makes of a folder of `manifests/`, as YAML."""
    command = [str(tool("kubectl").binary), "kustomize", "."]
    return subprocess.run(
        command, cwd=MANIFESTS / kustomization, capture_output=True, text=True, check=True
    ).stdout  # fmt: skip


def trusted(configuration: Any) -> tuple[bytes, ...]:
    """The CA bundle of each webhook of a configuration, PEM."""
    return tuple(base64.b64decode(each["clientConfig"].get("caBundle", "")) for each in configuration["webhooks"])
