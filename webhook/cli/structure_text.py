"""A workload's structure for people: its components, pods and GPUs, gangs, and why a number is unknown, as a tree."""

import re
from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text
from rich.tree import Tree

from catalog.definition import Status
from catalog.structure import GangNumbers, Instance, Leaf, Structure, Unknown, add_counts, add_gpus
from webhook.cli.output import amount, several
from webhook.cli.printable import printable
from webhook.lineage import OwnerReference
from webhook.stamps import role_of


def structure_tree(structure: Structure, found: Sequence[Status], owner: OwnerReference | None) -> Tree:
    """The object and its statuses, below it components, instances and gangs, each with the reasons for what is unknown.

    `owner` is the object's controller, if it has one: then the workload is that one, or one further up.
    """
    tree = Tree(_heading(structure, found), guide_style="dim")
    if owner is not None:
        tree.add(Text(f"part of {owner.kind.kind} {printable(owner.name)}", style="dim"))
    if structure.answered_by is not None:
        tree.add(Text(f"its {structure.answered_by.kind} says which pods, gangs and GPUs there are", style="dim"))
    for leaf in structure.leaves:
        _add_leaf(tree, leaf)
    for gang in structure.gangs:
        branch = tree.add(Text(f"gang {printable(gang.group.name)}: ", style="dim").append(gang_text(gang), style=""))
        _add_reasons(branch, gang.group.name, _gang_reasons(gang, known=set(reasons(structure, gangs=False))))
    if structure.gang_fault is not None:
        _add_reasons(tree, "", [("gangs", structure.gang_fault)])
    return tree


def _heading(structure: Structure, found: Sequence[Status]) -> Text:
    heading = Text(title(structure), style="bold")
    parts = [summary(structure), several(structure.gpu_total, "GPU")] if structure.answered_by is None else []
    return heading.append("  " + " · ".join([*parts, ", ".join(found)]), style="not bold")


def title(structure: Structure) -> str:
    """`JobSet team-a/train`."""
    place = f"{structure.namespace}/" if structure.namespace else ""
    return printable(f"{structure.kind.kind} {place}{structure.name or '(no name yet)'}")


def summary(structure: Structure) -> str:
    """`1 leader + 2 workers`, from the roles; the number of pods where roles have no names yet."""
    counts: dict[str, int | Unknown] = {}
    for leaf in structure.leaves:
        for instance in leaf.instances:
            role = role_of(structure, leaf, instance.id or None)
            if isinstance(role, Unknown):
                return several(structure.pods_total, "pod")
            counts[role] = add_counts([counts.get(role, 0), instance.pods])
    return " + ".join(f"{amount(count)} {role}" for role, count in counts.items()) or "no pods"


def reasons(structure: Structure, *, gangs: bool = True) -> list[str]:
    """Why numbers are unknown, each reason once, with the place in the definition that it comes from."""
    found = [
        value.reason
        for leaf in structure.leaves
        for instance in leaf.instances
        for value in (instance.pods, instance.gpus)
        if isinstance(value, Unknown)
    ]
    if gangs:
        found += [reason for gang in structure.gangs for _, reason in _gang_reasons(gang, known=set())]
        found += [structure.gang_fault] if structure.gang_fault is not None else []
    if structure.answered_by is not None:
        found.append(f"its {structure.answered_by.kind} answers for roles, gangs and GPUs")
    return list(dict.fromkeys(found))


# ----------------------------------------------------------------------------------------------- components


def _add_leaf(tree: Tree, leaf: Leaf) -> None:
    name = printable(leaf.component.name)
    if not leaf.has_instances or leaf.fault is not None:
        branch = tree.add(Text(f"{name}  {_numbers(leaf.instances[0])}"))
        _add_reasons(branch, leaf.component.name, _unknown(leaf.instances[0]))
        return
    pods = several(add_counts(each.pods for each in leaf.instances), "pod")
    gpus = several(add_gpus(each.gpu_total for each in leaf.instances), "GPU")
    branch = tree.add(Text(f"{name}  {pods} · {gpus}"))
    shared = _shared_by_all([_unknown(each) for each in leaf.instances])
    for instance in leaf.instances:
        twig = branch.add(Text(f"{printable(instance.id)}  {_numbers(instance)}"))
        _add_reasons(twig, leaf.component.name, [each for each in _unknown(instance) if each not in shared])
    _add_reasons(branch, leaf.component.name, shared)


