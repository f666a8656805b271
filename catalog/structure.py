"""A described object's resolved structure: which roles it has, how many pods, how many GPUs, which gangs.

`resolve` reads the object through its definition and keeps numbers only, a few hundred bytes, so that it can be
remembered for every workload of a cluster. A number that cannot be known exactly is an `Unknown` with its reason;
one component's trouble is its own, the others are resolved all the same (definitions.md, section 3).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from catalog.definition import (
    Component,
    Definition,
    Expression,
    GangGroup,
    GroupVersionKind,
    Json,
    JsonObject,
    PodFieldsAt,
    PodSource,
    PodSpecAt,
    PodTemplateAt,
)
from catalog.expressions import Failure, Outcome
from catalog.library import NOTHING_ISOLATED, CompiledDefinition
from catalog.resources import AcceleratorPolicy, effective_devices

MAX_COUNT = 2**31 - 1
"""Replica counts are int32 in every Kubernetes API."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that cannot be known exactly here, and why.

    `until_pod` marks GPUs that only the pod itself will show: its spec is completed outside the object.
    """

    reason: str
    until_pod: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One instance of a pod-bearing component; `id` is empty for a component without instances.

    `pods` is the number of pods over the whole workload when it runs as specified, `gpus` the GPUs of one of them,
    `gpu_total` those of all of them.
    """

    id: str
    pods: int | Unknown
    gpus: Decimal | Unknown
    gpu_total: Decimal | Unknown
    min_pods: int | None = None
    max_pods: int | None = None
    accelerators: Mapping[str, Decimal] = field(default_factory=dict)


_NO_GPUS = Decimal(0)


def _gpus_of_all(pods: int | Unknown, gpus: Decimal | Unknown) -> Decimal | Unknown:
    """GPUs of so many pods; no pods need none, whatever their spec."""
    if isinstance(pods, Unknown):
        return pods
    if pods == 0:
        return _NO_GPUS
    return gpus if isinstance(gpus, Unknown) or pods == 1 else pods * gpus


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A pod-bearing component that exists in this object, with its instances in the definition's order.

    `fault` says why its instances could not be told; it then stands as a single instance of unknown size.
    """

    component: Component
    instances: tuple[Instance, ...]
    fault: str | None = None
    ids: frozenset[str] = frozenset()

    @property
    def has_instances(self) -> bool:
        """Whether its pods are told apart by an instance id, one of `ids`."""
        return self.component.instance_ids is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class PerInstance:
    """Numbers of a gang group: one for all of it under the empty id, or one for each instance of its member."""

    values: Mapping[str, int | Unknown]

    def of(self, instance: str | None) -> int | Unknown | None:
        """The number that holds for that instance; `None` when there is none for it."""
        if "" in self.values:
            return self.values[""]
        if instance is not None and instance in self.values:
            return self.values[instance]
        distinct = set(self.values.values())
        return distinct.pop() if len(distinct) == 1 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class GangNumbers:
    """An enabled gang group of this object.

    `sizes` counts the pods of one gang, `minimums` what is enough to start (no values when none is stated),
    `gang_ids` tells each instance's gang where the object itself names them (the empty string: in none).
    """

    group: GangGroup
    sizes: PerInstance
    minimums: PerInstance
    gang_ids: Mapping[str, str] | Unknown | None = None

    @property
    def existing_sizes(self) -> tuple[int | Unknown, ...]:
        """The sizes of the gangs that exist: those of instances that are in none are left out."""
        if not isinstance(self.gang_ids, Mapping):
            return tuple(self.sizes.values.values())
        if "" in self.sizes.values:
            return (self.sizes.values[""],) if any(self.gang_ids.values()) else ()
        return tuple(size for instance, size in self.sizes.values.items() if self.gang_ids.get(instance))


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """What a described object asks for when it runs as specified.

    `gangs` holds the enabled groups in the definition's order; `gang_fault` says why it cannot be told which are.
    `pods_total` counts the pods that exist at one time, `gpu_total` the GPUs of all of them.
    """

    compiled: CompiledDefinition
    kind: GroupVersionKind
    namespace: str
    name: str
    uid: str
    leaves: tuple[Leaf, ...]
    gangs: tuple[GangNumbers, ...]
    pods_total: int | Unknown
    gpu_total: Decimal | Unknown
    gang_fault: str | None = None
    memory: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)
    """What was worked out for this object's pods before: pods of one role get the same stamps."""

    @property
    def definition(self) -> Definition:
        """The definition through which the object was read."""
        return self.compiled.definition

    @property
    def answered_by(self) -> GroupVersionKind | None:
        """The kind below whose own definition answers for roles, counts, gangs and GPUs, if it is not this one."""
        return self.compiled.answered_by

    def leaf(self, component: str) -> Leaf | None:
        """The leaf of that component, if it exists in this object."""
        return next((leaf for leaf in self.leaves if leaf.component.name == component), None)


