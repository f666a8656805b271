"""`workload-stamp serve`: the composition root of the webhook."""

import os
import socket
import uuid
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from catalog.worker import ExpressionWorker
from certs.authority import Authority, CertificateError, service_names
from webhook import version
from webhook.admission import Admission, OwnerSource
from webhook.cli.definitions_folder import follow_folder, load_folder, packaged_definitions
from webhook.cli.failures import InputProblems
from webhook.cli.manifests import objects_in
from webhook.cli.option_sections import SectionedCommand, SectionedOption
from webhook.cluster.client import Access, ConnectionFault
from webhook.cluster.runtime import ClusterRuntime, Upkeep
from webhook.cluster.telemetry import ClusterMetrics
from webhook.definitions import DefinitionsInForce, Source
from webhook.documents import DocumentOwners, NoOwnersKnown
from webhook.health import Check
from webhook.isolation import WorkerIsolation
from webhook.log import AdmissionLog, Logger, adopt_standard_logging, build
from webhook.metrics import Metrics
from webhook.server import run, serve
from webhook.settings import OPTIONS, Settings, SettingsError
from webhook.stamps import Policy
from webhook.tls import CertificateFiles, ServingCertificate

IN_CLUSTER = "KUBERNETES_SERVICE_HOST"
"""Kubernetes sets it in every container."""


def _with_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """A click option for each line of the table; values stay text, `Settings.parse` reads them."""
    for found in reversed(OPTIONS):
        shown = f" [default: {found.shown_default}]" if found.shown_default else ""
        function = click.option(
            found.flag,
            found.name,
            cls=SectionedOption,
            section=found.group,
            type=click.Path() if found.reader.metavar == "PATH" else None,  # so that shells complete it
            is_flag=found.reader.is_flag,
            default=None,
            multiple=found.reader.is_list,
            metavar=None if found.reader.is_flag else found.reader.metavar,
            help=f"{found.help}{shown} [{found.env}]",
        )(function)
    return function


@click.command("serve", cls=SectionedCommand)
@_with_options
def command(**flags: Any) -> None:
    """Answer admission reviews over TLS, until SIGTERM.

    Every option can be given as an environment variable instead; a flag wins.
    """
    try:
        settings = Settings.parse(flags, os.environ)
        policy = Policy(prefix=settings.prefix, accelerators=settings.accelerator_policy, observe=settings.observe)
        logger, admissions = build(settings.log_level, settings.log_format)
        adopt_standard_logging(logger)
        run(_serve(settings, policy, logger, admissions))
    except SettingsError as error:
        raise InputProblems(error.problems, exit_code=2) from None
    except (CertificateError, ConnectionFault) as error:
        raise InputProblems((str(error),), exit_code=2) from None


async def _serve(settings: Settings, policy: Policy, logger: Logger, admissions: AdmissionLog) -> None:
    access = cluster_access(settings, os.environ)
    certificate, authority = _certificate(settings, in_cluster=access is not None)
    metrics = Metrics(version())
    worker = ExpressionWorker()
    isolation = WorkerIsolation(worker, metrics, logger)
    definitions = DefinitionsInForce(isolation.try_out)
    definitions.subscribe(lambda catalog: metrics.described(kind for _, kind in catalog.by_kind))
    definitions.install(Source.PACKAGED, packaged_definitions())
    started = _Started()
    async with AsyncExitStack() as stack:
        await worker.start()
        stack.push_async_callback(worker.stop)
        if settings.definitions_dir is not None:
            await load_folder(settings.definitions_dir, definitions)
            await stack.enter_async_context(follow_folder(settings.definitions_dir, definitions, logger))
        owners: OwnerSource
        checks: dict[str, Check] = {"definitions": lambda: None if definitions.catalog else "no definition is in force"}
        if access is not None:
            cluster = ClusterRuntime.running(
                _upkeep(settings, access, authority),
                definitions,
                policy,
                ClusterMetrics(metrics.registry),
                isolated=isolation.outcomes_soon,
                on_pair=_replacing(certificate, metrics, logger),
                is_serving=lambda: started.serving and certificate.fault() is None,
                logger=logger,
                count=metrics.failed,
            )
            runtime = await stack.enter_async_context(cluster)
            owners, checks["cluster"] = runtime.owners, runtime.fault
        else:
            owners = _standalone_owners(settings, policy, logger)
        await serve(
            settings,
            Admission(lambda: definitions.catalog, policy, owners, isolation),
            ready_checks=checks,
            certificate=certificate,
            metrics=metrics,
            logger=logger,
            admissions=admissions,
            on_started=lambda _: started.now(),
        )


