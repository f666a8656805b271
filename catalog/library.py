"""The definitions in force: compiled, by kind, with precedence between their sources.

Compiling an expression costs about a millisecond, so it is done here, once for each definition, never for an admission.
This module does not know where definitions come from nor what is done with them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from catalog.definition import (
    Component,
    Definition,
    Expression,
    GangGroup,
    GangMember,
    GroupVersionKind,
    JsonObject,
    PodFieldsAt,
    PodSource,
    PodSpecAt,
    PodTemplateAt,
)
from catalog.expressions import Outcome, Program

NOTHING_ISOLATED: Mapping[str, Outcome] = MappingProxyType({})
"""For callers that had nothing evaluated outside the process."""

BUILT_IN_GROUPS = frozenset({"", "apps", "batch"})
"""API groups of Kubernetes whose kinds own pods, directly or through another (contract, section 7)."""


class CompiledDefinition:
    """A definition with its expressions compiled: one program for each kind of input.

    `structure` and `status` run on the root object, `selection` on a pod.
    """

    __slots__ = (
        "answered_by",
        "definition",
        "enabling",
        "gang_groups",
        "is_plain",
        "leaves",
        "match_keys",
        "selection",
        "spawns_workloads",
        "states_gangs",
        "status",
        "structure",
    )

    def __init__(self, definition: Definition) -> None:
        """Raises `ExpressionError` when an expression does not compile; a parsed definition's do."""
        self.definition = definition
        self.structure = _program(_structure_expressions(definition))
        self.selection = _program(_selection_expressions(definition))
        self.status = _program(_status_expressions(definition))
        self.states_gangs = definition.states_gangs
        self.spawns_workloads = definition.spawns_workloads
        self.leaves = leaves(definition)
        self.enabling = tuple((leaf, _enabling(definition, leaf)) for leaf in self.leaves)
        self.gang_groups = tuple((group, _member_leaves(definition, group)) for group in gang_groups(definition))
        self.match_keys = tuple(
            key for leaf in self.leaves if leaf.selector is not None for key in leaf.selector.match_labels
        )
        self.answered_by = next(
            (child.kind for child in definition.children if child.name == definition.answered_by), None
        )
        self.is_plain = self.structure.is_plain and self.selection.is_plain

    def selection_key(self, pod: JsonObject) -> str:
        """All of a pod that this definition reads, as text; two pods with one key are alike to it.

        Text, because `1`, `1.0` and `true` are equal in Python and are not to a definition.
        """
        metadata = pod.get("metadata")
        labels = metadata.get("labels") if isinstance(metadata, dict) else None
        labels = labels if isinstance(labels, dict) else {}
        return repr((self.selection.evaluate(pod), [labels.get(key) for key in self.match_keys]))

    @property
    def sources(self) -> tuple[str, ...]:
        """Every expression that is evaluated, once."""
        programs = (self.structure, self.selection, self.status)
        return tuple(dict.fromkeys(source for program in programs for source in program.sources))

    def __repr__(self) -> str:
        return f"CompiledDefinition({self.definition.name!r})"


def _program(expressions: Iterable[Expression | None]) -> Program:
    return Program.compile(tuple(dict.fromkeys(e.text for e in expressions if e is not None)))


def _structure_expressions(definition: Definition) -> Iterator[Expression | None]:
    for component in definition.components:
        yield component.is_enabled
        yield component.is_complete
        yield component.instance_ids
        if component.pods is not None:
            yield from device_expressions(component.pods)
        if component.scale is not None:
            yield from (component.scale.replicas, component.scale.min_replicas, component.scale.max_replicas)
    for group in gang_groups(definition):
        yield from (group.is_enabled, group.size, group.gang_id, group.minimum)


def device_expressions(source: PodSource) -> tuple[Expression | None, ...]:
    """The expressions of a pod source from which a pod's devices follow; what else it states is not read here."""
    match source:
        case PodTemplateAt():
            return (source.template,)
        case PodSpecAt():
            return (source.spec, source.metadata)
        case PodFieldsAt():
            return (source.resources, source.containers, source.container, source.resource_claims, source.annotations)


def _selection_expressions(definition: Definition) -> Iterator[Expression | None]:
    for component in definition.components:
        if component.selector is not None:
            yield from (component.selector.key, component.selector.instance)
    for group in gang_groups(definition):
        for member in group.members:
            yield from member.group_by
            yield from member.filters


