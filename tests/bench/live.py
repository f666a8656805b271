"""What looking at a cluster costs: the live views over synthetic objects, and over a real API server on demand.

    python -m tests.bench.live                     # 10,000 pods, in this process
    python -m tests.bench.live --pods 10000 --cluster   # the same in a real control plane, beside kubectl get pods

Prints a line a step with processor time, which depends least on what else the machine does. Knows the views; not how
they are read or shown.
"""

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import orjson

from tests.cluster.api_client import api_path
from tests.cluster.control_plane import ControlPlane
from tests.cluster.tools.table import tool
from tests.golden.cases import packaged_catalog
from tests.webhook.live.made_up import MadeUp
from webhook.cli.get import COLUMNS, table_row
from webhook.cli.terminal import now, table
from webhook.live.audit import audit
from webhook.live.nodes import nodes_with
from webhook.live.owners import OwnerIndex
from webhook.live.snapshot import Snapshot
from webhook.live.usage import usage_by
from webhook.live.workloads import Inventory, inventory
from webhook.stamps import Policy

T = TypeVar("T")

PODS_OF_ONE = 32
PAGE = 1000
WORKERS = 8
NAMESPACE = "bench"

ENV = [{"name": f"VARIABLE_{number}", "value": f"value-{number}" * 2} for number in range(25)]
"""What makes a pod about as large as those of real training jobs: 8 KB of JSON with its managedFields."""


def cluster(pods: int, *, stamped: bool) -> MadeUp:
    """JobSets of 32 pods with 8 GPUs each, on nodes of 8."""
    made = MadeUp()
    for number in range(pods // PODS_OF_ONE):
        jobset = made.jobset(f"train-{number}", gpus=8, workers=PODS_OF_ONE)
        for position, pod in enumerate(made.pods_of_jobset(jobset)):
            pod["spec"]["nodeName"] = f"node-{number * PODS_OF_ONE + position}"
            pod["spec"]["containers"][0]["env"] = ENV
            pod["metadata"]["managedFields"] = [_managed()]
    for number in range(pods):
        made.node(f"node-{number}")
    if stamped:
        made.stamp()
    return made


def _managed() -> dict[str, Any]:
    fields: dict[str, Any] = {f'k:{{"name":"{each["name"]}"}}': {".": {}, "f:name": {}, "f:value": {}} for each in ENV}
    return {"manager": "kube-controller-manager", "fieldsV1": {"f:spec": {"f:containers": {"f:env": fields}}}}


def measured(what: str, work: Callable[[], T]) -> T:
    """Do it, and print what it took."""
    wall, processor = time.perf_counter(), time.process_time()
    result = work()
    print(f"{what:58} {time.process_time() - processor:6.2f} s   {time.perf_counter() - wall:6.2f} s")
    return result


@contextmanager
def collection_put_off() -> Iterator[None]:
    """As the command line does while it reads."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def views(pods: int) -> None:
    """Every view over synthetic objects, with stamps and without."""
    print(f"{f'{pods} pods, in this process':58} processor    wall clock")
    for stamped in (True, False):
        name = "stamped" if stamped else "without stamps"
        made = cluster(pods, stamped=stamped)
        pages = [orjson.dumps({"items": made.pods[start : start + PAGE]}) for start in range(0, pods, PAGE)]
        size = sum(map(len, pages)) / 1e6
        with collection_put_off():
            measured(f"parse {size:.0f} MB of pods, {name}", partial(_parse, pages))
        snapshot = made.snapshot()
        index = OwnerIndex(snapshot, packaged_catalog(), Policy())
        with collection_put_off():
            found = measured(f"inventory, {name}", partial(inventory, snapshot, index))
            _views_of(found, snapshot, name)


def _parse(pages: list[bytes]) -> int:
    return sum(len(orjson.loads(page)["items"]) for page in pages)


def _views_of(found: Inventory, snapshot: Snapshot, name: str) -> None:
    policy = found.index.policy.accelerators
    measured(f"table of {len(found.workloads)} workloads at 120 columns, {name}", lambda: _table(found))
    nodes = measured(f"{len(snapshot.nodes or ())} nodes", lambda: nodes_with(snapshot.nodes or (), found.pods, policy))
    measured("top by workload", lambda: usage_by(found, "workload", nodes))
    measured(f"audit of {len(snapshot.pods)} pods, {name}", lambda: audit(snapshot, found.index, lambda _: True))


def _table(found: Inventory) -> int:
    shown = now()
    return len(table(COLUMNS, [table_row(each, shown) for each in found.workloads], 120))


def against_a_cluster(pods: int) -> None:
    """The command and kubectl, one after the other, against a real API server with so many pods."""
    made = cluster(pods, stamped=True)
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder) / "cluster") as control_plane:
        control_plane.kwok.kill()  # nobody needs to play kubelets: nothing here depends on phases
        control_plane.create_namespace(NAMESPACE)
        path = api_path("v1", "pods", namespace=NAMESPACE)
        with ThreadPoolExecutor(WORKERS) as workers:
            list(workers.map(lambda pod: control_plane.client.post(path, _created(pod)), made.pods))
        environment = {**os.environ, "KUBECONFIG": str(control_plane.files.kubeconfig("admin"))}
        for command in (
            [sys.executable, "-m", "webhook", "get", "-A"],
            [str(tool("kubectl").binary), "get", "pods", "-A"],
        ) * 3:
            _timed(command, environment)


def _created(pod: dict[str, Any]) -> dict[str, Any]:
    """A pod as somebody creates it, in our namespace; nodes take it unasked."""
    metadata = {key: pod["metadata"][key] for key in ("name", "labels", "annotations")}
    return {**pod, "metadata": {**metadata, "namespace": NAMESPACE}}


def _timed(command: list[str], environment: dict[str, str]) -> None:
    began, before = time.perf_counter(), os.times()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    processor = after.children_user + after.children_system - before.children_user - before.children_system
    words = " ".join(Path(word).name for word in command)
    print(f"{words:58} {processor:6.2f} s   {time.perf_counter() - began:6.2f} s")


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--cluster", action="store_true", help="against a real control plane, too (minutes)")
    arguments = parser.parse_args()
    views(arguments.pods)
    if arguments.cluster:
        against_a_cluster(arguments.pods)


if __name__ == "__main__":
    main()
