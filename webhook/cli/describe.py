"""`workload-stamp describe`: one workload in full, redrawn while it changes when asked to."""

import asyncio
from collections.abc import Sequence

import click
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from catalog.definition import JsonObject
from webhook.cli import terminal
from webhook.cli.cluster import Connection, Session, cluster_options, nodes_with_all_pods, run
from webhook.cli.description_text import PODS_SHOWN, View, lines
from webhook.cli.failures import InputProblems
from webhook.cli.one_workload import Target, events, find
from webhook.cli.output import print_document
from webhook.cluster.client import ApiError, ConnectionFault
from webhook.live.description import describe
from webhook.live.documents import description_document
from webhook.live.nodes import Node, nodes_with
from webhook.live.scheduler_groups import scheduler_groups
from webhook.live.snapshot import kind_of, text_at

REDRAW = 2.0
"""Seconds between two looks with --watch."""


@click.command("describe")
@click.argument("target", nargs=-1, required=True, metavar="KIND/NAME")
@click.option("-w", "--watch", is_flag=True, help="Redraw every two seconds until interrupted.")
@click.option("--topology", multiple=True, metavar="LABEL", help="Node labels to sum by [default: those of topology].")
@click.option("--all-pods", is_flag=True, help=f"List every pod, not {PODS_SHOWN} of an instance.")
@click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", help="How to print.")
@cluster_options
def command(
    connection: Connection,
    target: tuple[str, ...],
    *,
    watch: bool,
    topology: tuple[str, ...],
    all_pods: bool,
    output: str,
) -> None:
    """Show one workload in full.

    Its components and their pods, where they are, its gangs and what they lack, its status with the framework's own
    words, and its last events.

    Of an object that is part of a workload (a Job of a JobSet, a pod) the workload is shown.
    """
    limit = None if all_pods else PODS_SHOWN

    async def show(session: Session) -> None:
        if watch:
            await _redraw(session, target, topology, limit)
            return
        view, found = await _look(session, target, topology)
        if output == "text":
            terminal.print_lines(lines(view, limit, terminal.now()))
        else:
            print_document(description_document(view.description, view.events), output)
        session.tell(found.snapshot.unread)

    run(connection, show)


async def _look(session: Session, target: Sequence[str], topology: Sequence[str]) -> tuple[View, Target]:
    found = await find(session, target, nodes=True, groups=True)
    if found.workload is None:
        raise InputProblems((f"{_title(found.obj)} belongs to no workload that could be read",))
    lacking = any(not gang.is_whole for gang in found.workload.gangs)
    nodes = (
        await nodes_with_all_pods(session, found.snapshot, found.inventory)
        if lacking
        else _nodes_with_own_pods(session, found)
    )
    description = describe(
        found.workload, found.inventory.index, nodes, scheduler_groups(found.snapshot.groups), topology
    )
    is_part = found.obj is not found.workload.obj and kind_of(found.obj).kind != found.workload.reference.kind
    return (
        View(
            description=description,
            events=tuple(await events(session, found.workload)),
            aside=f"{_title(found.obj)} is part of it" if is_part else "",
        ),
        found,
    )


def _nodes_with_own_pods(session: Session, found: Target) -> tuple[Node, ...] | None:
    """The nodes as places only: for a workload whose gangs are whole nobody asks what else would fit."""
    nodes = found.snapshot.nodes
    return None if nodes is None else nodes_with(nodes, found.inventory.pods, session.policy.accelerators)


def _title(obj: JsonObject) -> str:
    return f"{kind_of(obj).kind} {text_at(obj, 'metadata', 'name')}"


async def _redraw(session: Session, target: Sequence[str], topology: Sequence[str], limit: int | None) -> None:
    """Look again and again until interrupted; what fails in between is said, and the last picture stays."""
    with Live(console=Console(highlight=False), screen=terminal.is_looked_at(), auto_refresh=False) as screen:
        shown = Group()
        while True:
            try:
                view, _ = await _look(session, target, topology)
                shown = Group(*lines(view, limit, terminal.now()))
                screen.update(shown, refresh=True)
            except (ApiError, ConnectionFault, InputProblems) as fault:
                screen.update(Group(*shown.renderables, Text(f"\n{fault}", style="red")), refresh=True)
            await asyncio.sleep(REDRAW)
