"""What is counted and measured, in a registry of our own, and its exposition for Prometheus.

Label values are bounded: kinds to those that are described, everything else to the first few values seen; what is
beyond is counted as `other`. Children are kept, so that counting an admission costs a few microseconds.
This module must not know HTTP, nor how a value comes about: collaborators count what they do, or give a function.
"""

import platform
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, disable_created_metrics
from prometheus_client.exposition import choose_encoder
from prometheus_client.gc_collector import GCCollector
from prometheus_client.process_collector import ProcessCollector

PREFIX = "workload_stamp"

OTHER = "other"
"""What a label value beyond the bound is counted as."""

REFUSED = "refused"
"""The outcome of an admission whose patch did not prove right."""

MAX_KINDS = 200
MAX_VALUES = 32
"""Values of any other label: outcomes, stamp keys and reasons are few; a mistake must not become a million series."""

OPERATIONS = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})

DURATION_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 2.5, 10.0)
"""Seconds: the API server's own buckets from 5 ms on (`apiserver pkg/admission/metrics/metrics.go`), and finer ones."""

_DURATION = f"{PREFIX}_admission_duration_seconds"


class Bounded:
    """Label values that are let through, up to a number of different ones; any further one becomes `other`."""

    def __init__(self, limit: int, known: Iterable[str] = ()) -> None:
        self._limit = limit
        self._known = set(known)

    def __call__(self, value: str) -> str:
        """`value`, or `other`."""
        if value in self._known:
            return value
        if len(self._known) >= self._limit:
            return OTHER
        self._known.add(value)
        return value


class Metrics:
    """Everything this process counts. Further collectors may register themselves in `registry`."""

    def __init__(self, version: str) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call] # a second series for each counter, which nobody reads
        registry = self.registry = CollectorRegistry(auto_describe=True)
        self._admissions = Counter(
            f"{PREFIX}_admissions",
            "Admission reviews answered, by kind, operation and outcome.",
            ("kind", "operation", "outcome"),
            registry=registry,
        )
        self._duration = Histogram(
            _DURATION,
            "Time from a review's arrival to its answer.",
            ("operation",),
            buckets=DURATION_BUCKETS,
            registry=registry,
        )
        self._unresolved = Counter(
            f"{PREFIX}_unresolved",
            "Stamps that could not be determined, by key and class of reason.",
            ("key", "reason"),
            registry=registry,
        )
        self._refused = Counter(
            f"{PREFIX}_requests_refused", "Requests answered with an HTTP error, by code.", ("code",), registry=registry
        )
        self._failures = Counter(
            f"{PREFIX}_failures",
            "Faults of ours that were survived, by where they happened; anything above 0 is a bug.",
            ("where",),
            registry=registry,
        )
        self.patches_rejected = Counter(
            f"{PREFIX}_patches_rejected", "Patches that were not sent, as they did not prove right.", registry=registry
        )
        self.expression_timeouts = Counter(
            f"{PREFIX}_expression_timeouts", "Expressions that were stopped at their deadline.", registry=registry
        )
        self.disconnects = Counter(
            f"{PREFIX}_disconnects", "Clients that went away before they sent a whole review.", registry=registry
        )
        self._reloads = Counter(
            f"{PREFIX}_certificate_reloads", "Certificates looked at anew, by result.", ("result",), registry=registry
        )
        self._in_flight = Gauge(
            f"{PREFIX}_admissions_in_flight", "Admission reviews being worked on.", registry=registry
        )
        self._expiry = Gauge(
            f"{PREFIX}_certificate_expiry_seconds", "Time until the serving certificate expires.", registry=registry
        )
        self._ready = Gauge(f"{PREFIX}_ready", "1 while this replica says it is ready.", registry=registry)
        build = Info(f"{PREFIX}_build", "What is running.", registry=registry)
        build.info({"version": version, "python": platform.python_version()})
        for where in ("admission", "certificate", "cluster"):
            self._failures.labels(where)  # 0 from the start, so that the first one is an increase
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        self._kinds: frozenset[str] = frozenset({"Pod"})
        self._outcomes, self._keys, self._reasons = (Bounded(MAX_VALUES) for _ in range(3))
        self._counted: dict[tuple[str, str, str], Callable[[], None]] = {}
        self._observed: dict[str, Callable[[float], None]] = {}

    def described(self, kinds: Iterable[str]) -> None:
        """Tell kinds apart from now on: those that have a definition, and Pod. Called when definitions change."""
        self._kinds = frozenset({"Pod", *sorted(set(kinds))[:MAX_KINDS]})
        self._counted.clear()

    def admitted(self, outcome: str, seconds: float, facts: Mapping[str, Any]) -> None:
        """Count one answered review; `facts` are the core's (`kind`, `operation`, `unresolved` …), any may be missing.

        `unresolved` is the keys left out, or a mapping of each to the class of its reason.
        """
        operation = facts.get("operation", OTHER)
        key = (facts.get("kind", OTHER), operation, outcome)
        count = self._counted.get(key)
        if count is None:
            count = self._count(*key)
        count()
        (self._observed.get(operation) or self._observe(operation))(seconds)
        if outcome == REFUSED:
            self.patches_rejected.inc()
        unresolved = facts.get("unresolved")
        if unresolved:
            reasons = unresolved if isinstance(unresolved, Mapping) else dict.fromkeys(unresolved, "unspecified")
            for stamp, reason in reasons.items():
                self._unresolved.labels(self._keys(stamp), self._reasons(reason)).inc()

    def refused(self, code: int) -> None:
        """Count a request that was answered with an HTTP error."""
        self._refused.labels(str(code)).inc()

    def failed(self, where: str) -> None:
        """Count a fault of ours; `where` is one of a few words chosen in the code."""
        self._failures.labels(where).inc()

    def reloaded(self, *, good: bool) -> None:
        """Count a certificate that was put into service or refused."""
        self._reloads.labels("loaded" if good else "refused").inc()

    def watch(
        self, *, in_flight: Callable[[], float], certificate_expiry: Callable[[], float], ready: Callable[[], float]
    ) -> None:
        """Have the gauges read from these functions at each scrape."""
        self._in_flight.set_function(in_flight)
        self._expiry.set_function(certificate_expiry)
        self._ready.set_function(ready)

    def exposition(self, accept: str) -> tuple[bytes, str]:
        """Everything in the format that an `Accept` header asks for, and its content type."""
        try:
            encode, content_type = choose_encoder(accept)
        except (ValueError, TypeError):  # a version that is no version
            encode, content_type = choose_encoder("")
        return encode(self.registry), content_type

    def _observe(self, operation: str) -> Callable[[float], None]:
        bounded = operation if operation in OPERATIONS else OTHER
        return self._observed.setdefault(bounded, self._duration.labels(bounded).observe)

    def _count(self, kind: str, operation: str, outcome: str) -> Callable[[], None]:
        """The counter of these labels, bounded; kept when its key is itself bounded."""
        bounded = (
            kind if kind in self._kinds else OTHER,
            operation if operation in OPERATIONS else OTHER,
            self._outcomes(outcome),
        )
        count: Callable[[], None] = self._admissions.labels(*bounded).inc
        if (kind, operation, outcome) == bounded:
            self._counted[bounded] = count
        return count
