"""A replica is started with its arguments, environment and account, and known to be ready when it says so itself."""

from pathlib import Path

import pytest

from tests.cluster.ports import free_port
from tests.cluster.process import ProcessDiedError
from tests.cluster.webhook_replica import WebhookReplica


def serving(tmp_path: Path, folder: Path) -> WebhookReplica:
    """A replica of another program that answers over HTTP: Python's file server."""
    port = free_port()
    return WebhookReplica(
        folder=tmp_path, name="replica-0", module="http.server", health_port=port, ready_path="/ready",
        arguments=(str(port), "--bind", "127.0.0.1", "--directory", str(folder)),
    )  # fmt: skip


def test_a_replica_is_ready_when_its_health_port_says_so(tmp_path: Path) -> None:
    """An open port is not enough: the path has to be answered with 200."""
    folder = tmp_path / "served"
    folder.mkdir()
    replica = serving(tmp_path, folder)
    replica.start()

    with pytest.raises(ProcessDiedError, match="replica-0 to be ready"):
        replica.wait_until_ready(seconds=1)
    (folder / "ready").touch()
    replica.wait_until_ready()

    replica.kill()
    assert not replica.ready()


def test_a_replica_that_cannot_start_says_why(tmp_path: Path) -> None:
    """The end of its log is in the failure."""
    replica = WebhookReplica(
        folder=tmp_path, name="replica-0", module="http.server", health_port=free_port(), arguments=("no-number",)
    )
    replica.start()

    with pytest.raises(ProcessDiedError, match="no-number"):
        replica.wait_until_ready()