def add_counts(counts: Iterable[int | Unknown]) -> int | Unknown:
    """The sum, or the first unknown: a part is never given for the whole."""
    total = 0
    for count in counts:
        if isinstance(count, Unknown):
            return count
        total += count
    return total


def add_gpus(amounts: Iterable[Decimal | Unknown]) -> Decimal | Unknown:
    """The sum in GPUs, or the first unknown: a part is never given for the whole."""
    total = Decimal(0)
    for amount in amounts:
        if isinstance(amount, Unknown):
            return amount
        total += amount
    return total


class Results:
    """Outcomes of a program by expression, with the one-value rules of the language."""

    __slots__ = ("_definition", "_outcomes")

    def __init__(self, definition: Definition, sources: Sequence[str], outcomes: Sequence[Outcome]) -> None:
        self._definition = definition
        self._outcomes = dict(zip(sources, outcomes, strict=True))

    def place(self, expression: Expression) -> str:
        """Where an expression stands, for people: `worker replicasPath`."""
        return place_of(self._definition, expression)

    def all(self, expression: Expression) -> Outcome:
        """Every result of the expression, or its failure."""
        return self._outcomes[expression.text]

    def one(self, expression: Expression) -> Json | Unknown:
        """The expression's single result; anything else is unknown."""
        outcome = self._outcomes[expression.text]
        if isinstance(outcome, Failure):
            return Unknown(f"{self.place(expression)}: {outcome.reason}")
        if len(outcome) != 1:
            return Unknown(f"{self.place(expression)}: {len(outcome)} results where one was expected")
        return outcome[0]

    def per_instance(self, expression: Expression, ids: Sequence[str]) -> tuple[Json, ...] | Unknown:
        """Exactly one result for each instance, paired by position."""
        outcome = self._outcomes[expression.text]
        if isinstance(outcome, Failure):
            return Unknown(f"{self.place(expression)}: {outcome.reason}")
        if len(outcome) != len(ids):
            return Unknown(f"{self.place(expression)}: {len(outcome)} results for {len(ids)} instances")
        return outcome


def resolve(
    compiled: CompiledDefinition,
    obj: Json,
    policy: AcceleratorPolicy,
    *,
    namespace: str = "",
    isolated: Mapping[str, Outcome] = NOTHING_ISOLATED,
) -> Structure:
    """Read `obj` through its definition.

    `namespace` is the request's and wins over the object's own; `isolated` holds the outcomes of expressions that were
    evaluated outside the process. Never raises for what the object contains.
    """
    definition = compiled.definition
    results = Results(definition, compiled.structure.sources, compiled.structure.evaluate(obj, isolated))
    existing = _existing_leaves(compiled, results)
    claims = _claim_templates(obj)
    resolved = tuple(_leaf(component, fault, results, policy, claims) for component, fault in existing)
    gangs, gang_fault = _gangs(compiled, resolved, results)
    pods_total, gpu_total = _totals(compiled, resolved)
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    metadata = metadata if isinstance(metadata, dict) else {}
    return Structure(
        compiled=compiled,
        kind=_kind_of(obj, definition.describes),
        namespace=namespace or _text(metadata.get("namespace")),
        name=_text(metadata.get("name")),
        uid=_text(metadata.get("uid")),
        leaves=resolved,
        gangs=gangs,
        gang_fault=gang_fault,
        pods_total=pods_total,
        gpu_total=gpu_total,
    )


def _totals(compiled: CompiledDefinition, resolved: Sequence[Leaf]) -> tuple[int | Unknown, Decimal | Unknown]:
    if compiled.answered_by is not None:
        elsewhere = Unknown(f"its {compiled.answered_by.kind} answers for it")
        return elsewhere, elsewhere
    instances = [instance for leaf in resolved for instance in leaf.instances]
    return add_counts(each.pods for each in instances), add_gpus(each.gpu_total for each in instances)


_PART = re.compile(r"(childComponents|podGroups)\[(\d+)\]")


