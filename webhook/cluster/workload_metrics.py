"""Workloads and GPUs as metrics: the last census of the replica that leads, nothing from any other."""

import time
from collections.abc import Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from webhook.live.census import Census, Key

PREFIX = "workload_stamp"

WORKLOADS = (f"{PREFIX}_workloads", "Workloads, by kind, status and namespace.", ("kind", "status", "namespace"))
ASKED = (f"{PREFIX}_gpus_asked", "GPUs that workloads ask for now, by kind, namespace and role.",
         ("kind", "namespace", "role"))  # fmt: skip
RUNNING = (f"{PREFIX}_gpus_running", "GPUs of running stamped pods, by kind, namespace and role.",
           ("kind", "namespace", "role"))  # fmt: skip
AGE = (f"{PREFIX}_census_age_seconds", "Time since workloads and GPUs were counted.")


class WorkloadMetrics(Collector):
    """A collector whose numbers are replaced as a whole; without a census it has no series, so none goes stale."""

    def __init__(self) -> None:
        self._census: Census | None = None
        self._taken_at = 0.0

    def show(self, census: Census) -> None:
        """Export these numbers from now on."""
        self._census, self._taken_at = census, time.monotonic()

    def forget(self) -> None:
        """Export nothing: another replica counts."""
        self._census = None

    def collect(self) -> Iterator[Metric]:
        """The families, for each scrape."""
        census = self._census or Census()
        yield _family(WORKLOADS, census.workloads)
        yield _family(ASKED, census.gpus_asked)
        yield _family(RUNNING, census.gpus_running)
        age = GaugeMetricFamily(*AGE)
        if self._census is not None:
            age.add_metric((), time.monotonic() - self._taken_at)
        yield age


def _family(about: tuple[str, str, tuple[str, ...]], values: Mapping[Key, object]) -> Metric:
    name, text, labels = about
    family = GaugeMetricFamily(name, text, labels=labels)
    for key, value in sorted(values.items()):
        family.add_metric(key, float(str(value)))
    return family
