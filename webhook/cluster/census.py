"""Counts workloads and GPUs for metrics, on the leader: roots as the watches show them, running pods once a minute.

Of each root a small fact is kept, of pods nothing; those are listed in pages, as metadata only.
"""

import asyncio
from collections.abc import Callable, Iterable
from decimal import Decimal, InvalidOperation

from catalog.definition import GroupVersionKind, JsonObject
from catalog.library import Catalog
from catalog.status import statuses
from catalog.structure import resolve
from webhook.cluster.client import ApiError, ApiServer, ConnectionFault
from webhook.cluster.discovery import Discovery, Resource
from webhook.cluster.supervision import Supervision
from webhook.cluster.views import readable_version, watched_kind
from webhook.cluster.workload_metrics import WorkloadMetrics
from webhook.live.census import Fact, RunningPod, census, fact_of
from webhook.live.headline import headline
from webhook.live.snapshot import map_at, text_at
from webhook.stamps import Policy

INTERVAL = 60.0
"""Seconds between two counts."""

BREATH = 50
"""Objects worked on before admissions get their turn."""


class WorkloadCensus:
    """The duty of counting. `seen` and `gone` are told by the watches of roots and do nothing while we don't lead.

    `exists(uid)` says whether a root is still there as far as the watches know.
    """

    def __init__(
        self,
        server: ApiServer,
        discovery: Discovery,
        policy: Policy,
        metrics: WorkloadMetrics,
        *,
        supervision: Supervision,
        catalog: Callable[[], Catalog],
        interval: float = INTERVAL,
    ) -> None:
        self._server = server
        self._discovery = discovery
        self._policy = policy
        self._metrics = metrics
        self._supervision = supervision
        self._catalog = catalog
        self._interval = interval
        self._facts: dict[str, Fact] = {}
        self._active = False
        self.exists: Callable[[str], bool] = lambda _: True

    def seen(self, obj: JsonObject, kind: GroupVersionKind) -> None:
        """A root as it is now. Status expressions that may not be evaluated here leave it undefined."""
        compiled = self._catalog().find(kind) if self._active else None
        if compiled is None:
            return
        structure = resolve(compiled, obj, self._policy.accelerators)
        self._facts[structure.uid] = fact_of(structure, obj, headline(statuses(compiled, obj)), self._catalog())

    def gone(self, uid: str) -> None:
        """A root was deleted."""
        self._facts.pop(uid, None)

    async def run(self) -> None:
        """Count for as long as this replica leads."""
        self._active = True
        try:
            await self._look_at_roots()
            while True:
                await self._count()
                await asyncio.sleep(self._interval)
        finally:
            self._active = False
            self._facts.clear()
            self._metrics.forget()

    async def _look_at_roots(self) -> None:
        """All of them once: what the watches showed before we led was not kept."""
        for resource, version in self._kinds():
            try:
                async for page in self._server.pages(resource.path(version=version)):
                    for number, obj in enumerate(page.items):
                        if number % BREATH == 0:
                            await asyncio.sleep(0)
                        self._guarded(obj, watched_kind(obj, resource, version))
            except ApiError as error:
                if error.code not in (403, 404, 410):
                    raise

    def _kinds(self) -> Iterable[tuple[Resource, str]]:
        for (group, kind), definitions in sorted(self._catalog().by_kind.items()):
            resource = self._discovery.known(group, kind)
            if resource is not None and (group, kind) != ("", "Pod") and "list" in resource.verbs:
                yield resource, readable_version(resource, definitions[0].definition.describes, definitions[0])

    def _guarded(self, obj: JsonObject, kind: GroupVersionKind) -> None:
        try:
            self.seen(obj, kind)
        except Exception:  # noqa: BLE001 - one odd object must not keep all others from being counted
            self._supervision.survived("census", name=text_at(obj, "metadata", "name"))

    async def _count(self) -> None:
        try:
            pods = await self._running_pods()
        except (ApiError, ConnectionFault) as error:
            self._supervision.tell("census", f"running pods could not be counted: {error}")
            return
        self._facts = {uid: fact for uid, fact in self._facts.items() if self.exists(uid)}
        self._metrics.show(census(self._facts, pods))

    async def _running_pods(self) -> list[RunningPod]:
        found: list[RunningPod] = []
        pages = self._server.pages(
            "/api/v1/pods",
            metadata_only=True,
            label_selector=f"{self._policy.prefix}/workload-id",
            field_selector="status.phase=Running",
        )
        async for page in pages:
            for number, pod in enumerate(page.items):
                if number % BREATH == 0:
                    await asyncio.sleep(0)
                if map_at(pod, "metadata").get("deletionTimestamp") is None:
                    found.append(_running(pod, self._policy.prefix))
        return found


def _running(pod: JsonObject, prefix: str) -> RunningPod:
    labels, annotations = map_at(pod, "metadata", "labels"), map_at(pod, "metadata", "annotations")
    return RunningPod(
        kind=text_at(labels, f"{prefix}/workload-kind"),
        namespace=text_at(pod, "metadata", "namespace"),
        role=text_at(labels, f"{prefix}/role"),
        gpus=_gpus(text_at(annotations, f"{prefix}/gpus")),
    )


def _gpus(text: str) -> Decimal:
    """GPUs that a stamp states; none where it states none, or no number."""
    try:
        amount = Decimal(text or 0)
    except InvalidOperation:
        return Decimal(0)
    return amount if amount.is_finite() and amount > 0 else Decimal(0)
