"""The stamp contract in code: what is written on a pod or on a described object, from values alone.

The composition rules, for a lineage of several described objects (topmost first, schedules left out):

* the topmost one is the workload: it gives `workload-id`, `workload-kind` and the `workload` annotation;
* the topmost one whose definition attributes the pod to a component gives the role and the instance;
* the topmost one whose definition states gangs gives `gang-size`, `gang` and `gang-min`;
* the workload gives `gpu-total`, or the object below that its definition names in `answeredBy`.

What cannot be known exactly is left out, with its reason under `unresolved`.
"""

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from typing import Any

import orjson

from catalog.attribution import Attribution, GangSeat, PodReading
from catalog.definition import GroupVersionKind, Json, JsonObject, RootStamps
from catalog.expressions import Outcome
from catalog.library import NOTHING_ISOLATED
from catalog.resources import AcceleratorPolicy, Devices, device_text
from catalog.structure import Instance, Leaf, Structure, Unknown, add_counts, add_gpus
from webhook.identity import label_safe, workload_id
from webhook.lineage import Lineage

IGNORE_KEY = "ignore"
"""The one key under the prefix that is the users' own: `"true"` opts an object or a namespace out."""

NO_NAME_YET = "the object has no name yet (generateName); it is given after admission"

_FOREIGN_GROUP_LABELS = ("kueue.x-k8s.io/pod-group-name", "scheduling.x-k8s.io/pod-group")
_FOREIGN_GROUP_ANNOTATIONS = (
    "kueue.x-k8s.io/pod-group-name",
    "scheduling.k8s.io/group-name",
    "pod-group-name",
)
_FOREIGN_GROUP_FIELDS = ("schedulingGroup", "workloadRef")


MAX_REMEMBERED = 256
"""Different pods of one workload whose stamps are remembered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What the operator of the webhook decides: the key prefix, what counts as a GPU, and whether to patch at all."""

    prefix: str = "workload-stamp.io"
    accelerators: AcceleratorPolicy = field(default_factory=AcceleratorPolicy)
    observe: bool = False


@dataclass(slots=True, kw_only=True)
class Stamps:
    """What is to be written on one object; keys are without the prefix.

    `unresolved` holds the reason of each stamp that is left out; `sealed` puts it among the annotations.
    """

    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    unresolved: dict[str, str] = field(default_factory=dict)
    patches: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)
    """Patches that wrote these stamps before, by the form of the object; see `patch`."""

    def label(self, key: str, value: str | int | Decimal | Unknown) -> None:
        """Write a label, or the reason why its value is unknown."""
        if isinstance(value, Unknown):
            self.unresolved[key] = value.reason
        else:
            self.labels[key] = device_text(value) if isinstance(value, Decimal) else str(value)

    def annotation(self, key: str, value: str | int | Decimal | Unknown) -> None:
        """Write an annotation, or the reason why its value is unknown."""
        if isinstance(value, Unknown):
            self.unresolved[key] = value.reason
        else:
            self.annotations[key] = device_text(value) if isinstance(value, Decimal) else str(value)

    def sealed(self) -> "Stamps":
        """These stamps with the reasons written out under `unresolved`."""
        if self.unresolved:
            self.annotations["unresolved"] = json_text(dict(sorted(self.unresolved.items())))
        return self


def json_text(value: Json) -> str:
    """Compact JSON for an annotation."""
    return orjson.dumps(value).decode()


def pod_stamps(
    pod: JsonObject,
    devices: Devices,
    lineage: Lineage,
    own: Structure | None,
    isolated: Mapping[str, Outcome] = NOTHING_ISOLATED,
) -> Stamps:
    """The stamps of a pod at its creation.

    `lineage` holds its owners; `own` is the pod's own structure through the definition of kind Pod, given only when it
    has no controller owner. Empty stamps mean that nothing is written.
    """
    if lineage.broken is not None:
        return _stamps_of_orphan(devices, lineage.broken)
    described = lineage.described or ((own,) if own is not None else ())
    candidates = topmost_first(described)
    if not candidates:
        return Stamps()
    if own is None and all(structure.compiled.is_plain for structure in candidates):
        return _remembered(pod, devices, candidates)
    return _worked_out(pod, devices, candidates, own, isolated)


