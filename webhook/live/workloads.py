"""The inventory of a cluster: every workload with its status, what it asks for, and the pods that it has.

One row a workload: the topmost described object, whichever framework it is of. Pods find their workload by id, so that
one whose object may not be read is still a workload, with what its pods say.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from catalog.definition import JsonObject, Status
from catalog.library import CompiledDefinition
from catalog.status import conditions_of, statuses
from catalog.structure import Structure, Unknown
from webhook.admit import POD
from webhook.identity import workload_id
from webhook.live.gangs import GangsAsked, LiveGang, gangs_asked, live_gangs
from webhook.live.headline import AT_REST, headline
from webhook.live.membership import WorkloadReference
from webhook.live.owners import OwnerIndex
from webhook.live.pods import LivePod, live_pods
from webhook.live.snapshot import Snapshot, kind_of, text_at
from webhook.stamps import Role, roles_of, topmost_first

NO_OBJECT = Unknown("its object could not be read")


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRole:
    """One role: what is asked for, and its pods. A role that only pods name asks for nothing that is known."""

    role: str
    pods_asked: int | Unknown
    gpus_asked: Decimal | Unknown
    pods: tuple[LivePod, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveWorkload:
    """One workload. `obj` and `structure` are None where its object could not be read.

    `statuses` are all that hold; `is_schedule` marks one whose runs are workloads of their own and whose numbers are
    those of one run. `gangs_asked` is unknown where gangs can't be told. `created` is RFC 3339 text.
    """

    reference: WorkloadReference
    version: str
    id: str
    obj: JsonObject | None
    structure: Structure | None
    statuses: tuple[Status, ...]
    created: str
    is_schedule: bool
    roles: tuple[LiveRole, ...]
    roles_unknown: str
    pods_asked: int | Unknown
    gpus_asked: Decimal | Unknown
    pods: tuple[LivePod, ...]
    gangs: tuple[LiveGang, ...]
    gangs_asked: tuple[GangsAsked, ...] | Unknown

    @property
    def status(self) -> Status:
        """The headline of its statuses."""
        return headline(self.statuses)

    @property
    def ready(self) -> int:
        """Pods that are ready."""
        return sum(1 for pod in self.pods if pod.is_ready and pod.is_present)

    @property
    def gpus_placed(self) -> Decimal:
        """GPUs held on nodes, those of leaving pods included."""
        return sum((pod.gpus for pod in self.pods if pod.is_placed and pod.gpus is not None), Decimal(0))

    @property
    def gpus_running(self) -> Decimal:
        """GPUs of pods that run."""
        return sum((pod.gpus for pod in self.pods if pod.is_running and pod.gpus is not None), Decimal(0))

    @property
    def asks(self) -> bool:
        """Whether it asks for pods now: not a schedule, and neither at rest nor ended."""
        return not self.is_schedule and self.status not in AT_REST


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """Every workload of a snapshot, and the pods that belong to none.

    `parts` are described objects that belong to a workload above them.
    """

    workloads: tuple[LiveWorkload, ...]
    strays: tuple[LivePod, ...]
    parts: tuple[JsonObject, ...]
    pods: tuple[LivePod, ...]
    index: OwnerIndex = field(repr=False)


def inventory(snapshot: Snapshot, index: OwnerIndex) -> Inventory:
    """Sort what was read into workloads, by namespace, kind and name."""
    pods = live_pods(snapshot.pods, index)
    tops, parts = _tops(snapshot, pods, index)
    by_workload, strays = _pods_by_workload(pods)
    found = [_workload(reference, obj, by_workload.pop(reference, ()), index) for reference, obj in tops.items()]
    found += [_workload(reference, None, members, index) for reference, members in by_workload.items()]
    found.sort(key=lambda each: _order(each.reference))
    return Inventory(workloads=tuple(found), strays=tuple(strays), parts=parts, pods=pods, index=index)


def _order(reference: WorkloadReference) -> tuple[str, ...]:
    return (reference.namespace, reference.kind, reference.name, reference.group, reference.uid)


def _tops(
    snapshot: Snapshot, pods: Sequence[LivePod], index: OwnerIndex
) -> tuple[dict[WorkloadReference, JsonObject], tuple[JsonObject, ...]]:
    """The objects that are workloads, by reference; and those that belong to one above them."""
    tops: dict[WorkloadReference, JsonObject] = {}
    parts: list[JsonObject] = []
    for obj in snapshot.objects:
        compiled = index.definition(obj)
        if compiled is None:
            continue
        if compiled.definition.spawns_workloads or _is_top(obj, index):
            tops[reference_of(obj)] = obj
        else:
            parts.append(obj)
    for pod, live in zip(snapshot.pods, pods, strict=True):
        if live.membership is not None and live.membership.workload == _pod_reference(pod):
            tops[live.membership.workload] = pod
    return tops, tuple(parts)


def _is_top(obj: JsonObject, index: OwnerIndex) -> bool:
    """Whether no described object above is the workload; where one above could not be read, there is one."""
    lineage = index.lineage(obj)
    return lineage.broken is None and not topmost_first(lineage.described)


def reference_of(obj: JsonObject) -> WorkloadReference:
    """The reference to a described object."""
    kind, metadata = kind_of(obj), obj["metadata"]
    namespace, name, uid = (text_at(metadata, field) for field in ("namespace", "name", "uid"))
    return WorkloadReference(kind.group, kind.kind, namespace, name, uid)


def _pod_reference(pod: JsonObject) -> WorkloadReference:
    metadata = pod["metadata"]
    return WorkloadReference("", "Pod", text_at(metadata, "namespace"), text_at(metadata, "name"))


def _pods_by_workload(pods: Iterable[LivePod]) -> tuple[dict[WorkloadReference, list[LivePod]], list[LivePod]]:
    """Pods of each workload. A uid tells the pods of an earlier run of the same name apart."""
    found: dict[WorkloadReference, list[LivePod]] = {}
    strays: list[LivePod] = []
    for pod in pods:
        if pod.membership is None:
            strays.append(pod)
        else:
            found.setdefault(pod.membership.workload, []).append(pod)
    return found, strays


def _workload(
    reference: WorkloadReference, obj: JsonObject | None, pods: Sequence[LivePod], index: OwnerIndex
) -> LiveWorkload:
    compiled = _definition(reference, obj, index)
    structure = _structure(compiled, obj, index)
    spawns = structure is not None and structure.definition.spawns_workloads
    answering = answering_structure(structure, index)
    roles = roles_of(answering) if answering is not None else NO_OBJECT
    return LiveWorkload(
        reference=reference,
        version=structure.kind.version if structure is not None else "",
        id=workload_id(reference.group, reference.kind, reference.namespace, reference.name),
        obj=obj,
        structure=structure,
        statuses=_statuses(compiled, obj, index),
        created=text_at(obj, "metadata", "creationTimestamp") if obj is not None else min(p.created for p in pods),
        is_schedule=spawns,
        roles=_live_roles(roles, pods),
        roles_unknown=roles.reason if isinstance(roles, Unknown) else "",
        pods_asked=answering.pods_total if answering is not None else NO_OBJECT,
        gpus_asked=_gpus_asked(answering, pods),
        pods=tuple(pods),
        gangs=live_gangs(pods),
        gangs_asked=NO_OBJECT if structure is None else gangs_asked(_gang_structures(structure, index)),
    )


def _definition(reference: WorkloadReference, obj: JsonObject | None, index: OwnerIndex) -> CompiledDefinition | None:
    if obj is None:
        return None
    is_pod = (reference.group, reference.kind) == (POD.group, POD.kind)
    return index.catalog.find(POD) if is_pod else index.catalog.find(kind_of(obj))


def _structure(compiled: CompiledDefinition | None, obj: JsonObject | None, index: OwnerIndex) -> Structure | None:
    if compiled is None or obj is None:
        return None
    return index.structure(obj) or index.resolved(compiled, obj)


def _statuses(compiled: CompiledDefinition | None, obj: JsonObject | None, index: OwnerIndex) -> tuple[Status, ...]:
    if compiled is None or obj is None:
        return (Status.UNDEFINED,)
    return statuses(compiled, obj, index.outcomes(compiled.status.pending(obj)))


def native_status(workload: LiveWorkload, index: OwnerIndex) -> tuple[str, tuple[JsonObject, ...]]:
    """The framework's own phase (empty when it has none) and conditions."""
    obj = workload.obj
    compiled = _definition(workload.reference, obj, index)
    if compiled is None or obj is None:
        return "", ()
    return conditions_of(compiled, obj, index.outcomes(compiled.status.pending(obj)))


