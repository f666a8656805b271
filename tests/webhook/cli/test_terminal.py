"""Tables that fit the terminal, and texts for people."""

import sys
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from catalog.definition import Status
from webhook.cli import terminal
from webhook.cli.get import COLUMNS
from webhook.cli.terminal import Column, age, cut, ratio_text, status_text, table

NOW = datetime(2026, 1, 10, 12, 0, tzinfo=UTC)
ROW = (
    "team-with-a-long-name",
    "LeaderWorkerSet",
    "llama-3-405b-instruct-serving-eu-west",
    "● Initializing",
    "2 leader + 30 worker",
    "31/32",
    "240/256",
    "1/2 of 16",
    "17m",
)


def lines(columns: tuple[Column, ...], *rows: tuple[str, ...], room: int | None) -> list[str]:
    """The lines of a table as text."""
    return [line.plain for line in table(columns, rows, room)]


def test_nothing_is_cut_where_nobody_looks() -> None:
    """A pipe gets everything, whatever its width."""
    header, line = lines(COLUMNS, ROW, room=None)

    assert header.split() == [column.title for column in COLUMNS]
    assert all(text in line for text in ROW)


def test_a_wide_terminal_shows_everything() -> None:
    """At 200 columns there is room for long names."""
    assert all(text in lines(COLUMNS, ROW, room=200)[1] for text in ROW)


@pytest.mark.parametrize("room", [80, 100, 120])
def test_a_row_fits_the_terminal_and_keeps_what_matters(room: int) -> None:
    """Name, status and the numbers of pods and GPUs are there at any width."""
    header, line = lines(COLUMNS, ROW, room=room)

    assert cell_len(line) <= room
    assert {"NAME", "STATUS", "PODS", "GPUS"} <= set(header.split())
    assert "llama" in line
    assert "eu-west" in line
    assert "31/32" in line
    assert "240/256" in line


def test_long_texts_give_way_before_columns_do() -> None:
    """At 120 columns all of them are there."""
    assert lines(COLUMNS, ROW, room=120)[0].split() == [column.title for column in COLUMNS]


def test_the_contracts_row_fits_eighty_columns_whole() -> None:
    """1 leader + 2 workers, 12 GPUs, Running."""
    row = ("team-a", "JobSet", "train", "● Running", "1 leader + 2 workers", "3/3", "12/12", "", "5m")

    assert lines(COLUMNS, row, room=80)[1].split("  ")[0:1] == ["team-a"]
    assert all(text in lines(COLUMNS, row, room=80)[1] for text in row)


def test_an_empty_column_takes_no_room() -> None:
    """What no row has anything for is left out."""
    assert lines((Column(title="A"), Column(title="B"), Column(title="C")), ("1", "", "3"), room=80) == ["A  C", "1  3"]


texts = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=60)


@given(st.lists(st.tuples(texts, texts, texts), min_size=1, max_size=5), st.integers(40, 200))
def test_no_line_is_ever_wider_than_the_room(rows: list[tuple[str, str, str]], room: int) -> None:
    """Whatever is in the cells, wide characters too."""
    columns = (
        Column(title="ONE", least=20, cut="middle"),
        Column(title="TWO", least=10, gives_way=1),
        Column(title="THREE", least=10, right=True),
    )

    assert all(cell_len(line.plain) <= room for line in table(columns, rows, room))


@given(texts, st.integers(1, 60), st.sampled_from(["end", "middle"]))
def test_a_cut_text_fits_and_says_that_it_was_cut(text: str, wide: int, where: str) -> None:
    """With an ellipsis; one that fits stays as it is."""
    found = cut(Text(text), wide, where).plain  # type: ignore[arg-type]

    assert cell_len(found) <= wide
    assert found == text or "…" in found


def test_both_ends_of_a_name_are_kept() -> None:
    """They tell names apart."""
    assert cut(Text("train-llama-worker-0-x7k2p"), 15, "middle").plain == "train-l…0-x7k2p"


def test_messages_steer_no_terminal() -> None:
    """What anybody may have written into a cluster is written out."""
    (line,) = lines((Column(title="A"),), ("a\x1b[2J\nb",), room=80)[1:]

    assert line.isprintable()
    assert line[0] + line[-1] == "ab"


@pytest.mark.parametrize(
    "created, text",
    [
        ("2026-01-10T11:59:30Z", "30s"),
        ("2026-01-10T11:58:01Z", "119s"),
        ("2026-01-10T11:58:00Z", "2m"),
        ("2026-01-10T10:00:01Z", "119m"),
        ("2026-01-10T10:00:00Z", "2h"),
        ("2026-01-08T12:00:00Z", "2d"),
        ("2024-01-10T12:00:00Z", "2y"),
        ("2026-01-10T12:00:05.123456Z", "0s"),
        ("", ""),
    ],
)
def test_an_age_has_one_unit(created: str, text: str) -> None:
    """As many of it as there are, two at least; clocks may differ a little."""
    assert age(created, NOW) == text


def test_a_status_has_its_mark_where_somebody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Told apart without colours too; a program gets the bare word."""
    assert status_text(Status.RUNNING).plain == "Running"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert status_text(Status.RUNNING).plain == "● Running"
    assert len({status_text(status).plain[:1] for status in Status}) >= 6


@pytest.mark.parametrize(
    "have, want, style", [("3", "3", "green"), ("2", "3", "yellow"), ("2", "?", ""), ("0", "0", "dim")]
)
def test_what_is_missing_has_a_colour(have: str, want: str, style: str) -> None:
    """Green when all is there, yellow while some is not, none where it is not known."""
    assert ratio_text(have, want).style == style


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR is honoured."""
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("FORCE_COLOR", "1")

    assert terminal.console().no_color
