"""Reads a page as a person follows it: files to write, commands to run, and what these print.

A fenced block of `yaml` after a paragraph that names a file in backticks is that file; it may come again, changed.
In a `console` block a line that begins with `$ ` is a command, and what follows is its output.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"

_FENCE = re.compile(r"^```(?P<language>\w*)\n(?P<content>.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE_NAME = re.compile(r"`(?P<name>[\w.-]+\.yaml)`[^`\n]*:\s*$")


@dataclass(frozen=True, slots=True)
class File:
    """A file that the page tells to write."""

    name: str
    content: str


@dataclass(frozen=True, slots=True)
class Command:
    """A command that the page tells to run, and what it says will be printed."""

    line: str
    output: str


def steps(page: Path) -> Iterator[File | Command]:
    """Everything that the page tells to do, in its order."""
    text = page.read_text()
    for fence in _FENCE.finditer(text):
        named = _FILE_NAME.search(text[: fence.start()])
        if fence["language"] == "console":
            yield from _commands(fence["content"])
        elif fence["language"] == "yaml" and named is not None:
            yield File(named["name"], fence["content"])


def _commands(content: str) -> Iterator[Command]:
    for part in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
        line, _, output = part.partition("\n")
        yield Command(line, output.rstrip("\n"))
