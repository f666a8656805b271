"""Everything that runs beside the server in a cluster, put together: what follows the cluster, and what keeps it up.

Every replica follows definitions, roots and certificates. The one that leads also keeps certificates, the webhook
configuration, definition statuses and stamps.
"""

import asyncio
from base64 import b64decode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from catalog.definition import JsonObject
from catalog.library import Catalog
from certs.authority import KeyPair
from webhook.cluster.census import WorkloadCensus
from webhook.cluster.client import Access, ApiServer
from webhook.cluster.configuration import Reach, webhook_configuration
from webhook.cluster.discovery import Discovery
from webhook.cluster.keys import Keys, SecretNames, SecretWatch
from webhook.cluster.leader import Leadership, LeaseTerms
from webhook.cluster.namespaces import Namespaces
from webhook.cluster.owner_cache import OwnerCache
from webhook.cluster.owners import ClusterOwners
from webhook.cluster.registration import COLLECTION as CONFIGURATIONS
from webhook.cluster.registration import FIELD_SELECTOR, Mode, Presence, Registration
from webhook.cluster.repair import Repair
from webhook.cluster.resources import COLLECTIONS, DefinitionResources, DefinitionStatuses
from webhook.cluster.roots import RootWatches
from webhook.cluster.supervision import Supervision
from webhook.cluster.telemetry import ClusterMetrics
from webhook.cluster.unstamped import Unstamped
from webhook.cluster.watches import Sink, Watch
from webhook.definitions import DefinitionsInForce, Source
from webhook.isolation import Isolated
from webhook.log import Logger
from webhook.stamps import Policy

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PAIR_AGAIN = 10.0
"""Seconds between two offers of the serving Secret's pair, which may have been refused for the time of day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What the cluster room is told about its surroundings; durations in seconds."""

    access: Access
    identity: str
    namespace: str
    service: str
    url: str | None
    excluded_namespaces: tuple[str, ...]
    opt_in: bool
    registration: Mode
    webhook_timeout: int
    lease_name: str
    lease_duration: float
    lease_renewal: float
    reconcile_rate: float
    reconcile_interval: float
    owner_cache_size: int
    owner_get_rate: float
    owner_get_burst: int
    own_certificates: bool
    serving_names: tuple[str, ...] = ()
    observe: bool = False
    authority: bytes | None = None
    ca_file: Path | None = None
    inject_ca_from: str | None = None
    workload_metrics: bool = False


