"""The command lines of the control plane's programs, as they have to be outside a cluster and without a network.

Everything listens on 127.0.0.1. Starts nothing: `control_plane` does.
"""

from dataclasses import dataclass
from pathlib import Path

from tests.cluster.ports import LOOPBACK, free_port
from tests.cluster.tools.table import tool

# As fast as the API server takes it: Kubernetes' own defaults (20 requests a second for controllers, 50 for the
# scheduler) would be all that a test with a thousand pods measures.
UNHURRIED = ("--kube-api-qps=500", "--kube-api-burst=1000")
# A node isn't given up while the API server is away on purpose.
PATIENT = ("--node-monitor-grace-period=15m",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The ports of one control plane; they stay the same when one of its processes is started again."""

    etcd: int
    etcd_peer: int
    apiserver: int
    controller_manager: int
    scheduler: int
    kwok: int

    @classmethod
    def free(cls) -> "Ports":
        """Ports nobody uses."""
        etcd, peer, apiserver, controller_manager, scheduler, kwok = (free_port() for _ in range(6))
        return cls(
            etcd=etcd, etcd_peer=peer, apiserver=apiserver, controller_manager=controller_manager,
            scheduler=scheduler, kwok=kwok,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """Where keys, certificates and kubeconfigs lie; all in one folder, which `control_plane` fills."""

    folder: Path

    @property
    def authority(self) -> Path:
        """Certificate of the cluster's authority, which signs servers and users."""
        return self.folder / "ca.crt"

    @property
    def service_account_key(self) -> Path:
        """Private key that signs the tokens of service accounts; the public one is beside it."""
        return self.folder / "service-accounts.key"

    @property
    def service_account_public_key(self) -> Path:
        """Public key that tokens of service accounts are checked with."""
        return self.folder / "service-accounts.pub"

    def certificate(self, name: str) -> Path:
        """Certificate of a server or user."""
        return self.folder / f"{name}.crt"

    def key(self, name: str) -> Path:
        """Key of a server or user."""
        return self.folder / f"{name}.key"

    def kubeconfig(self, name: str) -> Path:
        """Kubeconfig of a user."""
        return self.folder / f"{name}.kubeconfig"


def etcd(ports: Ports, data: Path) -> tuple[str, ...]:
    """One member, which does not wait for the disk: a killed process loses nothing by it, only a killed machine."""
    client, peer = f"http://{LOOPBACK}:{ports.etcd}", f"http://{LOOPBACK}:{ports.etcd_peer}"
    return (
        str(tool("etcd").binary), f"--data-dir={data}", "--unsafe-no-fsync", "--log-level=warn",
        f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}",
    )  # fmt: skip


def apiserver(ports: Ports, files: Files) -> tuple[str, ...]:
    """With RBAC and the admission plugins that are on by default."""
    return (
        str(tool("kube-apiserver").binary), f"--etcd-servers=http://{LOOPBACK}:{ports.etcd}",
        f"--secure-port={ports.apiserver}", f"--bind-address={LOOPBACK}", f"--advertise-address={LOOPBACK}",
        f"--tls-cert-file={files.certificate('apiserver')}", f"--tls-private-key-file={files.key('apiserver')}",
        f"--client-ca-file={files.authority}", "--authorization-mode=RBAC",
        f"--service-account-key-file={files.service_account_public_key}",
        f"--service-account-signing-key-file={files.service_account_key}",
        "--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.0.0.0/16",
        "--allow-privileged", "--endpoint-reconciler-type=none",
        # Nobody comes through a front proxy; without these, whoever reads the settings of one logs errors for ever.
        f"--requestheader-client-ca-file={files.certificate('front-proxy-ca')}",
        "--requestheader-allowed-names=front-proxy", "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
    )  # fmt: skip


def controller_manager(ports: Ports, files: Files) -> tuple[str, ...]:
    """Each controller under its own service account, as in a cluster."""
    return (
        str(tool("kube-controller-manager").binary), *_as_user(files, "controller-manager"),
        f"--bind-address={LOOPBACK}", f"--secure-port={ports.controller_manager}", "--leader-elect=false",
        f"--service-account-private-key-file={files.service_account_key}", f"--root-ca-file={files.authority}",
        "--use-service-account-credentials=true", *UNHURRIED, *PATIENT,
    )  # fmt: skip


def scheduler(ports: Ports, files: Files) -> tuple[str, ...]:
    """The default scheduler."""
    return (
        str(tool("kube-scheduler").binary), *_as_user(files, "scheduler"),
        f"--bind-address={LOOPBACK}", f"--secure-port={ports.scheduler}", "--leader-elect=false", *UNHURRIED,
    )  # fmt: skip


def kwok(ports: Ports, files: Files, stages: Path) -> tuple[str, ...]:
    """Plays the kubelet of every node, by the stages in the file."""
    return (
        str(tool("kwok").binary), f"--kubeconfig={files.kubeconfig('admin')}", "--manage-all-nodes=true",
        f"--config={stages}", f"--server-address={LOOPBACK}:{ports.kwok}", "--v=WARN",
    )  # fmt: skip


def _as_user(files: Files, name: str) -> tuple[str, ...]:
    kubeconfig = files.kubeconfig(name)
    return tuple(f"--{purpose}kubeconfig={kubeconfig}" for purpose in ("", "authentication-", "authorization-"))
