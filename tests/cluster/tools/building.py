"""Compiles tools with the Go toolchain, one at a time, and finds the folders of Go modules.

Resumable: a tool appears in the cache whole or not at all, and Go keeps what it compiled of one that was cut off.
Knows nothing of what the tools do.
"""

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.cluster.tools.table import HERE, Tool, cache_folder

OLDEST_GO = (1, 26)
LINES_OF_OUTPUT = 15


class GoMissingError(Exception):
    """No Go toolchain that could build the tools; the message says what was found."""


class ModuleMissingError(Exception):
    """A Go module's sources can't be had."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one tool: `problem` is empty when it is built, `seconds` is what building took, 0 when it was."""

    tool: Tool
    seconds: float = 0.0
    problem: str = ""


@cache
def go() -> str:
    """Path of the Go toolchain; GoMissingError when there is none or it is older than the modules ask for."""
    program = shutil.which("go")
    if program is None:
        raise GoMissingError("no `go` on the PATH; Go 1.26 or later is needed to build the cluster tools")
    asked = subprocess.run(
        [program, "env", "GOVERSION"], cwd=HERE / "kubernetes", capture_output=True, text=True, check=False
    )
    found = re.match(r"go(\d+)\.(\d+)", asked.stdout)
    if found is None or (int(found[1]), int(found[2])) < OLDEST_GO:
        said = (asked.stdout + asked.stderr).strip()
        raise GoMissingError(f"{program} is not Go 1.26 or later, which the cluster tools need; it says: {said}")
    return program


def build(tools: tuple[Tool, ...], *, budget_seconds: float | None = None) -> Iterator[Outcome]:
    """Build those of the tools that are missing, and tell of each as it ends. GoMissingError before the first.

    When the budget is spent, the build that runs is ended and the rest is told as not built; begin again to go on.
    """
    deadline = None if budget_seconds is None else time.monotonic() + budget_seconds
    compiler = go()
    with _one_builder_at_a_time():
        for tool in tools:
            yield Outcome(tool=tool) if tool.built else _build(compiler, tool, deadline)


def sources(module_folder: Path, go_module: str) -> Path:
    """Folder with the sources of a Go module at the version that the go.mod in `module_folder` has, fetched if need be.

    A controller's own custom resource definitions and webhook manifests come from here.
    GoMissingError, or ModuleMissingError with what Go said.
    """
    asked = subprocess.run(
        [go(), "mod", "download", "-json", go_module],
        cwd=module_folder, capture_output=True, text=True, check=False, env=_environment(),
    )  # fmt: skip
    try:
        return Path(json.loads(asked.stdout)["Dir"])
    except (ValueError, KeyError) as problem:
        said = (asked.stdout + asked.stderr).strip()
        raise ModuleMissingError(f"sources of {go_module} can't be had: {said}") from problem


def _build(compiler: str, tool: Tool, deadline: float | None) -> Outcome:
    begin = time.monotonic()
    remaining = None if deadline is None else deadline - begin
    if remaining is not None and remaining <= 0:
        return Outcome(tool=tool, problem="the time budget was spent before its turn")
    with tempfile.TemporaryDirectory(prefix=f".{tool.name}-", dir=cache_folder()) as temporary:
        staging = Path(temporary) / "whole"
        staging.mkdir()
        command = [compiler, "build", *tool.build_flags, "-o", str(staging / tool.name), tool.package]
        problem = _run(command, tool.module_folder, remaining)
        if not problem:
            (staging / tool.digest_file.name).write_text(f"{tool.digest}\n")
            shutil.rmtree(tool.folder, ignore_errors=True)
            staging.rename(tool.folder)
    return Outcome(tool=tool, seconds=time.monotonic() - begin, problem=problem)


def _run(command: list[str], folder: Path, seconds: float | None) -> str:
    """Run a compiler; the problem in words, empty when there was none."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=_environment(), stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            return "the time budget ran out while it was being built; what is compiled so far is kept"
        finally:
            _end(process)
        output.seek(0)
        last = "".join(output.readlines()[-LINES_OF_OUTPUT:]).strip()
    return f"go build exited with {process.returncode}: {last}" if process.returncode else ""


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a compiler and those it started: they are a session of their own, named by its process id."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _environment() -> dict[str, str]:
    return {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly", "GOWORK": "off"}


@contextmanager
def _one_builder_at_a_time() -> Iterator[None]:
    """Two compilers at once are slower than one after the other, and need twice the memory."""
    cache_folder().mkdir(parents=True, exist_ok=True)
    with (cache_folder() / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
