"""Gangs in words: how far one got, what it lacks, and what schedulers say of it."""

from rich.text import Text

from webhook.cli.output import several
from webhook.live.description import GangView
from webhook.live.gangs import Agreement, Comparison, GangState, Lack

STYLES = {
    GangState.RUNNING: "green",
    GangState.WHOLE: "green",
    GangState.STARTABLE: "yellow",
    GangState.INCOMPLETE: "yellow",
    GangState.OVER: "dim",
    GangState.UNKNOWN: "dim",
}


def state_text(view: GangView) -> Text:
    """One word for how far a gang got, in its colour; red for one that cannot be whole."""
    state = view.gang.state
    blocked = view.lack is not None and view.lack.can_be_whole is False
    return Text.assemble((state.value, "red" if blocked else STYLES[state]))


def size_text(view: GangView) -> str:
    """`4`, or `4 (2 to start)` where fewer are enough."""
    gang = view.gang
    size = "?" if gang.size is None else str(gang.size)
    return size if gang.minimum is None or gang.minimum == gang.size else f"{size} ({gang.minimum} to start)"


def lack_sentence(lack: Lack | None) -> str:
    """What a gang lacks to be whole, and whether there is room; empty for one that lacks nothing."""
    if lack is None:
        return ""
    parts = []
    if lack.missing:
        parts.append(f"{several(lack.missing, 'pod')} not made")
    if lack.waiting:
        parts.append(f"{several(len(lack.waiting), 'pod')} on no node")
    return ", ".join([*parts, *_room(lack, lack.missing + len(lack.waiting))])


def _room(lack: Lack, wanted: int) -> list[str]:
    if lack.fits is None or not wanted:
        return []
    if lack.can_be_whole:
        return ["there is room"]
    return [f"room for {lack.fits} of {wanted}" if lack.fits else "no room"]


def groups_sentence(comparisons: tuple[Comparison, ...]) -> str:
    """What schedulers say of a gang: `Volcano train: agrees`, `KAI pg-1: wants 2`."""
    return ", ".join(_group(each) for each in comparisons)


def _group(comparison: Comparison) -> str:
    reference, group = comparison.reference, comparison.group
    named = f"{reference.scheduler} {reference.name}"
    if group is None:
        return f"{named}: not found"
    phase = f" ({group.phase})" if group.phase else ""
    match comparison.agreement:
        case Agreement.AGREES:
            return f"{named}: agrees{phase}"
        case Agreement.DIFFERS:
            return f"{named}: wants {group.minimum}{phase}"
        case _:
            return f"{named}{phase}"


def gang_sentence(view: GangView) -> Text:
    """One gang in a line: how far it got, how many of its pods are where, and what it lacks."""
    gang = view.gang
    text = state_text(view).append(f"  {gang.placed} of {size_text(view)} on nodes, {gang.running} running", style="")
    lacks, groups = lack_sentence(view.lack), groups_sentence(view.comparisons)
    if lacks:
        text.append(f"; {lacks}", style="")
    return text.append(f"  {groups}", style="dim") if groups else text
