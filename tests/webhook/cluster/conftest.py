"""What the cluster room's unit tests share: a small API server in this process, our client of it, and a witness."""

from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from tests.webhook.cluster.fake_api_server import FakeApiServer
from webhook.cluster.client import ApiServer
from webhook.cluster.supervision import Supervision
from webhook.cluster.telemetry import ClusterMetrics
from webhook.log import build


class Witness:
    """What was logged and counted beside a test's subject."""

    def __init__(self) -> None:
        self._stream = BytesIO()
        self.logger, _ = build("info", "json", self._stream)
        self.failures: list[str] = []
        self.registry = CollectorRegistry()
        self.metrics = ClusterMetrics(self.registry)
        self.supervision = Supervision(self.logger, self.failures.append)

    @property
    def log(self) -> str:
        """All lines so far."""
        return self._stream.getvalue().decode()

    def metric(self, name: str, **labels: str) -> float:
        """One sample of a metric; 0 when it has none."""
        return self.registry.get_sample_value(f"workload_stamp_{name}", labels) or 0.0


@pytest.fixture
async def fake() -> AsyncIterator[FakeApiServer]:
    """An API server with nothing in it."""
    async with FakeApiServer.running() as fake:
        yield fake


@pytest.fixture
async def server(fake: FakeApiServer, tmp_path: Path) -> AsyncIterator[ApiServer]:
    """Our client of it."""
    async with fake.client(tmp_path) as server:
        yield server


@pytest.fixture
async def witness() -> Witness:
    """Sees what is logged and counted."""
    return Witness()