def place_of(definition: Definition, expression: Expression) -> str:
    """Where an expression stands, by the name of its component or gang group and its own field."""
    field_name = expression.path.rpartition(".")[2]
    part = _PART.search(expression.path)
    if part is None:
        return f"{definition.root.name} {field_name}"
    named = definition.children if part[1] == "childComponents" else definition.gang_groups
    return f"{named[int(part[2])].name} {field_name}"


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _kind_of(obj: Json, described: GroupVersionKind) -> GroupVersionKind:
    api_version = _text(obj.get("apiVersion")) if isinstance(obj, dict) else ""
    version = api_version.rpartition("/")[2]
    return GroupVersionKind(described.group, version or described.version, described.kind)


def _existing_leaves(compiled: CompiledDefinition, results: Results) -> list[tuple[Component, str | None]]:
    """The leaves that exist here; the fault of one says why its existence could not be told."""
    found: list[tuple[Component, str | None]] = []
    for component, conditions in compiled.enabling:
        enabled, fault = True, None
        for condition in conditions:
            answer = results.one(condition)
            if isinstance(answer, Unknown):
                fault = answer.reason
            elif answer is not True:
                enabled = False
        if enabled:
            found.append((component, fault))
    return found


def _leaf(
    component: Component,
    fault: str | None,
    results: Results,
    policy: AcceleratorPolicy,
    claims: Sequence[JsonObject],
) -> Leaf:
    ids: tuple[str, ...] | Unknown = Unknown(fault) if fault is not None else _instance_ids(component, results)
    if isinstance(ids, Unknown):
        return Leaf(
            component=component, instances=(Instance(id="", pods=ids, gpus=ids, gpu_total=ids),), fault=ids.reason
        )
    counts = _counts(component, results, ids)
    minimums, maximums = _bounds(component, results, ids)
    devices = _devices(component, results, ids, policy, claims)
    return Leaf(
        component=component,
        ids=frozenset(ids),
        instances=tuple(
            Instance(
                id=id_,
                pods=pods,
                gpus=gpus,
                gpu_total=_gpus_of_all(pods, gpus),
                min_pods=low,
                max_pods=high,
                accelerators=accelerators,
            )
            for id_, pods, (gpus, accelerators), low, high in zip(ids, counts, devices, minimums, maximums, strict=True)
        ),
    )


def _instance_ids(component: Component, results: Results) -> tuple[str, ...] | Unknown:
    if component.instance_ids is None:
        return ("",)
    outcome = results.all(component.instance_ids)
    if isinstance(outcome, Failure):
        return Unknown(f"{results.place(component.instance_ids)}: {outcome.reason}")
    ids = tuple(id_ for id_ in outcome if isinstance(id_, str) and id_)
    if len(ids) != len(outcome):
        return Unknown(f"{results.place(component.instance_ids)}: an instance id is not a non-empty string")
    if len(set(ids)) != len(ids):
        return Unknown(f"{results.place(component.instance_ids)}: two instances have the same id")
    return ids


def _counts(component: Component, results: Results, ids: Sequence[str]) -> Sequence[int | Unknown]:
    if component.scale is None:
        return [1] * len(ids)
    reason = component.scale.unknown_reason or "the number of pods is not stated in this object"
    not_stated = Unknown(f"{component.name}: {reason}")
    if component.scale.replicas is None:
        return [not_stated] * len(ids)
    values = results.per_instance(component.scale.replicas, ids)
    if isinstance(values, Unknown):
        return [values] * len(ids)
    return [not_stated if value is None else _count(value, results, component.scale.replicas) for value in values]


def _count(value: Json, results: Results, expression: Expression) -> int | Unknown:
    """A number of pods from a jq result, or why it is none."""
    number = _pods(value)
    if number is not None:
        return number
    if value is None:
        return Unknown(f"{results.place(expression)}: the number of pods is not stated in this object")
    return Unknown(f"{results.place(expression)}: {_shown(value)} is not a number of pods")


def _pods(value: Json) -> int | None:
    """A whole number, or a string of one; never negative, never more than an int32."""
    number = whole_number(value)
    return number if number is not None and 0 <= number <= MAX_COUNT else None


def whole_number(value: Json) -> int | None:
    """The integer that a JSON number or a numeric string stands for; `None` for a fraction or anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else None
    if isinstance(value, str) and value.isascii() and value.removeprefix("-").isdigit() and len(value) <= 11:
        return int(value)
    return None


def _shown(value: Json) -> str:
    """A found value for a message: short scalars as they are, anything else by its type."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float):
        return str(value)[:24]
    if isinstance(value, str):
        return f'"{value[:24]}"'
    return "an array" if isinstance(value, list) else "an object"


