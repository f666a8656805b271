"""The same objects and pods read through our definition of a kind and through upstream's: what comes out differently.

Both are read by our engine, so what is found here lies in the definitions alone. Objects and pods are those of the
golden cases; of objects with a status it is told which status comes first.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from catalog.attribution import Attribution, GangSeat, PodReading
from catalog.definition import JsonObject, StatusMapping
from catalog.library import CompiledDefinition
from catalog.parse import parse
from catalog.resources import AcceleratorPolicy
from catalog.status import statuses
from catalog.structure import Structure, Unknown, resolve
from tests.catalog.upstream_definitions import documents
from tests.golden.cases import Case, all_cases, is_pod_step, packaged_catalog
from webhook.lineage import controller_reference, kind_named
from webhook.stamps import role_of

POLICY = AcceleratorPolicy()

ROLES, PODS, GPUS, GANG, STATUS = RESPECTS = ("roles", "pods", "GPUs", "gang", "status")
"""In what two definitions of one kind may differ; `pods` and `GPUs` are those of roles that both have."""

NOT_KNOWN = "not known"
NONE = "none"


@dataclass(frozen=True, slots=True, order=True)
class Difference:
    """One thing that comes out differently: of which definition, in which respect, where it was seen, and how."""

    definition: str
    respect: str
    where: str
    ours: str
    upstream: str


@cache
def upstream_definitions() -> Mapping[str, CompiledDefinition]:
    """Upstream's definitions by name, read as a user's file would be."""
    found = [parse(document, "upstream") for document in documents()]
    return {definition.name: CompiledDefinition(definition) for definition in found}


def differences() -> Iterator[Difference]:
    """Every difference in every golden case, in the order of the cases."""
    for case in all_cases():
        for obj in _described_objects(case):
            yield from _differences_of_object(case, obj)
        for step in case.steps:
            if is_pod_step(step) and step.expected is not None:
                yield from _differences_of_pod(case, step.what, step.review.obj)


def _described_objects(case: Case) -> Iterator[JsonObject]:
    """Objects of the case that both sides describe; a pod with a controller owner is described by that one."""
    for obj in (*case.cluster, *(step.review.obj for step in case.steps)):
        if obj["kind"] != "Pod" or controller_reference(obj) is None:
            yield obj


def _both(obj: JsonObject) -> tuple[Structure, Structure] | None:
    """The object through our definition and through upstream's, when both describe its kind."""
    kind = kind_named(obj["apiVersion"], obj["kind"])
    ours = packaged_catalog().find(kind) if kind is not None else None
    theirs = upstream_definitions().get(ours.definition.name) if ours is not None else None
    if ours is None or theirs is None:
        return None
    return resolve(ours, obj, POLICY), resolve(theirs, obj, POLICY)


def _differences_of_object(case: Case, obj: JsonObject) -> Iterator[Difference]:
    both = _both(obj)
    if both is None:
        return
    ours, theirs = both
    where = f"{case.path.parent.name}/{case.path.stem}"
    name = ours.definition.name
    our_roles, their_roles = _numbers(ours), _numbers(theirs)
    if our_roles.keys() != their_roles.keys():
        yield Difference(name, ROLES, where, ", ".join(our_roles), ", ".join(their_roles))
    for role in our_roles.keys() & their_roles.keys():
        for respect, our_number, their_number in zip((PODS, GPUS), our_roles[role], their_roles[role], strict=True):
            if our_number != their_number:
                yield Difference(name, respect, f"{where} {role}", our_number, their_number)


def _numbers(structure: Structure) -> dict[str, tuple[str, str]]:
    """Pods and GPUs of one pod for each role and instance, as text."""
    found: dict[str, tuple[str, str]] = {}
    for leaf in structure.leaves:
        for instance in leaf.instances:
            role = role_of(structure, leaf, instance.id or None)
            name = leaf.component.name.lower() if isinstance(role, Unknown) else role
            found[f"{name}/{instance.id}"] = (_text(instance.pods), _text(instance.gpus))
    return found


def _text(value: int | Decimal | Unknown | None) -> str:
    if isinstance(value, Unknown):
        return NOT_KNOWN
    return NONE if value is None else str(value)


def _differences_of_pod(case: Case, what: str, pod: JsonObject) -> Iterator[Difference]:
    where = f"{case.path.parent.name}/{case.path.stem} {what}"
    for owner in _owners(case, pod):
        both = _both(owner)
        if both is not None:
            readings = tuple(PodReading(structure, pod) for structure in both)
            our_place, their_place = (_place(reading) for reading in readings)
            name = both[0].definition.name
            if our_place != their_place:
                yield Difference(name, ROLES, where, our_place, their_place)
            our_gang, their_gang = (_gang(reading) for reading in readings)
            if our_gang != their_gang:
                yield Difference(name, GANG, where, our_gang, their_gang)


def _owners(case: Case, pod: JsonObject) -> Iterator[JsonObject]:
    """The objects of the case above the pod, nearest first; the pod itself when it has none."""
    by_uid = {obj["metadata"]["uid"]: obj for obj in case.cluster}
    if controller_reference(pod) is None:
        yield pod
    obj: JsonObject | None = pod
    while obj is not None:
        reference = controller_reference(obj)
        obj = by_uid.get(reference.uid) if reference is not None else None
        if obj is not None:
            yield obj


def difference_of_status(obj: JsonObject, where: str) -> Difference | None:
    """Whether another status comes first for this object; None too when either side has none for its kind."""
    kind = kind_named(obj["apiVersion"], obj["kind"])
    ours = packaged_catalog().find(kind) if kind is not None else None
    theirs = upstream_definitions().get(ours.definition.name) if ours is not None else None
    if ours is None or theirs is None or theirs.definition.root.status == StatusMapping():
        return None
    our_status, their_status = statuses(ours, obj)[0], statuses(theirs, obj)[0]
    if our_status is their_status:
        return None
    return Difference(ours.definition.name, STATUS, where, our_status.value, their_status.value)


def _place(reading: PodReading) -> str:
    found = reading.attribution()
    if not isinstance(found, Attribution):
        return NOT_KNOWN if isinstance(found, Unknown) else NONE
    role = role_of(reading.structure, found.leaf, found.instance)
    return NOT_KNOWN if isinstance(role, Unknown) else f"{role}/{found.instance or ''}"


def _gang(reading: PodReading) -> str:
    """The size of the pod's gang, or why it has none."""
    if not reading.structure.compiled.states_gangs:
        return "not stated"
    found = reading.attribution()
    seat = reading.seat(found) if isinstance(found, Attribution) else found
    if isinstance(seat, GangSeat):
        return _text(seat.size)
    return NOT_KNOWN if isinstance(seat, Unknown) else NONE
