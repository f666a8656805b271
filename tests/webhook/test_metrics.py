"""What is exposed to Prometheus, and that no input can make it grow without bound."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from webhook.metrics import MAX_KINDS, MAX_VALUES, Metrics

WORD = st.text(max_size=2)
CREATED_POD = {"kind": "Pod", "operation": "CREATE"}


def exposed(metrics: Metrics) -> dict[str, Metric]:
    """The metric families of a scrape, by name."""
    return {family.name: family for family in parse_text(metrics.exposition("")[0].decode())}


def value_of(metrics: Metrics, name: str, **labels: str) -> float | None:
    """One sample's value, None where there is none."""
    return metrics.registry.get_sample_value(f"workload_stamp_{name}", labels)


class TestExposition:
    """The page that is scraped."""

    def test_follows_the_naming_rules(self) -> None:
        """As promtool has it: a help text, base units, counters end in _total, nothing else does."""
        for name, family in exposed(Metrics("1.2.3")).items():
            assert re.fullmatch(r"[a-z][a-z0-9_]*", name)
            assert family.documentation
            assert not re.search(r"_(milliseconds|minutes|kilobytes|percent)(_|$)", name)
            assert (family.type == "counter") == all(
                s.name.endswith("_total") for s in family.samples
            ) or not family.samples

    def test_is_all_ours_or_about_the_process(self) -> None:
        """Every name has our prefix, but for what every Python process exposes."""
        names = exposed(Metrics("1.2.3"))

        assert {name for name in names if not name.startswith("workload_stamp_")} == {
            name for name in names if name.startswith(("process_", "python_gc_"))
        }

    @pytest.mark.parametrize(
        "accept, content_type",
        [
            ("", "text/plain; version=0.0.4"),
            ("*/*", "text/plain; version=0.0.4"),
            ("text/plain;version=abc", "text/plain; version=0.0.4"),
            (
                "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
                "application/openmetrics-text; version=1.0.0",
            ),
        ],
    )
    def test_has_the_format_that_is_asked_for(self, accept: str, content_type: str) -> None:
        """OpenMetrics for who asks for it, the classic text for anyone else, whatever they ask for."""
        body, found = Metrics("1.2.3").exposition(accept)
        parse = parse_openmetrics if "openmetrics" in found else parse_text

        assert found.startswith(content_type)
        assert list(parse(body.decode()))

    def test_says_what_is_running(self) -> None:
        """The build's version is a label of a gauge that is 1."""
        (sample,) = exposed(Metrics("1.2.3"))["workload_stamp_build_info"].samples

        assert sample.value == 1
        assert sample.labels["version"] == "1.2.3"

    def test_shows_failures_before_there_are_any(self) -> None:
        """A rate over a counter needs it to be 0 before it is 1."""
        assert value_of(Metrics("1"), "failures_total", where="admission") == 0

    def test_reads_gauges_at_each_scrape(self) -> None:
        """Whoever knows the value is asked when the page is made."""
        metrics, values = Metrics("1"), {"in_flight": 3.0, "expiry": 4.0, "ready": 1.0}
        metrics.watch(
            in_flight=lambda: values["in_flight"],
            certificate_expiry=lambda: values["expiry"],
            ready=lambda: values["ready"],
        )
        values["in_flight"] = 5.0

        assert value_of(metrics, "admissions_in_flight") == 5
        assert value_of(metrics, "certificate_expiry_seconds") == 4
        assert value_of(metrics, "ready") == 1


