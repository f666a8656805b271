"""One workload in full: its components with their pods, where they are, what its gangs lack, and the native status."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from catalog.definition import JsonObject
from catalog.structure import Instance, Leaf, Structure, Unknown
from webhook.live.gangs import Comparison, Lack, LiveGang, compared, lack_of
from webhook.live.nodes import Node, natural, topology_keys
from webhook.live.owners import OwnerIndex
from webhook.live.pods import LivePod
from webhook.live.scheduler_groups import GroupReference, SchedulerGroup
from webhook.live.workloads import LiveWorkload, answering_structure, native_status
from webhook.stamps import role_of


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceView:
    """One instance of a component and its pods; `id` is empty for a component without instances."""

    id: str
    role: str
    pods_asked: int | Unknown
    gpus_each: Decimal | Unknown
    pods: tuple[LivePod, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentView:
    """One component that bears pods."""

    name: str
    instances: tuple[InstanceView, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Pods and GPUs in one place: a node, a rack, a zone."""

    name: str
    pods: int
    gpus: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class GangView:
    """A gang with what it lacks (None when nothing, or when it can't be told), beside the scheduler's groups."""

    gang: LiveGang
    lack: Lack | None
    comparisons: tuple[Comparison, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """A workload in full. `others` are pods of no component that is known; `topology` has the places by node label.

    `phase` and `conditions` are the framework's own words.
    """

    workload: LiveWorkload
    components: tuple[ComponentView, ...]
    others: tuple[LivePod, ...]
    nodes: tuple[Place, ...]
    topology: Mapping[str, tuple[Place, ...]]
    gangs: tuple[GangView, ...]
    phase: str
    conditions: tuple[JsonObject, ...]


def describe(
    workload: LiveWorkload,
    index: OwnerIndex,
    nodes: Sequence[Node] | None,
    groups: Mapping[GroupReference, SchedulerGroup],
    topology: Sequence[str] = (),
) -> Description:
    """Everything about one workload; `topology` are the node labels to sum by, those that say so by default."""
    structure = answering_structure(workload.structure, index)
    components, others = _components(structure, workload.pods)
    phase, conditions = native_status(workload, index)
    keys = topology or (topology_keys(nodes) if nodes is not None else ())
    return Description(
        workload=workload,
        components=components,
        others=others,
        nodes=_places(workload.pods, lambda pod: pod.node),
        topology={key: places for key in keys if (places := _topology(workload.pods, nodes or (), key))},
        gangs=tuple(gang_view(gang, nodes, groups) for gang in workload.gangs),
        phase=phase,
        conditions=conditions,
    )


def gang_view(
    gang: LiveGang, nodes: Sequence[Node] | None, groups: Mapping[GroupReference, SchedulerGroup]
) -> GangView:
    """A gang beside the nodes and the scheduler's groups."""
    return GangView(gang=gang, lack=lack_of(gang, nodes), comparisons=compared(gang, groups))


def _components(
    structure: Structure | None, pods: Iterable[LivePod]
) -> tuple[tuple[ComponentView, ...], tuple[LivePod, ...]]:
    """Pods by the role and instance in their membership, which follow from component and instance."""
    left = {pod.uid: pod for pod in pods}
    found: list[ComponentView] = []
    for leaf in structure.leaves if structure is not None else ():
        assert structure is not None, "there are leaves"
        instances = tuple(_instance(structure, leaf, instance, left) for instance in leaf.instances)
        found.append(ComponentView(name=leaf.component.name, instances=instances))
    return tuple(found), tuple(left.values())


def _instance(structure: Structure, leaf: Leaf, instance: Instance, left: dict[str, LivePod]) -> InstanceView:
    role = role_of(structure, leaf, instance.id or None)
    named = "" if isinstance(role, Unknown) else role
    taken = [pod for pod in left.values() if _is_of(pod, named, instance.id)]
    for pod in taken:
        del left[pod.uid]
    return InstanceView(
        id=instance.id,
        role=named,
        pods_asked=instance.pods,
        gpus_each=instance.gpus,
        pods=tuple(sorted(taken, key=lambda pod: natural(pod.name))),
    )


def _is_of(pod: LivePod, role: str, instance: str) -> bool:
    return pod.membership is not None and pod.membership.role == role and pod.membership.instance == instance


def _topology(pods: Iterable[LivePod], nodes: Sequence[Node], key: str) -> tuple[Place, ...]:
    labels = {node.name: node.labels.get(key, "") for node in nodes}
    return _places(pods, lambda pod: labels.get(pod.node, ""))


def _places(pods: Iterable[LivePod], place_of: Callable[[LivePod], str]) -> tuple[Place, ...]:
    members: dict[str, list[LivePod]] = {}
    for pod in pods:
        if pod.is_placed and place_of(pod):
            members.setdefault(place_of(pod), []).append(pod)
    return tuple(
        Place(name=name, pods=len(members[name]), gpus=gpus_of(members[name])) for name in sorted(members, key=natural)
    )


def gpus_of(pods: Iterable[LivePod]) -> Decimal:
    """GPUs of the pods whose devices are known."""
    return sum((pod.gpus for pod in pods if pod.gpus is not None), Decimal(0))