def _remembered(pod: JsonObject, devices: Devices, candidates: list[Structure]) -> Stamps:
    """The stamps of a pod like one before it; nearly all pods of a workload are.

    Nothing but the objects that the rules ask, what these read of the pod, and its devices decides about the stamps.
    """
    asked = _asked(candidates)
    memory = candidates[0].memory
    key = (
        tuple(structure.compiled.selection_key(pod) for structure in asked),
        devices.gpus,
        devices.problem,
        tuple(devices.accelerators.items()),
    )
    known = memory.get(key)
    if known is not None and all(map(operator.is_, known[0], asked)) and len(known[0]) == len(asked):
        stamps: Stamps = known[1]
        return stamps
    stamps = _worked_out(pod, devices, candidates, None, NOTHING_ISOLATED)
    if "role" in stamps.labels and PodReading(candidates[0], pod).attribution() is not None:
        if len(memory) >= MAX_REMEMBERED:
            memory.clear()
        memory[key] = (asked, stamps)
    return stamps


def _asked(candidates: list[Structure]) -> list[Structure]:
    """The objects that the rules ask about a pod which the workload's own definition attributes."""
    kind = candidates[0].answered_by
    gang = next((structure for structure in candidates if structure.compiled.states_gangs), None)
    answering = next(
        (
            each
            for each in candidates
            if kind is not None and (each.kind.group, each.kind.kind) == (kind.group, kind.kind)
        ),
        None,
    )
    return [candidates[0], *(each for each in (gang, answering) if each is not None and each is not candidates[0])]


def _worked_out(
    pod: JsonObject,
    devices: Devices,
    candidates: list[Structure],
    own: Structure | None,
    isolated: Mapping[str, Outcome],
) -> Stamps:
    placements = [Placement(structure, pod, isolated) for structure in candidates]
    stamps = Stamps()
    _write_identity(stamps, candidates[0], is_pod_itself=candidates[0] is own)
    _write_role(stamps, placements)
    _write_gang(stamps, pod, placements, own)
    stamps.label("gpu-total", _gpu_total(placements, devices))
    _write_devices(stamps, devices)
    return stamps.sealed()


class Placement:
    """A pod's place in one object of its lineage, worked out when a rule asks for it."""

    __slots__ = ("_arguments", "_attribution", "_reading", "structure")

    def __init__(self, structure: Structure, pod: JsonObject, isolated: Mapping[str, Outcome]) -> None:
        self.structure = structure
        self._arguments = (structure, pod, isolated)
        self._reading: PodReading | None = None
        self._attribution: PodAttribution = None

    @property
    def attribution(self) -> "PodAttribution":
        """The component and instance that the object's definition gives the pod; None when it claims none."""
        if self._reading is None:
            self._reading = PodReading(*self._arguments)
            self._attribution = self._reading.attribution()
        return self._attribution

    @property
    def seat(self) -> GangSeat | Unknown | None:
        """The pod's place in a gang that the object states; None when none covers it."""
        attribution = self.attribution
        if isinstance(attribution, Attribution) and self._reading is not None:
            return self._reading.seat(attribution)
        return attribution if isinstance(attribution, Unknown) else None


def topmost_first(described: tuple[Structure, ...]) -> list[Structure]:
    """The described objects of a lineage (nearest first) that may answer: topmost first, schedules left out.

    The first is the workload. A schedule (CronJob) is none: each of its runs is a workload of its own.
    """
    return [structure for structure in reversed(described) if not structure.compiled.spawns_workloads]


def _stamps_of_orphan(devices: Devices, broken: str) -> Stamps:
    """A pod whose top is unknown: only what the pod itself says."""
    stamps = Stamps()
    _write_devices(stamps, devices)
    stamps.unresolved["workload-id"] = broken
    return stamps.sealed()


def _write_devices(stamps: Stamps, devices: Devices) -> None:
    gpus = Unknown(devices.problem or "unknown") if devices.gpus is None else devices.gpus
    stamps.annotation("gpus", gpus)
    if devices.accelerators:
        stamps.annotations["accelerators"] = json_text(
            {name: _json_number(amount) for name, amount in sorted(devices.accelerators.items())}
        )


def _json_number(amount: Decimal) -> int | float:
    return int(amount) if amount == amount.to_integral_value() else float(device_text(amount))


def identity_of(structure: Structure) -> str | Unknown:
    """The workload-id of a described object."""
    if not structure.name:
        return Unknown(NO_NAME_YET)
    kind = structure.kind
    return workload_id(kind.group, kind.kind, structure.namespace, structure.name)


def _write_identity(stamps: Stamps, workload: Structure, *, is_pod_itself: bool) -> None:
    stamps.label("workload-id", identity_of(workload))
    stamps.label("workload-kind", label_safe(workload.kind.kind))
    if workload.name:
        uid = None if is_pod_itself else workload.uid
        stamps.annotations["workload"] = _reference(workload.kind, workload.namespace, workload.name, uid)


