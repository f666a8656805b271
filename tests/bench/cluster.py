"""What the webhook costs in a real cluster: the latency it adds to the creation of a pod, and whether memory is flat.

    python -m tests.bench.cluster [--pods 2000] [--rounds 3] [--memory 20000]

Runs a control plane, the manifests and one replica on this machine, creates pods as fast as the API server takes them
with and without the webhook in turn, and prints a table for the benchmark's README. Ends with 1 when memory grows by
more than a twentieth between the halves of the long run. Leaves nothing running.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

from tests.cluster.api_client import api_path
from tests.cluster.burst import DRY_RUN, SENDERS, Burst, create
from tests.cluster.control_plane import ControlPlane
from tests.cluster.installation import CONFIGURATION, Installation
from tests.cluster.jobsets import STAMP
from tests.cluster.rings import RINGS, member, ring, ring_framework
from tests.cluster.webhook_service import WebhookService

NAMESPACES = {"without": {f"{STAMP}ignore": "true"}, "with": {}}
"""Without the webhook: its selectors are evaluated all the same, as they are for whoever opts out."""

MOST_GROWTH = 1.05


def main() -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pods", type=int, default=2000, help="pods of one run")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each kind, in turn")
    parser.add_argument("--memory", type=int, default=20_000, help="creations of the long run")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ControlPlane(Path(folder)) as control_plane:
        installation = Installation.of(control_plane)
        with WebhookService.running(installation) as service, ring_framework(control_plane):
            service.wait_until_known("rings")
            bench = Bench(control_plane, service)
            for senders in (1, SENDERS):
                bench.latency(arguments.pods, arguments.rounds, senders)
            return bench.memory(arguments.memory)


class Bench:
    """The measurements, in one cluster with one replica."""

    def __init__(self, control_plane: ControlPlane, service: WebhookService) -> None:
        self._client = control_plane.client
        self._service = service
        self._owners: dict[str, Any] = {}
        for name, labels in NAMESPACES.items():
            control_plane.create_namespace(name, labels=labels)
            path = api_path(RINGS, "rings", namespace=name)
            self._owners[name] = self._client.post(path, ring("large", members=1000))
        assert self._client.get(CONFIGURATION)

    def latency(self, pods: int, rounds: int, senders: int) -> None:
        """Create so many pods with and without the webhook, in turn, and print what it adds.

        With one sender nobody waits for a core, so that is what the webhook itself adds; with several it is what
        one machine makes of everything that runs on it.
        """
        self._run("with", 200, f"warm-up-{senders}", senders=senders, dry_run=True)
        self._run("without", 200, f"warm-up-{senders}", senders=senders, dry_run=True)
        print(f"\n{pods} pods a run, senders: {senders}, one replica; milliseconds for each creation\n")
        print("| run | webhook | pods/s | p50 | p90 | p99 | slowest | own time |")
        print("|---|---|---|---|---|---|---|---|")
        found: dict[str, list[Burst]] = {"without": [], "with": []}
        for number in range(rounds):
            for which, bursts in found.items():
                before = self._own()
                bursts.append(self._run(which, pods, f"run-{senders}-{number}", senders=senders))
                self._print(number, which, bursts[-1], before)
        for share in (0.5, 0.99):
            without, with_it = (min(burst.quantile(share) for burst in found[which]) for which in ("without", "with"))
            print(f"\nadded at p{share * 100:g}: {(with_it - without) * 1000:.2f} ms (best run against best run)")

    def memory(self, creations: int) -> int:
        """Create as many, as dry runs, and print what the replica's memory does; 1 when it grows."""
        (replica,) = self._service.replicas
        steps = []
        for number in range(8):
            burst = self._run("with", creations // 8, f"memory-{number}", dry_run=True)
            assert all(STAMP + "workload-id" in each["metadata"]["labels"] for each in burst.made)
            steps.append(replica.resident_bytes())
        print(f"\nresident memory in MiB after each eighth of {creations} creations: ", end="")
        print(" ".join(f"{step / 2**20:.1f}" for step in steps))
        growth = steps[-1] / steps[3]
        print(f"second half against first: {growth:.3f}")
        return 1 if growth > MOST_GROWTH else 0

    def _run(self, which: str, count: int, prefix: str, *, senders: int = SENDERS, dry_run: bool = False) -> Burst:
        path = api_path("v1", "pods", namespace=which)
        owner = self._owners[which]
        return create(
            self._client,
            path,
            lambda number: member(owner, f"{prefix}-{number}"),
            count,
            senders=senders,
            query=DRY_RUN if dry_run else None,
        )

    def _own(self) -> tuple[float, float]:
        name = "workload_stamp_admission_duration_seconds"
        return self._service.metric(f"{name}_sum"), self._service.metric(f"{name}_count")

    def _print(self, number: int, which: str, burst: Burst, before: tuple[float, float]) -> None:
        after = self._own()
        asked = after[1] - before[1]
        own = f"{(after[0] - before[0]) / asked * 1000:.2f} (mean)" if asked else "–"
        times = " | ".join(f"{burst.quantile(share) * 1000:.1f}" for share in (0.5, 0.9, 0.99, 1.0))
        print(f"| {number + 1} | {which} | {burst.rate:.0f} | {times} | {own} |")


if __name__ == "__main__":
    raise SystemExit(main())
