"""What Prometheus is told to look for is what the webhook and the API server really say."""

import re
from functools import cache
from typing import Any

import pytest

from tests.manifests.documents import of_kind
from tests.manifests.generated import MANIFESTS
from webhook.cluster.telemetry import ClusterMetrics
from webhook.metrics import Metrics

OPERATIONS = (MANIFESTS.parent / "docs" / "operations.md").read_text()
OUR_SELECTOR = re.compile(r"\b(workload_stamp_\w+)(?:\{([^}]*)\})?")
SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum"), "info": ("_info",)}


def rules() -> list[Any]:
    """Every alert."""
    (rule,) = of_kind("PrometheusRule")
    return [each for group in rule["spec"]["groups"] for each in group["rules"]]


@cache
def exposed() -> dict[str, tuple[str, ...]]:
    """Each series that a replica in a cluster exposes, and its labels."""
    metrics = Metrics("0")
    ClusterMetrics(metrics.registry)
    labels = {
        name: tuple(getattr(collector, "_labelnames", ()))
        for collector, names in metrics.registry._collector_to_names.items()  # noqa: SLF001 - told nowhere else
        for name in names
    }
    return {
        f"{family.name}{suffix}": labels[family.name]
        for family in metrics.registry.collect()
        for suffix in SUFFIXES[family.type]
    }


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_asks_for_metrics_that_exist(rule: Any) -> None:
    """Each series of ours in the expression is exposed, and has each label that is asked for."""
    known = exposed()
    for name, matchers in OUR_SELECTOR.findall(rule["expr"]):
        assert name in known, name
        for label in re.findall(r"(\w+)=", matchers):
            assert label in known[name], (name, label)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_says_what_it_means_and_is_explained(rule: Any) -> None:
    """Severity, summary and description, and a line in the operations guide that says what to do."""
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert rule["annotations"]["summary"]
    assert rule["annotations"]["description"].endswith(".") or "{{" in rule["annotations"]["description"]
    assert f"`{rule['alert']}`" in OPERATIONS


def test_the_scraped_port_is_the_one_with_metrics() -> None:
    """The monitor's port is the Service's for plain HTTP, and the path the server's."""
    (monitor,) = of_kind("ServiceMonitor")
    (endpoint,) = monitor["spec"]["endpoints"]
    assert (endpoint["port"], endpoint["path"]) == ("metrics", "/metrics")