@lru_cache(maxsize=16_384)
def _reference(kind: GroupVersionKind, namespace: str, name: str, uid: str | None) -> str:
    """The JSON that names a workload; the same for all its pods, so it is remembered."""
    reference = {"apiGroup": kind.group, "kind": kind.kind, "namespace": namespace, "name": name}
    return json_text(reference if uid is None else {**reference, "uid": uid})


PodAttribution = Attribution | Unknown | None


def _write_role(stamps: Stamps, placements: list[Placement]) -> None:
    for placement in placements:
        attribution = placement.attribution
        if attribution is None:
            continue
        if isinstance(attribution, Unknown):
            stamps.unresolved["role"] = attribution.reason
            return
        stamps.label("role", role_of(placement.structure, attribution.leaf, attribution.instance))
        if attribution.instance is not None:
            stamps.annotations["instance"] = attribution.instance
        return
    stamps.unresolved["role"] = f"no component of {placements[0].structure.kind.kind} matches this pod"


def role_of(structure: Structure, leaf: Leaf, instance: str | None) -> str | Unknown:
    """The role of a component's pods, as a label value (contract, section 4)."""
    if leaf.component.role is not None:
        return label_safe(leaf.component.role)
    if leaf.has_instances and len(structure.compiled.leaves) == 1:
        return Unknown(leaf.fault or "the pod names no instance") if instance is None else label_safe(instance)
    return label_safe(leaf.component.name.lower())


def _write_gang(stamps: Stamps, pod: JsonObject, placements: list[Placement], own: Structure | None) -> None:
    if own is not None:
        foreign = _foreign_group(pod)
        stamps.label("gang-size", 1 if foreign is None else Unknown(f"another system groups this pod: {foreign}"))
        return
    for placement in placements:
        if placement.structure.compiled.states_gangs:
            _write_seat(stamps, placement.structure, placement.seat)
            return
    stamps.label("gang-size", 1)


def _write_seat(stamps: Stamps, structure: Structure, seat: GangSeat | Unknown | None) -> None:
    if seat is None:
        stamps.label("gang-size", 1)
        return
    if isinstance(seat, Unknown):
        stamps.unresolved["gang-size"] = seat.reason
        return
    stamps.label("gang-size", seat.size)
    identity = identity_of(structure)
    if not isinstance(identity, Unknown):
        stamps.annotations["gang"] = "/".join((identity, *((seat.group,) if seat.group else ()), *seat.keys))
    if seat.minimum is not None:
        stamps.annotation("gang-min", seat.minimum)


def _foreign_group(pod: JsonObject) -> str | None:
    """The group that another system has put a bare pod in: its size is not ours to state."""
    metadata, spec = _map(pod, "metadata"), _map(pod, "spec")
    labels, annotations = _map(metadata, "labels"), _map(metadata, "annotations")
    for holder, keys in (
        (labels, _FOREIGN_GROUP_LABELS),
        (annotations, _FOREIGN_GROUP_ANNOTATIONS),
        (spec, _FOREIGN_GROUP_FIELDS),
    ):
        for key in keys:
            if holder.get(key):
                return key
    return None


def _map(holder: JsonObject, field_name: str) -> JsonObject:
    value = holder.get(field_name)
    return value if isinstance(value, dict) else {}


def _gpu_total(placements: list[Placement], devices: Devices) -> Decimal | Unknown:
    """GPUs of the whole workload, from the object that answers for it (contract, section 6)."""
    answering = _answering(placements)
    if isinstance(answering, Unknown):
        return answering
    total = answering.structure.gpu_total
    if not isinstance(total, Unknown):
        return total
    with_pod = _total_with_pod_at_hand(answering.structure, answering.attribution, devices)
    return total if with_pod is None else with_pod


def _answering(placements: list[Placement]) -> Placement | Unknown:
    """The object that answers for the workload: itself, or the one below that its definition names."""
    kind = placements[0].structure.answered_by
    if kind is None:
        return placements[0]
    for placement in placements:
        if (placement.structure.kind.group, placement.structure.kind.kind) == (kind.group, kind.kind):
            return placement
    return Unknown(f"its {kind.kind} answers for it, and is not among the owners")


def _total_with_pod_at_hand(structure: Structure, attribution: PodAttribution, devices: Devices) -> Decimal | None:
    """The total when only this pod's own instance has an unknown spec: its pods need what the pod at hand needs."""
    if not isinstance(attribution, Attribution) or devices.gpus is None:
        return None
    missing = [(leaf, instance) for leaf in structure.leaves for instance in leaf.instances if _is_unknown(instance)]
    if len(missing) != 1:
        return None
    leaf, instance = missing[0]
    is_this_pods = leaf is attribution.leaf and instance.id == (attribution.instance or "")
    waits_for_pod = isinstance(instance.gpus, Unknown) and instance.gpus.until_pod
    if not is_this_pods or not waits_for_pod or isinstance(instance.pods, Unknown):
        return None
    known = add_gpus(each.gpu_total for other in structure.leaves for each in other.instances if each is not instance)
    return None if isinstance(known, Unknown) else known + instance.pods * devices.gpus


