"""What the cluster room counts: owner reads, caches, watches, upkeep. Registered beside the server's own metrics."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from webhook.cluster.workload_metrics import WorkloadMetrics

PREFIX = "workload_stamp"

BROKEN = (
    "not-found",
    "not-served",
    "forbidden",
    "other-uid",
    "deadline",
    "unreachable",
    "throttled",
    "cycle",
    "depth",
    "failed",
)
"""Classes of reasons why an owner could not be followed."""

READ_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class ClusterMetrics:
    """Counters of one process; every label has a handful of values chosen in the code."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.workloads = WorkloadMetrics()
        registry.register(self.workloads)
        self.owner_lookups = Counter(
            f"{PREFIX}_owner_lookups", "Owners looked up, by where they were found.", ("result",), registry=registry
        )
        self.owner_reads = Counter(
            f"{PREFIX}_owner_reads", "Owners read from the API server, by result.", ("result",), registry=registry
        )
        self.owner_read_seconds = Histogram(
            f"{PREFIX}_owner_read_duration_seconds",
            "Time of one read of an owner from the API server.",
            buckets=READ_BUCKETS,
            registry=registry,
        )
        self.lineages_broken = Counter(
            f"{PREFIX}_lineages_broken",
            "Objects whose top owner stayed unknown, by class of reason.",
            ("reason",),
            registry=registry,
        )
        self.owners_remembered = Gauge(f"{PREFIX}_owners_remembered", "Owners in the cache.", registry=registry)
        self.watch_events = Counter(
            f"{PREFIX}_watch_events", "Events received by watches, by type.", ("type",), registry=registry
        )
        self.watch_restarts = Counter(
            f"{PREFIX}_watch_restarts", "Watches begun anew, by reason.", ("reason",), registry=registry
        )
        self.watches_complete = Gauge(
            f"{PREFIX}_watches_complete", "Kinds whose watch shows what there is.", registry=registry
        )
        self.watches = Gauge(f"{PREFIX}_watches", "Kinds that are watched.", registry=registry)
        self.watch_lag_seconds = Histogram(
            f"{PREFIX}_watch_lag_seconds",
            "Time from a review of an update until the watch saw it.",
            buckets=READ_BUCKETS,
            registry=registry,
        )
        self.repairs = Counter(
            f"{PREFIX}_repairs",
            "Objects that upkeep looked at, by what came of it.",
            ("object", "result"),
            registry=registry,
        )
        self.unstamped_pods = Gauge(
            f"{PREFIX}_unstamped_pods",
            "Pods without an id that should have one, when upkeep last looked; 0 where it does not.",
            registry=registry,
        )
        self.leading = Gauge(f"{PREFIX}_leading", "1 while this replica does upkeep.", registry=registry)
        self.registered = Gauge(
            f"{PREFIX}_registered", "1 while the webhook configuration is in the cluster.", registry=registry
        )
        self.definitions = Gauge(
            f"{PREFIX}_definitions", "Definitions offered, by state.", ("state",), registry=registry
        )
        for reason in BROKEN:
            self.lineages_broken.labels(reason)