class _Started:
    """Whether the ports listen: nobody is told to call us before."""

    serving = False

    def now(self) -> None:
        """They do."""
        self.serving = True


def cluster_access(settings: Settings, environ: Mapping[str, str]) -> Access | None:
    """How to reach the API server; None runs without one: neither a kubeconfig is given nor are we in a cluster."""
    if settings.owners is not None:
        return None
    if settings.kubeconfig is not None:
        return Access(kubeconfig=settings.kubeconfig)
    return Access(in_cluster=True) if environ.get(IN_CLUSTER) else None


def _certificate(settings: Settings, *, in_cluster: bool) -> tuple[ServingCertificate, bytes | None]:
    """What is served, and the authority that signed it where that is our own and no Secret's."""
    source = settings.certificate_source
    client_ca = _read(settings.client_ca, "--client-ca") if settings.client_ca is not None else None
    if source == "files":
        assert settings.cert_file is not None, "the source says so"
        assert settings.key_file is not None, "settings with one of them are refused"
        files = CertificateFiles(certificate=settings.cert_file, key=settings.key_file, client_ca=settings.client_ca)
        return ServingCertificate.from_files(files), None
    if source == "self-signed":
        now = datetime.now(UTC)
        authority = Authority.create(now)
        names = (*service_names(settings.service_name, settings.namespace), "localhost", "127.0.0.1", "::1")
        pair = authority.issue_serving((*names, *settings.serving_names), now)
        return ServingCertificate.from_pair(pair, client_ca=client_ca), authority.certificate
    if not in_cluster:
        raise SettingsError(("no certificate: give --cert-file and --key-file, or --self-signed to try things out",))
    return ServingCertificate(client_ca=client_ca), None


def _read(path: Path, flag: str) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SettingsError((f"{flag}: {path} can't be read: {error.strerror}",)) from None


def _replacing(certificate: ServingCertificate, metrics: Metrics, logger: Logger) -> Callable[[Any], None]:
    """Takes each pair of the serving Secret into service; one that is no good changes nothing."""

    def replace(pair: Any) -> None:
        if certificate.pair == pair:
            return
        try:
            certificate.replace(pair)
        except CertificateError as error:
            metrics.reloaded(good=False)
            logger.error(  # noqa: TRY400 - no fault of ours, no traceback
                "certificate not replaced, the last good one serves on", reason=str(error)
            )
        else:
            metrics.reloaded(good=True)
            logger.info("certificate replaced", expires_in_seconds=round(certificate.seconds_to_expiry()))

    return replace


def _standalone_owners(settings: Settings, policy: Policy, logger: Logger) -> OwnerSource:
    if settings.owners is None:
        logger.warning("no cluster", reason="owners can't be read; give --kubeconfig, or --owners for a try")
        return NoOwnersKnown()
    found = objects_in([str(settings.owners)])
    if found.problems:
        raise SettingsError(tuple(f"--owners: {problem}" for problem in found.problems))
    return DocumentOwners((each.value for each in found.objects), policy)


def _upkeep(settings: Settings, access: Access, authority: bytes | None) -> Upkeep:
    return Upkeep(
        access=access,
        identity=f"{socket.gethostname()}_{uuid.uuid4().hex[:8]}",
        namespace=settings.namespace,
        service=settings.service_name,
        url=settings.webhook_url,
        excluded_namespaces=settings.excluded_namespaces,
        opt_in=settings.namespaces_opt_in,
        registration=settings.registration,
        webhook_timeout=settings.webhook_timeout,
        lease_name=settings.lease_name,
        lease_duration=settings.lease_duration,
        lease_renewal=settings.lease_renewal,
        reconcile_rate=settings.reconcile_rate,
        reconcile_interval=settings.reconcile_interval,
        owner_cache_size=settings.owner_cache_size,
        owner_get_rate=settings.owner_get_rate,
        owner_get_burst=settings.owner_get_burst,
        workload_metrics=settings.workload_metrics,
        own_certificates=settings.certificate_source == "cluster",
        serving_names=settings.serving_names,
        observe=settings.observe,
        authority=authority,
        ca_file=settings.ca_file,
        inject_ca_from=settings.inject_ca_from,
    )