def _status_expressions(definition: Definition) -> Iterator[Expression | None]:
    mapping = definition.root.status
    if mapping is None:
        return
    yield mapping.phase
    if mapping.conditions is not None:
        yield mapping.conditions.path
    for matchers in mapping.matchers.values():
        for matcher in matchers:
            if matcher.by_expression is not None:
                yield matcher.by_expression.expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Superseded:
    """A definition that is not used because another one of the same source has its kind."""

    loser: Definition
    winner: Definition


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """Every definition in force. Build it with `Catalog.of`; a change makes a new one."""

    exact: Mapping[GroupVersionKind, CompiledDefinition]
    by_kind: Mapping[tuple[str, str], tuple[CompiledDefinition, ...]]
    passed_through: frozenset[tuple[str, str]]
    superseded: tuple[Superseded, ...] = field(default=())
    is_plain: bool = True
    """Whether no definition has an expression for which anything might have to be evaluated elsewhere."""

    @classmethod
    def of(cls, *sources: Sequence[CompiledDefinition]) -> "Catalog":
        """The catalogue of several sources. A later source wins per group and kind.

        Within one source the first of two definitions for one group, version and kind wins
        (callers sort theirs oldest first).
        """
        winners: dict[tuple[str, str], tuple[CompiledDefinition, ...]] = {}
        superseded: list[Superseded] = []
        for source in sources:
            chosen: dict[GroupVersionKind, CompiledDefinition] = {}
            for compiled in source:
                first = chosen.setdefault(compiled.definition.describes, compiled)
                if first is not compiled:
                    superseded.append(Superseded(loser=compiled.definition, winner=first.definition))
            winners |= _by_group_and_kind(chosen.values())
        in_force = [compiled for versions in winners.values() for compiled in versions]
        return cls(
            exact={compiled.definition.describes: compiled for compiled in in_force},
            by_kind=winners,
            passed_through=frozenset(
                (kind.group, kind.kind) for compiled in in_force for kind in _child_kinds(compiled.definition)
            ),
            superseded=tuple(superseded),
            is_plain=all(compiled.is_plain for compiled in in_force),
        )

    def __iter__(self) -> Iterator[CompiledDefinition]:
        return iter(self.exact.values())

    def __len__(self) -> int:
        return len(self.exact)

    def find(self, kind: GroupVersionKind) -> CompiledDefinition | None:
        """The definition of that very version, else the one definition of that group and kind."""
        exact = self.exact.get(kind)
        if exact is not None:
            return exact
        versions = self.by_kind.get((kind.group, kind.kind), ())
        return versions[0] if len(versions) == 1 else None

    def describes(self, group: str, kind: str) -> bool:
        """Whether objects of that group and kind have a definition, whatever their version."""
        return (group, kind) in self.by_kind

    def walks_through(self, group: str, kind: str) -> bool:
        """Whether an owner of that kind is read on the way up; else the lineage ends before it."""
        return group in BUILT_IN_GROUPS or (group, kind) in self.by_kind or (group, kind) in self.passed_through


def _by_group_and_kind(
    definitions: Iterable[CompiledDefinition],
) -> dict[tuple[str, str], tuple[CompiledDefinition, ...]]:
    found: dict[tuple[str, str], tuple[CompiledDefinition, ...]] = {}
    for compiled in definitions:
        key = (compiled.definition.describes.group, compiled.definition.describes.kind)
        found[key] = (*found.get(key, ()), compiled)
    return found


def _child_kinds(definition: Definition) -> Iterator[GroupVersionKind]:
    yield from definition.additional_child_kinds
    yield from (child.kind for child in definition.children if child.kind is not None)


def gang_groups(definition: Definition) -> tuple[GangGroup, ...]:
    """The gang groups that a definition states; a `podGroup` is one group of the whole object and wins.

    A `podGroup` without sub-groups has every component as a member (through the root, their ancestor).
    """
    group = definition.pod_group
    if group is None:
        return definition.gang_groups
    names = tuple(sub_group.component for sub_group in group.sub_groups) or (definition.root.name,)
    return (GangGroup(name=group.name, members=tuple(GangMember(component=name) for name in names)),)


def leaves(definition: Definition) -> tuple[Component, ...]:
    """The components that bear pods, root first."""
    return tuple(component for component in definition.components if component.pods is not None)


def _enabling(definition: Definition, leaf: Component) -> tuple[Expression, ...]:
    """The conditions under which a component exists: its own and its ancestors'."""
    levels = (leaf, *ancestors(definition, leaf))
    return tuple(level.is_enabled for level in levels if level.is_enabled is not None)


def _member_leaves(definition: Definition, group: GangGroup) -> frozenset[str]:
    """Names of the pod-bearing components that a gang group has as members, themselves or through an ancestor."""
    members = {member.component for member in group.members}
    return frozenset(
        leaf.name
        for leaf in leaves(definition)
        if members & {leaf.name, *(parent.name for parent in ancestors(definition, leaf))}
    )


def ancestors(definition: Definition, component: Component) -> Iterator[Component]:
    """The component's parents, nearest first; the root is the last."""
    by_name = {each.name: each for each in definition.components}
    while component.owner is not None:
        component = by_name[component.owner]
        yield component
