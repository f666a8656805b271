# ruff: noqa: RUF009 - the defaults are frozen values
"""Configuration: one table of options, read from flags and `WORKLOAD_STAMP_*` variables into a frozen value.

A field of `Settings` is a line of the table: its default, how its text is read, its group and its help stand there and
nowhere else; the command line's flags, the environment variables and the reference table are made from `OPTIONS`.
This module must not know the process's environment (it is an argument), files, or click.

No option may be called `port`, `service_host` or end in `_port`: for a Service named `workload-stamp` Kubernetes itself
puts `WORKLOAD_STAMP_PORT=tcp://…` into every container of the namespace.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Self

from catalog.resources import DEFAULT_DEVICE_CLASSES, DEFAULT_RESOURCES, AcceleratorPolicy, PolicyError
from webhook.options import (
    ENVIRONMENT_PREFIX,
    Address,
    Option,
    address,
    choice,
    dns_subdomain,
    duration,
    number,
    option,
    path,
    several,
    shown,
    size,
    switch,
    whole,
    words,
)

LISTENING = "Listening"
CERTIFICATES = "Certificates"
STAMPING = "Stamping"
LIMITS = "Limits"
STOPPING = "Stopping"
LOGGING = "Logging"
CLUSTER = "Cluster"

API_SERVER_IDLE = 90.0
"""Seconds after which the API server itself gives up an idle connection (`client-go transport/cache.go`)."""

_SERVICE_LINK = re.compile(r"_SERVICE_(HOST|PORT\w*)$|_PORT(_\d+_(TCP|UDP|SCTP)(_\w+)?)?$")
"""Variables that Kubernetes sets for each Service of the namespace; they are none of ours."""


_RESOURCE_WEIGHTS = words("PATTERN=WEIGHT,…", "WEIGHTS", check=lambda text: AcceleratorPolicy.parse(resources=text))
_CLASS_WEIGHTS = words("PATTERN=WEIGHT,…", "WEIGHTS", check=lambda text: AcceleratorPolicy.parse(device_classes=text))


class SettingsError(Exception):
    """The settings can't be used; `problems` has every reason, one sentence each."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How one process behaves. Durations are in seconds, sizes in bytes."""

    # Port 10250: the control plane of a private cluster reaches no other port of a pod, save 443.
    bind_address: Address = option(Address("", 10250), address(), LISTENING, "Where reviews are answered, over TLS.")
    metrics_bind_address: Address = option(
        Address("", 8080), address(), LISTENING, "Where /metrics, /livez and /readyz are answered, without TLS."
    )
    keep_alive: float = option(
        120.0, duration(1, 86400), LISTENING, "How long an idle connection is kept; the API server keeps it 90s."
    )
    requests_per_connection: int = option(
        1000,
        whole(0, 10**9),
        LISTENING,
        "Close one connection in so many answers, so that new replicas get their share; 0 is never.",
    )

    cert_file: Path | None = option(None, path(), CERTIFICATES, "Serving certificate (PEM), reread when it changes.")
    key_file: Path | None = option(None, path(), CERTIFICATES, "Its private key (PEM).")
    cert_poll_interval: float = option(
        10.0, duration(0.1, 3600), CERTIFICATES, "How often the certificate's files are looked at."
    )
    ca_file: Path | None = option(
        None, path(), CERTIFICATES, "Who signed --cert-file (PEM): published in the webhook configuration."
    )
    inject_ca_from: str | None = option(
        None,
        words("NAMESPACE/CERTIFICATE", "NAMESPACE/NAME"),
        CERTIFICATES,
        "The cert-manager Certificate whose authority cert-manager publishes in the webhook configuration.",
    )
    client_ca: Path | None = option(
        None, path(), CERTIFICATES, "Admit only clients with a certificate of these authorities (PEM)."
    )
    self_signed: bool = switch(CERTIFICATES, "Make a certificate and its authority at start, to try things out.")
    serving_names: tuple[str, ...] = option(
        (),
        several(words("a DNS name or IP address", "NAME")),
        CERTIFICATES,
        "Further names and addresses in certificates that we make ourselves.",
    )

    definitions_dir: Path | None = option(
        None, path(), STAMPING, "Folder of further definitions; they go before packaged ones of the same kind."
    )
    prefix: str = option(
        "workload-stamp.io",
        dns_subdomain(reserved=("kubernetes.io", "k8s.io")),
        STAMPING,
        "Prefix of every label and annotation that is written.",
    )
    gpu_weights: str = option(
        DEFAULT_RESOURCES, _RESOURCE_WEIGHTS, STAMPING, "What counts as how many GPUs; 0 is an accelerator only."
    )
    device_class_weights: str = option(
        DEFAULT_DEVICE_CLASSES, _CLASS_WEIGHTS, STAMPING, "The same for device classes of Dynamic Resource Allocation."
    )
    observe: bool = switch(STAMPING, "Work everything out, log and count it, but patch nothing.")

    deadline: float = option(
        2.0, duration(0.1, 30), LIMITS, "An admission that takes longer is answered without stamps."
    )
    deadline_margin: float = option(
        0.2, number(0, 0.9), LIMITS, "Share of the time allowed that is kept for answering; at least 50ms are."
    )
    max_body: int = option(
        7 * 2**20,
        size(2**20, 2**30),
        LIMITS,
        "Largest review that is read: two objects of 3MiB and what is around them.",
    )
    max_in_flight: int = option(
        512, whole(1, 100_000), LIMITS, "Reviews worked on at a time; further ones are answered without stamps."
    )

    lame_duck: float = option(
        10.0, duration(0, 600), STOPPING, "How long to serve on, not ready, before connections are refused."
    )
    drain: float = option(10.0, duration(0, 600), STOPPING, "How long to wait then for what is being answered.")

    log_level: str = option("info", choice("debug", "info", "warning", "error"), LOGGING, "Least level that is logged.")
    log_format: str = option("json", choice("json", "console"), LOGGING, "JSON lines, or lines for people.")

    kubeconfig: Path | None = option(
        None, path(), CLUSTER, "How to reach the API server; without it the pod's service account is used."
    )
    owners: Path | None = option(
        None, path(), CLUSTER, "Without a cluster: a file of objects that own what is admitted, to try things out."
    )
    namespace: str = option(
        "workload-stamp-system", dns_subdomain(), CLUSTER, "Our own namespace; nothing in it is stamped."
    )
    excluded_namespaces: tuple[str, ...] = option(
        ("kube-system",), several(dns_subdomain()), CLUSTER, "Further namespaces in which nothing is stamped."
    )
    namespaces_opt_in: bool = switch(CLUSTER, "Stamp only in namespaces that are labelled <prefix>/stamp=true.")
    service_name: str = option("workload-stamp", dns_subdomain(), CLUSTER, "The Service through which we are reached.")
    webhook_url: str | None = option(
        None, words("an https:// address", "URL"), CLUSTER, "Address for the API server instead of the Service."
    )
    registration: str = option(
        "auto",
        choice("auto", "always", "never"),
        CLUSTER,
        "Keep the webhook configuration: until someone deletes it, always, or leave it to others.",
    )
    webhook_timeout: int = option(
        3, whole(1, 30), CLUSTER, "Seconds after which the API server goes on without an answer."
    )
    lease_name: str = option("workload-stamp", dns_subdomain(), CLUSTER, "Lease of the replica that does upkeep.")
    lease_duration: float = option(15.0, duration(2, 3600), CLUSTER, "How long a lease holds without renewal.")
    lease_renewal: float = option(2.0, duration(0.5, 3600), CLUSTER, "How often it is renewed.")
    reconcile_rate: float = option(10.0, number(0.1, 10_000), CLUSTER, "Objects a second that upkeep may write.")
    reconcile_interval: float = option(
        60.0, duration(1, 86400), CLUSTER, "How often upkeep looks through all objects for what admission could not do."
    )
    owner_cache_size: int = option(20_000, whole(100, 10**7), CLUSTER, "Owners that are remembered.")
    owner_get_rate: float = option(100.0, number(1, 100_000), CLUSTER, "Owners a second that may be read, lastingly.")
    owner_get_burst: int = option(1500, whole(1, 10**6), CLUSTER, "Owners that may be read at once.")
    workload_metrics: bool = switch(
        CLUSTER,
        "Export workloads and GPUs as metrics; the leader lists the metadata of running pods every minute.",
    )

    @property
    def accelerator_policy(self) -> AcceleratorPolicy:
        """What counts as a GPU and as an accelerator, by both options."""
        return AcceleratorPolicy.parse(self.gpu_weights, self.device_class_weights)

    @property
    def certificate_source(self) -> Literal["files", "self-signed", "cluster"]:
        """Where the serving certificate comes from; without files and --self-signed, upkeep keeps one in a Secret."""
        if self.cert_file is not None:
            return "files"
        return "self-signed" if self.self_signed else "cluster"

    @classmethod
    def parse(cls, flags: Mapping[str, Any], environ: Mapping[str, str]) -> Self:
        """Settings from flags (by option name; None and () are not given) and, where a flag isn't given, variables.

        A flag's value may be text as typed, a bool, or a sequence of texts. Raises SettingsError with every problem.
        """
        values, problems = _read(flags, environ)
        settings = cls(**values)
        broken = {found.name for found in OPTIONS if found.name in problems}
        conflicts = [text for names, text in settings._conflicts() if broken.isdisjoint(names)]
        everything = (*chain.from_iterable(problems.values()), *_unknown(environ), *conflicts)
        if everything:
            raise SettingsError(everything)
        return settings

    def _conflicts(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """What doesn't go together: the options' names and a sentence."""
        if (self.cert_file is None) != (self.key_file is None):
            given, missing = ("--cert-file", "--key-file") if self.key_file is None else ("--key-file", "--cert-file")
            yield ("cert_file", "key_file"), f"{given}: {missing} is missing; give both or neither"
        if self.self_signed and self.cert_file is not None:
            yield ("self_signed", "cert_file"), "--self-signed: a --cert-file is given as well; give one of them"
        if self.serving_names and self.cert_file is not None:
            yield ("serving_names", "cert_file"), "--serving-names: --cert-file has its own names; give one of them"
        if self.keep_alive <= API_SERVER_IDLE:
            remedy = f"more than {API_SERVER_IDLE:g}s: the API server must be the first to give up an idle connection"
            yield ("keep_alive",), f"--keep-alive: found {self.keep_alive:g}s, expected {remedy}"
        if self.lease_renewal * 2 > self.lease_duration:
            remedy = f"at most half of --lease-duration ({self.lease_duration:g}s)"
            yield (
                ("lease_renewal", "lease_duration"),
                f"--lease-renewal: found {self.lease_renewal:g}s, expected {remedy}",
            )
        if self.webhook_url is not None and not self.webhook_url.startswith("https://"):
            yield ("webhook_url",), f"--webhook-url: found {self.webhook_url!r}, expected an https:// address"


OPTIONS: tuple[Option, ...] = tuple(
    Option(
        name=line.name,
        group=line.metadata["group"],
        reader=line.metadata["reader"],
        default=line.default,
        help=line.metadata["help"],
    )
    for line in fields(Settings)
)
"""The table of options, in the order of the help."""


def reference(group: str | None = None) -> str:
    """The options as a Markdown table: all, or those of one group."""
    rows = ["| flag | variable | default | what it is |", "|---|---|---|---|"]
    for found in OPTIONS:
        if group in (None, found.group):
            written = f"{found.flag} {found.reader.metavar}".strip().replace("|", "\\|")
            rows.append(f"| `{written}` | `{found.env}` | {_code(found.shown_default)} | {found.help} |")
    return "\n".join(rows) + "\n"


def _read(flags: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, tuple[str, ...]]]:
    """Values and problems by option name, of those options that are given."""
    values: dict[str, Any] = {}
    problems: dict[str, tuple[str, ...]] = {}
    for found in OPTIONS:
        given = _given(found, flags, environ)
        if given is not None:
            source, text = given
            try:
                values[found.name] = found.reader.read(text)
            except PolicyError as error:
                problems[found.name] = tuple(f"{source}: {problem}" for problem in error.problems)
            except ValueError:
                problems[found.name] = (f"{source}: found {text!r}, expected {found.reader.expected}",)
    return values, problems


def _given(found: Option, flags: Mapping[str, Any], environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Where an option's text was found, and the text; an empty variable counts as not given, as in shells."""
    value = flags.get(found.name)
    if value is not None and value != ():
        return found.flag, shown(tuple(value) if isinstance(value, list) else value)
    text = environ.get(found.env, "")
    return (found.env, text) if text.strip() else None


def _unknown(environ: Mapping[str, str]) -> Iterator[str]:
    known = [found.env for found in OPTIONS]
    for name in sorted(environ):
        if name.startswith(ENVIRONMENT_PREFIX) and name not in known and not _SERVICE_LINK.search(name):
            near = difflib.get_close_matches(name, known, n=1)
            yield f"{name}: is no setting" + (f"; did you mean {near[0]}?" if near else "")


def _code(text: str) -> str:
    return f"`{text}`" if text else ""