class TestAdmitted:
    """An answered review."""

    def test_is_counted_by_kind_operation_and_outcome(self) -> None:
        """The three labels tell apart what happened to what."""
        metrics = Metrics("1")
        metrics.described(["JobSet"])
        for _ in range(2):
            metrics.admitted("stamped", 0.002, {"kind": "JobSet", "operation": "UPDATE"})
        metrics.admitted("unchanged", 0.002, CREATED_POD)

        assert value_of(metrics, "admissions_total", kind="JobSet", operation="UPDATE", outcome="stamped") == 2
        assert value_of(metrics, "admissions_total", kind="Pod", operation="CREATE", outcome="unchanged") == 1

    def test_is_measured(self) -> None:
        """The duration falls into the API server's buckets, and finer ones below 5 ms."""
        metrics = Metrics("1")
        metrics.admitted("stamped", 0.002, CREATED_POD)
        buckets = {
            bound: value_of(metrics, "admission_duration_seconds_bucket", operation="CREATE", le=bound)
            for bound in ("0.001", "0.0025", "0.005", "0.025", "0.1", "0.5", "1.0", "2.5", "10.0")
        }

        assert buckets == {"0.001": 0, **dict.fromkeys(list(buckets)[1:], 1)}

    def test_counts_what_could_not_be_determined(self) -> None:
        """Each key that was left out, with the class of its reason where one is given."""
        metrics = Metrics("1")
        metrics.admitted("stamped", 0, {**CREATED_POD, "unresolved": ("gpu-total", "role")})
        metrics.admitted("stamped", 0, {**CREATED_POD, "unresolved": {"gpu-total": "owner"}})

        assert value_of(metrics, "unresolved_total", key="gpu-total", reason="unspecified") == 1
        assert value_of(metrics, "unresolved_total", key="gpu-total", reason="owner") == 1
        assert value_of(metrics, "unresolved_total", key="role", reason="unspecified") == 1

    def test_of_an_undescribed_kind_is_counted_as_other(self) -> None:
        """A kind gets a label when it gets a definition."""
        metrics = Metrics("1")
        facts = {"kind": "Gadget", "operation": "CREATE"}
        metrics.admitted("undescribed", 0, facts)
        metrics.described(["Gadget"])
        metrics.admitted("stamped", 0, facts)
        metrics.described([])
        metrics.admitted("undescribed", 0, facts)

        assert value_of(metrics, "admissions_total", kind="other", operation="CREATE", outcome="undescribed") == 2
        assert value_of(metrics, "admissions_total", kind="Gadget", operation="CREATE", outcome="stamped") == 1

    def test_needs_no_facts(self) -> None:
        """When we failed before anything was known, it still counts."""
        metrics = Metrics("1")
        metrics.admitted("failed", 0, {})

        assert value_of(metrics, "admissions_total", kind="other", operation="other", outcome="failed") == 1

    @settings(max_examples=25)
    @given(reviews=st.lists(st.tuples(WORD, WORD, WORD, st.lists(WORD, max_size=3)), min_size=40, max_size=80))
    def test_never_makes_more_than_a_bounded_number_of_series(
        self, reviews: list[tuple[str, str, str, list[str]]]
    ) -> None:
        """Whatever the reviews say, labels have a bounded number of values and the page can be read."""
        metrics = Metrics("1")
        for kind, operation, outcome, unresolved in reviews:
            metrics.admitted(outcome, 0, {"kind": kind, "operation": operation, "unresolved": unresolved})
        families = exposed(metrics)
        labels = [sample.labels for sample in families["workload_stamp_admissions"].samples]

        assert {label["kind"] for label in labels} <= {"Pod", "other"}
        assert {label["operation"] for label in labels} <= {"CREATE", "UPDATE", "DELETE", "CONNECT", "other"}
        assert len({label["outcome"] for label in labels}) <= MAX_VALUES + 1
        assert len(families["workload_stamp_unresolved"].samples) <= MAX_VALUES + 1
        assert sum(sample.value for sample in families["workload_stamp_admissions"].samples) == len(reviews)

    def test_tells_a_bounded_number_of_kinds_apart(self) -> None:
        """Even a thousand definitions make no thousand series."""
        metrics = Metrics("1")
        kinds = [f"Kind{number}" for number in range(1000)]
        metrics.described(kinds)
        for kind in kinds:
            metrics.admitted("stamped", 0, {"kind": kind, "operation": "CREATE"})

        assert len(exposed(metrics)["workload_stamp_admissions"].samples) == MAX_KINDS + 1


def test_faults_and_refusals_are_counted() -> None:
    """What went wrong is told by where, by code or by result."""
    metrics = Metrics("1")
    metrics.failed("admission")
    metrics.refused(413)
    metrics.reloaded(good=False)
    metrics.admitted("refused", 0, CREATED_POD)
    metrics.expression_timeouts.inc()

    assert value_of(metrics, "failures_total", where="admission") == 1
    assert value_of(metrics, "requests_refused_total", code="413") == 1
    assert value_of(metrics, "certificate_reloads_total", result="refused") == 1
    assert value_of(metrics, "patches_rejected_total") == 1
    assert value_of(metrics, "expression_timeouts_total") == 1
