"""How views look to people: tables that fit the terminal, colours of statuses, ages, and progress that waits.

A table that is not looked at (a pipe) is never cut. On a terminal, columns give way in a fixed order: long texts first,
then whole columns that are least missed. Knows nothing of clusters.
"""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text
from rich.tree import Tree

from catalog.definition import Status
from webhook.cli.printable import printable

GAP = 2
"""Spaces between columns."""

NARROWEST = 6
"""Cells of a column that may be cut, when nothing else helps."""

UNCUT = 100_000
"""Columns when nobody looks: more than any line has."""

SLOW = 1.0
"""Seconds after which somebody who waits is shown how far it is."""

STATUS_STYLES = {
    Status.RUNNING: ("●", "green"),
    Status.COMPLETED: ("✓", "blue"),
    Status.FAILED: ("✗", "bold red"),
    Status.DEGRADED: ("◐", "yellow"),
    Status.INITIALIZING: ("○", "cyan"),
    Status.RESUMING: ("○", "cyan"),
    Status.SUSPENDING: ("◌", "magenta"),
    Status.SUSPENDED: ("◌", "magenta"),
    Status.UNDEFINED: ("?", "dim"),
}
"""A mark that tells statuses apart without colours, and the colour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column. `least` is the width down to which it may be cut, 0 is never.

    Where that is not enough, columns that give way are left out, the highest `gives_way` first (0 never); and where
    that is not enough either, what may be cut is cut to `NARROWEST`.
    """

    title: str
    right: bool = False
    least: int = 0
    cut: Literal["end", "middle"] = "end"
    gives_way: int = 0


class Output(Console):
    """Standard output for texts that are no markup; that its reader has gone is for who prints to know."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, **options)

    def on_broken_pipe(self) -> None:
        """Rich itself would end the process here, as a failure."""
        raise BrokenPipeError


def console() -> Console:
    """Standard output; colours on a terminal only, and never with NO_COLOR."""
    return Output(soft_wrap=True)


def is_looked_at() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


def width() -> int | None:
    """Columns of the terminal; None when nobody looks, so that nothing is cut."""
    return console().width if is_looked_at() else None


def print_table(columns: Sequence[Column], rows: Sequence[Sequence[Text | str]]) -> None:
    """Print a table as wide as the terminal."""
    print_lines(table(columns, rows, width()))


def print_lines(lines: Iterable[Text | str]) -> None:
    """Print lines as they are: nothing is wrapped, and nothing in them steers the terminal."""
    shown = console()
    for line in lines:
        text = line.copy() if isinstance(line, Text) else Text(line)
        text.plain = printable(text.plain)
        shown.print(text, crop=False, overflow="ignore")


def print_tree(tree: Tree) -> None:
    """Print a tree, wrapped to the width of the terminal; uncut where nobody looks."""
    Output(width=None if is_looked_at() else UNCUT).print(tree)


def table(columns: Sequence[Column], rows: Sequence[Sequence[Text | str]], room: int | None) -> list[Text]:
    """The lines of a table, header first, none wider than `room`; empty columns are left out."""
    cells = [[_safe(cell) for cell in row] for row in rows]
    kept = [index for index, _ in enumerate(columns) if any(row[index].plain for row in cells)]
    widths = _fitted(columns, cells, kept, room)
    header = [Text(column.title, style="bold") for column in columns]
    header = [cut(title, widths.get(index, 0)) for index, title in enumerate(header)]
    return [_line(columns, line, widths) for line in (header, *cells)]


def _safe(cell: Text | str) -> Text:
    """A cell that steers no terminal: messages in a cluster are anybody's."""
    text = cell if isinstance(cell, Text) else Text(cell)
    return text if text.plain.isprintable() else Text(printable(text.plain), style=text.style)


def _fitted(
    columns: Sequence[Column], cells: Sequence[Sequence[Text]], kept: list[int], room: int | None
) -> dict[int, int]:
    """The width of each column that stays."""
    natural = {
        index: max(cell_len(columns[index].title), *(cell_len(row[index].plain) for row in cells)) for index in kept
    }
    if room is None:
        return natural
    droppable = sorted((index for index in natural if columns[index].gives_way), key=lambda i: columns[i].gives_way)
    while _taken(_least(columns, natural)) > room and droppable:
        del natural[droppable.pop()]
    widths = _squeezed(natural, _least(columns, natural), room)
    return _squeezed(widths, {i: NARROWEST if columns[i].least else wide for i, wide in widths.items()}, room)


