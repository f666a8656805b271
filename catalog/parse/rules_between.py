"""What the components and gangs of a definition have to do with each other: names, owners, selectors, members.

Looks at a definition whose parts have been read one by one; where a part was faulty it says nothing about it.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeAlias

from catalog.definition import Component, Definition, Expression, GangGroup, PodSelector
from catalog.parse.problem import Problem, listed, nearest
from catalog.parse.reading import FAULTY, as_found
from catalog.resources.message import shown

Located: TypeAlias = tuple[str, Component]
"""A component with its path."""

_STRUCTURE = "spec.structureDefinition"
_MOST_NAMED = 12  # names in one remedy
_GANGS = "spec.optimizationInstructions.gangScheduling"


def violations(definition: Definition, *, is_upstream: bool = False) -> Iterator[Problem]:
    """Every violated rule, in the order of the document.

    Upstream takes leaves whose pods nothing tells apart (its own definition of Milvus has such), so a document of
    upstream's kinds may have them: they claim no pod, or the first of two alike does.
    """
    components = [
        (f"{_STRUCTURE}.rootComponent", definition.root),
        *((f"{_STRUCTURE}.childComponents[{index}]", child) for index, child in enumerate(definition.children)),
    ]
    by_name: dict[str, Component] = {}
    for _, component in components:
        by_name.setdefault(component.name, component)
    yield from _answering_child(definition)
    yield from _repeated_names(components)
    if FAULTY not in by_name:  # else a name that leads nowhere may be the faulty one
        yield from _unknown_owners(components, by_name)
        yield from _unknown_members(definition, by_name)
    yield from _cycles(components, by_name)
    if not is_upstream:
        yield from _ambiguous_leaves(components)
    yield from _gangs_stated_twice(definition)
    for index, group in enumerate(definition.gang_groups):
        yield from _gang_ids_without_instances(f"{_GANGS}.podGroups[{index}]", group, definition, by_name)


def _unknown_name(path: str, name: str, names: Mapping[str, Component]) -> Iterator[Problem]:
    if name in names or name == FAULTY:
        return
    near = nearest(name, names)
    remedy = f"write {near} if that is meant" if near else f"write {_some(names)}"
    yield Problem(path, "names no component", shown(name), remedy)


def _some(names: Iterable[str]) -> str:
    """The names as a remedy has them; of many only the first."""
    first = tuple(islice(names, _MOST_NAMED + 1))
    return listed(first, "or") if len(first) <= _MOST_NAMED else f"{', '.join(first[:_MOST_NAMED])} or another"


# ------------------------------------------------------------------------------------------------- components


def _answering_child(definition: Definition) -> Iterator[Problem]:
    name = definition.answered_by
    children = {child.name: child for child in definition.children}
    if name is None or name == FAULTY or FAULTY in children:
        return
    path = f"{_STRUCTURE}.rootComponent.answeredBy"
    child = children.get(name)
    if child is None:
        remedy = f"write {_some(children)}" if children else "add the child, or leave it out"
        yield Problem(path, "names no child component", shown(name), remedy)
        return
    if child.pods is not None:
        remedy = "leave out its specDefinition: the pods are its own definition's to describe"
        yield Problem(path, "names a component with a pod spec", shown(name), remedy)
    if child.kind is None:
        remedy = "write its kind, by which its own definition is found"
        yield Problem(path, "names a component without a kind", shown(name), remedy)


def _repeated_names(components: list[Located]) -> Iterator[Problem]:
    paths: dict[str, str] = {}
    for path, component in components:
        first = paths.setdefault(component.name, path)
        if first != path and component.name != FAULTY:
            remedy = "give each component its own name"
            yield Problem(f"{path}.name", f"is taken by {first}", shown(component.name), remedy)


def _unknown_owners(components: list[Located], by_name: Mapping[str, Component]) -> Iterator[Problem]:
    for path, component in components:
        if component.owner is not None:
            yield from _unknown_name(f"{path}.ownerRef", component.owner, by_name)


def _cycles(components: list[Located], by_name: Mapping[str, Component]) -> Iterator[Problem]:
    """Each circle of owners once, at the first of its components."""
    reported: set[str] = set()
    for path, component in components:
        circle = _circle(component, by_name) if by_name[component.name] is component else ()
        if circle and reported.isdisjoint(circle):
            reported.update(circle)
            found = " → ".join((*circle, circle[0]))
            yield Problem(f"{path}.ownerRef", "leads back to the component itself", found, "let it lead to the root")


def _circle(component: Component, by_name: Mapping[str, Component]) -> tuple[str, ...]:
    """The names on the way from the component over its owners back to it; empty when the way leads elsewhere."""
    way = [component.name]
    owner = component.owner
    while owner is not None and owner != FAULTY and owner in by_name and owner not in way:
        way.append(owner)
        owner = by_name[owner].owner
    return tuple(way) if owner == component.name != FAULTY else ()


def _ambiguous_leaves(components: list[Located]) -> Iterator[Problem]:
    """Of several components with pods, each needs a selector of its own."""
    leaves = [(path, component) for path, component in components if component.pods is not None]
    if len(leaves) < 2:
        return
    seen: dict[tuple[object, ...], str] = {}
    for path, leaf in leaves:
        selector = leaf.selector
        if selector is None or not (selector.chooses_component or selector.instance):
            others = listed(
                tuple(shown(other.name) for there, other in leaves if there != path and other.name != FAULTY)
            )
            what = "does not tell its pods from those of others"
            yield Problem(f"{path}.podSelector", what, others, "write componentTypeSelector")
            continue
        first = seen.setdefault(_what_it_selects(leaf, selector), path)
        if first != path:
            what = f"selects the same pods as {first}"
            yield Problem(f"{path}.podSelector", what, _shown_selector(selector), "let each select its own")


def _what_it_selects(leaf: Component, selector: PodSelector) -> tuple[object, ...]:
    """Equal for two leaves that claim the same pods of the same objects."""
    texts = (_text(selector.key), _text(selector.instance), _text(leaf.instance_ids), _text(leaf.is_enabled))
    return (*texts, selector.value, frozenset(selector.match_labels.items()))


def _text(expression: Expression | None) -> str | None:
    """The expression; one that was faulty is like no other."""
    return expression.text or expression.path if expression is not None else None


def _shown_selector(selector: PodSelector) -> str:
    parts = [
        shown(each) for each in (_text(selector.key), selector.value, _text(selector.instance)) if each is not None
    ]
    return listed((*parts, *(f"{name}={value}" for name, value in selector.match_labels.items())))


# ------------------------------------------------------------------------------------------------------ gangs


def _unknown_members(definition: Definition, by_name: Mapping[str, Component]) -> Iterator[Problem]:
    if definition.pod_group is not None:
        for index, sub_group in enumerate(definition.pod_group.sub_groups):
            yield from _unknown_name(
                f"{_GANGS}.podGroup.subGroups[{index}].componentName", sub_group.component, by_name
            )
    for number, group in enumerate(definition.gang_groups):
        for index, member in enumerate(group.members):
            path = f"{_GANGS}.podGroups[{number}].members[{index}].componentName"
            yield from _unknown_name(path, member.component, by_name)


def _gangs_stated_twice(definition: Definition) -> Iterator[Problem]:
    """`podGroup` wins over `podGroups`, so what says more about the latter would be lost without a word."""
    if definition.pod_group is None:
        return
    for index, group in enumerate(definition.gang_groups):
        for name, expression in (("gangIdPath", group.gang_id), ("sizePath", group.size)):
            if expression is not None:
                path = f"{_GANGS}.podGroups[{index}].{name}"
                yield Problem(path, "would not count beside podGroup", as_found(expression), "leave out one of them")


def _gang_ids_without_instances(
    path: str, group: GangGroup, definition: Definition, by_name: Mapping[str, Component]
) -> Iterator[Problem]:
    """`gangIdPath` sorts the instances of one component into gangs; there has to be just that component."""
    names = {member.component for member in group.members}
    if group.gang_id is None or not names <= by_name.keys():
        return
    bearing = [each for each in definition.components if each.pods and not names.isdisjoint(_line(each, by_name))]
    if len(bearing) != 1 or bearing[0].instance_ids is None:
        found = listed(tuple(shown(component.name) for component in bearing)) if bearing else "no component with pods"
        what = "needs one member with pods, and that with an instanceIdPath"
        yield Problem(f"{path}.gangIdPath", what, found, "leave it out, or make groups of one such member")


def _line(component: Component, by_name: Mapping[str, Component]) -> list[str]:
    """The component's name and its owners', nearest first."""
    line = [component.name]
    while component.owner is not None and component.owner in by_name and component.owner not in line:
        component = by_name[component.owner]
        line.append(component.name)
    return line
