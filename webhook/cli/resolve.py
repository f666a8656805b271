"""`workload-stamp resolve`: what a manifest is, as its definition reads it."""

from collections.abc import Sequence
from typing import Any

import click
from rich.table import Table
from rich.tree import Tree

from catalog.definition import JsonObject, Status
from catalog.status import statuses
from catalog.structure import GangNumbers, Instance, Leaf, Structure, Unknown, add_counts, add_gpus, resolve
from webhook.cli.failures import InputProblems
from webhook.cli.output import amount, console, plain, print_json, print_yaml, several
from webhook.cli.workbench import Workbench, read_documents, workbench_options
from webhook.lineage import kind_named
from webhook.stamps import common_gang_size, identity_of, role_of

FORMATS = ("tree", "table", "wide", "json", "yaml")


@click.command("resolve")
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option("-o", "--output", type=click.Choice(FORMATS), default="tree", show_default=True)
@workbench_options
def command(workbench: Workbench, files: tuple[str, ...], output: str) -> None:
    """Show what the objects in FILE… are: roles, pods, GPUs, gangs and status. `-` is standard input.

    Objects of kinds without a definition are named on standard error; the exit code is 1 when there are no others.
    """
    resolved, problems = _resolve_all(workbench, read_documents(files))
    if output == "json":
        print_json(_document(structure, found) for structure, found in resolved)
    elif output == "yaml":
        print_yaml(_document(structure, found) for structure, found in resolved)
    elif output == "tree":
        for structure, found in resolved:
            console().print(_tree(structure, found))
    elif resolved:
        console().print(_table(resolved, wide=output == "wide"))
    for problem in problems:
        click.echo(problem, err=True)
    if not resolved:
        raise InputProblems(())


Resolved = tuple[Structure, tuple[Status, ...]]


def _resolve_all(workbench: Workbench, documents: Sequence[tuple[str, JsonObject]]) -> tuple[list[Resolved], list[str]]:
    resolved: list[Resolved] = []
    problems: list[str] = []
    for where, obj in documents:
        kind = kind_named(obj["apiVersion"], obj["kind"])
        compiled = workbench.catalog.find(kind) if kind is not None else None
        if compiled is None:
            problems.append(f"{where}: {obj['kind']} of {obj['apiVersion']} has no definition")
            continue
        isolated = {
            source: outcome
            for program in (compiled.structure, compiled.status)
            if (request := program.pending(obj)) is not None
            for source, outcome in workbench.evaluate(request).items()
        }
        structure = resolve(compiled, obj, workbench.policy.accelerators, isolated=isolated)
        resolved.append((structure, statuses(compiled, obj, isolated)))
    return resolved, problems


def _title(structure: Structure) -> str:
    place = f"{structure.namespace}/" if structure.namespace else ""
    return f"{structure.kind.kind} {place}{structure.name or '(no name yet)'}"


def _tree(structure: Structure, found: tuple[Status, ...]) -> Tree:
    gpus = several(structure.gpu_total, "GPU")
    tree = Tree(f"[bold]{_title(structure)}[/]  {_summary(structure)} · {gpus} · {', '.join(found)}")
    for leaf in structure.leaves:
        branch = tree.add(f"{leaf.component.name}  {_component_numbers(leaf)}")
        if leaf.has_instances:
            for instance in leaf.instances:
                branch.add(f"{instance.id}  {_instance_numbers(instance)}")
    for gang in structure.gangs:
        tree.add(f"[dim]gang {gang.group.name}:[/] {_gang_text(gang)}")
    for reason in _reasons(structure):
        tree.add(f"[yellow]unknown:[/] {reason}")
    return tree


def _summary(structure: Structure) -> str:
    """`1 leader + 2 workers`, from the roles; the number of pods where roles have no names yet."""
    counts: dict[str, int | Unknown] = {}
    for leaf in structure.leaves:
        for instance in leaf.instances:
            role = role_of(structure, leaf, instance.id or None)
            if isinstance(role, Unknown):
                return several(structure.pods_total, "pod")
            counts[role] = add_counts([counts.get(role, 0), instance.pods])
    return " + ".join(f"{amount(count)} {role}" for role, count in counts.items()) or "no pods"


