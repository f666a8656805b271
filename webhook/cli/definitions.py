"""`workload-stamp definitions`: list, show and validate."""

import difflib
from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

import click

from catalog import load
from catalog.definition import Definition, GroupVersionKind
from catalog.library import leaves
from webhook.cli import terminal
from webhook.cli.definition_check import checked
from webhook.cli.failures import InputProblems
from webhook.cli.manifests import read_once
from webhook.cli.output import print_json, print_yaml
from webhook.cli.printable import printable
from webhook.cli.workbench import catalog_with, definitions_option

COLUMNS = (
    terminal.Column(title="KIND"),
    terminal.Column(title="GROUP", least=12, cut="middle"),
    terminal.Column(title="VERSION"),
    terminal.Column(title="ROLES", least=12),
)
WIDE_COLUMNS = (
    *COLUMNS[:3],
    terminal.Column(title="ROOT STAMPS", gives_way=1),
    terminal.Column(title="NAME", least=16, cut="middle"),
    COLUMNS[3],
)


@click.group("definitions")
def command() -> None:
    """List, show and validate definitions.

    A definition describes one kind of workload: where its pods, their numbers, their roles and its status are written.
    Many are packaged; -d adds your own, or replaces a packaged one.
    """


@command.command("list")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "wide", "json", "yaml", "name"]),
    default="table",
    show_default=True,
    help="How to show them.",
)
@definitions_option
def list_(definitions: tuple[Path, ...], output: str) -> None:
    """List the kinds that are described."""
    found = sorted((compiled.definition for compiled in catalog_with(definitions)), key=_by_group_and_kind)
    if output == "name":
        for each in found:
            click.echo(each.name)
    elif output == "json":
        print_json(_document(each) for each in found)
    elif output == "yaml":
        print_yaml(_document(each) for each in found)
    elif output == "wide":
        terminal.print_table(WIDE_COLUMNS, [_wide_row(each) for each in found])
    else:
        terminal.print_table(COLUMNS, [_row(each) for each in found])


def _by_group_and_kind(definition: Definition) -> tuple[str, str, str]:
    kind = definition.describes
    return kind.group, kind.kind, kind.version


def _row(definition: Definition) -> tuple[str, ...]:
    kind = definition.describes
    return kind.kind, kind.group, kind.version, _roles(definition)


def _wide_row(definition: Definition) -> tuple[str, ...]:
    return (*_row(definition)[:3], definition.root_stamps.value, definition.name, _roles(definition))


def _roles(definition: Definition) -> str:
    """The roles that pods may have; `each x` where every instance of x is a role of its own."""
    bearing = leaves(definition)
    if definition.answered_by is not None:
        return f"(as its {definition.answered_by})"
    if len(bearing) == 1 and bearing[0].instance_ids is not None and bearing[0].role is None:
        return f"each {bearing[0].name}"
    return ", ".join(leaf.role or leaf.name.lower() for leaf in bearing)


def _document(definition: Definition) -> dict[str, object]:
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


# ----------------------------------------------------------------------------------------------------- show


def _packaged_names(_: click.Context, __: click.Parameter, incomplete: str) -> list[str]:
    """Names of packaged definitions, for completion: their files are called so, and none has to be read."""
    files = (each.name for each in resources.files("catalog").joinpath("definitions").iterdir())
    names = (name.removesuffix(".yaml") for name in files if name.endswith(".yaml"))
    return sorted(name for name in names if name.startswith(incomplete))


@command.command("show")
@click.argument("name", shell_complete=_packaged_names)
@definitions_option
def show(name: str, definitions: tuple[Path, ...]) -> None:
    """Show the text of a definition.

    NAME is its name, or the kind that it describes: JobSet, jobset, Job.batch, Job.v1.batch. Of a kind that is there
    several times, in several groups or versions, all are shown.
    """
    everything = [compiled.definition for compiled in catalog_with(definitions)]
    found = [each for each in everything if name == each.name]
    found = found or [each for each in everything if name.lower() in _words(each.describes)]
    if not found:
        raise InputProblems((_no_such(name, everything),))
    texts = [_text(origin) for origin in dict.fromkeys(each.origin for each in found)]
    click.echo("\n---\n".join(text.rstrip() for text in texts))


def _words(kind: GroupVersionKind) -> Iterator[str]:
    """What one may call a kind, in lower case: as kubectl has it, without plurals."""
    for qualified in (kind.kind, f"{kind.kind}.{kind.group}", f"{kind.kind}.{kind.version}.{kind.group}"):
        yield qualified.lower().rstrip(".")


def _no_such(name: str, everything: Sequence[Definition]) -> str:
    words = {word: each for each in everything for word in (each.name, *_words(each.describes))}
    near = difflib.get_close_matches(name.lower(), words, n=1, cutoff=0.7)
    hint = f"did you mean {words[near[0]].describes.kind}?" if near else "`workload-stamp definitions list` names them"
    return f"{name}: no such definition; {hint}"


def _text(origin: str) -> str:
    try:
        return load.text_of(origin)
    except (OSError, UnicodeDecodeError) as error:
        raise InputProblems((f"{origin}: cannot be read again: {error}",)) from None


# ------------------------------------------------------------------------------------------------- validate


@command.command("validate")
@click.argument(
    "paths", nargs=-1, required=True, metavar="FILE|DIR|-…", type=click.Path(allow_dash=True, readable=False)
)
def validate(paths: tuple[str, ...]) -> None:
    """Check definitions: every problem of every file at once, with its line.

    Of a DIR every .yaml, .yml and .json is read, and of the folders below it; `-` is standard input. Definitions of
    NVIDIA's Workload Map (Karta, ResourceInterface) are checked as they are used.

    The exit code is 1 when there is any problem. Good definitions are listed all the same.
    """
    read_once(paths)
    report = checked(paths)
    for definition in report.good:
        click.echo(printable(f"{definition.origin}: OK, {definition.describes}"))
    for note in report.notes:
        click.echo(printable(note), err=True)
    if report.problems:
        raise InputProblems(report.problems)
