"""One process of the webhook under test, started as its container would be.

    replica = WebhookReplica(folder=…, name="replica-0", arguments=("serve", …), health_port=…, kubeconfig=…)
    replica.start(); replica.wait_until_ready(); replica.kill()

What else it can do is `Process`'s: kill, terminate, signals, end of the log, memory, CPU time. Knows nothing of the
webhook's flags.
"""

import sys
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.ports import healthy
from tests.cluster.process import Process

REPOSITORY = Path(__file__).resolve().parents[2]


class WebhookReplica(Process):
    """`python -m webhook ARGUMENTS…` with the token of a service account, if any."""

    def __init__(
        self,
        *,
        folder: Path,
        name: str,
        arguments: tuple[str, ...],
        health_port: int,
        kubeconfig: Path | None = None,
        environment: Mapping[str, str] | None = None,
        ready_path: str = "/readyz",
        module: str = "webhook",
    ) -> None:
        """`folder` is for its log; `health_port` is the one on which it answers `ready_path` over plain HTTP."""
        account = {"KUBECONFIG": str(kubeconfig)} if kubeconfig else {}
        super().__init__(
            name=name,
            command=(sys.executable, "-m", module, *arguments),
            log=folder / f"{name}.log",
            environment={"PYTHONPATH": str(REPOSITORY), **account, **(environment or {})},
        )
        self.health_port = health_port
        self.ready_path = ready_path

    def ready(self) -> bool:
        """Whether it says that it is ready."""
        return healthy(self.health_port, self.ready_path)

    def wait_until_ready(self, *, seconds: float = 30.0) -> None:
        """Wait for that; ProcessDiedError with the end of its log when it ends before or takes too long."""
        self.wait_ready(self.ready, seconds=seconds)
