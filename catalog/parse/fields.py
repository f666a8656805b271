"""The definition language, field by field: the one table that reading, documentation and the CRD's schema share.

`DEFINITION` is the whole document. The language is upstream's (run.ai/v1alpha1 Karta) plus the fields marked `ours`.
The table knows the form of each field for itself; what fields have to do with each other is in `rules_within`
(one object) and `rules_between` (components and gangs).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from catalog.definition import RootStamps, Status

KINDS = (
    ("workload-stamp.io/v1alpha1", "WorkloadDefinition"),
    ("run.ai/v1alpha1", "Karta"),
    ("optimization.nvidia.com/v1alpha1", "ResourceInterface"),
)
"""The (apiVersion, kind) pairs in which definitions come."""

MOST_ENTRIES = 256
"""Entries of any list; the largest list of the packaged catalogue has a dozen."""

_DNS_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_DNS_SUBDOMAIN = rf"(?=.{{1,253}}\Z){_DNS_LABEL}(?:\.{_DNS_LABEL})*"


class Input(StrEnum):
    """The document that an expression is evaluated on."""

    OBJECT = "the described object"
    POD = "the pod"


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """A string. `form` is a regular expression of the whole text, `wanted` says the same in words.

    The empty string counts as absent, as it does in upstream's Go types, unless it `may_be_empty`.
    """

    form: str = r"(?s:.+)"
    wanted: str = "text"
    may_be_empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Jq:
    """A jq expression, evaluated on `input`. The empty string counts as absent."""

    input: Input


@dataclass(frozen=True, slots=True)
class Flag:
    """`true` or `false`; absent is false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One of a few words; absent is the first."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JsonValue:
    """Any JSON value, written as JSON text (`"true"`, `'"Suspended"'`) or, unless it is a string, as itself."""


@dataclass(frozen=True, slots=True)
class LabelMap:
    """Names of labels with their values, at least one."""


