"""`workload-stamp gangs`: every gang, how far it got, whether it can be whole, and what schedulers say of it."""

from collections.abc import Sequence
from dataclasses import dataclass

import click
from rich.text import Text

from catalog.structure import Unknown
from webhook.cli import terminal
from webhook.cli.cluster import Connection, Session, cluster_options, nodes_with_all_pods, read_everything, run
from webhook.cli.gang_text import groups_sentence, lack_sentence, size_text, state_text
from webhook.cli.output import print_document, several
from webhook.cli.terminal import Column
from webhook.live.description import GangView, gang_view
from webhook.live.documents import absent_gangs_document, gang_document, listed
from webhook.live.gangs import GangState
from webhook.live.scheduler_groups import scheduler_groups
from webhook.live.workloads import LiveWorkload

COLUMNS = (
    Column(title="NAMESPACE", least=12, cut="middle"),
    Column(title="KIND", least=10, gives_way=4),
    Column(title="GANG", least=28, cut="middle"),
    Column(title="SIZE", right=True),
    Column(title="PODS", right=True, gives_way=2),
    Column(title="PLACED", right=True),
    Column(title="RUNNING", right=True, gives_way=1),
    Column(title="STATE"),
    Column(title="LACKS", least=24),
    Column(title="SCHEDULER", least=20, gives_way=3),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One gang of a workload; `view` is None for gangs that have no pod yet, `count` of them."""

    workload: LiveWorkload
    view: GangView | None
    count: int = 1
    size: int | None = None


@click.command("gangs")
@click.option("--incomplete", is_flag=True, help="Only gangs that are not whole.")
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", help="How to print.")
@cluster_options
def command(connection: Connection, *, incomplete: bool, output: str) -> None:
    """Show each gang: its size, pods present, on nodes and running; what it lacks, and whether there is room for it.

    Room is judged by accelerators alone, on nodes that are ready and not cordoned. Beside it stands what Volcano, KAI,
    coscheduling or Kubernetes' own scheduler have been told, where the pods name a group of theirs.
    """

    async def show(session: Session) -> None:
        snapshot = await read_everything(session, nodes=True, groups=True)
        found = session.inventory(snapshot)
        workloads, nodes = found.workloads, await nodes_with_all_pods(session, snapshot, found)
        groups = scheduler_groups(snapshot.groups)
        rows = [
            Row(workload=workload, view=gang_view(gang, nodes, groups))
            for workload in workloads
            for gang in workload.gangs
            if gang.state is not GangState.OVER
        ]
        rows += [row for workload in workloads for row in _without_pods(workload)]
        shown = [row for row in rows if not incomplete or row.view is None or not row.view.gang.is_whole]
        if output == "table":
            _print(shown, with_namespace=not session.namespace)
        else:
            items = [gang_document(row.view, row.workload) for row in shown if row.view is not None]
            absent = [absent_gangs_document(row.workload, row.count, row.size) for row in shown if row.view is None]
            print_document(listed("GangList", items, snapshot.unread, withoutPods=absent), output)
        session.tell(snapshot.unread)
        if not shown and output == "table":
            click.echo(f"no {'incomplete ' if incomplete else ''}gangs in {session.place}", err=True)

    run(connection, show)


def _without_pods(workload: LiveWorkload) -> list[Row]:
    """Gangs that a workload asks for now and that have no pod yet."""
    asked = workload.gangs_asked
    if not workload.asks or isinstance(asked, Unknown):
        return []
    missing = sum(each.count for each in asked) - len(workload.gangs)
    sizes = {each.size for each in asked}
    size = sizes.pop() if len(sizes) == 1 else None
    return [Row(workload=workload, view=None, count=missing, size=size)] if missing > 0 else []


def _print(rows: Sequence[Row], *, with_namespace: bool) -> None:
    if not rows:
        return
    first = 0 if with_namespace else 1
    terminal.print_table(COLUMNS[first:], [_line(row)[first:] for row in rows])


def _line(row: Row) -> tuple[Text | str, ...]:
    reference, view = row.workload.reference, row.view
    if view is None:
        what = "no pod yet" if row.count == 1 else f"{several(row.count, 'gang')} without a pod yet"
        size = "" if row.size is None else str(row.size)
        return (reference.namespace, reference.kind, reference.name, size, "0", "0", "0", "", what, "")
    gang = view.gang
    return (
        reference.namespace,
        reference.kind,
        gang.id,
        size_text(view),
        str(len(gang.present)),
        str(gang.placed),
        str(gang.running),
        state_text(view),
        lack_sentence(view.lack),
        Text(groups_sentence(view.comparisons), style="dim"),
    )
