"""The Grafana dashboard asks for what is really exported, and is one that Grafana can show."""

import json
import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import pytest

from tests.manifests.generated import MANIFESTS
from tests.manifests.test_monitoring import exposed
from webhook.cluster.workload_metrics import AGE, ASKED, RUNNING, WORKLOADS

DASHBOARD: Any = json.loads((MANIFESTS / "monitoring" / "grafana-dashboard.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]

LABELS = {WORKLOADS[0]: WORKLOADS[2], ASKED[0]: ASKED[2], RUNNING[0]: RUNNING[2], AGE[0]: ()}
"""Labels of the metrics that a collector of its own exports, which tells its registry only their names."""

METRIC = re.compile(r"\b(workload_stamp_\w+)(?:\{([^}]*)\})?")
GROUPED = re.compile(r"\bby \(([^)]*)\)")


def queries() -> Iterator[tuple[str, str]]:
    """Where each query stands, and the query."""
    for panel in PANELS:
        for target in panel["targets"]:
            yield f"{panel['title']} {target['refId']}", target["expr"]
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            yield f"variable {variable['name']}", variable["query"]["query"]


def labels_of(metric: str) -> set[str]:
    """The labels of an exported series; a histogram's buckets have one more."""
    return {*LABELS.get(metric, exposed()[metric]), *(["le"] if metric.endswith("_bucket") else [])}


@pytest.mark.parametrize("query", dict(queries()).values(), ids=dict(queries()))
def test_a_query_asks_for_metrics_and_labels_that_exist(query: str) -> None:
    """Every series of ours is exported, with the labels that are matched and grouped by."""
    asked = METRIC.findall(query)
    assert asked, query
    for metric, matchers in asked:
        assert metric in exposed(), metric
        assert set(re.findall(r"(\w+)[!=]~?=?\"", matchers)) <= labels_of(metric), (metric, matchers)
        for names in GROUPED.findall(query):
            assert {name.strip() for name in names.split(",")} <= labels_of(metric), (metric, names)


def test_all_workload_metrics_are_shown() -> None:
    """None is exported for nobody."""
    shown = " ".join(query for _, query in queries())

    assert [name for name in LABELS if name not in shown] == []


def test_panels_are_told_apart_explained_and_do_not_overlap() -> None:
    """Ids are unique, each panel says what it shows, and has its own place on a grid of 24 columns."""
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    for panel in PANELS:
        assert panel["description"].endswith(".")
        assert panel["datasource"]["uid"] == "${datasource}"
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
    for one, other in combinations((panel["gridPos"] for panel in DASHBOARD["panels"]), 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below


def test_variables_that_are_used_exist() -> None:
    """Namespaces and kinds can be chosen, and the data source."""
    used = set(re.findall(r"\$\{?([a-z]+)", json.dumps(DASHBOARD))) - {"text"}

    assert used <= {variable["name"] for variable in DASHBOARD["templating"]["list"]}
