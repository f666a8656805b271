"""`workload-stamp resolve`: what a manifest is, as its definition reads it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from catalog.definition import JsonObject, Status
from catalog.status import statuses
from catalog.structure import GangNumbers, Instance, Leaf, Structure, resolve
from webhook.cli import terminal
from webhook.cli.failures import InputProblems
from webhook.cli.manifests import Found, files_argument, objects_in, read_once, reviewed
from webhook.cli.output import amount, plain, print_json, print_yaml
from webhook.cli.printable import printable
from webhook.cli.structure_text import reasons, structure_tree, summary
from webhook.cli.workbench import Workbench, namespace_option, workbench_options
from webhook.lineage import OwnerReference, controller_reference, kind_named
from webhook.stamps import common_gang_size, identity_of, role_of

FORMATS = ("tree", "table", "wide", "json", "yaml")

COLUMNS = (
    terminal.Column(title="NAMESPACE", gives_way=2),
    terminal.Column(title="KIND", least=8),
    terminal.Column(title="NAME", least=12, cut="middle"),
    terminal.Column(title="STATUS", gives_way=1),
    terminal.Column(title="ROLES", least=12),
    terminal.Column(title="PODS", right=True),
    terminal.Column(title="GPUS", right=True),
    terminal.Column(title="GANG", right=True),
)
WIDE_COLUMNS = (
    terminal.Column(title="WORKLOAD-ID", least=16, cut="middle", gives_way=3),
    terminal.Column(title="DEFINITION", least=16, cut="middle", gives_way=4),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """An object as its definition reads it; `owner` is its controller, if it has one."""

    structure: Structure
    statuses: tuple[Status, ...]
    owner: OwnerReference | None

    @property
    def workload_id(self) -> str | None:
        """The object's own, where it is a workload by itself and has a name."""
        if self.owner is not None or self.structure.definition.spawns_workloads:
            return None
        identity = identity_of(self.structure)
        return identity if isinstance(identity, str) else None


@click.command("resolve")
@files_argument
@click.option("-o", "--output", type=click.Choice(FORMATS), default="tree", show_default=True, help="How to show them.")
@namespace_option
@workbench_options
def command(workbench: Workbench, files: tuple[str, ...], *, output: str, namespace: str) -> None:
    """Show what the objects in each FILE are: their roles, pods, GPUs, gangs and status.

    A FILE is YAML or JSON with any number of objects, Lists and AdmissionReviews among them; `-` is standard input.
    Numbers are those of the workload when it runs as specified; a `?` is one that the object alone does not tell, with
    the reason.

    Objects of kinds that no definition describes are named on standard error. The exit code is 1 when nothing could
    be shown, or when a FILE could not be read.
    """
    read_once(files)
    found = objects_in(files)
    resolved, undescribed = _resolve_all(workbench, found, namespace)
    _print(resolved, output)
    for line in undescribed:
        click.echo(printable(line), err=True)
    if found.problems or not resolved:
        raise InputProblems(found.problems)


def _resolve_all(workbench: Workbench, found: Found, namespace: str) -> tuple[list[Resolved], list[str]]:
    resolved: list[Resolved] = []
    undescribed: list[str] = []
    for each in found.objects:
        obj = reviewed(each.value)
        one = _resolve(workbench, obj, namespace) if isinstance(obj, dict) else None
        if one is not None:
            resolved.append(one)
        else:
            undescribed.append(f"{each.where}: {_named(obj if isinstance(obj, dict) else each.value)}")
    return resolved, undescribed


def _resolve(workbench: Workbench, obj: JsonObject, namespace: str) -> Resolved | None:
    kind = kind_named(obj.get("apiVersion"), obj.get("kind"))
    compiled = workbench.catalog.find(kind) if kind is not None else None
    if compiled is None:
        return None
    isolated = {
        source: outcome
        for program in (compiled.structure, compiled.status)
        if (request := program.pending(obj)) is not None
        for source, outcome in workbench.evaluate(request).items()
    }
    place = _text(obj, "namespace") or namespace
    structure = resolve(compiled, obj, workbench.policy.accelerators, namespace=place, isolated=isolated)
    found = statuses(compiled, obj, isolated)
    return Resolved(structure=structure, statuses=found, owner=controller_reference(obj))


def _named(obj: JsonObject) -> str:
    name = _text(obj, "name") or _text(obj, "generateName")
    return f"{obj.get('kind')} {name}".rstrip() + f" is of no described kind ({obj.get('apiVersion')})"


def _text(obj: JsonObject, field: str) -> str:
    metadata = obj.get("metadata")
    value = metadata.get(field) if isinstance(metadata, dict) else None
    return value if isinstance(value, str) else ""


def _print(resolved: Sequence[Resolved], output: str) -> None:
    if output == "json":
        print_json(_document(each) for each in resolved)
    elif output == "yaml":
        print_yaml(_document(each) for each in resolved)
    elif output == "tree":
        for each in resolved:
            terminal.print_tree(structure_tree(each.structure, each.statuses, each.owner))
    elif resolved:
        wide = output == "wide"
        columns = (*COLUMNS, *(WIDE_COLUMNS if wide else ()))
        terminal.print_table(columns, [(*_row(each), *(_wide_row(each) if wide else ())) for each in resolved])


def _row(resolved: Resolved) -> tuple[str, ...]:
    structure = resolved.structure
    size = common_gang_size(structure)
    return (
        structure.namespace,
        structure.kind.kind,
        structure.name,
        resolved.statuses[0].value,
        "" if structure.answered_by is not None else summary(structure),
        amount(structure.pods_total),
        amount(structure.gpu_total),
        "" if size is None else amount(size),
    )


def _wide_row(resolved: Resolved) -> tuple[str, ...]:
    return resolved.workload_id or "", resolved.structure.definition.name


# ---------------------------------------------------------------------------------------------- for programs


def _document(resolved: Resolved) -> dict[str, Any]:
    structure = resolved.structure
    return {
        "apiVersion": structure.kind.api_version,
        "kind": structure.kind.kind,
        "namespace": structure.namespace,
        "name": structure.name,
        "workloadId": resolved.workload_id,
        "owner": _owner_document(resolved.owner),
        "definition": structure.definition.name,
        "status": [status.value for status in resolved.statuses],
        "podsTotal": plain(structure.pods_total),
        "gpuTotal": plain(structure.gpu_total),
        "gangSize": plain(common_gang_size(structure)),
        "components": [_component_document(structure, leaf) for leaf in structure.leaves],
        "gangs": [_gang_document(gang) for gang in structure.gangs],
        "unknown": reasons(structure),
    }


def _owner_document(owner: OwnerReference | None) -> dict[str, Any] | None:
    if owner is None:
        return None
    return {"apiVersion": owner.kind.api_version, "kind": owner.kind.kind, "name": owner.name}


def _component_document(structure: Structure, leaf: Leaf) -> dict[str, Any]:
    instances = [_instance_document(structure, leaf, each) for each in leaf.instances]
    return {"component": leaf.component.name, "instances": instances}


def _instance_document(structure: Structure, leaf: Leaf, instance: Instance) -> dict[str, Any]:
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
