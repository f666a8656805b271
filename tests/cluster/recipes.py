"""How each framework's controller is run outside a cluster: flags, configuration, certificates, what it wants to find.

One recipe per controller, in the table at the end. The versions are those in `tools/*/go.mod`; sources are named where
a setting can't be known otherwise. Starts nothing: `controllers` does.
"""

import base64
import sys
from pathlib import Path
from typing import Any

from tests.cluster import ray_dashboard
from tests.cluster.api_client import api_path
from tests.cluster.controllers import Controller, Launch, Recipe, Site, Webhooks
from tests.cluster.manifests import apply_files
from tests.cluster.ports import healthy, is_open

UNHURRIED = {"qps": 500, "burst": 1000}  # clientConnection: our tests are not about the controllers' own rate limits
PORT_OF_MANY = 8080  # compiled into mpi-operator and Knative's controllers for their health checks


def _jobset(site: Site) -> Launch:
    configuration = {
        "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "internalCertManagement": {"enable": False},
        "webhook": {"port": site.webhook_port, "certDir": str(site.certificates)},
        **_controller_runtime(site),
    }
    return Launch(arguments=(f"--config={site.write_configuration(configuration)}",))


def _lws(site: Site) -> Launch:
    configuration = {
        "apiVersion": "config.lws.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "internalCertManagement": {"enable": False},
        "webhook": {"port": site.webhook_port, "certDir": str(site.certificates)},
        **_controller_runtime(site),
    }
    return Launch(arguments=(f"--config={site.write_configuration(configuration)}",))


def _trainer(site: Site) -> Launch:
    configuration = {
        "apiVersion": "config.trainer.kubeflow.org/v1alpha1",
        "kind": "Configuration",
        "certManagement": {"enable": False},
        "webhook": {"port": site.webhook_port},  # its certificate is looked for under TMPDIR
        **_controller_runtime(site),
    }
    return Launch(arguments=(f"--config={site.write_configuration(configuration)}",))


def _controller_runtime(site: Site) -> dict[str, Any]:
    """The part of a configuration file that Kubernetes SIGs' projects have in common."""
    return {
        "leaderElection": {"leaderElect": False},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{site.health_port}"},
        "clientConnection": UNHURRIED,
    }


def _training_runtimes(site: Site) -> None:
    """Upstream's ready-made ClusterTrainingRuntimes, which TrainJobs refer to; Trainer's own webhook judges them."""
    folder = "manifests/base/runtimes"
    apply_files(site.control_plane, site.manifests(site.tool.go_module, f"{folder}/*_distributed.yaml"))


def _training_operator(site: Site) -> Launch:
    kinds = ("pytorchjob", "tfjob", "xgboostjob", "paddlejob", "jaxjob")
    return Launch(
        arguments=(
            f"--webhook-server-port={site.webhook_port}",
            f"--health-probe-bind-address=127.0.0.1:{site.health_port}",
            "--metrics-bind-address=0",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
            *(f"--enable-scheme={kind}" for kind in kinds),
        )
    )


def _training_operator_certificates(site: Site) -> None:
    """The Secret its cert-controller insists on, or it would make and use a CA that the API server does not know.

    It also waits for a certificate in a folder that is compiled in (training-operator v1.9.3, pkg/cert/cert.go), but
    only for a file to exist there; what its webhook serves comes from TMPDIR, so that two on one machine don't mix.
    """
    folder = Path("/tmp/k8s-webhook-server/serving-certs")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tls.crt").touch()
    data = {
        name: base64.b64encode((site.certificates / name).read_bytes()).decode()
        for name in ("ca.crt", "ca.key", "tls.crt", "tls.key")
    }
    metadata = {"name": "training-operator-webhook-cert", "namespace": site.namespace}
    path = api_path("v1", "secrets", namespace=site.namespace, name=metadata["name"])
    site.control_plane.client.apply(path, {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data})


def _mpi_operator(site: Site) -> Launch:
    return Launch(
        arguments=(
            f"--kubeConfig={site.kubeconfig}",
            f"--lock-namespace={site.namespace}",
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        )
    )


def _ray_operator(site: Site) -> Launch:
    return Launch(
        arguments=(
            "--enable-leader-election=false",
            f"--metrics-addr=127.0.0.1:{site.metrics_port}",
            f"--health-probe-bind-address=127.0.0.1:{site.health_port}",
            "--feature-gates=RayCronJob=true",
        ),
        environment={"HTTP_PROXY": f"http://127.0.0.1:{site.extra_port}"},
    )


def _ray_dashboard(site: Site) -> None:
    """The stand-in for all Ray clusters' dashboards; jobs run until `end_ray_jobs`."""
    status_file = site.folder / "ray-job-status"
    status_file.write_text("RUNNING")
    program = Path(ray_dashboard.__file__).resolve()
    command = (sys.executable, str(program), str(site.extra_port), str(status_file))
    dashboard = site.control_plane.add("ray-dashboard", command)
    dashboard.start()
    dashboard.wait_ready(lambda: is_open(site.extra_port))


def set_ray_job_status(ray_operator: Controller, status: str) -> None:
    """Have every Ray job report this status from now on: RUNNING (from the start), SUCCEEDED, FAILED, STOPPED."""
    (ray_operator.site.folder / "ray-job-status").write_text(status)


