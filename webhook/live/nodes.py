"""Nodes as places for pods: what they have of accelerators, what is taken, and whether some pods would still fit.

Accelerators only: whether processors, memory, taints and affinities allow a pod is the scheduler's to say.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from catalog.definition import JsonObject
from catalog.resources import AcceleratorPolicy, QuantityError, UnknownDevices, quantity
from webhook.live.pods import LivePod
from webhook.live.snapshot import map_at, maps_at, text_at

Amounts = Mapping[str, Decimal]
"""Resource name → amount."""

HOSTNAME = "kubernetes.io/hostname"
_DIGITS = re.compile(r"([0-9]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node. `gpus` are allocatable, `placed` those of pods on it; `has` and `taken` count by resource.

    `takes_pods` is False for one that is cordoned or not ready.
    """

    name: str
    labels: Mapping[str, str]
    takes_pods: bool
    gpus: Decimal
    placed: Decimal
    has: Amounts = field(default_factory=dict)
    taken: Amounts = field(default_factory=dict)

    @property
    def free(self) -> Decimal:
        """GPUs that no pod holds; more may be held than there are, when a device has failed."""
        return max(Decimal(0), self.gpus - self.placed)


def nodes_with(objects: Iterable[JsonObject], pods: Iterable[LivePod], policy: AcceleratorPolicy) -> tuple[Node, ...]:
    """The nodes in the order of their names, with what the pods hold of them: all pods of the cluster, to be right."""
    by_node: dict[str, list[LivePod]] = {}
    for pod in pods:
        if pod.is_placed:
            by_node.setdefault(pod.node, []).append(pod)
    found = [_node(obj, by_node.get(text_at(obj, "metadata", "name"), ()), policy) for obj in objects]
    return tuple(sorted(found, key=lambda node: natural(node.name)))


def _node(obj: JsonObject, pods: Sequence[LivePod], policy: AcceleratorPolicy) -> Node:
    has = _accelerators(map_at(obj, "status", "allocatable"), policy)
    taken: dict[str, Decimal] = {}
    for pod in pods:
        for name, amount in pod.accelerators.items():
            taken[name] = taken.get(name, Decimal(0)) + amount
    return Node(
        name=text_at(obj, "metadata", "name"),
        labels={key: value for key, value in map_at(obj, "metadata", "labels").items() if isinstance(value, str)},
        takes_pods=map_at(obj, "spec").get("unschedulable") is not True and _is_ready(obj),
        gpus=sum((amount * _weight(name, policy) for name, amount in has.items()), Decimal(0)),
        placed=sum((pod.gpus for pod in pods if pod.gpus is not None), Decimal(0)),
        has=has,
        taken=taken,
    )


def _is_ready(obj: JsonObject) -> bool:
    return any(
        entry.get("type") == "Ready" and entry.get("status") == "True" for entry in maps_at(obj, "status", "conditions")
    )


def _accelerators(allocatable: JsonObject, policy: AcceleratorPolicy) -> dict[str, Decimal]:
    found: dict[str, Decimal] = {}
    for name, text in allocatable.items():
        try:
            if policy.resource_weight(name) is not None:
                found[name] = quantity(text)
        except (QuantityError, UnknownDevices):
            continue
    return found


def _weight(name: str, policy: AcceleratorPolicy) -> Decimal:
    return policy.resource_weight(name) or Decimal(0)


def fitting(nodes: Iterable[Node], wanted: Sequence[Amounts]) -> int:
    """How many of the pods fit at once beside what is there, the largest first, by accelerators alone."""
    rooms = [
        {name: amount - node.taken.get(name, Decimal(0)) for name, amount in node.has.items()}
        for node in nodes
        if node.takes_pods
    ]
    placed = 0
    for pod in sorted(wanted, key=lambda amounts: sum(amounts.values(), Decimal(0)), reverse=True):
        room = _tightest(rooms, pod)
        if room is not None:
            placed += 1
            for name, amount in pod.items():
                room[name] -= amount
    return placed


def _tightest(rooms: list[dict[str, Decimal]], pod: Amounts) -> dict[str, Decimal] | None:
    """The room that is left smallest by the pod: best fit leaves whole nodes for whole-node pods."""
    fits = [room for room in rooms if all(room.get(name, Decimal(0)) >= amount for name, amount in pod.items())]
    return min(fits, key=lambda room: sum((room[name] for name in pod), Decimal(0)), default=None)


def topology_keys(nodes: Iterable[Node]) -> tuple[str, ...]:
    """The labels of nodes that tell where they are, those of the widest places first.

    Left out are the hostname, and a label that is the same on all nodes: it tells nothing.
    """
    nodes = tuple(nodes)
    keys = {key for node in nodes for key in node.labels if "topology" in key.lower() and key != HOSTNAME}
    places = {key: len({node.labels.get(key) for node in nodes}) for key in keys}
    return tuple(sorted((key for key in keys if places[key] > 1), key=lambda key: (places[key], key)))


def natural(text: str) -> tuple[int | str, ...]:
    """A key that sorts `node-2` before `node-10`: text and numbers in turn."""
    return tuple(int(part) if position % 2 else part for position, part in enumerate(_DIGITS.split(text)))
