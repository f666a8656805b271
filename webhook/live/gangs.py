"""Gangs as they are now: how many of their pods are there, on nodes, running; and what a gang still lacks.

Which pods are one gang is in their memberships; which gangs there should be, in the structure that states them.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from catalog.library import ancestors
from catalog.structure import GangNumbers, Instance, Leaf, Structure, Unknown, add_counts
from webhook.live.nodes import Amounts, Node, fitting
from webhook.live.pods import LivePod
from webhook.live.scheduler_groups import GroupReference, SchedulerGroup


class GangState(StrEnum):
    """How far a gang got."""

    RUNNING = "running"
    WHOLE = "whole"
    STARTABLE = "startable"
    INCOMPLETE = "incomplete"
    OVER = "over"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveGang:
    """One gang with the pods of it that exist. `size` and `minimum` count pods, None where none is stated."""

    id: str
    size: int | None
    minimum: int | None
    pods: tuple[LivePod, ...]

    @property
    def present(self) -> tuple[LivePod, ...]:
        """Its pods that count: neither ended nor leaving."""
        return tuple(pod for pod in self.pods if pod.is_present)

    @property
    def placed(self) -> int:
        """Pods on nodes."""
        return sum(1 for pod in self.present if pod.node)

    @property
    def running(self) -> int:
        """Pods that run."""
        return sum(1 for pod in self.pods if pod.is_running)

    @property
    def state(self) -> GangState:
        """How far it got, by pods on nodes."""
        if not self.present and any(pod.is_over for pod in self.pods):
            return GangState.OVER
        if self.size is None:
            return GangState.UNKNOWN
        if self.running >= self.size:
            return GangState.RUNNING
        if self.placed >= self.size:
            return GangState.WHOLE
        if self.minimum is not None and self.placed >= self.minimum:
            return GangState.STARTABLE
        return GangState.INCOMPLETE

    @property
    def is_whole(self) -> bool:
        """Whether all its pods are on nodes."""
        return self.state in (GangState.RUNNING, GangState.WHOLE)


@dataclass(frozen=True, slots=True, kw_only=True)
class GangsAsked:
    """Gangs of one group that there should be: how many, and the pods of each. Unknown as a whole where it can't be."""

    group: str
    count: int
    size: int


def live_gangs(pods: Iterable[LivePod]) -> tuple[LiveGang, ...]:
    """The gangs that the pods of one workload name, in the order of their ids."""
    members: dict[str, list[LivePod]] = {}
    for pod in pods:
        if pod.membership is not None and pod.membership.gang:
            members.setdefault(pod.membership.gang, []).append(pod)
    return tuple(_live_gang(id_, members[id_]) for id_ in sorted(members))


def _live_gang(id_: str, pods: list[LivePod]) -> LiveGang:
    """A gang whose size is that of its newest pod: earlier ones carry what was asked before a scale."""
    newest = max(pods, key=lambda pod: (pod.is_present, pod.created)).membership
    assert newest is not None, "pods of a gang have a membership"
    return LiveGang(id=id_, size=newest.gang_size, minimum=newest.gang_min, pods=tuple(pods))


def gangs_asked(structures: Iterable[Structure]) -> tuple[GangsAsked, ...] | Unknown:
    """The gangs that the objects state which state any, for one workload."""
    found: list[GangsAsked] = []
    for structure in structures:
        if structure.gang_fault is not None:
            return Unknown(structure.gang_fault)
        for gang in structure.gangs:
            asked = _asked(structure, gang)
            if isinstance(asked, Unknown):
                return asked
            found.extend(each for each in asked if each.count and each.size)
    return tuple(found)