def _bounds(
    component: Component, results: Results, ids: Sequence[str]
) -> tuple[Sequence[int | None], Sequence[int | None]]:
    """Minimum and maximum pods of an autoscaled component: information for people, so a bad one is left out."""
    scale = component.scale
    if scale is None:
        return [None] * len(ids), [None] * len(ids)
    return _bound(scale.min_replicas, results, ids), _bound(scale.max_replicas, results, ids)


def _bound(expression: Expression | None, results: Results, ids: Sequence[str]) -> Sequence[int | None]:
    values = results.per_instance(expression, ids) if expression is not None else None
    if values is None or isinstance(values, Unknown):
        return [None] * len(ids)
    return [_pods(value) for value in values]


DeviceCounts = tuple[Decimal | Unknown, Mapping[str, Decimal]]


def _devices(
    component: Component,
    results: Results,
    ids: Sequence[str],
    policy: AcceleratorPolicy,
    claims: Sequence[JsonObject],
) -> Sequence[DeviceCounts]:
    """GPUs of one pod and its accelerators, for each instance."""
    assert component.pods is not None, "only leaves are asked for their devices"
    elsewhere = _completed_elsewhere(component, results)
    if elsewhere is not None:
        return [(elsewhere, {})] * len(ids)
    specs = _pod_specs(component.pods, results, ids)
    if isinstance(specs, Unknown):
        return [(specs, {})] * len(ids)
    return [_devices_of(spec, component, policy, claims) for spec in specs]


def _completed_elsewhere(component: Component, results: Results) -> Unknown | None:
    if component.is_complete is None:
        return None
    answer = results.one(component.is_complete)
    if isinstance(answer, Unknown):
        return answer
    if answer is not True:
        return _incomplete(component, "its pod spec is completed outside this object")
    return None


def _incomplete(component: Component, otherwise: str) -> Unknown:
    """GPUs that only the pod will show, with the definition's own reason if it gives one."""
    return Unknown(f"{component.name}: {component.incomplete_reason or otherwise}", until_pod=True)


PodParts = tuple[Json, Json]
"""A pod spec and its annotations, either of them null when the object has none."""


def _pod_specs(source: PodSource, results: Results, ids: Sequence[str]) -> Sequence[PodParts] | Unknown:
    match source:
        case PodTemplateAt():
            templates = results.per_instance(source.template, ids)
            if isinstance(templates, Unknown):
                return templates
            return [_template_parts(template) for template in templates]
        case PodSpecAt():
            specs = results.per_instance(source.spec, ids)
            metadata = _optional(source.metadata, results, ids)
            if isinstance(specs, Unknown):
                return specs
            if isinstance(metadata, Unknown):
                return metadata
            return [(spec, _field(each, "annotations")) for spec, each in zip(specs, metadata, strict=True)]
        case PodFieldsAt():
            return _scattered_pod_specs(source, results, ids)


def _template_parts(template: Json) -> PodParts:
    return _field(template, "spec"), _field(_field(template, "metadata"), "annotations")


def _field(value: Json, name: str) -> Json:
    """The field of an object; anything that is no object stands for itself, so that its type can be reported."""
    return value.get(name) if isinstance(value, dict) else value


def _optional(expression: Expression | None, results: Results, ids: Sequence[str]) -> Sequence[Json] | Unknown:
    return [None] * len(ids) if expression is None else results.per_instance(expression, ids)


def _scattered_pod_specs(source: PodFieldsAt, results: Results, ids: Sequence[str]) -> Sequence[PodParts] | Unknown:
    columns: list[Sequence[Json]] = []
    for expression in (
        source.resources,
        source.containers,
        source.container,
        source.resource_claims,
        source.annotations,
    ):
        column = _optional(expression, results, ids)
        if isinstance(column, Unknown):
            return column
        columns.append(column)
    return [
        (_assembled_spec(resources, containers, container, claims), annotations)
        for resources, containers, container, claims, annotations in zip(*columns, strict=True)
    ]


