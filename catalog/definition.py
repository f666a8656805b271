"""The definition language as frozen values.

One `Definition` describes one kind of workload: which components it has, where their pod specs and counts are,
how a pod is told to belong to one of them, and which pods are started together.
This module holds types only: it knows neither YAML, nor jq, nor any Kubernetes object.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

Json: TypeAlias = Any
"""A JSON value as `orjson.loads` gives it."""

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object as `orjson.loads` gives it; Kubernetes objects stay in this form."""

MAX_EXPRESSION_LENGTH = 4096
"""Characters; the longest expression of the packaged catalogue has about a tenth of it."""


class RootStamps(StrEnum):
    """How much may be written into a described object's own metadata (contract, section 2)."""

    FULL = "full"
    ANNOTATIONS = "annotations"
    IDENTITY = "identity"
    NONE = "none"


class Status(StrEnum):
    """The one vocabulary of states, in the order in which matches are reported (upstream's order)."""

    RESUMING = "Resuming"
    SUSPENDING = "Suspending"
    SUSPENDED = "Suspended"
    RUNNING = "Running"
    FAILED = "Failed"
    COMPLETED = "Completed"
    INITIALIZING = "Initializing"
    DEGRADED = "Degraded"
    UNDEFINED = "Undefined"


@dataclass(frozen=True, slots=True, order=True)
class GroupVersionKind:
    """Names a kind of object; the core group is the empty string."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """`group/version`, or the bare version for the core group, as objects write it."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


@dataclass(frozen=True, slots=True)
class Expression:
    """A jq expression as written, with its place in the definition for messages."""

    text: str
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTemplateAt:
    """The pod spec is a whole PodTemplateSpec found at `template` of the root object."""

    template: Expression


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSpecAt:
    """The pod spec is a whole PodSpec at `spec`; `metadata`, when given, is an ObjectMeta-like object beside it."""

    spec: Expression
    metadata: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodFieldsAt:
    """The pod spec is scattered over the root object: one path per field, all optional."""

    scheduler_name: Expression | None = None
    labels: Expression | None = None
    annotations: Expression | None = None
    resources: Expression | None = None
    resource_claims: Expression | None = None
    pod_affinity: Expression | None = None
    node_affinity: Expression | None = None
    containers: Expression | None = None
    container: Expression | None = None
    priority_class_name: Expression | None = None
    image: Expression | None = None


PodSource: TypeAlias = PodTemplateAt | PodSpecAt | PodFieldsAt


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Pods of a component over the whole workload, one number per instance (definitions.md, section 3.4).

    `unknown_reason` tells people what decides the number where the object does not state it, and what would.
    """

    replicas: Expression | None = None
    min_replicas: Expression | None = None
    max_replicas: Expression | None = None
    unknown_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodSelector:
    """How a pod is told to belong to a component. Every part that is set has to hold.

    `key` and `match_labels` choose the component, `instance` the instance of it, `replica` the replica group.
    """

    key: Expression | None = None
    value: str | None = None
    match_labels: Mapping[str, str] = field(default_factory=dict)
    instance: Expression | None = None
    replica: Expression | None = None

    @property
    def chooses_component(self) -> bool:
        """Whether any part says which component the pod belongs to."""
        return self.key is not None or bool(self.match_labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionMatch:
    """One entry of `byConditions`: the condition's type, and its status and reason when they matter."""

    type: str
    status: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpressionMatch:
    """`byExpression`: the expression's first result, printed as jq's `tostring` prints it, equals `expected`."""

    expression: Expression
    expected: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """One way to recognise a status; all set parts have to hold. At least one part is set."""

    by_phase: str | None = None
    by_conditions: tuple[ConditionMatch, ...] = ()
    by_expression: ExpressionMatch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionsAt:
    """Where the array of conditions is, and how its entries name their fields."""

    path: Expression
    type_field: str = "type"
    status_field: str = "status"
    message_field: str = "message"
    reason_field: str = "reason"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusMapping:
    """How the framework's own status maps to the shared vocabulary; matchers of one status are alternatives."""

    phase: Expression | None = None
    conditions: ConditionsAt | None = None
    matchers: Mapping[Status, tuple[Matcher, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One step of a native suspend or resume: set the value (JSON text) at the path."""

    path: Expression
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspension:
    """The framework's native pause and resume, each a list of assignments applied in order."""

    suspend: tuple[Assignment, ...]
    resume: tuple[Assignment, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One level or role of a workload. A component with `pods` is a leaf: it bears pods.

    `is_enabled`, `role` and `is_complete` are ours (definitions.md, section 2); `incomplete_reason` tells people who
    completes the pod spec where the object does not have it, and what would make its GPUs known.
    """

    name: str
    kind: GroupVersionKind | None = None
    owner: str | None = None
    pods: PodSource | None = None
    scale: Scale | None = None
    status: StatusMapping | None = None
    suspension: Suspension | None = None
    instance_ids: Expression | None = None
    selector: PodSelector | None = None
    is_enabled: Expression | None = None
    is_complete: Expression | None = None
    incomplete_reason: str | None = None
    role: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GangMember:
    """A component that takes part in a gang group; keys and filters are evaluated on the pod."""

    component: str
    group_by: tuple[Expression, ...] = ()
    filters: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GangGroup:
    """One entry of `podGroups`. `gang_id`, `minimum`, `size` and `is_enabled` are ours and run on the root object."""

    name: str
    members: tuple[GangMember, ...]
    gang_id: Expression | None = None
    minimum: Expression | None = None
    size: Expression | None = None
    is_enabled: Expression | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """Placement wishes that upstream attaches to a pod group; kept, not used for stamping."""

    name: str = ""
    preferred_level: str = ""
    required_level: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubGroup:
    """One component of a `podGroup`."""

    component: str
    topology: Topology | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PodGroup:
    """Upstream's newer form: the object is one gang, made of its sub-groups (of every leaf when none is named)."""

    name: str
    sub_groups: tuple[SubGroup, ...] = ()
    topology: Topology | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """The declarative description of one kind of workload.

    `name` is the resource's name, `origin` says where it was read (a file, a cluster resource) for messages.
    `root` has a kind and a status mapping; `children` are in order of declaration.
    """

    name: str
    origin: str
    root: Component
    children: tuple[Component, ...] = ()
    additional_child_kinds: tuple[GroupVersionKind, ...] = ()
    gang_groups: tuple[GangGroup, ...] = ()
    pod_group: PodGroup | None = None
    spawns_workloads: bool = False
    root_stamps: RootStamps = RootStamps.IDENTITY
    answered_by: str | None = None

    @property
    def describes(self) -> GroupVersionKind:
        """The kind of object that this definition describes."""
        assert self.root.kind is not None, "the root component of a parsed definition has a kind"
        return self.root.kind

    @property
    def components(self) -> tuple[Component, ...]:
        """Root first, then the children as declared: the order in which leaves are asked about a pod."""
        return (self.root, *self.children)

    @property
    def states_gangs(self) -> bool:
        """Whether this definition says anything about gangs; else an object below may (contract, section 5)."""
        return bool(self.gang_groups) or self.pod_group is not None
