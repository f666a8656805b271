"""Kills the processes a test run leaves behind, however the run ended: by SIGKILL, too.

Run as a program it reads `+PID` and `-PID` lines; when its input ends, because the run ended, it kills those that were
named and not taken back. `watch` and `forget` speak to one such program, started at the first call. Each process is
known by its id and start time, so that a process which was given the same id later is left alone.
"""

import atexit
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

_lock = threading.Lock()
_reapers: list[subprocess.Popen[str]] = []


def watch(pid: int) -> None:
    """Have the process killed if this one ends without `forget`."""
    _tell(f"+{pid}")


def forget(pid: int) -> None:
    """The process has ended, or is somebody else's business now."""
    _tell(f"-{pid}")


def _tell(line: str) -> None:
    with _lock:
        if not _reapers:
            _reapers.append(_start())
        stdin = _reapers[0].stdin
        assert stdin is not None
        stdin.write(f"{line}\n")
        stdin.flush()


def _start() -> subprocess.Popen[str]:
    # A session of its own: Ctrl-C in the terminal must not end it before those it watches.
    reaper = subprocess.Popen(
        [sys.executable, "-I", str(Path(__file__).resolve())],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, start_new_session=True,
    )  # fmt: skip
    atexit.register(_finish, reaper)
    return reaper


def _finish(reaper: subprocess.Popen[str]) -> None:
    reaper.communicate()


def _started(pid: int) -> str:
    """Start time of a process in the kernel's ticks, empty when there is no such process (proc(5), stat, field 22)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19]
    except OSError:
        return ""


def _reap() -> None:
    watched: dict[int, str] = {}
    for line in sys.stdin:
        pid = int(line[1:])
        if line.startswith("+"):
            watched[pid] = _started(pid)
        else:
            watched.pop(pid, None)
    for pid, start in watched.items():
        if start and _started(pid) == start:
            os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    _reap()
