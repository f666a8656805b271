"""Writes the catalogue's page from the packaged definitions: which kinds, roles and gangs, and what is not known when.

Knows the definitions only; how pages are kept current is `generated`'s business.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from catalog import load
from catalog.definition import (
    Component,
    Definition,
    Expression,
    GangGroup,
    PodSelector,
    RootStamps,
)
from catalog.library import CompiledDefinition, ancestors, gang_groups, leaves
from catalog.structure import is_own_name
from tests.golden.cases import packaged_catalog
from tests.golden.shown import fields_read

CHECKED = re.compile(r"Checked against (?P<what>.+?)\.(?= [A-Z]|$)\s*(?P<rest>.*)")
LABEL = re.compile(r"\.metadata\.(?P<where>label|annotation)s(?:\[\"(?P<quoted>[^\"]+)\"\]|\.(?P<plain>\w+))")
PLAIN_NUMBER = re.compile(r"\.(?P<path>[\w.]+)(?: // (?P<default>\d+))?")
LONGEST_EXPRESSION = 60

ROOT_STAMPS = {
    RootStamps.FULL: "all",
    RootStamps.ANNOTATIONS: "all, as annotations",
    RootStamps.IDENTITY: "identity, at creation",
    RootStamps.NONE: "none",
}


def summary() -> str:
    """One row for each kind."""
    rows = ["| kind | API | roles | gangs | not known, sometimes | stamps on the object |", "|---|---|---|---|---|---|"]
    for compiled in _definitions():
        definition = compiled.definition
        cells = (
            f"[{definition.describes.kind}](#{_anchor(definition)})",
            f"`{definition.describes.api_version}`",
            _roles(definition),
            _gangs_in_short(definition),
            _not_known_in_short(definition),
            ROOT_STAMPS[definition.root_stamps],
        )
        rows.append(_row(cells))
    return "\n".join(rows)


def details() -> str:
    """A section for each kind."""
    return "\n\n".join(_section(compiled.definition) for compiled in _definitions())


def _definitions() -> list[CompiledDefinition]:
    """The definitions, kinds of Kubernetes first, then by group, kind and version."""

    def order(compiled: CompiledDefinition) -> tuple[bool, str, str, str]:
        kind = compiled.definition.describes
        return "." in kind.group, kind.group, kind.kind, kind.version

    return sorted(packaged_catalog(), key=order)


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _anchor(definition: Definition) -> str:
    """GitHub's anchor of the section's heading."""
    kind = definition.describes
    return re.sub(r"[^a-z0-9 -]", "", f"{kind.kind} {kind.api_version}".lower()).replace(" ", "-")


def _roles(definition: Definition) -> str:
    if definition.answered_by is not None:
        return f"those of its {_child_kind(definition, definition.answered_by)}"
    roles = dict.fromkeys(_role(definition, leaf) for leaf in leaves(definition) if _claims_pods(leaf))
    return ", ".join(roles) or "those of what it holds"


def _claims_pods(leaf: Component) -> bool:
    """Whether any pod may have the role: a component may stand for what only objects below can tell."""
    return leaf.selector is None or leaf.selector.key is None or leaf.selector.key.text != "null"


def _role(definition: Definition, leaf: Component) -> str:
    """The role's name; for instances that name themselves, what is one."""
    if leaf.role is not None:
        return f"`{leaf.role}`"
    if leaf.instance_ids is not None and len(leaves(definition)) == 1:
        return f"the name of each {leaf.name}"
    return f"`{leaf.name.lower()}`"


def _child_kind(definition: Definition, name: str) -> str:
    return next(child.kind.kind for child in definition.children if child.name == name and child.kind is not None)


# ------------------------------------------------------------------------------------------------------- gangs


def _gangs_in_short(definition: Definition) -> str:
    if definition.answered_by is not None:
        return f"those of its {_child_kind(definition, definition.answered_by)}"
    groups = gang_groups(definition)
    if not groups:
        below = _kinds_below_with_gangs(definition)
        return f"those of its {', '.join(below)}" if below else "none"
    return "; ".join(dict.fromkeys(_group(definition, group) for group in groups))


def _kinds_below_with_gangs(definition: Definition) -> list[str]:
    """Described kinds below the object that state gangs; a pod's own Job states none for what another object made."""
    kinds = [*(child.kind for child in definition.children), *definition.additional_child_kinds]
    found = [packaged_catalog().find(kind) for kind in kinds if kind is not None]
    return sorted(
        {each.definition.describes.kind for each in found if each is not None and each.states_gangs and _is_owner(each)}
    )


def _is_owner(compiled: CompiledDefinition) -> bool:
    return compiled.definition.describes.group != "batch"


def _group(definition: Definition, group: GangGroup) -> str:
    """Which pods are one gang."""
    text = " + ".join(_member_name(definition, member.component) for member in group.members)
    keys = [key for member in group.members for key in member.group_by if not is_own_name(definition, key)]
    if group.gang_id is not None:
        return f"{text}, those that start together"
    return f"{text}, one for each `{_label_in(keys[0]) or group.name}`" if keys else text


def _member_name(definition: Definition, name: str) -> str:
    """The role of a gang's member; that of instances which name themselves is the component's name."""
    component = next(each for each in definition.components if each.name == name)
    if component.pods is None:
        return "all pods" if component is definition.root else f"{name} pods"
    role = _role(definition, component)
    return role if role.startswith("`") else f"{name} pods"


