"""`make demo-cluster` shows the contract's example and cleans up after itself."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.cluster.conftest import StartController
from tests.cluster.webhook_replica import REPOSITORY


def left_over() -> list[str]:
    """Command lines of processes that the demo has started, and its folders."""
    prefix = "workload-stamp-demo-"
    lines = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue  # it has ended meanwhile
        if prefix in line:
            lines.append(line)
    return [*lines, *(str(path) for path in Path(tempfile.gettempdir()).glob(f"{prefix}*"))]


def test_the_demo_shows_the_example_and_leaves_nothing(controller: StartController) -> None:
    """One leader and two workers, 12 GPUs, found by their stamps; no process and no folder is left."""
    controller("jobset")  # built, or the test is skipped
    before = left_over()

    ended = subprocess.run(
        [sys.executable, "-m", "tests.cluster.demo"], cwd=REPOSITORY, capture_output=True, text=True, check=False,
        timeout=400, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip

    assert ended.returncode == 0, ended.stderr
    shown, _, asked = ended.stdout.partition("kubectl get pods -n team-a -l")
    stamped = [line.split() for line in shown.splitlines() if line.startswith("train-") and "Running" in line]
    assert sorted(words[-3:] for words in stamped) == [["leader", "3", "12"], *[["workers", "3", "12"]] * 2]
    assert [line.split("-")[1] for line in asked.splitlines() if line.startswith("train-")] == ["workers"] * 2
    assert [line for line in left_over() if line not in before] == []
