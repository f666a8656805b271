"""`workload-stamp tree`: the chain of owners, from the topmost object down to the pods."""

from collections.abc import Mapping

import click
from rich.text import Text

from webhook.cli import terminal
from webhook.cli.cluster import Connection, Session, cluster_options, run
from webhook.cli.description_text import pod_state
from webhook.cli.one_workload import find
from webhook.cli.output import print_document
from webhook.live.documents import tree_document
from webhook.live.pods import LivePod
from webhook.live.snapshot import text_at
from webhook.live.tree import Branch, owner_tree
from webhook.live.workloads import LiveWorkload

FOLDED = 12
"""Pods of one parent that are listed; of more, the rest is counted."""


@click.command("tree")
@click.argument("target", nargs=-1, required=True, metavar="KIND/NAME")
@click.option("--all-pods", is_flag=True, help=f"List every pod, not {FOLDED} of a parent.")
@click.option("-o", "--output", type=click.Choice(["tree", "json", "yaml"]), default="tree", help="How to print.")
@cluster_options
def command(connection: Connection, target: tuple[str, ...], *, all_pods: bool, output: str) -> None:
    """Show who owns whom, from the topmost object that is read down to the pods; the workload is marked."""

    async def show(session: Session) -> None:
        found = await find(session, target)
        branch = owner_tree(found.obj, found.inventory.index)
        workloads = {
            text_at(each.obj, "metadata", "uid"): each for each in found.inventory.workloads if each.obj is not None
        }
        if output == "tree":
            pods = {pod.uid: pod for pod in found.inventory.pods}
            drawing = _Drawing(workloads, pods, named=text_at(found.obj, "metadata", "uid"), fold=not all_pods)
            terminal.print_lines(drawing.lines(branch))
        else:
            print_document(tree_document(branch, workloads), output)
        session.tell(found.snapshot.unread)

    run(connection, show)


class _Drawing:
    """A tree as lines."""

    def __init__(
        self, workloads: Mapping[str, LiveWorkload], pods: Mapping[str, LivePod], *, named: str, fold: bool
    ) -> None:
        self._workloads = workloads
        self._pods = pods
        self._named = named
        self._fold = fold
        self._room = terminal.width()

    def lines(self, branch: Branch) -> list[Text]:
        """The whole tree, with what is above it but was not read."""
        top = [Text(f"{branch.beyond} (not read)", style="dim")] if branch.beyond else []
        if not branch.beyond:
            return [self._label(branch, ""), *self._below(branch, "")]
        return [*top, self._label(branch, "└── "), *self._below(branch, "    ")]

    def _below(self, branch: Branch, indent: str) -> list[Text]:
        shown = branch.children
        hidden = 0
        if self._fold and len(shown) > FOLDED and all(not child.children for child in shown):
            hidden = len(shown) - FOLDED
            shown = shown[:FOLDED]
        found: list[Text] = []
        for position, child in enumerate(shown):
            last = position == len(shown) - 1 and not hidden
            found.append(self._label(child, indent + ("└── " if last else "├── ")))
            found += self._below(child, indent + ("    " if last else "│   "))
        if hidden:
            found.append(Text(f"{indent}└── … {hidden} more", style="dim"))
        return found

    def _label(self, branch: Branch, lead: str) -> Text:
        line = Text(lead, style="dim")
        line.append(branch.kind.kind, style="dim" if branch.kind.kind == "Pod" else "")
        line.append(f" {branch.name}", style="bold" if branch.uid == self._named else "")
        workload, pod = self._workloads.get(branch.uid), self._pods.get(branch.uid)
        if workload is not None:
            line.append("  ").append_text(terminal.status_text(workload.status))
            line.append("  a schedule" if workload.is_schedule else "  the workload", style="dim")
        elif pod is not None:
            line.append("  ").append_text(pod_state(pod)).append(f"  {pod.node}" if pod.node else "", style="dim")
        return line if self._room is None else terminal.cut(line, self._room)
