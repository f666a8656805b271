"""Processes of a test run: they tell why they died, keep their command over restarts, and never outlive the run."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.process import Process, ProcessDiedError
from tests.cluster.waiting import eventually

REPOSITORY = Path(__file__).resolve().parents[2]
IDLE = "import time; print('idle', flush=True); time.sleep(60)"
STUBBORN = (
    "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(7)); print('idle', flush=True);"
    "time.sleep(60)"
)
# Starts a process, says its id, and waits to be killed.
CARELESS = """
import sys, time
from pathlib import Path
from tests.cluster.process import Process
process = Process(name="left", command=("sleep", "60"), log=Path(sys.argv[1]))
process.start()
print(process.pid, flush=True)
time.sleep(60)
"""


def python(tmp_path: Path, program: str) -> Process:
    """A process that runs a Python program."""
    return Process(name="program", command=(sys.executable, "-c", program), log=tmp_path / "log")


def exists(pid: int) -> bool:
    """Whether a process with that id runs and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_process_that_ends_early_tells_the_end_of_its_log(tmp_path: Path) -> None:
    """Who waits for a process that dies learns the exit code and what it said last, not only that time ran out."""
    process = python(tmp_path, "print('port is taken'); raise SystemExit(3)")
    process.start()

    with pytest.raises(ProcessDiedError, match=r"(?s)program ended with exit code 3.*port is taken"):
        process.wait_ready(lambda: False)


def test_a_process_that_never_gets_ready_tells_the_end_of_its_log(tmp_path: Path) -> None:
    """The same for one that runs but does not become ready in time."""
    process = python(tmp_path, IDLE)
    process.start()
    process.wait_ready(lambda: "idle" in process.tail())

    with pytest.raises(ProcessDiedError, match=r"(?s)waited 0.2 s for program to be ready.*idle"):
        process.wait_ready(lambda: False, seconds=0.2)

    process.kill()


def test_a_killed_process_can_be_started_again(tmp_path: Path) -> None:
    """Killing is by SIGKILL; the second start is another process and goes on in the same log."""
    process = python(tmp_path, IDLE)
    process.start()
    process.wait_ready(lambda: "idle" in process.tail())
    first, size = process.pid, process.log_size()

    process.kill()
    assert process.exit_code == -signal.SIGKILL
    process.start()
    process.wait_ready(lambda: "idle" in process.tail(since=size))

    assert process.pid != first
    process.kill()


def test_terminating_gives_the_exit_code(tmp_path: Path) -> None:
    """SIGTERM is a request; what the process makes of it is what the test gets to see."""
    process = python(tmp_path, STUBBORN)
    process.start()
    process.wait_ready(lambda: "idle" in process.tail())

    assert process.terminate() == 7


def test_memory_and_cpu_time_are_read_from_the_running_process(tmp_path: Path) -> None:
    """Both are those of the process itself: an idle Python interpreter has some megabytes and used some CPU."""
    process = python(tmp_path, IDLE)
    process.start()
    process.wait_ready(lambda: "idle" in process.tail())

    assert 2**20 < process.resident_bytes() < 2**30
    assert 0 <= process.cpu_seconds() < 10
    process.kill()


def test_nothing_outlives_a_run_that_was_killed(tmp_path: Path) -> None:
    """When the tests themselves are ended by SIGKILL, so are the processes they had started."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    command = [sys.executable, "-c", CARELESS, str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as run:
        assert run.stdout is not None
        left = int(run.stdout.readline())
        assert exists(left)
        run.kill()

    eventually(lambda: not exists(left), what="the process that was left behind to be killed")
