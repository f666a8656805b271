"""Starts `workload-stamp` as a process, for tests about exit codes, streams, signals and start-up."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROGRAM = (sys.executable, "-m", "webhook")


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's, without settings of ours."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("WORKLOAD_STAMP_")}
    return {**own, **(more or {})}


def started(
    *arguments: str, environ: Mapping[str, str] | None = None, cwd: Path | None = None, **options: Any
) -> subprocess.CompletedProcess[str]:
    """The ended process."""
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL} | options
    return subprocess.run(  # noqa: PLW1510 - its exit code is what is looked at
        [*PROGRAM, *arguments], env=environment(environ), cwd=cwd, text=True, timeout=50, **streams
    )
