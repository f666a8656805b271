"""Does what a page says, in an empty folder: writes its files, runs its commands, and tells what they print."""

import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.docs.pages import DOCS, Command, File, steps

PROGRAM = "workload-stamp"


def follow(page: Path, folder: Path) -> Iterator[tuple[Command, str]]:
    """Each command of the page, in its order, with what it really prints (errors too), without spaces at line ends."""
    for step in steps(page):
        match step:
            case File(name, content):
                (folder / name).write_text(content)
            case Command(line, _):
                yield step, _printed(line, folder)


def corrected(page: Path, folder: Path) -> str:
    """The page with what its commands really print."""
    text, done = page.read_text(), 0
    for command, printed in follow(page, folder):
        shown = "\n".join(part for part in (f"$ {command.line}", command.output) if part)
        start = text.index(shown, done)
        text = "".join((text[:start], f"$ {command.line}\n{printed}".rstrip(), text[start + len(shown) :]))
        done = start + 1
    return text


def _printed(line: str, folder: Path) -> str:
    program, *arguments = shlex.split(line)
    assert program == PROGRAM, f"a page needs nothing but {PROGRAM}: {line}"
    ended = subprocess.run(
        [sys.executable, "-m", "webhook", *arguments],
        cwd=folder,
        env={"PYTHONPATH": str(DOCS.parent), "PATH": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    assert "Traceback" not in ended.stdout, ended.stdout
    return "\n".join(row.rstrip() for row in ended.stdout.splitlines())