def answering_structure(structure: Structure | None, index: OwnerIndex) -> Structure | None:
    """The structure that tells roles and counts: the object's own, or that of the object below it that it names."""
    while structure is not None and structure.answered_by is not None:
        kind = structure.answered_by
        below = (each for each in index.described_below(structure.uid))
        structure = next((each for each in below if (each.kind.group, each.kind.kind) == (kind.group, kind.kind)), None)
    return structure


def _gang_structures(structure: Structure, index: OwnerIndex) -> tuple[Structure, ...]:
    """The topmost objects that state gangs, the workload itself first; below one that states any, none is asked."""
    if structure.definition.spawns_workloads:
        return ()
    if structure.compiled.states_gangs:
        return (structure,)
    found: list[Structure] = []
    for below in index.described_below(structure.uid):
        if below.compiled.states_gangs and not _is_below(below, found, index):
            found.append(below)
    return tuple(found)


def _is_below(structure: Structure, others: Iterable[Structure], index: OwnerIndex) -> bool:
    obj = index.get(structure.uid)
    uids = {other.uid for other in others}
    return obj is not None and any(owner.uid in uids for owner in index.lineage(obj).owners)


def _gpus_asked(answering: Structure | None, pods: Sequence[LivePod]) -> Decimal | Unknown:
    """What the object asks for; where only its pods can tell, what they all say."""
    asked = answering.gpu_total if answering is not None else NO_OBJECT
    if not isinstance(asked, Unknown):
        return asked
    told = {pod.membership.gpu_total for pod in pods if pod.membership is not None and pod.is_present}
    only = told.pop() if len(told) == 1 else None
    return asked if only is None else only


def _live_roles(roles: tuple[Role, ...] | Unknown, pods: Iterable[LivePod]) -> tuple[LiveRole, ...]:
    """The roles in the definition's order, then those that only pods name."""
    members: dict[str, list[LivePod]] = {}
    for pod in pods:
        members.setdefault(pod.membership.role if pod.membership is not None else "", []).append(pod)
    stated = () if isinstance(roles, Unknown) else roles
    unknown = roles if isinstance(roles, Unknown) else Unknown("the object does not state this role")
    found = [
        LiveRole(role=each.role, pods_asked=each.pods, gpus_asked=each.gpus, pods=tuple(members.pop(each.role, ())))
        for each in stated
    ]
    found += [
        LiveRole(role=role, pods_asked=unknown, gpus_asked=unknown, pods=tuple(members[role]))
        for role in sorted(members)
    ]
    return tuple(found)
