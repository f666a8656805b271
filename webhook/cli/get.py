"""`workload-stamp get`: what is running, one row a workload, whichever framework it is of."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

import click
from rich.text import Text

from catalog.definition import Status
from catalog.structure import Unknown
from webhook.cli import terminal
from webhook.cli.cluster import Connection, Session, cluster_options, read, run
from webhook.cli.failures import InputProblems
from webhook.cli.output import UNKNOWN, amount, print_document, several
from webhook.cli.terminal import Column
from webhook.cluster.reading import KindKey, Wanted
from webhook.live.documents import listed, workload_document
from webhook.live.gangs import LiveGang
from webhook.live.nodes import natural
from webhook.live.snapshot import Unread
from webhook.live.workloads import LiveRole, LiveWorkload

ALL = "all"

COLUMNS = (
    Column(title="NAMESPACE", least=12, cut="middle"),
    Column(title="KIND", least=10),
    Column(title="NAME", least=18, cut="middle"),
    Column(title="STATUS", least=12),
    Column(title="ROLES", least=14, gives_way=1),
    Column(title="PODS", right=True),
    Column(title="GPUS", right=True),
    Column(title="GANGS", right=True, gives_way=3),
    Column(title="AGE", right=True, gives_way=2),
)
WIDE_COLUMNS = (
    Column(title="NODES", right=True, gives_way=4),
    Column(title="WORKLOAD-ID", gives_way=5),
    Column(title="API-VERSION", gives_way=6),
)

SORTS: dict[str, Callable[[LiveWorkload], Any]] = {
    "name": lambda each: (each.reference.namespace, natural(each.reference.name), each.reference.kind),
    "kind": lambda each: (each.reference.kind, each.reference.namespace, natural(each.reference.name)),
    "status": lambda each: (list(Status).index(each.status), each.reference.namespace, natural(each.reference.name)),
    "pods": lambda each: -sum(1 for pod in each.pods if pod.is_present),
    "gpus": lambda each: -each.gpus_placed,
    "age": lambda each: each.created,
    "newest": lambda each: _reversed(each.created),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What is shown: workloads, how many objects are only parts of others, and what could not be read."""

    workloads: tuple[LiveWorkload, ...]
    parts: int
    unread: tuple[Unread, ...]


@click.command("get")
@click.argument("kind", default=ALL, metavar="[KIND|all]")
@click.option("-l", "--selector", metavar="SELECTOR", help="Only workloads whose objects have these labels.")
@click.option("--status", "statuses", multiple=True, metavar="STATUS,…", help="Only in one of these: running,failed.")
@click.option("--sort-by", type=click.Choice(list(SORTS)), help="What to sort by [default: namespace, kind, name].")
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "wide", "json", "yaml", "name"]),
    default="table",
    help="How to print.",
)
@cluster_options
def command(
    connection: Connection,
    *,
    kind: str,
    selector: str | None,
    statuses: tuple[str, ...],
    sort_by: str | None,
    output: str,
) -> None:
    """Show what is running, one row a workload.

    PODS are those ready of those asked for, GPUS those of running pods of those asked for, GANGS those that are whole.

    KIND is a kind, its plural or a short name (jobset, deploy), with its group where it is ambiguous (jobs.batch).
    """
    wanted = _statuses(statuses)

    async def find(session: Session) -> tuple[Session, Found]:
        return session, await _find(session, kind, selector)

    session, found = run(connection, find)
    shown = [each for each in found.workloads if not wanted or wanted & {each.status, *each.statuses}]
    if sort_by is not None:
        shown.sort(key=SORTS[sort_by])
    _print(shown, found, output, with_namespace=not session.namespace)
    session.tell(found.unread)
    if not shown and output in ("table", "wide"):
        click.echo(f"no workloads in {session.place}", err=True)


def _statuses(texts: Sequence[str]) -> frozenset[Status]:
    """The statuses that are named, in any case. Raises InputProblems."""
    words = [word.strip() for text in texts for word in text.split(",") if word.strip()]
    by_name = {status.value.lower(): status for status in Status}
    unknown = [word for word in words if word.lower() not in by_name]
    if unknown:
        expected = ", ".join(by_name)
        raise InputProblems((f"--status: found {', '.join(unknown)}, expected some of {expected}",), exit_code=2)
    return frozenset(by_name[word.lower()] for word in words)


async def _find(session: Session, word: str, selector: str | None) -> Found:
    reader = session.reader()
    key = None if word.lower() == ALL else session.kind(word)[0]
    kinds = frozenset(reader.described) if key is None else reader.with_parts((key,))
    snapshot = await read(session, Wanted(namespace=session.namespace, kinds=kinds))
    selected = None
    if selector:
        selected = await reader.selected({key} if key else {*kinds, ("", "Pod")}, session.namespace, selector)
    inventory = session.inventory(snapshot)
    workloads = tuple(each for each in inventory.workloads if _is_wanted(each, key, selected))
    parts = sum(1 for obj in inventory.parts if key is not None and obj["kind"] == key[1])
    return Found(workloads=workloads, parts=parts, unread=snapshot.unread)


def _is_wanted(workload: LiveWorkload, key: KindKey | None, selected: frozenset[str] | None) -> bool:
    if key is not None and (workload.reference.group, workload.reference.kind) != key:
        return False
    if selected is None:
        return True
    return workload.obj is not None and workload.obj["metadata"].get("uid") in selected