@dataclass(frozen=True, slots=True)
class Anything:
    """What is not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOf:
    """A list. No two entries agree in all fields that `unique_by` names; with no field named, no two are equal."""

    entry: "Shape"
    unique_by: tuple[str, ...] | None = None
    at_least: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """A field of an object. `meaning` completes the sentence "write …"; `ours` is unknown to upstream."""

    name: str
    shape: "Shape"
    meaning: str
    required: bool = False
    ours: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Object:
    """An object with the named fields and, when it is `closed`, no other. `name` tells it from other objects."""

    name: str
    fields: tuple[Field, ...]
    closed: bool = True


Shape: TypeAlias = Text | Jq | Flag | Choice | JsonValue | LabelMap | Anything | ListOf | Object


def _required(name: str, shape: Shape, meaning: str) -> Field:
    return Field(name=name, shape=shape, meaning=meaning, required=True)


def _optional(name: str, shape: Shape, meaning: str) -> Field:
    return Field(name=name, shape=shape, meaning=meaning)


def _ours(name: str, shape: Shape, meaning: str) -> Field:
    return Field(name=name, shape=shape, meaning=meaning, ours=True)


_ON_OBJECT = Jq(input=Input.OBJECT)
_ON_POD = Jq(input=Input.POD)
_TEXT = Text()
_COMPONENT_NAME = Text(wanted="the name of a component")
_REASON = Text(form=r"[^\n]{1,300}", wanted="one line of at most 300 characters")

# ----------------------------------------------------------------------------------------------- components

KIND = Object(
    name="kind",
    fields=(
        _optional(
            "group",
            Text(form=_DNS_SUBDOMAIN, wanted="an API group such as batch or jobset.x-k8s.io", may_be_empty=True),
            'the API group, "" for the core group',
        ),
        _required("version", Text(form=_DNS_LABEL, wanted="an API version such as v1"), "the API version"),
        _required("kind", Text(form=r"[A-Za-z][A-Za-z0-9]{0,62}", wanted="a kind such as JobSet"), "the kind"),
    ),
)

FRAGMENTED_POD_SPEC = Object(
    name="fragmentedPodSpecDefinition",
    fields=(
        _optional("schedulerNamePath", _ON_OBJECT, "where the scheduler's name is"),
        _optional("labelsPath", _ON_OBJECT, "where the pods' labels are"),
        _optional("annotationsPath", _ON_OBJECT, "where the pods' annotations are"),
        _optional("resourcesPath", _ON_OBJECT, "where the resource requirements are"),
        _optional("resourceClaimsPath", _ON_OBJECT, "where the list of resource claims is"),
        _optional("podAffinityPath", _ON_OBJECT, "where the pod affinity is"),
        _optional("nodeAffinityPath", _ON_OBJECT, "where the node affinity is"),
        _optional("containersPath", _ON_OBJECT, "where the list of containers is"),
        _optional("containerPath", _ON_OBJECT, "where the only container is"),
        _optional("priorityClassNamePath", _ON_OBJECT, "where the priority class's name is"),
        _optional("imagePath", _ON_OBJECT, "where the image is"),
    ),
)

SPEC_DEFINITION = Object(
    name="specDefinition",
    fields=(
        _optional("podTemplateSpecPath", _ON_OBJECT, "where a whole pod template is"),
        _optional("podSpecPath", _ON_OBJECT, "where a whole pod spec is"),
        _optional("metadataPath", _ON_OBJECT, "where the metadata beside that pod spec is"),
        _optional("fragmentedPodSpecDefinition", FRAGMENTED_POD_SPEC, "where the fields of the pod spec are"),
    ),
)

SCALE_DEFINITION = Object(
    name="scaleDefinition",
    fields=(
        _optional("replicasPath", _ON_OBJECT, "the number of the component's pods in the whole workload, per instance"),
        _optional("minReplicasPath", _ON_OBJECT, "the least number of pods"),
        _optional("maxReplicasPath", _ON_OBJECT, "the largest number of pods"),
        _ours("unknownReason", _REASON, "what decides the number where replicasPath gives null, and how to state it"),
    ),
)

EXPECTED_CONDITION = Object(
    name="byConditions",
    fields=(
        _required("type", _TEXT, "the condition's type"),
        _optional("status", _TEXT, "its status, when it matters"),
        _optional("reason", _TEXT, "its reason, when it matters"),
    ),
)

EXPRESSION_MATCHER = Object(
    name="byExpression",
    fields=(
        _required("expression", _ON_OBJECT, "the expression whose first result is compared"),
        _required("expectedResult", Text(may_be_empty=True), "the result as jq's tostring prints it"),
    ),
)

MATCHER = Object(
    name="matcher",
    fields=(
        _optional("byPhase", _TEXT, "the phase"),
        _optional("byConditions", ListOf(entry=EXPECTED_CONDITION), "the conditions, all of which have to be there"),
        _optional("byExpression", EXPRESSION_MATCHER, "an expression and its expected result"),
    ),
)

STATUS_MAPPINGS = Object(
    name="statusMappings",
    fields=tuple(
        _optional(status.value.lower(), ListOf(entry=MATCHER), f"the ways to recognise {status.value}")
        for status in Status
        if status is not Status.UNDEFINED  # what nothing matches
    ),
)

STATUS_DEFINITION = Object(
    name="statusDefinition",
    fields=(
        _optional(
            "phaseDefinition",
            Object(name="phaseDefinition", fields=(_required("path", _ON_OBJECT, "where the phase is"),)),
            "where the phase is",
        ),
        _optional(
            "conditionsDefinition",
            Object(
                name="conditionsDefinition",
                fields=(
                    _required("path", _ON_OBJECT, "where the list of conditions is"),
                    _optional("typeFieldName", _TEXT, "the name of the type's field, when it is not type"),
                    _optional("statusFieldName", _TEXT, "the name of the status's field, when it is not status"),
                    _optional("messageFieldName", _TEXT, "the name of the message's field, when it is not message"),
                    _optional("reasonFieldName", _TEXT, "the name of the reason's field, when it is not reason"),
                ),
            ),
            "where the conditions are",
        ),
        _required("statusMappings", STATUS_MAPPINGS, "how to recognise each status, {} when none can be"),
    ),
)

ACTION = Object(
    name="action",
    fields=(
        _required("path", _ON_OBJECT, "the field to set"),
        _required("value", JsonValue(), 'the value to set as JSON, for example "true"'),
    ),
)

SUSPEND_DEFINITION = Object(
    name="suspendDefinition",
    fields=(
        _required("suspendActions", ListOf(entry=ACTION, at_least=1), "what to set to suspend, in order"),
        _required("resumeActions", ListOf(entry=ACTION, at_least=1), "what to set to resume, in order"),
    ),
)

COMPONENT_TYPE_SELECTOR = Object(
    name="componentTypeSelector",
    fields=(
        _optional("keyPath", _ON_POD, "what on the pod tells its component"),
        _optional("value", Text(may_be_empty=True), "the value of keyPath, when not every value will do"),
        _optional("matchLabels", LabelMap(), "the labels of the component's pods"),
    ),
)

POD_SELECTOR = Object(
    name="podSelector",
    fields=(
        _optional("componentTypeSelector", COMPONENT_TYPE_SELECTOR, "how the component's pods are told from others"),
        _optional(
            "componentInstanceSelector",
            Object(
                name="componentInstanceSelector",
                fields=(_required("idPath", _ON_POD, "what on the pod is the id of its instance"),),
            ),
            "which instance of the component a pod belongs to",
        ),
        _optional(
            "replicaSelector",
            Object(
                name="replicaSelector",
                fields=(_required("keyPath", _ON_POD, "what on the pod tells its replica of the component"),),
            ),
            "which replica of the component a pod belongs to",
        ),
    ),
)

_ANY_COMPONENT = (
    _required("name", _COMPONENT_NAME, "the component's name"),
    _optional("specDefinition", SPEC_DEFINITION, "where the pod spec is; a component with one bears pods"),
    _optional("scaleDefinition", SCALE_DEFINITION, "where the number of pods is; without it, one pod per instance"),
    _optional("suspendDefinition", SUSPEND_DEFINITION, "how the framework suspends and resumes"),
    _optional("instanceIdPath", _ON_OBJECT, "the ids of the component's instances, when it has several"),
    _optional("podSelector", POD_SELECTOR, "how a pod is told to belong to the component"),
    _ours("isEnabledExpression", _ON_OBJECT, "what is true when the component exists in this object"),
    _ours("isCompleteExpression", _ON_OBJECT, "what is true when the pod spec is wholly in this object"),
    _ours("incompleteReason", _REASON, "who completes the pod spec where it is not, and how to state the GPUs"),
    _ours(
        "role",
        Text(
            form=r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?",
            wanted="at most 63 letters, digits, dashes, underscores and dots, a letter or digit at both ends",
        ),
        "the role of the component's pods, when it is not the component's name",
    ),
)

ROOT_COMPONENT = Object(
    name="rootComponent",
    fields=(
        *_ANY_COMPONENT,
        _required("kind", KIND, "the kind of object that the definition describes"),
        _optional("ownerRef", _COMPONENT_NAME, "nothing: the root has no owner"),
        _required("statusDefinition", STATUS_DEFINITION, "how the object's status is read"),
        _ours("spawnsWorkloads", Flag(), "true when the object is a schedule and each of its runs a workload"),
        _ours(
            "rootStamps",
            Choice(words=(RootStamps.IDENTITY, RootStamps.FULL, RootStamps.ANNOTATIONS, RootStamps.NONE)),
            "how much may be written into the object's own metadata",
        ),
        _ours("answeredBy", _COMPONENT_NAME, "the child whose own definition answers for the whole"),
    ),
)

CHILD_COMPONENT = Object(
    name="childComponent",
    fields=(
        *_ANY_COMPONENT,
        _optional("kind", KIND, "the kind of object that stands for the component"),
        _required("ownerRef", _COMPONENT_NAME, "the name of the component above"),
        _optional("statusDefinition", STATUS_DEFINITION, "nothing that is used: only the root's status is read"),
    ),
)

STRUCTURE_DEFINITION = Object(
    name="structureDefinition",
    fields=(
        _required("rootComponent", ROOT_COMPONENT, "the described object"),
        _optional("childComponents", ListOf(entry=CHILD_COMPONENT), "the components below it"),
        _optional(
            "additionalChildKinds",
            ListOf(entry=KIND, unique_by=("group", "version", "kind")),
            "kinds of objects between the described object and its pods that are no components",
        ),
    ),
)

# ----------------------------------------------------------------------------------------------------- gangs

TOPOLOGY = Object(
    name="topology",
    fields=(
        _optional("topologyName", _TEXT, "the topology's name"),
        _optional("preferredTopologyLevel", _TEXT, "the level within which pods should be"),
        _optional("requiredTopologyLevel", _TEXT, "the level within which pods have to be"),
    ),
)

POD_GROUP = Object(
    name="podGroup",
    fields=(
        _required("name", _TEXT, "the group's name"),
        _optional(
            "subGroups",
            ListOf(
                entry=Object(
                    name="subGroup",
                    fields=(
                        _required("componentName", _COMPONENT_NAME, "the name of a component"),
                        _optional("topology", TOPOLOGY, "where its pods should be"),
                    ),
                ),
                unique_by=("componentName",),
            ),
            "the components of the gang, all when none is named",
        ),
        _optional("topology", TOPOLOGY, "where the pods should be"),
    ),
)

MEMBER = Object(
    name="member",
    fields=(
        _required("componentName", _COMPONENT_NAME, "the name of a component"),
        _optional(
            "groupByKeyPaths", ListOf(entry=_ON_POD, unique_by=()), "what on the pod tells one gang from another"
        ),
        _optional("filters", ListOf(entry=_ON_POD, unique_by=()), "what has to be true of the pod"),
    ),
)

POD_GROUPS_ENTRY = Object(
    name="podGroups",
    fields=(
        _required("name", _TEXT, "the group's name"),
        _required(
            "members",
            ListOf(entry=MEMBER, unique_by=("componentName",), at_least=1),
            "the components that start together",
        ),
        _ours("gangIdPath", _ON_OBJECT, "the gang of each instance of the group's multi-instance member"),
        _ours("minPath", _ON_OBJECT, "the smaller number of pods that is enough to start"),
        _ours("sizePath", _ON_OBJECT, "the number of pods of one gang"),
        _ours("isEnabledExpression", _ON_OBJECT, "what is true when the group exists in this object"),
    ),
)

GANG_SCHEDULING = Object(
    name="gangScheduling",
    fields=(
        _optional("podGroup", POD_GROUP, "the whole object as one gang"),
        _optional("podGroups", ListOf(entry=POD_GROUPS_ENTRY, unique_by=("name",)), "the groups of the object's gangs"),
    ),
)

# -------------------------------------------------------------------------------------------------- document

DEFINITION = Object(
    name="definition",
    fields=(
        _required("apiVersion", _TEXT, "the API version of the definition itself"),
        _required("kind", _TEXT, "the kind of the definition itself"),
        _required(
            "metadata",
            Object(
                name="metadata",
                fields=(
                    _required(
                        "name",
                        Text(
                            form=_DNS_SUBDOMAIN, wanted="a DNS subdomain: lower-case letters, digits, dashes and dots"
                        ),
                        "the definition's name",
                    ),
                ),
                closed=False,
            ),
            "metadata with a name",
        ),
        _required(
            "spec",
            Object(
                name="spec",
                fields=(
                    _required("structureDefinition", STRUCTURE_DEFINITION, "the described object and its components"),
                    _optional(
                        "optimizationInstructions",
                        Object(
                            name="optimizationInstructions",
                            fields=(_optional("gangScheduling", GANG_SCHEDULING, "which pods start together"),),
                        ),
                        "how its pods are scheduled",
                    ),
                ),
            ),
            "the definition",
        ),
        _optional("status", Anything(), "nothing: the cluster writes it"),
    ),
)
"""The document. Metadata of a live resource has many more fields, and its status is the cluster's."""


def objects(shape: Shape = DEFINITION) -> Iterator[Object]:
    """Every object of the language, outermost first; one that occurs at several places occurs as often."""
    match shape:
        case Object():
            yield shape
            for field in shape.fields:
                yield from objects(field.shape)
        case ListOf():
            yield from objects(shape.entry)