def _is_unknown(instance: Instance) -> bool:
    return isinstance(instance.gpu_total, Unknown)


def root_stamps(structure: Structure, *, operation: str, owned: bool, lineage: Lineage) -> Stamps | None:
    """The stamps of a described object; `None` when it is to be left alone.

    `owned` says that it has a controller owner, `lineage` holds its owners (contract, section 2).
    """
    mode = structure.definition.root_stamps
    if mode is RootStamps.NONE:
        return None
    creating = operation == "CREATE"
    if owned:
        return _in_mode(mode, _stamps_of_owned(structure, lineage)) if creating else None
    if mode is RootStamps.IDENTITY:
        return _identity_only(structure, structure) if creating else None
    return _in_mode(mode, described_stamps(structure))


def _stamps_of_owned(structure: Structure, lineage: Lineage) -> Stamps:
    if lineage.broken is not None:
        return Stamps()
    candidates = topmost_first((structure, *lineage.described))
    return _identity_only(structure, candidates[0] if candidates else structure)


def _identity_only(structure: Structure, workload: Structure) -> Stamps:
    """The two keys that never change; a schedule has no id, its runs have."""
    stamps = Stamps()
    identity = identity_of(workload)
    if not isinstance(identity, Unknown) and not structure.definition.spawns_workloads:
        stamps.label("workload-id", identity)
    stamps.label("workload-kind", label_safe(workload.kind.kind))
    return stamps


def _in_mode(mode: RootStamps, stamps: Stamps) -> Stamps:
    """Everything as annotations for kinds that copy their labels but not their annotations."""
    if mode is not RootStamps.ANNOTATIONS:
        return stamps
    return Stamps(annotations={**stamps.labels, **stamps.annotations}, unresolved=stamps.unresolved)


def described_stamps(structure: Structure) -> Stamps:
    """All keys of a described object that has no controller owner."""
    stamps = Stamps()
    if not structure.definition.spawns_workloads:
        stamps.label("workload-id", identity_of(structure))
    stamps.label("workload-kind", label_safe(structure.kind.kind))
    common_size = common_gang_size(structure)
    if common_size is not None:
        stamps.label("gang-size", common_size)
    stamps.label("gpu-total", structure.gpu_total)
    stamps.annotation("pods-total", structure.pods_total)
    stamps.annotation("roles", _roles_text(structure))
    return stamps.sealed()


def common_gang_size(structure: Structure) -> int | Unknown | None:
    """The size that every gang of the object has, in pods; `None` when it has no gang, or gangs of several sizes."""
    if structure.gang_fault is not None:
        return Unknown(structure.gang_fault)
    sizes: set[int] = set()
    for gang in structure.gangs:
        for size in gang.existing_sizes:
            if isinstance(size, Unknown):
                return size
            if size > 0:
                sizes.add(size)
    return sizes.pop() if len(sizes) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """One role of a workload: its pods, and the GPUs of all of them together."""

    role: str
    pods: int | Unknown
    gpus: Decimal | Unknown


def roles_of(structure: Structure) -> tuple[Role, ...] | Unknown:
    """The roles of a described object in the definition's order; unknown when they cannot even be named."""
    if structure.answered_by is not None:
        return Unknown(f"its {structure.answered_by.kind} answers for it")
    members: dict[str, list[Instance]] = {}
    for leaf in structure.leaves:
        for instance in leaf.instances:
            role = role_of(structure, leaf, instance.id or None)
            if isinstance(role, Unknown):
                return role
            members.setdefault(role, []).append(instance)
    return tuple(
        Role(
            role=role,
            pods=instances[0].pods if len(instances) == 1 else add_counts(each.pods for each in instances),
            gpus=instances[0].gpu_total if len(instances) == 1 else add_gpus(each.gpu_total for each in instances),
        )
        for role, instances in members.items()
    )


def _roles_text(structure: Structure) -> str | Unknown:
    roles = roles_of(structure)
    if isinstance(roles, Unknown):
        return roles
    return json_text([_role_entry(role) for role in roles])


def _role_entry(role: Role) -> JsonObject:
    """A role as the annotation has it; a number that is unknown is left out."""
    entry: JsonObject = {"role": role.role}
    if not isinstance(role.pods, Unknown):
        entry["pods"] = role.pods
    if not isinstance(role.gpus, Unknown):
        entry["gpus"] = _json_number(role.gpus)
    return entry