def _component_numbers(leaf: Leaf) -> str:
    pods = add_counts(instance.pods for instance in leaf.instances)
    gpus = add_gpus(instance.gpu_total for instance in leaf.instances)
    if leaf.has_instances or len(leaf.instances) != 1:
        return f"{several(pods, 'pod')} · {several(gpus, 'GPU')}"
    return _instance_numbers(leaf.instances[0])


def _instance_numbers(instance: Instance) -> str:
    bounds = ""
    if instance.min_pods is not None or instance.max_pods is not None:
        low = "" if instance.min_pods is None else instance.min_pods
        high = "" if instance.max_pods is None else instance.max_pods
        bounds = f" ({low}…{high})"
    others = "".join(
        f" + {amount(number)} {name}"
        for name, number in sorted(instance.accelerators.items())
        if isinstance(instance.gpus, Unknown) or number != instance.gpus
    )
    return f"{several(instance.pods, 'pod')}{bounds} of {several(instance.gpus, 'GPU')}{others}"


def _gang_text(gang: GangNumbers) -> str:
    sizes = gang.sizes.values
    if set(sizes) == {""}:
        return f"{several(sizes[''], 'pod')} each"
    return ", ".join(f"{name} {amount(size)}" for name, size in sizes.items()) or "none"


def _reasons(structure: Structure) -> list[str]:
    found = [
        value.reason
        for leaf in structure.leaves
        for instance in leaf.instances
        for value in (instance.pods, instance.gpus)
        if isinstance(value, Unknown)
    ]
    found += [
        size.reason for gang in structure.gangs for size in gang.sizes.values.values() if isinstance(size, Unknown)
    ]
    if structure.answered_by is not None:
        found.append(f"its {structure.answered_by.kind} answers for roles, gangs and GPUs")
    return list(dict.fromkeys(found))


def _table(resolved: Sequence[Resolved], *, wide: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("NAMESPACE", "KIND", "NAME", "STATUS", "ROLES", "PODS", "GPUS", "GANG"):
        table.add_column(column, justify="right" if column in ("PODS", "GPUS", "GANG") else "left", overflow="fold")
    if wide:
        table.add_column("WORKLOAD-ID")
        table.add_column("DEFINITION")
    for structure, found in resolved:
        size = common_gang_size(structure)
        row = [
            structure.namespace,
            structure.kind.kind,
            structure.name,
            found[0].value,
            _summary(structure),
            amount(structure.pods_total),
            amount(structure.gpu_total),
            "" if size is None else amount(size),
        ]
        identity = identity_of(structure)
        extra = [identity if isinstance(identity, str) else "", structure.definition.name]
        table.add_row(*row, *(extra if wide else []))
    return table


def _document(structure: Structure, found: tuple[Status, ...]) -> dict[str, Any]:
    identity = identity_of(structure)
    size = common_gang_size(structure)
    return {
        "apiVersion": structure.kind.api_version,
        "kind": structure.kind.kind,
        "namespace": structure.namespace,
        "name": structure.name,
        "workloadId": identity if isinstance(identity, str) else None,
        "definition": structure.definition.name,
        "status": [status.value for status in found],
        "podsTotal": plain(structure.pods_total),
        "gpuTotal": plain(structure.gpu_total),
        "gangSize": plain(size),
        "components": [_component_document(structure, leaf) for leaf in structure.leaves],
        "gangs": [_gang_document(gang) for gang in structure.gangs],
        "unknown": _reasons(structure),
    }


def _component_document(structure: Structure, leaf: Leaf) -> dict[str, Any]:
    return {"component": leaf.component.name, "instances": [_row(structure, leaf, each) for each in leaf.instances]}


def _row(structure: Structure, leaf: Leaf, instance: Instance) -> dict[str, Any]:
    role = role_of(structure, leaf, instance.id or None)
    return {
        "id": instance.id,
        "role": role if isinstance(role, str) else None,
        "pods": plain(instance.pods),
        "minPods": instance.min_pods,
        "maxPods": instance.max_pods,
        "gpusPerPod": plain(instance.gpus),
        "gpus": plain(instance.gpu_total),
        "accelerators": {name: plain(number) for name, number in instance.accelerators.items()},
    }


def _gang_document(gang: GangNumbers) -> dict[str, Any]:
    return {
        "group": gang.group.name,
        "sizes": {name: plain(size) for name, size in gang.sizes.values.items()},
        "minimums": {name: plain(size) for name, size in gang.minimums.values.items()},
    }