class ClusterRuntime:
    """The tasks of one replica. Use `running`; `owners` is the source of lineages for admissions.

    `on_pair` is given each pair of the serving Secret, `is_serving` says whether reviews would be answered, `count`
    counts a fault of ours by where it happened.
    """

    def __init__(
        self,
        server: ApiServer,
        upkeep: Upkeep,
        definitions: DefinitionsInForce,
        policy: Policy,
        metrics: ClusterMetrics,
        *,
        isolated: Isolated,
        on_pair: Callable[[KeyPair], None],
        is_serving: Callable[[], bool],
        logger: Logger,
        count: Callable[[str], None],
    ) -> None:
        self._server = server
        self._upkeep = upkeep
        self._definitions = definitions
        self._policy = policy
        self._metrics = metrics
        self._is_serving = is_serving
        self._logger = logger
        self._supervision = Supervision(logger, count)
        self._tell = self._supervision.tell
        self._discovery = Discovery(server)
        self._presence = Presence(self._presence_changed)
        self._namespaces = Namespaces(upkeep.namespace, upkeep.excluded_namespaces, policy.prefix, opt_in=upkeep.opt_in)
        owner_cache = OwnerCache(policy, metrics, upkeep.owner_cache_size)
        self.owners = ClusterOwners(
            server,
            self._discovery,
            owner_cache,
            isolated,
            metrics,
            supervision=self._supervision,
            rate=upkeep.owner_get_rate,
            burst=upkeep.owner_get_burst,
        )
        self._repair = Repair(
            server,
            self._discovery,
            self.owners,
            policy,
            metrics,
            supervision=self._supervision,
            isolated=isolated,
            catalog=self._catalog,
            in_scope=self._may_stamp,
            unstamped=Unstamped(policy.prefix, lambda: self._presence.since),
            rate=upkeep.reconcile_rate,
            interval=upkeep.reconcile_interval,
        )
        self._census = WorkloadCensus(
            server, self._discovery, policy, metrics.workloads, supervision=self._supervision, catalog=self._catalog
        )
        self._roots = RootWatches(
            server,
            self._discovery,
            owner_cache,
            self._repair,
            metrics,
            supervision=self._supervision,
            catalog=self._catalog,
            on_kinds=self._wake_registration,
            census=self._census if upkeep.workload_metrics else None,
        )
        self._census.exists = self._roots.knows
        owner_cache.is_followed = self._roots.is_followed
        self._keys = Keys(server, self._secret_names(), self._tell)
        self._serving_secret = SecretWatch("tls", on_pair, self._keys.wake)
        self._authority_secret = SecretWatch("ca", lambda _: None, self._keys.wake)
        self._registration = Registration(
            server,
            self._presence,
            upkeep.registration,
            self._wanted_configuration,
            on_applied=self._applied,
            supervision=self._supervision,
        )
        self._resources = {
            source: DefinitionResources(source, definitions, self._definitions_changed, logger, self._supervision)
            for source in COLLECTIONS
        }
        self._statuses = DefinitionStatuses(server, self._resources[Source.RESOURCE], definitions, self._supervision)
        self._leadership = Leadership(
            server, self._lease_terms(), self._lead, self._leadership_changed, lambda fault: self._tell("lease", fault)
        )
        self._definition_watches = [
            self._watch(path, self._resources[source]) for source, (_, _, path) in COLLECTIONS.items()
        ]
        self._namespace_watch = self._watch("/api/v1/namespaces", self._namespaces, metadata_only=True)
        self._definitions_known = False
        metrics.definitions.labels("in-force").set(len(definitions.catalog))
        definitions.subscribe(self._catalog_changed)

    @classmethod
    @asynccontextmanager
    async def running(cls, upkeep: Upkeep, *arguments: Any, **keywords: Any) -> AsyncIterator[Self]:
        """A replica's cluster room, up to the end of the block. Raises `ConnectionFault` without configuration.

        An API server that can't be reached is none: everything is tried again until it can.
        """
        async with ApiServer.connect(upkeep.access) as server:
            runtime = cls(server, upkeep, *arguments, **keywords)
            tasks = [
                asyncio.create_task(runtime._supervision.keep(what, work)) for what, work in runtime._tasks().items()
            ]
            try:
                yield runtime
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def fault(self) -> str | None:
        """Why admissions would lack definitions that are in the cluster, None once they have been read; for readiness.

        A collection that is not served, or that we may not read, is not waited for.
        """
        if not self._definitions_known:
            self._definitions_known = all(watch.answered.is_set() for watch in self._definition_watches) and all(
                resources.is_idle for resources in self._resources.values()
            )
        return None if self._definitions_known else "the definitions in the cluster have not been read yet"

    def _watch(self, path: str, sink: Sink, *, field_selector: str = "", metadata_only: bool = False) -> Watch:
        return Watch(
            self._server,
            path,
            sink,
            self._metrics,
            self._supervision,
            field_selector=field_selector,
            metadata_only=metadata_only,
        )

    def _tasks(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Everything that this replica does as long as it runs."""
        watches = [
            *self._definition_watches,
            self._namespace_watch,
            self._watch(CRDS, Nudge(self._crds_changed), metadata_only=True),
            self._watch(CONFIGURATIONS, self._presence, field_selector=FIELD_SELECTOR),
        ]
        tasks: dict[str, Callable[[], Awaitable[None]]] = {watch.path: watch.run for watch in watches}
        if self._upkeep.own_certificates:
            names = self._secret_names()
            for name, sink in ((names.serving, self._serving_secret), (names.authority, self._authority_secret)):
                watch = self._watch(names.collection, sink, field_selector=f"metadata.name={name}")
                tasks[f"{watch.path}/{name}"] = watch.run
            tasks["refused certificate"] = self._offer_pairs_again
        for source, resources in self._resources.items():
            tasks[f"definitions {source.name}"] = resources.run
        return {**tasks, "roots": self._roots.run, "leadership": self._leadership.run}

    async def _offer_pairs_again(self) -> None:
        while True:
            await asyncio.sleep(PAIR_AGAIN)
            self._serving_secret.offer_again()

    def _secret_names(self) -> SecretNames:
        return SecretNames(
            namespace=self._upkeep.namespace,
            service=self._upkeep.service,
            prefix=self._policy.prefix,
            further_names=self._upkeep.serving_names,
        )

    def _lease_terms(self) -> LeaseTerms:
        return LeaseTerms(
            namespace=self._upkeep.namespace,
            name=self._upkeep.lease_name,
            identity=self._upkeep.identity,
            duration=self._upkeep.lease_duration,
            renewal=self._upkeep.lease_renewal,
        )

    async def _lead(self) -> None:
        """Upkeep, while this replica leads; what fails is begun again and hinders nothing else."""
        duties: dict[str, Callable[[], Awaitable[None]]] = {
            "registration": self._registration.keep,
            "definitions": self._statuses.keep,
        }
        if self._upkeep.own_certificates:
            duties |= {"certificate": self._keys.keep, "bundle": self._republish}
        if not self._upkeep.observe:
            duties["repair"] = self._keep_stamps
        if self._upkeep.workload_metrics:
            duties["census"] = self._census.run
        async with asyncio.TaskGroup() as tasks:
            for what, work in duties.items():
                tasks.create_task(self._supervision.keep(what, work))

    async def _keep_stamps(self) -> None:
        """Repair, once it is known which namespaces are ours."""
        await self._namespace_watch.complete.wait()
        await self._repair.run()

    def _may_stamp(self, namespace: str) -> bool:
        """Whether upkeep may write there: not while somebody has switched us off by deleting the configuration."""
        return not self._presence.taken_away and self._namespaces.in_scope(namespace)

    async def _republish(self) -> None:
        """Have the configuration carry a changed bundle at once."""
        while True:
            await self._keys.changed.wait()
            self._keys.changed.clear()
            self._registration.wake()

    def _wanted_configuration(self) -> JsonObject | None:
        bundle = self._trusted()
        if bundle is None or self._discovery.readings == 0 or not self._is_serving():
            return None
        upkeep = self._upkeep
        reach = Reach(
            namespace=upkeep.namespace,
            service=upkeep.service,
            url=upkeep.url,
            ca_bundle=bundle,
            timeout=upkeep.webhook_timeout,
            prefix=self._policy.prefix,
            excluded_namespaces=upkeep.excluded_namespaces,
            opt_in=upkeep.opt_in,
        )
        wanted = webhook_configuration(self._catalog(), self._discovery.kinds, reach)
        if upkeep.inject_ca_from is not None:
            wanted["metadata"]["annotations"]["cert-manager.io/inject-ca-from"] = upkeep.inject_ca_from
        return wanted

    def _trusted(self) -> bytes | None:
        """What the API server must trust; empty when cert-manager writes it, None while it is not known."""
        if self._upkeep.inject_ca_from is not None:
            return b""
        if self._upkeep.own_certificates:
            return self._keys.trusted or None
        if self._upkeep.ca_file is None:
            return self._upkeep.authority or b""
        try:
            return self._upkeep.ca_file.read_bytes()
        except OSError as error:
            self._tell("registration", f"--ca-file: {self._upkeep.ca_file} can't be read: {error.strerror}")
            return None

    def _applied(self, configuration: JsonObject) -> None:
        bundles = {webhook["clientConfig"].get("caBundle", "") for webhook in configuration.get("webhooks") or ()}
        published = b64decode(bundles.pop()) if len(bundles) == 1 else b""
        if published != self._keys.published:
            self._keys.published = published
            self._keys.wake()
        self._metrics.registered.set(1)

    def _wake_registration(self) -> None:
        self._registration.wake()

    def _presence_changed(self) -> None:
        self._metrics.registered.set(1 if self._presence.present else 0)
        self._registration.wake()

    def _crds_changed(self) -> None:
        self._roots.wake()
        for watch in self._definition_watches:
            watch.wake()

    def _catalog(self) -> Catalog:
        return self._definitions.catalog

    def _catalog_changed(self, catalog: Catalog) -> None:
        self._metrics.definitions.labels("in-force").set(len(catalog))
        self._roots.wake()
        self._registration.wake()
        self._statuses.wake()
        self._repair.sweep_soon()

    def _definitions_changed(self) -> None:
        self._statuses.wake()

    def _leadership_changed(self, state: str, reason: str) -> None:
        self._metrics.leading.set(1 if state == "leading" else 0)
        self._logger.info("leadership", state=state, reason=reason)


class Nudge:
    """A sink that only tells that something has changed."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change

    def seen(self, obj: JsonObject) -> None:  # noqa: ARG002 - a sink is given the object
        """Something is there or has changed."""
        self._on_change()

    def gone(self, obj: JsonObject) -> None:  # noqa: ARG002 - a sink is given the object
        """Something was deleted."""
        self._on_change()

    def listed(self, uids: frozenset[str]) -> None:
        """A list was read; its objects were shown one by one."""
