"""`workload-stamp definitions`: list, show and validate."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click
from rich.table import Table

from catalog import load
from catalog.definition import Definition
from catalog.library import CompiledDefinition, leaves
from catalog.worker import ExpressionWorker, try_out
from webhook.cli.failures import InputProblems
from webhook.cli.output import console, print_json, print_yaml
from webhook.cli.workbench import STDIN, catalog_with

definitions_option = click.option(
    "--definitions",
    "-d",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="Further definitions, a file or a folder.",
)


@click.group("definitions")
def command() -> None:
    """List, show and validate definitions."""


@command.command("list")
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml", "name"]), default="table")
@definitions_option
def list_(definitions: tuple[Path, ...], output: str) -> None:
    """List the kinds that are described."""
    found = sorted(
        (compiled.definition for compiled in catalog_with(definitions)),
        key=lambda each: (each.describes.group, each.describes.kind, each.describes.version),
    )
    if output == "name":
        for each in found:
            click.echo(each.name)
    elif output == "table":
        console().print(_table(found))
    else:
        rows = [_row(each) for each in found]
        print_json(rows) if output == "json" else print_yaml(rows)


def _table(found: Sequence[Definition]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("KIND", "GROUP", "VERSION", "ROLES", "ROOT STAMPS", "NAME"):
        table.add_column(column)
    for each in found:
        kind = each.describes
        table.add_row(kind.kind, kind.group, kind.version, _roles(each), each.root_stamps.value, each.name)
    return table


def _roles(definition: Definition) -> str:
    bearing = leaves(definition)
    if definition.answered_by is not None:
        return f"(as its {definition.answered_by})"
    if len(bearing) == 1 and bearing[0].instance_ids is not None and bearing[0].role is None:
        return f"each {bearing[0].name}"
    return ", ".join(leaf.role or leaf.name.lower() for leaf in bearing)


def _row(definition: Definition) -> dict[str, object]:
    kind = definition.describes
    return {
        "name": definition.name,
        "group": kind.group,
        "version": kind.version,
        "kind": kind.kind,
        "roles": [leaf.role or leaf.name.lower() for leaf in leaves(definition)],
        "rootStamps": definition.root_stamps.value,
        "spawnsWorkloads": definition.spawns_workloads,
        "origin": definition.origin,
    }


@command.command("show")
@click.argument("name")
@definitions_option
def show(name: str, definitions: tuple[Path, ...]) -> None:
    """Show the text of a definition, by its NAME or by the kind that it describes."""
    found = [
        compiled.definition
        for compiled in catalog_with(definitions)
        if name in (compiled.definition.name, compiled.definition.describes.kind)
        or name.lower() == compiled.definition.describes.kind.lower()
    ]
    if not found:
        raise InputProblems((f"{name}: no such definition; `workload-stamp definitions list` names them",))
    for position, definition in enumerate(found):
        click.echo(("---\n" if position else "") + load.text_of(definition.origin).rstrip())


@command.command("validate")
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR|-…")
def validate(paths: tuple[str, ...]) -> None:
    """Check definitions: every problem at once, each with its place. Exit code 1 when there is any."""
    problems: list[str] = []
    good: list[Definition] = []
    for path in paths:
        found, faults = _read(path)
        problems.extend(str(fault) for fault in faults)
        good.extend(found)
    worker = ExpressionWorker()
    for definition in good:
        overran = _overrunning(definition, worker)
        problems.extend(f"{definition.origin}: {problem}" for problem in overran)
        if not overran:
            click.echo(f"{definition.origin}: OK, {definition.describes}")
    if problems:
        raise InputProblems(tuple(problems))
    if not good:
        raise InputProblems((f"{', '.join(paths)}: no definition found",))


def _read(path: str) -> tuple[Sequence[Definition], Sequence[object]]:
    if path == STDIN:
        return load.stream(sys.stdin.buffer, "standard input")
    where = Path(path)
    if not where.exists():
        return (), (f"{path}: does not exist",)
    return load.directory(where) if where.is_dir() else load.file(where)


def _overrunning(definition: Definition, worker: ExpressionWorker) -> tuple[str, ...]:
    return try_out(CompiledDefinition(definition).sources, worker=worker)
