"""`workload-stamp top`: who asks for GPUs, who holds them, and what is held without being used."""

from collections.abc import Sequence
from decimal import Decimal

import click
from rich.text import Text

from webhook.cli import terminal
from webhook.cli.cluster import Connection, Session, cluster_options, read_everything, run
from webhook.cli.output import amount, print_document, several
from webhook.cli.terminal import Column
from webhook.live.documents import NAMES, usage_document
from webhook.live.nodes import Node, nodes_with
from webhook.live.snapshot import Snapshot, Unread
from webhook.live.usage import By, Usage, total, usage_by
from webhook.live.workloads import Inventory

NO_WORKLOAD = "(no workload)"
TABLES: tuple[By, ...] = ("namespace", "kind", "workload", "node")


@click.command("top")
@click.argument("by", type=click.Choice(TABLES), default="namespace")
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", help="How to print.")
@cluster_options
def command(connection: Connection, by: By, output: str) -> None:
    """Show GPUs by namespace, kind, workload or node.

    ASKED is what workloads ask for that are not suspended and have not ended, PLACED what pods hold on nodes, RUNNING
    the part of it whose pods run, IDLE the rest: held while pods start, wait for their gang, or leave. With -A, or by
    node, the rows add up to what the nodes have given away.
    """

    async def show(session: Session) -> None:
        if by == "node":
            session.namespace = ""
        snapshot = await read_everything(session, nodes=not session.namespace)
        found = session.inventory(snapshot)
        nodes = _nodes(session, snapshot, found)
        rows = usage_by(found, by, nodes)
        per_node = usage_by(found, "node", nodes) if nodes is not None else None
        if output == "table":
            _print(by, rows, per_node)
        else:
            print_document(usage_document(by, rows, per_node, snapshot.unread), output)
        _tell(session, snapshot.unread, rows)

    run(connection, show)


def _nodes(session: Session, snapshot: Snapshot, found: Inventory) -> tuple[Node, ...] | None:
    """The nodes; None where only one namespace was read, for then what is on them is not known."""
    if snapshot.nodes is None:
        return None
    return nodes_with(snapshot.nodes, found.pods, session.policy.accelerators)


def _print(by: By, rows: Sequence[Usage], nodes: Sequence[Usage] | None) -> None:
    if rows:
        columns = [Column(title=name.upper(), least=12, cut="middle") for name in NAMES[by]]
        columns += _NODE_COLUMNS if by == "node" else _COLUMNS
        row = _node_row if by == "node" else _row
        lines = [(*_names(by, each), *row(each)) for each in rows]
        lines.append((Text("total", style="bold"), *[""] * (len(NAMES[by]) - 1), *row(total(rows))))
        terminal.print_table(columns, lines)
    if nodes is not None and by != "node":
        click.echo(_nodes_sentence(nodes))


_COLUMNS = [
    Column(title="WORKLOADS", right=True, gives_way=2),
    Column(title="PODS", right=True, gives_way=1),
    Column(title="ASKED", right=True),
    Column(title="PLACED", right=True),
    Column(title="RUNNING", right=True),
    Column(title="IDLE", right=True),
]
_NODE_COLUMNS = [
    Column(title="WORKLOADS", right=True, gives_way=2),
    Column(title="PODS", right=True, gives_way=1),
    Column(title="GPUS", right=True),
    Column(title="PLACED", right=True),
    Column(title="RUNNING", right=True),
    Column(title="IDLE", right=True),
    Column(title="FREE", right=True),
    Column(title=""),
]


def _names(by: By, row: Usage) -> tuple[str, ...]:
    return row.names or (NO_WORKLOAD, *[""] * (len(NAMES[by]) - 1))


def _row(row: Usage) -> tuple[Text | str, ...]:
    asked = "" if row.asked is None else amount(row.asked) + ("+?" if row.is_partial else "")
    return (
        str(row.workloads) if row.workloads else "",
        str(row.pods),
        asked,
        amount(row.placed),
        Text(amount(row.running), style="green" if row.running else ""),
        _idle(row),
    )


def _node_row(row: Usage) -> tuple[Text | str, ...]:
    has, free = row.allocatable or Decimal(0), row.free or Decimal(0)
    return (
        str(row.workloads) if row.workloads and row.names else "",  # one on two nodes would count twice in the total
        str(row.pods),
        amount(has),
        amount(row.placed),
        Text(amount(row.running), style="green" if row.running else ""),
        _idle(row),
        amount(free),
        _bar(row, has),
    )


def _idle(row: Usage) -> Text:
    return Text(amount(row.idle), style="yellow" if row.idle else "dim")


BAR = 16


def _bar(row: Usage, has: Decimal) -> Text:
    """Running, idle and free as a bar, for people who look."""
    if not has or not terminal.is_looked_at():
        return Text("")
    running, placed = _cells(row.running, has), max(_cells(row.running, has), _cells(row.placed, has))
    bar = Text("█" * running, style="green").append("█" * (placed - running), style="yellow")
    return bar.append("░" * (BAR - placed), style="dim")


def _cells(amount_: Decimal, has: Decimal) -> int:
    """Cells of a bar; neither the first nor the last is told wrongly."""
    if amount_ >= has:
        return BAR
    return max(1 if amount_ else 0, min(BAR - 1, round(amount_ / has * BAR)))


def _nodes_sentence(nodes: Sequence[Usage]) -> str:
    whole = total(nodes)
    has, free = whole.allocatable or Decimal(0), whole.free or Decimal(0)
    return f"{several(len(nodes), 'node')}: {several(has, 'GPU')}, {amount(whole.placed)} placed, {amount(free)} free"


def _tell(session: Session, unread: Sequence[Unread], rows: Sequence[Usage]) -> None:
    session.tell(unread)
    if any(row.is_partial for row in rows):
        click.echo("+?: of some workloads it is not known how many they ask for", err=True)
    if not rows:
        click.echo(f"no GPUs in {session.place}", err=True)
