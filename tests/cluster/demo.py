"""`make demo-cluster`: the contract's example in a real control plane, installed and used as people do it.

Starts the control plane and the real JobSet controller, applies `manifests/base`, runs the webhook as the Deployment's
service account, applies a JobSet with kubectl, and asks for its pods by their stamps. Everything listens on loopback,
and nothing is left running. The pods run on nodes that exist as objects only.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

import click

from tests.cluster.api_client import api_path
from tests.cluster.control_plane import ControlPlane
from tests.cluster.controllers import Controllers, NotAvailableError
from tests.cluster.installation import Installation
from tests.cluster.jobsets import JOBSETS, jobset, stamps
from tests.cluster.process import ProcessDiedError
from tests.cluster.recipes import RECIPES
from tests.cluster.waiting import WaitedTooLongError, eventually
from tests.cluster.webhook_service import WebhookService

NAMESPACE = "team-a"
COLUMNS = ("workload-id", "workload-kind", "role", "gang-size", "gpu-total")
SHOWN = ",".join(f"workload-stamp.io/{column}" for column in COLUMNS)


def main() -> None:
    """Show it all; exit code 1 with one line when it can't be shown."""
    signal.signal(signal.SIGTERM, _interrupted)
    folder = Path(tempfile.mkdtemp(prefix="workload-stamp-demo-"))
    try:
        _demo(folder)
    except (NotAvailableError, ProcessDiedError, WaitedTooLongError) as problem:
        sys.exit(f"{problem}\nLogs are in {folder}")
    shutil.rmtree(folder)


def _interrupted(number: int, _: FrameType | None) -> None:
    """End like Ctrl-C does: with everything that was started."""
    raise SystemExit(128 + number)


def _demo(folder: Path) -> None:
    missing = ControlPlane.missing_tools()
    if missing:
        raise NotAvailableError(f"not built: {', '.join(missing)}; `make cluster-tools` builds them")
    with ExitStack() as stack:
        _tell("A control plane: etcd, kube-apiserver, kube-controller-manager, kube-scheduler; KWOK for the nodes")
        control_plane = stack.enter_context(ControlPlane(folder))
        _tell("The JobSet controller, with its own webhooks")
        Controllers(control_plane, RECIPES).start("jobset")
        _tell("kubectl apply --server-side -k manifests/base")
        installation = Installation.of(control_plane)
        _tell("The webhook, as the service account of the manifests")
        stack.enter_context(WebhookService.running(installation))
        eventually(lambda: "jobsets" in json.dumps(installation.configuration), what="JobSets to be registered")
        _show(control_plane)
    _tell("Stopped; nothing is left running")


def _show(control_plane: ControlPlane) -> None:
    """Apply the example and ask for it, with the commands that a person would type."""
    control_plane.create_namespace(NAMESPACE)
    example = jobset("train")
    _tell(f"kubectl apply -n {NAMESPACE} -f train.yaml    # 1 leader, 2 workers, 4 GPUs a pod")
    click.echo(control_plane.kubectl("apply", "-n", NAMESPACE, "-f", "-", stdin=example), nl=False)
    pods = api_path("v1", "pods", namespace=NAMESPACE)

    def running() -> bool:
        phases = [pod["status"].get("phase") for pod in control_plane.client.get(pods)["items"]]
        return phases == ["Running"] * 3

    eventually(running, what="the three pods to run", seconds=60)
    root = control_plane.client.get(api_path(JOBSETS, "jobsets", namespace=NAMESPACE, name="train"))
    identity = stamps(root)["workload-id"]
    workers = f"workload-stamp.io/workload-id={identity},workload-stamp.io/role=workers"
    _run(control_plane, "get", "jobsets", "-L", SHOWN)
    _run(control_plane, "get", "pods", "-L", SHOWN)
    _run(control_plane, "get", "pods", "-l", workers)


def _run(control_plane: ControlPlane, *words: str) -> None:
    """Show a command and what it prints."""
    _tell(f"kubectl {' '.join((words[0], words[1], '-n', NAMESPACE, *words[2:]))}")
    click.echo(control_plane.kubectl(*words, "-n", NAMESPACE), nl=False)


def _tell(line: str) -> None:
    click.echo(click.style(f"\n{line}", bold=True), color=None if "NO_COLOR" not in os.environ else False)


if __name__ == "__main__":
    main()
