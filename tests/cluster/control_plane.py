"""A Kubernetes control plane on loopback: etcd, API server, controller manager, scheduler, and KWOK for the kubelets.

    with ControlPlane(folder) as control_plane:
        control_plane.kubectl("get", "nodes")
        control_plane.client.post(api_path("v1", "pods", namespace="default"), pod)
        control_plane.apiserver.kill()
        control_plane.restart_apiserver()

Used by the fixtures in `conftest` and by any script; needs the tools built. Knows nothing of frameworks and webhooks.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.cluster import components
from tests.cluster.api_client import ApiClient, ApiError, api_path, tls_context
from tests.cluster.components import Files, Ports
from tests.cluster.kubeconfig import write_kubeconfig
from tests.cluster.kubectl import Kubectl
from tests.cluster.nodes import NODES, STAGES, gpu_node
from tests.cluster.pki import Authority, new_key, pem, public_pem
from tests.cluster.process import Process
from tests.cluster.tools.table import CONTROL_PLANE, tool, tools
from tests.cluster.waiting import eventually

USERS = {
    "admin": ("admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager",),
    "scheduler": ("system:kube-scheduler",),
}
TOKEN_SECONDS = 24 * 3600
SECONDS_TO_START = 120.0


class ControlPlane:
    """The processes and the admin's ways to talk to them; a context manager that starts and kills them all."""

    def __init__(self, folder: Path, *, apiserver_flags: tuple[str, ...] = ()) -> None:
        """Everything lies in `folder`, which must be empty; `apiserver_flags` are added to the API server's."""
        self.folder = folder
        self.ports = Ports.free()
        self.files = Files(folder=folder / "pki")
        self._make_keys()
        flags = (*components.apiserver(self.ports, self.files), *apiserver_flags)
        self.processes: list[Process] = []
        self.etcd = self.add("etcd", components.etcd(self.ports, folder / "etcd"))
        self.apiserver = self.add("kube-apiserver", flags)
        self.controller_manager = self.add(
            "kube-controller-manager", components.controller_manager(self.ports, self.files)
        )
        self.scheduler = self.add("kube-scheduler", components.scheduler(self.ports, self.files))
        self.kwok = self.add("kwok", components.kwok(self.ports, self.files, STAGES))
        admin = (self.files.certificate("admin"), self.files.key("admin"))
        self.client = ApiClient(self.ports.apiserver, tls_context(self.files.authority, certificate=admin))
        self.kubectl = self.kubectl_as(self.files.kubeconfig("admin"))

    @staticmethod
    def missing_tools() -> tuple[str, ...]:
        """Names of the programs it needs and that aren't built."""
        return tuple(tool.name for tool in tools([CONTROL_PLANE, "kwok"]) if not tool.built)

    @property
    def url(self) -> str:
        """Where the API server answers."""
        return f"https://127.0.0.1:{self.ports.apiserver}"

    def __enter__(self) -> Self:
        """Start."""
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop, however it went."""
        self.stop()

    def start(self) -> None:
        """Start everything and wait until pods can be created and run; ProcessDiedError tells what did not start."""
        self.etcd.start()
        self.apiserver.start()
        self.apiserver.wait_ready(self._answers, seconds=SECONDS_TO_START)
        self.add_nodes(NODES)
        for process in (self.controller_manager, self.scheduler, self.kwok):
            process.start()
        self.controller_manager.wait_ready(lambda: self._has_account("default"), seconds=SECONDS_TO_START)
        self.kwok.wait_ready(self._nodes_ready, seconds=SECONDS_TO_START)

    def stop(self) -> None:
        """Kill everything, what was added last first; logs stay, etcd's data goes.

        The API server would take up to a minute to end gracefully.
        """
        self.client.close()
        for process in reversed(self.processes):
            process.kill()
        shutil.rmtree(self.folder / "etcd", ignore_errors=True)

    def restart_apiserver(self) -> None:
        """Kill the API server if it runs, start it on the same port, wait until it is ready."""
        self.apiserver.kill()
        self.apiserver.start()
        self.apiserver.wait_ready(self._answers, seconds=SECONDS_TO_START)

    def restart_etcd(self) -> None:
        """Kill etcd if it runs, start it with the same data, wait until the API server is ready again."""
        self.etcd.kill()
        self.etcd.start()
        self.apiserver.wait_ready(self._answers, seconds=SECONDS_TO_START)

    def add(self, name: str, command: tuple[str, ...], *, environment: Mapping[str, str] | None = None) -> Process:
        """A further process, not started, that is killed with the rest and whose log is in failure reports."""
        process = Process(name=name, command=command, log=self.folder / f"{name}.log", environment=environment)
        self.adopt(process)
        return process

    def adopt(self, process: Process) -> None:
        """The same for a process that was made elsewhere."""
        self.processes.append(process)

    def dismiss(self, process: Process) -> None:
        """Kill it if it runs, and know it no more."""
        process.kill()
        self.processes.remove(process)

    def add_nodes(self, count: int, *, first: int = 0, gpus: int = 8) -> None:
        """Create nodes `node-FIRST`, …; there are eight from the start."""
        for number in range(first, first + count):
            self.client.post(api_path("v1", "nodes"), gpu_node(number, gpus=gpus))

    def create_namespace(self, name: str, *, labels: Mapping[str, str] | None = None) -> None:
        """Create a namespace and wait until pods can be created in it."""
        metadata = {"name": name, "labels": dict(labels or {})}
        self.client.post(api_path("v1", "namespaces"), {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        eventually(lambda: self._has_account(name), what=f"the default service account of {name}")

    def service_account(self, namespace: str, name: str, *, cluster_role: str = "") -> Path:
        """A kubeconfig with a token of the service account, good for a day.

        Namespace and account are made when they are missing; bound to the cluster role when one is given.
        """
        metadata = {"name": name, "namespace": namespace}
        self._ensure(api_path("v1", "namespaces", name=namespace), "v1", "Namespace", {"name": namespace})
        path = api_path("v1", "serviceaccounts", namespace=namespace, name=name)
        self._ensure(path, "v1", "ServiceAccount", metadata)
        if cluster_role:
            self._bind(namespace, name, cluster_role)
        request = {"spec": {"expirationSeconds": TOKEN_SECONDS}}
        token = self.client.post(f"{path}/token", request)["status"]["token"]
        file = self.files.kubeconfig(f"{namespace}.{name}")
        return self._kubeconfig(file, {"token": token}, namespace=namespace)

    def client_with_token(self, token: str) -> ApiClient:
        """A client that speaks as whom the token names; close it."""
        return ApiClient(self.ports.apiserver, tls_context(self.files.authority), token=token)

    def kubectl_as(self, kubeconfig: Path) -> Kubectl:
        """A kubectl that speaks for another user."""
        return Kubectl(tool("kubectl").binary, kubeconfig=kubeconfig, cache=self.folder / "kubectl")

    def log_sizes(self) -> dict[str, int]:
        """Where the processes' logs end now, by log file."""
        return {str(process.log): process.log_size() for process in self.processes}

    def log_tails(self, since: Mapping[str, int] | None = None) -> str:
        """The ends of all processes' logs, for people; only what came after `since`, an answer of `log_sizes`."""
        tails = (_tail(process, (since or {}).get(str(process.log), 0)) for process in self.processes)
        return "\n".join(tail for tail in tails if tail)

    def _make_keys(self) -> None:
        authority = Authority("cluster")
        authority.pair.write(self.files.folder, "ca")
        Authority("front-proxy").pair.write(self.files.folder, "front-proxy-ca")
        authority.serving("kubernetes.default.svc").write(self.files.folder, "apiserver")
        for file, (user, *groups) in USERS.items():
            certificate, key = authority.client(user, *groups).write(self.files.folder, file)
            identity = {"client-certificate": str(certificate), "client-key": str(key)}
            self._kubeconfig(self.files.kubeconfig(file), identity)
        signer = new_key()
        self.files.service_account_key.write_bytes(pem(signer))
        self.files.service_account_public_key.write_bytes(public_pem(signer))

    def _kubeconfig(self, file: Path, user: Mapping[str, str], *, namespace: str = "default") -> Path:
        return write_kubeconfig(
            file, port=self.ports.apiserver, authority=self.files.authority, user=user, namespace=namespace
        )

    def _ensure(self, path: str, api_version: str, kind: str, metadata: dict[str, Any], **rest: Any) -> None:
        self.client.apply(path, {"apiVersion": api_version, "kind": kind, "metadata": metadata, **rest})

    def _bind(self, namespace: str, account: str, cluster_role: str) -> None:
        group, version = "rbac.authorization.k8s.io", "rbac.authorization.k8s.io/v1"
        name = f"{namespace}.{account}"
        self._ensure(
            api_path(version, "clusterrolebindings", name=name), version, "ClusterRoleBinding", {"name": name},
            roleRef={"apiGroup": group, "kind": "ClusterRole", "name": cluster_role},
            subjects=[{"kind": "ServiceAccount", "namespace": namespace, "name": account}],
        )  # fmt: skip

    def _answers(self) -> bool:
        try:
            return bool(self.client.get("/readyz") == "ok")
        except (OSError, ApiError):
            return False

    def _has_account(self, namespace: str) -> bool:
        try:
            self.client.get(api_path("v1", "serviceaccounts", namespace=namespace, name="default"))
        except ApiError as problem:
            if problem.code != 404:
                raise
            return False
        return True

    def _nodes_ready(self) -> bool:
        nodes = self.client.get(api_path("v1", "nodes"))["items"]
        return all(_is_ready(node) and not node["spec"].get("taints") for node in nodes)


def _tail(process: Process, since: int) -> str:
    """What there is to say of a process; nothing when it runs and wrote nothing."""
    text = process.tail(since=since)
    if process.running:
        return f"--- {process.name}\n{text}" if text else ""
    return f"--- {process.name}, not running\n{text}"


def _is_ready(node: Mapping[str, Any]) -> bool:
    conditions = node["status"].get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
