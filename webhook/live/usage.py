"""Who asks for GPUs, who holds them, and what is held without being used; by namespace, kind, workload or node.

`asked` counts workloads that ask for pods now. `placed` counts pods on nodes, so that all rows together are what the
nodes have given away. `running` is the part of it whose pods run, `idle` the rest: held by pods that start, wait for
their gang, or leave.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

from catalog.structure import Unknown
from webhook.live.nodes import Node
from webhook.live.pods import LivePod
from webhook.live.workloads import Inventory, LiveWorkload

By = Literal["namespace", "kind", "workload", "node"]

ZERO = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """GPUs of one row. `names` tell which, by the kind of table; an empty `names` are pods of no described workload.

    `asked` is None for nodes and for pods without a workload; `is_partial` says that a workload's number is unknown and
    not in it.
    """

    names: tuple[str, ...]
    workloads: int
    pods: int
    asked: Decimal | None
    placed: Decimal
    running: Decimal
    is_partial: bool = False
    allocatable: Decimal | None = None

    @property
    def idle(self) -> Decimal:
        """GPUs held by pods that do not run."""
        return self.placed - self.running

    @property
    def free(self) -> Decimal | None:
        """GPUs of nodes that nobody holds; None for other rows."""
        return None if self.allocatable is None else max(ZERO, self.allocatable - self.placed)


def usage_by(found: Inventory, by: By, nodes: Sequence[Node] | None) -> tuple[Usage, ...]:
    """The rows, those that hold most first; nodes in the order of their names. Rows without any GPU are left out."""
    if by == "node":
        placed: dict[str, list[LivePod]] = {}
        for pod in found.pods:
            if pod.is_placed:
                placed.setdefault(pod.node, []).append(pod)
        return tuple(_of_node(node, placed.get(node.name, ())) for node in nodes or ())
    members: dict[tuple[str, ...], list[LiveWorkload]] = {}
    for workload in found.workloads:
        members.setdefault(_names(workload, by), []).append(workload)
    rows = [_of_workloads(names, workloads) for names, workloads in members.items()]
    rows.append(_of_strays(found.strays))
    held = [row for row in rows if row.placed or row.asked or row.is_partial]
    return tuple(sorted(held, key=lambda row: (-row.placed, -(row.asked or ZERO), row.names)))


def total(rows: Iterable[Usage]) -> Usage:
    """All rows together."""
    rows = tuple(rows)
    return Usage(
        names=(),
        workloads=sum(row.workloads for row in rows),
        pods=sum(row.pods for row in rows),
        asked=sum((row.asked for row in rows if row.asked is not None), ZERO),
        placed=sum((row.placed for row in rows), ZERO),
        running=sum((row.running for row in rows), ZERO),
        is_partial=any(row.is_partial for row in rows),
        allocatable=_sum_or_none([row.allocatable for row in rows]),
    )


def _names(workload: LiveWorkload, by: By) -> tuple[str, ...]:
    reference = workload.reference
    if by == "namespace":
        return (reference.namespace,)
    return (reference.kind,) if by == "kind" else (reference.namespace, reference.kind, reference.name)


def _of_workloads(names: tuple[str, ...], workloads: Sequence[LiveWorkload]) -> Usage:
    asking = [workload.gpus_asked for workload in workloads if workload.asks]
    return Usage(
        names=names,
        workloads=len(workloads),
        pods=sum(1 for workload in workloads for pod in workload.pods if pod.is_placed),
        asked=sum((asked for asked in asking if not isinstance(asked, Unknown)), ZERO),
        placed=sum((workload.gpus_placed for workload in workloads), ZERO),
        running=sum((workload.gpus_running for workload in workloads), ZERO),
        is_partial=any(isinstance(asked, Unknown) for asked in asking),
    )


def _of_strays(pods: Sequence[LivePod]) -> Usage:
    return Usage(
        names=(),
        workloads=0,
        pods=sum(1 for pod in pods if pod.is_placed),
        asked=None,
        placed=_gpus(pod for pod in pods if pod.is_placed),
        running=_gpus(pod for pod in pods if pod.is_running and pod.is_placed),
    )


def _of_node(node: Node, here: Sequence[LivePod]) -> Usage:
    return Usage(
        names=(node.name,),
        workloads=len({pod.membership.workload for pod in here if pod.membership is not None}),
        pods=len(here),
        asked=None,
        placed=node.placed,
        running=_gpus(pod for pod in here if pod.is_running),
        allocatable=node.gpus,
    )


def _gpus(pods: Iterable[LivePod]) -> Decimal:
    return sum((pod.gpus for pod in pods if pod.gpus is not None), ZERO)


def _sum_or_none(amounts: Sequence[Decimal | None]) -> Decimal | None:
    known = [amount for amount in amounts if amount is not None]
    return sum(known, ZERO) if known else None