Reason = tuple[str, str]
"""What is unknown, and why."""


def _unknown(instance: Instance) -> list[Reason]:
    numbers = (("pods", instance.pods), ("GPUs", instance.gpus))
    found = [(what, value.reason) for what, value in numbers if isinstance(value, Unknown)]
    same = len(found) == 2 and found[0][1] == found[1][1]
    return [("pods and GPUs", found[0][1])] if same else found


def _shared_by_all(lists: Sequence[list[Reason]]) -> list[Reason]:
    """The reasons that every instance has, of several instances: told once, for all of them."""
    if len(lists) < 2:
        return []
    return [each for each in lists[0] if all(each in other for other in lists[1:])]


def _add_reasons(branch: Tree, component: str, found: Sequence[Reason]) -> None:
    for what, reason in found:
        line = Text(f"{what} unknown: ", style="yellow")
        branch.add(line.append(printable(_without_place(reason, component, what)), style="not dim default"))


def _without_place(reason: str, component: str, what: str) -> str:
    """A reason begins with its place, `worker replicasPath: `; beside the component and the number that says nothing.

    Where both numbers are unknown, the field tells which expression is at fault.
    """
    name, field = re.escape(component), r"( \w+)?" if what != "pods and GPUs" else ""
    return re.sub(rf"^{name}{field}:? ", "", reason)


def _numbers(instance: Instance) -> str:
    """`2 pods, 4 GPUs each`; beside it the bounds of an autoscaler, and devices that are no GPUs."""
    gpus = several(instance.gpus, "GPU")
    each = " each" if instance.pods != 1 and gpus != "0 GPUs" else ""
    return f"{several(instance.pods, 'pod')}{_bounds(instance)}, {gpus}{each}{_devices(instance)}"


def _bounds(instance: Instance) -> str:
    low, high = instance.min_pods, instance.max_pods
    if low == high and low in (None, instance.pods):
        return ""
    if high is None:
        return f" (at least {low})"
    return f" (at most {high})" if low is None else f" ({low} to {high})"


def _devices(instance: Instance) -> str:
    """The accelerators by their resource names, where they say more than the number of GPUs."""
    if len(instance.accelerators) == 1 and instance.gpus in instance.accelerators.values():
        return ""
    named = [f"{amount(number)} {printable(name)}" for name, number in sorted(instance.accelerators.items())]
    return f" ({', '.join(named)})" if named else ""


# ---------------------------------------------------------------------------------------------------- gangs


def gang_text(gang: GangNumbers) -> str:
    """`3 pods (leader, workers)`: each size with whom it is for, and the smaller number that is enough."""
    alike: dict[tuple[str, str], list[str]] = {}
    for instance, size in _sizes(gang).items():
        minimum = gang.minimums.of(instance or None)
        enough = "" if minimum is None or minimum == size else f", {amount(minimum)} enough to start"
        whose = gang.gang_ids.get(instance, "") if isinstance(gang.gang_ids, Mapping) else ""
        alike.setdefault((f"{several(size, 'pod')}{enough}", whose), []).append(printable(instance))
    texts = (f"{text} ({', '.join(names)})" if any(names) else text for (text, _), names in alike.items())
    return "; ".join(texts) or "none"


def _sizes(gang: GangNumbers) -> Mapping[str, int | Unknown]:
    """The sizes of the gangs that exist, by instance: those that are in none are left out."""
    sizes = {instance: size for instance, size in gang.sizes.values.items() if size != 0}
    if not isinstance(gang.gang_ids, Mapping):
        return sizes
    if set(sizes) == {""}:
        return sizes if any(gang.gang_ids.values()) else {}
    return {instance: size for instance, size in sizes.items() if gang.gang_ids.get(instance)}


def _gang_reasons(gang: GangNumbers, known: set[str]) -> list[Reason]:
    """Why the size of a gang is unknown, unless its pods' number is for that very reason."""
    return [("size", reason) for reason in dict.fromkeys(_size_faults(gang)) if reason not in known]


def _size_faults(gang: GangNumbers) -> Iterator[str]:
    for size in gang.sizes.values.values():
        if isinstance(size, Unknown):
            yield size.reason