def _asked(structure: Structure, gang: GangNumbers) -> Sequence[GangsAsked] | Unknown:
    if isinstance(gang.gang_ids, Unknown):
        return gang.gang_ids
    if gang.gang_ids is not None:
        return _asked_by_id(gang, gang.gang_ids)
    sizes = gang.sizes.values
    if set(sizes) != {""}:
        return _asked_by_instance(gang, sizes, _members(structure, gang))
    size, pods = sizes[""], add_counts(instance.pods for instance in _members(structure, gang))
    if isinstance(size, Unknown):
        return size
    if isinstance(pods, Unknown):
        return pods
    return (GangsAsked(group=gang.group.name, count=pods // size if size else 0, size=size),)


def _asked_by_id(gang: GangNumbers, ids: Mapping[str, str]) -> Sequence[GangsAsked] | Unknown:
    """The object names its gangs: instances with the same name are one."""
    found: list[GangsAsked] = []
    seen: set[str] = set()
    for instance, name in ids.items():
        if not name or name in seen:
            continue
        seen.add(name)
        size = gang.sizes.of(instance)
        if size is None or isinstance(size, Unknown):
            return size or Unknown(f"gang group {gang.group.name}: no size is stated for instance {instance}")
        found.append(GangsAsked(group=gang.group.name, count=1, size=size))
    return found


def _asked_by_instance(
    gang: GangNumbers, sizes: Mapping[str, int | Unknown], members: Sequence[Instance]
) -> Sequence[GangsAsked] | Unknown:
    found: list[GangsAsked] = []
    pods_of = {instance.id: instance.pods for instance in members}
    for instance, size in sizes.items():
        pods = pods_of.get(instance, size)
        if isinstance(size, Unknown):
            return size
        if isinstance(pods, Unknown):
            return pods
        found.append(GangsAsked(group=gang.group.name, count=pods // size if size else 0, size=size))
    return found


def _members(structure: Structure, gang: GangNumbers) -> list[Instance]:
    return [instance for leaf in structure.leaves if _is_member(structure, gang, leaf) for instance in leaf.instances]


def _is_member(structure: Structure, gang: GangNumbers, leaf: Leaf) -> bool:
    names = {leaf.component.name, *(parent.name for parent in ancestors(structure.definition, leaf.component))}
    return any(member.component in names for member in gang.group.members)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lack:
    """What a gang lacks to be whole: pods not made, pods on no node, and whether those would fit now.

    `fits` is None where it can't be told: nodes or the missing pods' accelerators are not known.
    """

    missing: int
    waiting: tuple[LivePod, ...]
    fits: int | None

    @property
    def can_be_whole(self) -> bool | None:
        """Whether all that it lacks has room now, by accelerators; None where it can't be told."""
        return None if self.fits is None else self.fits >= self.missing + len(self.waiting)


def lack_of(gang: LiveGang, nodes: Sequence[Node] | None) -> Lack | None:
    """What a gang lacks; None for one that is whole, over, or of unknown size.

    Pods that were not made yet are taken to be as large as its largest.
    """
    if gang.size is None or gang.is_whole or gang.state is GangState.OVER:
        return None
    waiting = tuple(pod for pod in gang.present if not pod.node)
    missing = max(0, gang.size - len(gang.present))
    sizes = _sizes_wanted(gang, waiting, missing)
    fits = fitting(nodes, sizes) if nodes is not None and sizes is not None else None
    return Lack(missing=missing, waiting=waiting, fits=fits)


def _sizes_wanted(gang: LiveGang, waiting: Sequence[LivePod], missing: int) -> list[Amounts] | None:
    if any(pod.gpus is None for pod in waiting):
        return None
    known = [pod.accelerators for pod in gang.pods if pod.gpus is not None]
    if missing and not known:
        return None
    largest = max(known, key=lambda amounts: sum(amounts.values()), default={})
    return [*(pod.accelerators for pod in waiting), *([largest] * missing)]


class Agreement(StrEnum):
    """Whether a scheduler's group asks for what we say."""

    AGREES = "agrees"
    DIFFERS = "differs"
    MISSING = "missing"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A scheduler's group that pods of a gang name, beside the gang; `group` is None when no such group was read."""

    reference: GroupReference
    group: SchedulerGroup | None
    agreement: Agreement


def compared(gang: LiveGang, groups: Mapping[GroupReference, SchedulerGroup]) -> tuple[Comparison, ...]:
    """The gang beside every scheduler's group that its pods name."""
    references = dict.fromkeys(pod.group for pod in gang.present or gang.pods if pod.group is not None)
    return tuple(
        Comparison(reference=reference, group=groups.get(reference), agreement=_agreement(gang, groups.get(reference)))
        for reference in references
    )


def _agreement(gang: LiveGang, group: SchedulerGroup | None) -> Agreement:
    """A group that wants the whole gang, or the smaller number with which it may start, agrees."""
    if group is None:
        return Agreement.MISSING
    if group.minimum is None or gang.size is None:
        return Agreement.UNKNOWN
    wanted = (gang.size,) if gang.minimum is None else (gang.size, gang.minimum)
    return Agreement.AGREES if group.minimum in wanted else Agreement.DIFFERS