def _gangs(definition: Definition) -> Iterator[str]:
    """Each gang group, with what has to be so for it to be there."""
    for group in gang_groups(definition):
        parts = [_group(definition, group)]
        if any(member.filters for member in group.members):
            parts.append("chosen by what the pod says")
        if group.minimum is not None:
            parts.append("with a smaller number that is enough to start")
        if group.is_enabled is not None:
            parts.append(f"when `{' '.join(group.is_enabled.text.split())}`")
        yield ", ".join(parts)


def _label_in(expression: Expression) -> str | None:
    found = LABEL.search(expression.text)
    return (found["quoted"] or found["plain"]) if found is not None else None


# ---------------------------------------------------------------------------------------------------- sections


def _section(definition: Definition) -> str:
    kind = definition.describes
    checked, note = _header(definition)
    parts = [f"### {kind.kind}, `{kind.api_version}`", f"Checked against {checked}." + (f" {note}" if note else "")]
    if definition.spawns_workloads:
        parts.append("It is a schedule: each run is a workload of its own, and the numbers are those of one run.")
    if definition.answered_by is None and any(map(_claims_pods, leaves(definition))):
        parts.append("\n".join(_role_table(definition)))
    gangs = list(_gangs(definition))
    if gangs:
        parts.append("Gangs:\n\n" + "\n".join(f"- {line}" for line in gangs))
    not_known = [f"{what}: {reason}" for what, reason in _not_known(definition)]
    if not_known:
        parts.append("Not known:\n\n" + "\n".join(f"- {line}" for line in not_known))
    return "\n\n".join(parts)


def _header(definition: Definition) -> tuple[str, str]:
    """What the first comment of the file says: the version that was checked, and the rest."""
    lines = load.text_of(definition.origin).splitlines()
    first = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    text = " ".join(line.removeprefix("#").strip() for line in lines[:first])
    found = CHECKED.fullmatch(text)
    assert found is not None, f"{definition.name}: its first comment does not begin with: Checked against …"
    return found["what"], found["rest"]


def _role_table(definition: Definition) -> Iterator[str]:
    yield "| role | told by | number of pods | there |"
    yield "|---|---|---|---|"
    for leaf in leaves(definition):
        yield _row((_role(definition, leaf), _told_by(leaf.selector), _number(leaf), _there(definition, leaf)))


def _told_by(selector: PodSelector | None) -> str:
    """How a pod is told to have the role."""
    if selector is None or not (selector.chooses_component or selector.instance):
        return "every pod"
    parts = [f"label `{name}={value}`" for name, value in selector.match_labels.items()]
    if selector.key is not None:
        parts.append(_key(selector.key, selector.value))
    if selector.instance is not None:
        parts.append(f"instance: {_key(selector.instance, None)}")
    return "; ".join(parts)


def _key(expression: Expression, value: str | None) -> str:
    plain = LABEL.fullmatch(expression.text)
    wanted = "" if value is None else f"={value}"
    if plain is not None:
        return f"{plain['where']} `{plain['quoted'] or plain['plain']}{wanted}`"
    named = list(dict.fromkeys(found["quoted"] or found["plain"] for found in LABEL.finditer(expression.text)))
    if not named:
        named = list(dict.fromkeys(re.findall(r'\."([^"]+)"', expression.text)))
    return f"worked out from {_listed(named)}" if named else "its metadata"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _number(leaf: Component) -> str:
    """Where the number of pods is read."""
    each = " each" if leaf.instance_ids is not None else ""
    if leaf.scale is None:
        return f"1{each}"
    if leaf.scale.replicas is None:
        return "not stated"
    text = leaf.scale.replicas.text.strip()
    if text.isdigit():
        return text
    plain = PLAIN_NUMBER.fullmatch(text)
    if plain is not None:
        default = f", {plain['default']} by default" if plain["default"] is not None else ""
        return f"`{plain['path']}`{default}"
    fields = list(dict.fromkeys(_written(path) for path in fields_read(leaf.scale.replicas) if path))
    return f"worked out from {_listed(fields)}" if fields else "not stated"


def _written(path: Sequence[str]) -> str:
    """A field as people write it; a key with dots in quotation marks."""
    text = ""
    for name in path:
        text += name if name == "[]" else f'["{name}"]' if "." in name else f".{name}"
    return text.removeprefix(".")


def _there(definition: Definition, leaf: Component) -> str:
    """When the component exists: by its own condition, and by those of the components above it."""
    conditions = [level.is_enabled for level in (leaf, *ancestors(definition, leaf)) if level.is_enabled is not None]
    if not conditions:
        return "always"
    text = " ".join(conditions[0].text.split())
    return f"`{text}`" if len(conditions) == 1 and len(text) <= LONGEST_EXPRESSION else "sometimes"


def _not_known(definition: Definition) -> Iterator[tuple[str, str]]:
    """What may not be known, of which roles, and the definition's own reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for leaf in leaves(definition):
        name = _member_name(definition, leaf.name)
        if leaf.scale is not None and leaf.scale.unknown_reason is not None:
            reasons.setdefault(("pods", leaf.scale.unknown_reason), []).append(name)
        if leaf.incomplete_reason is not None:
            reasons.setdefault(("GPUs", leaf.incomplete_reason), []).append(name)
    if definition.answered_by is not None:
        yield "roles, pods and GPUs on the object", f"its {_child_kind(definition, definition.answered_by)} has them"
    for (what, reason), roles in reasons.items():
        yield f"{what} of {', '.join(dict.fromkeys(roles))}", reason


def _not_known_in_short(definition: Definition) -> str:
    """`pods`, `GPUs` or both."""
    return ", ".join(dict.fromkeys(what.split(" ", 1)[0].rstrip(",") for what, _ in _not_known(definition)))