def _assembled_spec(resources: Json, containers: Json, container: Json, claims: Json) -> Json:
    """A pod spec from its scattered fields; null when nothing that bears devices is stated.

    `resources` are those of `container`, or of a container of their own when that one states none.
    """
    if resources is None and containers is None and container is None:
        return None
    listed = list(containers) if isinstance(containers, list) else [] if containers is None else [containers]
    if isinstance(container, dict) and resources is not None and container.get("resources"):
        return Unknown("resources are stated twice, for the container and beside it")
    if container is not None:
        listed.append(container if resources is None else {**_object(container), "resources": resources})
    elif resources is not None:
        listed.append({"resources": resources})
    return {"containers": listed, **({} if claims is None else {"resourceClaims": claims})}


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _devices_of(
    parts: PodParts, component: Component, policy: AcceleratorPolicy, claims: Sequence[JsonObject]
) -> DeviceCounts:
    spec, annotations = parts
    if spec is None:
        return _incomplete(component, "its pod spec is not in this object"), {}
    if isinstance(spec, Unknown):
        return spec, {}
    if not isinstance(spec, dict):
        return Unknown(f"{component.name}: its pod spec is {_shown(spec)}, not an object"), {}
    devices = effective_devices(spec, _object(annotations), policy, claims)
    if devices.gpus is None:
        return Unknown(f"{component.name}: {devices.problem}"), devices.accelerators
    return devices.gpus, devices.accelerators


def _claim_templates(obj: Json) -> Sequence[JsonObject]:
    """ResourceClaimTemplates that the object carries for its own pods (grove.io PodCliqueSet does)."""
    spec = _object(_object(obj).get("spec"))
    for holder in (spec, _object(spec.get("template"))):
        templates = holder.get("resourceClaimTemplates")
        if isinstance(templates, list):
            return [template for template in templates if isinstance(template, dict)]
    return ()


def _gangs(
    compiled: CompiledDefinition, resolved: Sequence[Leaf], results: Results
) -> tuple[tuple[GangNumbers, ...], str | None]:
    found: list[GangNumbers] = []
    for group, names in compiled.gang_groups:
        enabled = True if group.is_enabled is None else results.one(group.is_enabled)
        if isinstance(enabled, Unknown):
            return (), enabled.reason
        if enabled is True:
            members = [leaf for leaf in resolved if leaf.component.name in names]
            found.append(_gang_numbers(compiled.definition, group, members, results))
    return tuple(found), None


def _gang_numbers(definition: Definition, group: GangGroup, members: Sequence[Leaf], results: Results) -> GangNumbers:
    ids = _member_instance_ids(members)
    gang_ids = _gang_ids(group, results, ids)
    return GangNumbers(
        group=group,
        sizes=PerInstance(values=_sizes(definition, group, members, results, ids=ids, gang_ids=gang_ids)),
        minimums=PerInstance(values=_stated_numbers(group.minimum, results, ids, absent_is_fine=True)),
        gang_ids=gang_ids,
    )


def _member_instance_ids(members: Sequence[Leaf]) -> tuple[str, ...]:
    """Instance ids of a group's single multi-instance member; none when there is no such member."""
    several = [leaf for leaf in members if leaf.has_instances]
    if len(several) != 1 or several[0].fault is not None:
        return ()
    return tuple(instance.id for instance in several[0].instances)


def _gang_ids(group: GangGroup, results: Results, ids: Sequence[str]) -> Mapping[str, str] | Unknown | None:
    if group.gang_id is None:
        return None
    values = results.per_instance(group.gang_id, ids)
    if isinstance(values, Unknown):
        return values
    if not all(isinstance(value, str) for value in values):
        return Unknown(f"{results.place(group.gang_id)}: a gang id is not a string")
    return dict(zip(ids, values, strict=True))


def _sizes(
    definition: Definition,
    group: GangGroup,
    members: Sequence[Leaf],
    results: Results,
    *,
    ids: Sequence[str],
    gang_ids: Mapping[str, str] | Unknown | None,
) -> Mapping[str, int | Unknown]:
    """Pods of one gang of the group, by the first rule that applies (definitions.md, section 3.7)."""
    if group.size is not None:
        return _stated_numbers(group.size, results, ids, absent_is_fine=False)
    if isinstance(gang_ids, Unknown):
        return {"": gang_ids}
    if gang_ids is not None:
        return _sizes_by_gang_id(members, gang_ids)
    if any(member.filters for member in group.members):
        return {"": Unknown(f"gang group {group.name}: filters choose its pods, and sizePath does not say how many")}
    if grouped_by_whole_object(definition, group):
        return {"": add_counts(instance.pods for leaf in members for instance in leaf.instances)}
    return _sizes_by_instance(definition, group, members)


