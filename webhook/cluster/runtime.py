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
from webhook.cluster.client import Access, ApiError, ApiServer, ConnectionFault
from webhook.cluster.configuration import Reach, webhook_configuration
from webhook.cluster.discovery import Discovery
from webhook.cluster.keys import ForeignSecret, Keys, SecretNames, ServingSecret
from webhook.cluster.leader import Leadership, LeaseTerms
from webhook.cluster.namespaces import Namespaces
from webhook.cluster.owners import ClusterOwners
from webhook.cluster.registration import COLLECTION as CONFIGURATIONS
from webhook.cluster.registration import FIELD_SELECTOR, Mode, Presence, Registration
from webhook.cluster.repair import Repair
from webhook.cluster.resources import COLLECTIONS, DefinitionResources, DefinitionStatuses
from webhook.cluster.roots import RootWatches
from webhook.cluster.telemetry import ClusterMetrics
from webhook.cluster.watches import Watch
from webhook.definitions import DefinitionsInForce, Source
from webhook.isolation import Isolated
from webhook.stamps import Policy

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
AGAIN = 2.0
"""Seconds until a task of upkeep that failed is begun again."""


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
    owner_cache_size: int
    owner_get_rate: float
    owner_get_burst: int
    own_certificates: bool
    serving_names: tuple[str, ...] = ()
    observe: bool = False
    authority: bytes | None = None
    ca_file: Path | None = None
    inject_ca_from: str | None = None


Log = Callable[..., None]


class ClusterRuntime:
    """The tasks of one replica. Use `running`; `owners` is the source of lineages for admissions."""

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
        log: Log,
    ) -> None:
        self._server = server
        self._upkeep = upkeep
        self._definitions = definitions
        self._policy = policy
        self._metrics = metrics
        self._is_serving = is_serving
        self._log = log
        self._discovery = Discovery(server)
        self.owners = ClusterOwners(
            server,
            self._discovery,
            policy,
            isolated,
            metrics,
            cache_size=upkeep.owner_cache_size,
            rate=upkeep.owner_get_rate,
            burst=upkeep.owner_get_burst,
        )
        self._namespaces = Namespaces(upkeep.namespace, upkeep.excluded_namespaces, policy.prefix, opt_in=upkeep.opt_in)
        self._repair = Repair(
            server,
            self._discovery,
            self.owners,
            policy,
            metrics,
            catalog=self._catalog,
            in_scope=self._namespaces.in_scope,
            rate=upkeep.reconcile_rate,
            report=self._report,
        )
        self._roots = RootWatches(
            server,
            self._discovery,
            self.owners,
            self._repair,
            metrics,
            catalog=self._catalog,
            on_kinds=self._wake_registration,
            report=self._report,
        )
        self._keys = Keys(server, self._secret_names(), self._report)
        self.serving_secret = ServingSecret(on_pair)
        self._presence = Presence(self._presence_changed)
        self._registration = Registration(
            server,
            self._presence,
            upkeep.registration,
            self._wanted_configuration,
            on_applied=self._applied,
            report=self._report,
        )
        self._resources = {
            source: DefinitionResources(source, definitions, self._definitions_changed, log) for source in COLLECTIONS
        }
        self._statuses = DefinitionStatuses(server, self._resources[Source.RESOURCE], definitions, self._report)
        self._leadership = Leadership(server, self._lease_terms(), self._lead, self._leadership_changed)
        definitions.subscribe(self._catalog_changed)

    @classmethod
    @asynccontextmanager
    async def running(cls, upkeep: Upkeep, *arguments: Any, **keywords: Any) -> AsyncIterator[Self]:
        """A replica's cluster room, up to the end of the block. Raises `ConnectionFault` without configuration."""
        async with ApiServer.connect(upkeep.access) as server:
            runtime = cls(server, upkeep, *arguments, **keywords)
            tasks = [asyncio.create_task(work) for work in runtime._tasks()]
            try:
                yield runtime
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    def _tasks(self) -> list[Any]:
        """Everything that this replica does as long as it runs."""
        watches = [
            Watch(self._server, path, self._resources[source], self._metrics, on_fault=self._report)
            for source, (_, _, path) in COLLECTIONS.items()
        ]
        watches.append(
            Watch(
                self._server, CRDS, _Nudge(self._roots.wake), self._metrics, metadata_only=True, on_fault=self._report
            )
        )
        watches.append(
            Watch(
                self._server,
                "/api/v1/namespaces",
                self._namespaces,
                self._metrics,
                metadata_only=True,
                on_fault=self._report,
            )
        )
        if self._upkeep.registration != "never":
            watches.append(
                Watch(
                    self._server,
                    CONFIGURATIONS,
                    self._presence,
                    self._metrics,
                    field_selector=FIELD_SELECTOR,
                    on_fault=self._report,
                )
            )
        if self._upkeep.own_certificates:
            names = self._secret_names()
            watches.append(
                Watch(
                    self._server,
                    names.collection,
                    self.serving_secret,
                    self._metrics,
                    field_selector=f"metadata.name={names.serving}",
                    on_fault=self._report,
                )
            )
        return [
            *(watch.run() for watch in watches),
            *(resources.run() for resources in self._resources.values()),
            self._roots.run(),
            self._leadership.run(),
        ]

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
        keys = [self._for_ever("certificate", self._keys.keep), self._republish()]
        async with asyncio.TaskGroup() as tasks:
            for work in keys if self._upkeep.own_certificates else []:
                tasks.create_task(work)
            tasks.create_task(self._for_ever("registration", self._registration.keep))
            tasks.create_task(self._for_ever("definitions", self._statuses.keep))
            if not self._upkeep.observe:
                tasks.create_task(self._for_ever("repair", self._repair.run))

    async def _for_ever(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await work()
            except (ApiError, ConnectionFault, ForeignSecret) as error:
                self._report(what, str(error))
            except Exception as error:  # noqa: BLE001 - a fault in one duty must not end the others
                self._log("upkeep failed", what=what, fault=repr(error), exc_info=True)
            await asyncio.sleep(AGAIN)

    async def _republish(self) -> None:
        """Have the configuration carry a changed bundle at once, and the certificates look again when it does."""
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
            self._report("registration", f"--ca-file: {self._upkeep.ca_file} can't be read: {error.strerror}")
            return None

    def _applied(self, configuration: JsonObject) -> None:
        bundles = [webhook["clientConfig"].get("caBundle", "") for webhook in configuration.get("webhooks") or ()]
        self._keys.published = b64decode(bundles[0]) if bundles else b""
        self._metrics.registered.set(1)

    def _wake_registration(self) -> None:
        self._registration.wake()

    def _presence_changed(self) -> None:
        self._metrics.registered.set(1 if self._presence.present else 0)
        self._registration.wake()

    def _catalog(self) -> Catalog:
        return self._definitions.catalog

    def _catalog_changed(self, catalog: Catalog) -> None:
        self._metrics.definitions.labels("in-force").set(len(catalog))
        self._roots.wake()
        self._registration.wake()

    def _definitions_changed(self) -> None:
        self._statuses.wake()

    def _leadership_changed(self, state: str, reason: str) -> None:
        self._metrics.leading.set(1 if state == "leading" else 0)
        self._log("leadership", state=state, reason=reason)

    def _report(self, what: str, sentence: str) -> None:
        self._log("cluster", what=what, reason=sentence)


class _Nudge:
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
