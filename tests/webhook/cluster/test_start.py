"""A replica that starts while there is no API server waits for one, and can be stopped meanwhile."""

import json
from http.client import HTTPConnection
from pathlib import Path

import pytest

from tests.cluster.ports import free_port, healthy
from tests.cluster.waiting import eventually
from tests.cluster.webhook_replica import WebhookReplica

pytestmark = pytest.mark.slow


def test_without_an_api_server_a_replica_lives_and_is_not_ready(tmp_path: Path) -> None:
    """It says what it waits for, ends nothing by itself, and leaves at once when it is told to."""
    cluster = {"name": "none", "cluster": {"server": f"http://127.0.0.1:{free_port()}"}}
    context = {"name": "none", "context": {"cluster": "none", "user": "none"}}
    document = {"clusters": [cluster], "contexts": [context], "users": [{"name": "none", "user": {"token": "x"}}]}
    (tmp_path / "kubeconfig").write_text(json.dumps({**document, "current-context": "none"}))
    health = free_port()
    replica = WebhookReplica(
        folder=tmp_path,
        name="replica-0",
        health_port=health,
        arguments=(
            "serve", "--lame-duck=0s", f"--kubeconfig={tmp_path / 'kubeconfig'}",
            f"--bind-address=127.0.0.1:{free_port()}", f"--metrics-bind-address=127.0.0.1:{health}",
        ),
    )  # fmt: skip
    replica.start()
    try:
        replica.wait_ready(lambda: healthy(health, "/livez"))
        eventually(lambda: "could not be reached" in replica.log.read_text(), what="the reason in the log")
        connection = HTTPConnection("127.0.0.1", health, timeout=5)
        connection.request("GET", "/readyz")
        text = connection.getresponse().read().decode()
        connection.close()
        assert "[-]cluster failed: the definitions in the cluster have not been read yet" in text
        assert "[-]certificate failed" in text
        assert replica.terminate(seconds=15) == 0
    finally:
        replica.kill()