def _knative(site: Site) -> Launch:
    return Launch(
        arguments=(),
        environment={
            "SYSTEM_NAMESPACE": site.namespace,
            "POD_NAME": "controller-0",
            "CONFIG_LOGGING_NAME": "config-logging",
            "CONFIG_OBSERVABILITY_NAME": "config-observability",
            "METRICS_DOMAIN": "knative.dev/internal/serving",
            "METRICS_PROMETHEUS_HOST": "127.0.0.1",
            "METRICS_PROMETHEUS_PORT": str(site.metrics_port),
            "PROFILING_PORT": str(site.extra_port),
            "KUBERNETES_MIN_VERSION": "v1.28.0",
        },
    )


def _knative_settings(site: Site) -> None:
    """Upstream's ConfigMaps, changed where they would have it ask the network."""
    apply_files(site.control_plane, site.manifests("knative.dev/serving", "config/core/configmaps/*.yaml"))
    apply_files(site.control_plane, site.manifests("knative.dev/networking", "config/config-network.yaml"))
    deployment = {
        "queue-sidecar-image": "registry.example/queue:1",
        # Registries named here are not asked for digests; images in tests are named registry.example/….
        "registries-skipping-tag-resolving": "registry.example,kind.local,ko.local,dev.local",
    }
    path = api_path("v1", "configmaps", namespace=site.namespace, name="config-deployment")
    site.control_plane.client.merge_patch(path, {"data": deployment})


def _leads(site: Site, word: str) -> bool:
    """Whether the controller holds a Lease whose name contains the word; those of a former start were deleted."""
    leases = site.control_plane.client.get(api_path("coordination.k8s.io/v1", "leases", namespace=site.namespace))
    return any(word in lease["metadata"]["name"] and lease["spec"].get("holderIdentity") for lease in leases["items"])


RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            name="jobset",
            namespace="jobset-system",
            account="jobset-controller-manager",
            definitions={"sigs.k8s.io/jobset": ("config/components/crd/bases/*.yaml",)},
            webhooks=Webhooks(kustomization="config/components/webhook", name_prefix="jobset-"),
            service="jobset-webhook-service.jobset-system.svc",
            launch=_jobset,
        ),
        Recipe(
            name="lws",
            namespace="lws-system",
            account="lws-controller-manager",
            definitions={"sigs.k8s.io/lws": ("config/crd/bases/*.yaml",)},
            webhooks=Webhooks(kustomization="config/webhook", name_prefix="lws-"),
            service="lws-webhook-service.lws-system.svc",
            launch=_lws,
        ),
        Recipe(
            name="training-operator",
            namespace="kubeflow",
            account="training-operator",
            definitions={
                "github.com/kubeflow/training-operator": tuple(
                    # Not MPIJob's: that kind is mpi-operator's here, in another version.
                    f"manifests/base/crds/kubeflow.org_{plural}.yaml"
                    for plural in ("pytorchjobs", "tfjobs", "xgboostjobs", "paddlejobs", "jaxjobs")
                )
            },
            webhooks=Webhooks(kustomization="manifests/base/webhook"),
            service="training-operator.kubeflow.svc",
            authority="training-operator-ca",
            prepare=_training_operator_certificates,
            launch=_training_operator,
        ),
        Recipe(
            name="mpi-operator",
            namespace="mpi-operator",
            account="mpi-operator",
            definitions={"github.com/kubeflow/mpi-operator": ("manifests/base/kubeflow.org_mpijobs.yaml",)},
            fixed_port=PORT_OF_MANY,
            launch=_mpi_operator,
            ready=lambda site: _leads(site, "mpi-operator"),
        ),
        Recipe(
            name="ray-operator",
            namespace="ray-system",
            account="kuberay-operator",
            definitions={"github.com/ray-project/kuberay/ray-operator": ("config/crd/bases/*.yaml",)},
            prepare=_ray_dashboard,
            launch=_ray_operator,
            ready=lambda site: healthy(site.health_port),
        ),
        Recipe(
            name="trainer",
            namespace="kubeflow-system",
            account="kubeflow-trainer-controller-manager",
            definitions={"github.com/kubeflow/trainer/v2": ("manifests/base/crds/*.yaml",)},
            webhooks=Webhooks(kustomization="manifests/base/webhook"),
            service="kubeflow-trainer-controller-manager.kubeflow-system.svc",
            needs=("jobset",),
            launch=_trainer,
            finish=_training_runtimes,
        ),
        Recipe(
            # Its defaulting webhook insists on a Service reference, so it isn't run: tests write the defaults out.
            name="knative",
            namespace="knative-serving",
            account="controller",
            definitions={
                "knative.dev/serving": ("config/core/300-resources/*.yaml",),
                "knative.dev/networking": tuple(
                    f"config/{name}.yaml" for name in ("certificate", "domain-claim", "ingress", "serverlessservice")
                ),
                "knative.dev/caching": ("config/image.yaml",),
            },
            fixed_port=PORT_OF_MANY,
            prepare=_knative_settings,
            launch=_knative,
            ready=lambda site: _leads(site, "revision"),
        ),
    )
}