def _least(columns: Sequence[Column], natural: dict[int, int]) -> dict[int, int]:
    return {index: min(wide, columns[index].least or wide) for index, wide in natural.items()}


def _squeezed(natural: dict[int, int], least: dict[int, int], room: int) -> dict[int, int]:
    """Take from the widest column that may be cut, until all fit or none may be cut further."""
    widths = dict(natural)
    while _taken(widths) > room:
        cuttable = [index for index in widths if widths[index] > least[index]]
        if not cuttable:
            break
        widths[max(cuttable, key=lambda index: widths[index])] -= 1
    return widths


def _taken(widths: dict[int, int]) -> int:
    return sum(widths.values()) + GAP * (len(widths) - 1)


def _line(columns: Sequence[Column], cells: Sequence[Text], widths: dict[int, int]) -> Text:
    line = Text()
    last = max(widths, default=0)
    for index, wide in widths.items():
        cell = cut(cells[index], wide, columns[index].cut)
        padding = " " * (wide - cell_len(cell.plain))
        if line.plain or index != next(iter(widths)):
            line.append(" " * GAP)
        line.append_text(Text(padding) + cell if columns[index].right else cell)
        if not columns[index].right and index != last:
            line.append(padding)
    line.rstrip()
    return line


def cut(text: Text, wide: int, where: Literal["end", "middle"] = "end") -> Text:
    """`text` in at most `wide` cells, with `…` for what is left out; names keep both ends, which tell them apart."""
    if cell_len(text.plain) <= wide:
        return text
    for kept in range(min(len(text), wide) - 1, -1, -1):  # wide characters take two cells, some take none
        head = kept if where == "end" or wide < 5 else (kept + 1) // 2
        shortened = text[:head] + Text("…", style=text.style) + text[len(text) - (kept - head) :]
        if cell_len(shortened.plain) <= wide:
            return shortened
    return Text()


def wrapped(text: Text, room: int | None, indent: int = 0) -> Iterator[Text]:
    """A sentence in lines no longer than `room`, each begun with `indent` spaces; one line where nobody looks."""
    lead = " " * indent
    lines = [text] if room is None else text.wrap(console(), max(room - indent, NARROWEST))
    for line in lines:
        yield Text(lead).append_text(line)


def status_text(status: Status) -> Text:
    """A status with its mark and colour; the bare word where nobody looks."""
    mark, style = STATUS_STYLES[status]
    return Text(f"{mark} {status.value}" if is_looked_at() else status.value, style=style)


def heading(text: str) -> Text:
    """The title of a section."""
    return Text(text, style="bold underline" if is_looked_at() else "")


def ratio_text(have: str, want: str) -> Text:
    """`2/3`: green when all is there, yellow while some is missing."""
    if want in ("", "0"):
        return Text(f"{have}/{want}" if want else have, style="dim")
    return Text(f"{have}/{want}", style="green" if have == want else "yellow" if want != "?" else "")


def age(created: str, now: datetime) -> str:
    """The time since an RFC 3339 time, in one unit, of which there are two at least; empty when there is no time."""
    if not created:
        return ""
    seconds = max(0, int((now - datetime.fromisoformat(created)).total_seconds()))
    for unit, length in (("y", 365 * 86400), ("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def now() -> datetime:
    """The time by which ages are told."""
    return datetime.now(UTC)


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int | None], None]]:
    """A progress bar on standard error, shown to a terminal once it has taken a second. Call it with done and total."""
    shown = Console(stderr=True)
    started = time.monotonic()
    bar = Progress(
        TextColumn(what), BarColumn(bar_width=30), TextColumn("{task.fields[count]}"), console=shown, transient=True
    )
    task = bar.add_task(what, total=None, count="")

    def advance(done: int, total: int | None) -> None:
        bar.update(task, completed=done, total=total, count=f"{done} of {total}" if total else f"{done}")
        if not bar.live.is_started and shown.is_terminal and time.monotonic() - started > SLOW:
            bar.start()

    try:
        yield advance
    finally:
        if bar.live.is_started:  # stopping one that nobody saw would print an empty line
            bar.stop()