def _print(shown: Sequence[LiveWorkload], found: Found, output: str, *, with_namespace: bool) -> None:
    if output == "name":
        for each in shown:
            click.echo(f"{_qualified(each)}/{each.reference.name}")
    elif output in ("json", "yaml"):
        print_document(listed("WorkloadList", (workload_document(each) for each in shown), found.unread), output)
    elif shown:
        _print_table(shown, wide=output == "wide", with_namespace=with_namespace)
        if found.parts:
            click.echo(f"{found.parts} more belong to other workloads", err=True)


def _qualified(workload: LiveWorkload) -> str:
    reference = workload.reference
    return f"{reference.kind.lower()}.{reference.group}".rstrip(".")


def _print_table(shown: Sequence[LiveWorkload], *, wide: bool, with_namespace: bool) -> None:
    now = terminal.now()
    first = 0 if with_namespace else 1
    columns = (*COLUMNS[first:], *(WIDE_COLUMNS if wide else ()))
    rows = [(*table_row(each, now)[first:], *(_wide_row(each) if wide else ())) for each in shown]
    terminal.print_table(columns, rows)
    if terminal.is_looked_at() and len(shown) > 1:
        terminal.print_lines([Text(in_short(shown), style="dim")])


def in_short(workloads: Sequence[LiveWorkload]) -> str:
    """How many there are in which state, and the GPUs of all: for who can't count three hundred rows."""
    counts = Counter(each.status for each in workloads)
    states = ", ".join(f"{counts[status]} {status.value.lower()}" for status in Status if counts[status])
    running = sum((each.gpus_running for each in workloads), Decimal(0))
    asked = [each.gpus_asked for each in workloads if each.asks and not isinstance(each.gpus_asked, Unknown)]
    gpus = f" · {amount(running)}/{amount(sum(asked, Decimal(0)))} GPUs running" if running or any(asked) else ""
    return f"{several(len(workloads), 'workload')}: {states}{gpus}"


def table_row(workload: LiveWorkload, now: datetime) -> tuple[Text | str, ...]:
    """The cells of one workload, for `COLUMNS`."""
    reference = workload.reference
    return (
        reference.namespace,
        reference.kind,
        reference.name,
        terminal.status_text(workload.status),
        roles_text(workload),
        "" if workload.is_schedule else _ratio(workload, str(workload.ready), amount(workload.pods_asked)),
        "" if workload.is_schedule else gpus_text(workload),
        gangs_text(workload),
        terminal.age(workload.created, now),
    )


def _wide_row(workload: LiveWorkload) -> tuple[Text | str, ...]:
    nodes = {pod.node for pod in workload.pods if pod.is_placed}
    group, version = workload.reference.group, workload.version
    return (str(len(nodes)) if nodes else "", workload.id, f"{group}/{version}".strip("/"))


def roles_text(workload: LiveWorkload) -> str:
    """`1 leader + 2 workers`; of a schedule, what one run has."""
    counts = [(_count(role), role.role) for role in workload.roles if role.role]
    text = " + ".join(f"{count} {role}" for count, role in counts if count)
    if len(counts) == 1 and counts[0][1] == workload.reference.kind.lower():  # a built-in kind, which has no roles
        text = several(int(counts[0][0]), "pod") if counts[0][0].isdigit() else text
    return f"each run {text}" if workload.is_schedule and text else text


def _count(role: LiveRole) -> str:
    """Pods asked for; of a role of which that is unknown, the pods that are there."""
    if not isinstance(role.pods_asked, Unknown):
        return amount(role.pods_asked)
    present = sum(1 for pod in role.pods if pod.is_present)
    return str(present) if present else ""


def gpus_text(workload: LiveWorkload) -> Text:
    """GPUs running of those asked; nothing where there are none."""
    asked, running = workload.gpus_asked, workload.gpus_running
    if asked == 0 and not running:
        return Text("")
    if isinstance(asked, Unknown) and not running:
        return Text(UNKNOWN, style="dim") if workload.asks else Text("")
    return _ratio(workload, amount(running), amount(asked))


def gangs_text(workload: LiveWorkload) -> Text:
    """Gangs whole of those asked, and the pods of one: `2/2 of 4`; nothing where there are none."""
    asked = workload.gangs_asked
    whole = sum(1 for gang in workload.gangs if gang.is_whole)
    count = len(workload.gangs) if isinstance(asked, Unknown) else sum(each.count for each in asked)
    if not count:
        return Text("")
    sizes = _sizes(workload.gangs) if isinstance(asked, Unknown) else {each.size for each in asked}
    text = _ratio(workload, str(whole), str(count))
    return text.append(f" of {sizes.pop()}", style="dim") if len(sizes) == 1 else text


def _ratio(workload: LiveWorkload, have: str, want: str) -> Text:
    """What there is of what is asked for; of a workload that asks for nothing now nobody waits for the rest."""
    return terminal.ratio_text(have, want) if workload.asks else Text(f"{have}/{want}", style="dim")


def _sizes(gangs: Sequence[LiveGang]) -> set[int]:
    return {gang.size for gang in gangs if gang.size is not None}


def _reversed(text: str) -> tuple[int, ...]:
    return tuple(-ord(character) for character in text)
