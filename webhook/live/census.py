"""Workloads and GPUs counted for metrics: by kind, status, namespace and role, with a bounded number of values.

What is counted comes as small facts, kept by whoever watches; a namespace or role beyond the bounds counts as `other`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from catalog.definition import JsonObject, Status
from catalog.library import Catalog
from catalog.structure import Structure, Unknown
from webhook.lineage import controller_reference
from webhook.live.headline import AT_REST
from webhook.stamps import roles_of

OTHER = "other"
MAX_NAMESPACES = 100
MAX_ROLES = 50

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One described object, as far as it is counted. `owner` is the uid of its controller, empty without one.

    `is_part` marks what belongs to a workload above it. `answered_by` is the kind below that states its numbers.
    """

    uid: str
    owner: str
    group: str
    kind: str
    namespace: str
    status: Status
    is_part: bool
    is_schedule: bool
    gpus: tuple[tuple[str, Decimal], ...]
    answered_by: tuple[str, str] | None


def fact_of(structure: Structure, obj: JsonObject, status: Status, catalog: Catalog) -> Fact:
    """What is counted of a described object; GPUs by role, as far as they are known."""
    roles = roles_of(structure)
    answering = structure.answered_by
    reference = controller_reference(obj)
    return Fact(
        uid=structure.uid,
        owner=reference.uid if reference is not None else "",
        group=structure.kind.group,
        kind=structure.kind.kind,
        namespace=structure.namespace,
        status=status,
        is_part=_is_part(obj, catalog),
        is_schedule=structure.definition.spawns_workloads,
        gpus=()
        if isinstance(roles, Unknown)
        else tuple((role.role, role.gpus) for role in roles if isinstance(role.gpus, Decimal) and role.gpus),
        answered_by=(answering.group, answering.kind) if answering is not None else None,
    )


def _is_part(obj: JsonObject, catalog: Catalog) -> bool:
    """Whether the controller is the workload, or part of it, by its kind; a schedule's runs are their own."""
    reference = controller_reference(obj)
    if reference is None or not catalog.walks_through(reference.kind.group, reference.kind.kind):
        return False
    compiled = catalog.find(reference.kind)
    return compiled is None or not compiled.definition.spawns_workloads


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningPod:
    """A stamped pod that runs, as its stamps have it."""

    kind: str
    namespace: str
    role: str
    gpus: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """The numbers. `workloads` by kind, status and namespace; GPUs by kind, namespace and role."""

    workloads: Mapping[Key, int] = field(default_factory=dict)
    gpus_asked: Mapping[Key, Decimal] = field(default_factory=dict)
    gpus_running: Mapping[Key, Decimal] = field(default_factory=dict)


def census(facts: Mapping[str, Fact], pods: Iterable[RunningPod]) -> Census:
    """Count; `facts` are by uid."""
    tops = [fact for fact in facts.values() if not fact.is_part]
    pods = tuple(pods)
    answers = _answers(facts)
    namespaces = Bound(Counter([*(fact.namespace for fact in tops), *(pod.namespace for pod in pods)]), MAX_NAMESPACES)
    asking = [(fact, gpus) for fact in tops if _asks(fact) for gpus in answers.get(fact.uid, fact.gpus)]
    roles = Bound(Counter([*(role for _, (role, _) in asking), *(pod.role for pod in pods)]), MAX_ROLES)
    workloads: Counter[Key] = Counter((fact.kind, fact.status.value, namespaces(fact.namespace)) for fact in tops)
    asked: dict[Key, Decimal] = {}
    for fact, (role, gpus) in asking:
        _add(asked, (fact.kind, namespaces(fact.namespace), roles(role)), gpus)
    running: dict[Key, Decimal] = {}
    for pod in pods:
        _add(running, (pod.kind, namespaces(pod.namespace), roles(pod.role)), pod.gpus)
    return Census(workloads=workloads, gpus_asked=asked, gpus_running=running)


class Bound:
    """The most frequent values, up to a number; every other one is `other`."""

    def __init__(self, counted: Counter[str], limit: int) -> None:
        kept = sorted(counted, key=lambda value: (-counted[value], value))[:limit]
        self._kept = frozenset(kept)

    def __call__(self, value: str) -> str:
        """`value`, or `other`."""
        return value if value in self._kept else OTHER


def _asks(fact: Fact) -> bool:
    return not fact.is_schedule and fact.status not in AT_REST


def _answers(facts: Mapping[str, Fact]) -> dict[str, tuple[tuple[str, Decimal], ...]]:
    """GPUs of the objects whose numbers another object below them states, by their uid."""
    found: dict[str, tuple[tuple[str, Decimal], ...]] = {}
    for fact in facts.values():
        owner = facts.get(fact.owner)
        if owner is not None and owner.answered_by == (fact.group, fact.kind):
            found[owner.uid] = fact.gpus
    return found


def _add(totals: dict[Key, Decimal], key: Key, amount: Decimal) -> None:
    totals[key] = totals.get(key, Decimal(0)) + amount
