"""A program that runs beside the tests: start, kill, start again with the same command, ends of its log.

Knows nothing of Kubernetes. A process that isn't stopped is killed when the test run ends (see `reaper`).
"""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from tests.cluster import reaper
from tests.cluster.waiting import WaitedTooLongError, eventually

LINES_IN_REPORTS = 25
LONGEST_TAIL_BYTES = 64 * 1024
LONGEST_LINE = 400


class ProcessDiedError(AssertionError):
    """A process ended, or did not get ready in time; the message ends with the end of its log."""


class Process:
    """One program with its command line, environment and log file; the log is appended to by each start."""

    def __init__(
        self, *, name: str, command: tuple[str, ...], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        """`environment` is added to the one of the tests; it stays the same over restarts, like the command."""
        self.name = name
        self.command = command
        self.log = log
        self.environment = environment or {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """Process id of the last start."""
        assert self._process is not None, f"{self.name} was never started"
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Exit code of the last start, minus the signal that ended it, None while it runs."""
        assert self._process is not None, f"{self.name} was never started"
        return self._process.poll()

    def start(self) -> None:
        """Start it; it must not be running."""
        assert not self.running, f"{self.name} is running already, process {self.pid}"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command, env={**os.environ, **self.environment}, cwd=self.log.parent,
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        reaper.watch(self.pid)

    def kill(self) -> None:
        """End it at once (SIGKILL); nothing happens when it isn't running."""
        self._end(signal.SIGKILL, seconds=10)

    def terminate(self, *, seconds: float = 30.0) -> int:
        """Ask it to end (SIGTERM) and wait; its exit code. WaitedTooLongError when it does not end in time."""
        self._end(signal.SIGTERM, seconds=seconds)
        assert self._process is not None
        return self._process.returncode

    def send(self, number: signal.Signals) -> None:
        """Send it a signal: SIGTERM without waiting, SIGSTOP to let it hang, SIGCONT to end that."""
        os.kill(self.pid, number)

    def wait_ready(self, probe: Callable[[], bool], *, seconds: float = 60.0) -> None:
        """Wait until `probe` is true; ProcessDiedError with the log's end when it ends before or takes too long."""
        try:
            eventually(lambda: not self.running or probe(), what=f"{self.name} to be ready", seconds=seconds)
        except WaitedTooLongError as problem:
            raise ProcessDiedError(f"{problem}\n{self.tail()}") from None
        if not self.running:
            raise ProcessDiedError(f"{self.name} ended with exit code {self.exit_code}\n{self.tail()}")

    def tail(self, lines: int = LINES_IN_REPORTS, *, since: int = 0) -> str:
        """The last lines of its log, long ones cut; only what was written after the position `since`, in bytes."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(max(since, self.log_size() - LONGEST_TAIL_BYTES))
            text = log.read().decode(errors="replace")
        return "\n".join(line[:LONGEST_LINE] for line in text.splitlines()[-lines:])

    def log_size(self) -> int:
        """Where its log ends now, in bytes; 0 when there is none."""
        return self.log.stat().st_size if self.log.exists() else 0

    def resident_bytes(self) -> int:
        """Memory it has in RAM now, in bytes (proc(5), statm, field 2)."""
        pages = Path(f"/proc/{self.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def cpu_seconds(self) -> float:
        """CPU time it has used, user and system, in seconds (proc(5), stat, fields 14 and 15)."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _end(self, number: signal.Signals, *, seconds: float) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(number)
            try:
                self._process.wait(seconds)
            except subprocess.TimeoutExpired:
                what = f"{self.name}, process {self.pid}, to end after {number.name}"
                raise WaitedTooLongError(f"waited {seconds:g} s for {what}\n{self.tail()}") from None
        reaper.forget(self.pid)