def _stated_numbers(
    expression: Expression | None, results: Results, ids: Sequence[str], *, absent_is_fine: bool
) -> Mapping[str, int | Unknown]:
    """One number for the whole group, or one for each instance of its multi-instance member."""
    if expression is None:
        return {}
    outcome = results.all(expression)
    if isinstance(outcome, Failure):
        return {"": Unknown(f"{results.place(expression)}: {outcome.reason}")}
    if len(outcome) == 1:
        return {} if outcome[0] is None and absent_is_fine else {"": _count(outcome[0], results, expression)}
    if len(outcome) != len(ids):
        return {"": Unknown(f"{results.place(expression)}: {len(outcome)} results for {len(ids)} instances")}
    stated = zip(ids, outcome, strict=True)
    return {id_: _count(value, results, expression) for id_, value in stated if value is not None or not absent_is_fine}


def _sizes_by_gang_id(members: Sequence[Leaf], gang_ids: Mapping[str, str]) -> Mapping[str, int | Unknown]:
    pods: dict[str, list[int | Unknown]] = {}
    for leaf in members:
        for instance in leaf.instances:
            pods.setdefault(gang_ids.get(instance.id, ""), []).append(instance.pods)
    sizes = {gang: add_counts(counts) for gang, counts in pods.items()}
    return {id_: sizes[gang] for id_, gang in gang_ids.items() if gang and gang in sizes}


def _sizes_by_instance(
    definition: Definition, group: GangGroup, members: Sequence[Leaf]
) -> Mapping[str, int | Unknown]:
    """Sizes of gangs that are one instance each; any other grouping needs a sizePath."""
    varying = {key.text for member in group.members for key in member.group_by if not is_own_name(definition, key)}
    if len(members) == 1 and members[0].has_instances and members[0].component.selector is not None:
        instance_path = members[0].component.selector.instance
        if instance_path is not None and varying == {instance_path.text} and members[0].fault is None:
            return {instance.id: instance.pods for instance in members[0].instances}
    return {"": Unknown(f"gang group {group.name}: its grouping keys do not tell how many pods one gang has")}


def grouped_by_whole_object(definition: Definition, group: GangGroup) -> bool:
    """Whether every pod of the object has the same grouping keys, so that the group is one gang."""
    return all(is_own_name(definition, key) for member in group.members for key in member.group_by)


_OWN_NAME_KEYS: Mapping[str, frozenset[tuple[str, str]]] = {
    "training.kubeflow.org/job-name": frozenset(
        ("kubeflow.org", kind) for kind in ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob")
    ),
    "ray.io/cluster": frozenset({("ray.io", "RayCluster")}),
    "jobset.sigs.k8s.io/jobset-name": frozenset({("jobset.x-k8s.io", "JobSet")}),
    "leaderworkerset.sigs.k8s.io/name": frozenset({("leaderworkerset.x-k8s.io", "LeaderWorkerSet")}),
    "batch.kubernetes.io/job-name": frozenset({("batch", "Job")}),
    "job-name": frozenset({("batch", "Job")}),
    "volcano.sh/job-name": frozenset({("batch.volcano.sh", "Job")}),
    "serving.kserve.io/inferenceservice": frozenset({("serving.kserve.io", "InferenceService")}),
    "serving.knative.dev/service": frozenset({("serving.knative.dev", "Service")}),
    "serving.knative.dev/revision": frozenset({("serving.knative.dev", "Revision")}),
    "app.kubernetes.io/instance": frozenset({("milvus.io", "Milvus")}),
    "app.kubernetes.io/name": frozenset(
        {("apps.nvidia.com", "NIMService"), ("serving.kserve.io", "LLMInferenceService")}
    ),
    "app.kubernetes.io/part-of": frozenset({("grove.io", "PodCliqueSet")}),
    "sparkoperator.k8s.io/app-name": frozenset({("sparkoperator.k8s.io", "SparkApplication")}),
}
"""Pod labels known to hold the name of the object that states the gang, and for which kinds."""


def is_own_name(definition: Definition, key: Expression) -> bool:
    """Whether the grouping key is the same on every pod of one object, from the closed list of known labels."""
    text = key.text.strip()
    for opening, closing in (('.metadata.labels["', '"]'), ('.metadata.labels."', '"'), ('.metadata.labels.["', '"]')):
        if text.startswith(opening) and text.endswith(closing):
            label = text[len(opening) : -len(closing)]
            kind = definition.describes
            return (kind.group, kind.kind) in _OWN_NAME_KEYS.get(label, frozenset())
    return False
