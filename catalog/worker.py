"""A process in which expressions that could run away are evaluated: with a deadline, 64 MB and nothing to see.

It has no environment, may not write files, and is killed for real when it overruns; the next request starts another. It
is started on first need. What is evaluated, and how, is `catalog.expressions.isolated`'s business.
"""

import asyncio
import contextlib
import math
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Hashable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import orjson

from catalog.definition import Json
from catalog.expressions import Failure, IsolatedRequest, Outcome, Program
from catalog.expressions.isolated import LENGTH_BYTES, READY, outcome_read, request_messages

MEMORY = 64 * 1024 * 1024
"""Bytes of address space that an evaluation may take beyond what the process has when it is ready."""
START_SECONDS = 20.0
"""How long a process may take to get ready before it is given up; a caller waits no longer than its own deadline."""
TRIAL_SECONDS = 1.0
"""The deadline for trying an expression out."""
_FAIR_SECONDS = 0.25
"""An expression that was stopped sooner, because its time went to waiting, isn't held to have overrun."""
_PROGRAM = (
    "import sys; sys.path[:] = sys.argv[1:]; "
    "from catalog.expressions.isolated import serve; serve(sys.stdin.buffer, sys.stdout.buffer)"
)
_ENDED = Failure("the worker ended unexpectedly")
_OUT_OF_MEMORY = f"it takes more than {MEMORY >> 20} MB of memory, or breaks the engine"
_ENDED_BY = {
    signal.SIGXCPU: "it takes too much processor time",
    **dict.fromkeys((signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS), _OUT_OF_MEMORY),
}


class ExpressionWorker:
    """Evaluates requests one at a time, each with its own deadline, in a process that outlives good requests only.

    `starts` and `overruns` count processes started and expressions stopped.
    """

    def __init__(self) -> None:
        self.starts = 0
        self.overruns = 0
        self._process: _Process | None = None
        self._turn = threading.Lock()
        self._closing = False
        self._executor: ThreadPoolExecutor | None = None

    async def start(self) -> None:
        """Get ready to take requests; the process itself is started by the first of them."""
        self._closing = False
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="expression-worker")

    async def stop(self) -> None:
        """Kill the process; requests under way end with failures."""
        executor, self._executor = self._executor, None
        await asyncio.get_running_loop().run_in_executor(None, self.close)
        if executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """The same for who uses `evaluate_blocking` only. A request under way fails at once."""
        self._closing = True
        if (process := self._process) is not None:
            process.kill()
        with self._turn:
            self._discard()
        self._closing = False

    def _discard(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.release()

    async def evaluate(self, request: IsolatedRequest, deadline: float) -> Mapping[str, Outcome]:
        """The outcome of each expression, in at most `deadline` seconds; waiting for earlier requests counts.

        Never raises but when it is cancelled, which leaves the worker in good order.
        """
        if self._executor is None:
            return _all_failed(request.sources, "the worker is not running")
        until = time.monotonic() + deadline
        waiting = asyncio.get_running_loop().run_in_executor(self._executor, self._evaluate, request, deadline, until)
        try:
            # What runs stops by itself at its deadline; the grace is for its last words.
            return await asyncio.wait_for(waiting, deadline + 0.1)
        except TimeoutError:
            return _all_failed(request.sources, "the worker was busy with other requests")

    def evaluate_blocking(self, request: IsolatedRequest, deadline: float) -> Mapping[str, Outcome]:
        """The same for callers without an event loop."""
        return self._evaluate(request, deadline, time.monotonic() + deadline)

    def get_ready(self, seconds: float = START_SECONDS) -> bool:
        """Start the process if there is none, and wait for it. Whether it is ready."""
        with self._turn:
            return self._ready_process(time.monotonic() + seconds) is not None

    def _evaluate(self, request: IsolatedRequest, deadline: float, until: float) -> Mapping[str, Outcome]:
        if not self._turn.acquire(timeout=max(0.0, until - time.monotonic())):
            return _all_failed(request.sources, "the worker was busy with other requests")
        try:
            return self._in_turn(request, deadline, until)
        finally:
            self._turn.release()

    def _in_turn(self, request: IsolatedRequest, deadline: float, until: float) -> Mapping[str, Outcome]:
        outcomes: dict[str, Outcome] = {}
        remaining, tried_again = request.sources, False
        while remaining:
            process = self._ready_process(until)
            if process is None:
                return outcomes | _all_failed(remaining, "the worker was not ready in time")
            answered, ended = process.evaluate(remaining, request.document, deadline, until)
            if ended == _ENDED and not tried_again:
                # Somebody else ended it, perhaps before it had the request.
                tried_again = True
                self._discard()
                continue
            outcomes.update(zip(remaining, answered, strict=False))
            remaining = remaining[len(answered) :]
            if ended is not None:
                outcomes[remaining[0]] = ended
                remaining = remaining[1:]
            if any(isinstance(outcome, Failure) and outcome.overran for outcome in (*answered, ended)):
                self.overruns += 1
            if ended is not None:
                self._discard()
        return outcomes

    def _ready_process(self, until: float) -> "_Process | None":
        if self._process is not None and self._process.has_ended():
            self._discard()
        if self._process is None:
            if self._closing or time.monotonic() >= until:
                return None
            self._process = _Process()
            self.starts += 1
        if self._process.becomes_ready(until):
            return self._process
        if self._process.age() > START_SECONDS:
            self._discard()
        return None


class _Process:
    """One child process and the two pipes to it. Not for two threads at once, but for `kill`."""

    def __init__(self) -> None:
        self._since = time.monotonic()
        self._child = subprocess.Popen(  # noqa: S603 - our own interpreter and our own words
            [sys.executable, "-I", "-c", _PROGRAM, *_import_path()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            bufsize=0,
        )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._to, self._from = self._child.stdin.fileno(), self._child.stdout.fileno()
        os.set_blocking(self._to, False)
        os.set_blocking(self._from, False)
        self._received = bytearray()
        self._is_ready = False

    def age(self) -> float:
        """Seconds since it was started."""
        return time.monotonic() - self._since

    def has_ended(self) -> bool:
        """Whether the process is no more."""
        return self._child.poll() is not None

    def kill(self) -> None:
        """End the process now, whatever it does; who waits for it sees its pipes end."""
        self._child.kill()

    def release(self) -> None:
        """Give back what the ended process held."""
        self._child.wait()
        for stream in (self._child.stdin, self._child.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()

    def becomes_ready(self, until: float) -> bool:
        """Wait for it to be ready, and put the limits on it then."""
        if not self._is_ready and self._message(until) == READY:
            self._limit_memory()
            self._is_ready = True
        return self._is_ready

    def evaluate(
        self, sources: Sequence[str], document: bytes, deadline: float, until: float
    ) -> tuple[list[Outcome], Failure | None]:
        """The outcomes in order, and the failure of the expression after them if the process did not get over it."""
        self._limit_processor(deadline)
        answered: list[Outcome] = []
        began = time.monotonic()
        if not self._send(request_messages(IsolatedRequest(tuple(sources), document)), until):
            return answered, Failure("the worker did not take the request in time")
        while len(answered) < len(sources):
            message = self._message(until)
            if message is None:
                return answered, self._why_no_answer(deadline, time.monotonic() - began)
            answered.append(outcome_read(message))
            began = time.monotonic()
        return answered, None

    def _why_no_answer(self, deadline: float, seconds: float) -> Failure:
        if self._received_end():
            ended_by = signal.Signals(-self._child.returncode) if self._child.returncode < 0 else None
            why = _ENDED_BY.get(ended_by) if ended_by is not None else None
            return Failure(why, overran=True) if why is not None else _ENDED
        return Failure(f"it takes longer than {deadline:.3g} s", overran=seconds >= min(deadline / 2, _FAIR_SECONDS))

    def _received_end(self) -> bool:
        """Whether the process has closed its end: then it is about to end, or has."""
        if not _is_ready_for(self._from, select.POLLIN, time.monotonic()):
            return False
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(timeout=1)
        return self.has_ended()

    # Messages

    def _message(self, until: float) -> bytes | None:
        """The next message, or None when it is not there in time or the stream has ended."""
        if not self._receive(LENGTH_BYTES, until):
            return None
        end = LENGTH_BYTES + int.from_bytes(self._received[:LENGTH_BYTES], "big")
        if not self._receive(end, until):
            return None
        message = bytes(self._received[LENGTH_BYTES:end])
        del self._received[:end]
        return message

    def _receive(self, size: int, until: float) -> bool:
        while len(self._received) < size:
            if not _is_ready_for(self._from, select.POLLIN, until):
                return False
            chunk = os.read(self._from, 1 << 16)
            if not chunk:
                return False
            self._received += chunk
        return True

    def _send(self, message: bytes, until: float) -> bool:
        view = memoryview(message)
        while view:
            if not _is_ready_for(self._to, select.POLLOUT, until):
                return False
            try:
                view = view[os.write(self._to, view) :]
            except BrokenPipeError:
                return True  # it has ended: reading says why
        return True

    # Limits, set from outside where the system can do that (Linux)

    def _limit_memory(self) -> None:
        self._limit(resource.RLIMIT_CORE, 0)
        self._limit(resource.RLIMIT_FSIZE, 0)
        self._limit(resource.RLIMIT_NOFILE, 3)
        with contextlib.suppress(OSError):
            pages = int(Path(f"/proc/{self._child.pid}/statm").read_text().split()[0])
            self._limit(resource.RLIMIT_AS, pages * resource.getpagesize() + MEMORY)

    def _limit_processor(self, deadline: float) -> None:
        """The process ends itself should this one be gone or stopped when it overruns."""
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{self._child.pid}/stat").read_text().rpartition(")")[2].split()
            used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
            self._limit(resource.RLIMIT_CPU, math.ceil(used + deadline) + 1, hard=False)

    def _limit(self, what: int, value: int, *, hard: bool = True) -> None:
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                resource.prlimit(self._child.pid, what, (value, value if hard else resource.RLIM_INFINITY))


def _is_ready_for(stream: int, event: int, until: float) -> bool:
    """Wait for a pipe; its end counts too. `poll`, as a server's descriptors exceed what `select` can take."""
    waiting = select.poll()
    waiting.register(stream, event)
    return bool(waiting.poll(max(0.0, until - time.monotonic()) * 1000))


def _import_path() -> list[str]:
    """Where this process finds modules, for one that sees neither its environment nor its directory."""
    return [str(Path(entry or ".").resolve()) for entry in sys.path]


def _all_failed(sources: Iterable[str], reason: str) -> dict[str, Outcome]:
    return dict.fromkeys(sources, Failure(reason))


def try_out(
    sources: Sequence[str],
    samples: Sequence[Json] = ({}, None),
    deadline: float = TRIAL_SECONDS,
    worker: ExpressionWorker | None = None,
) -> tuple[str, ...]:
    """What overruns on a sample, a sentence for each expression; failing on one is no problem.

    `deadline` in seconds is for each expression and sample. Expressions that are safe by their form aren't tried.
    Without `worker`, a process is started for the purpose. Raises `ExpressionError` for what may not be used at all.
    """
    own = worker or ExpressionWorker()
    try:
        found = [
            problem
            for source in dict.fromkeys(sources)
            for sample in samples
            if (problem := _overrun(own, source, sample, deadline)) is not None
        ]
    finally:
        if worker is None:
            own.close()
    return tuple(dict.fromkeys(found))


def _overrun(worker: ExpressionWorker, source: str, sample: Json, deadline: float) -> str | None:
    request = Program.compile([source]).pending(sample)
    if request is None:
        return None
    if not worker.get_ready():
        return f"`{source}`: could not be tried out, as no process gets ready for it; try again"
    outcome = worker.evaluate_blocking(request, deadline)[source]
    if isinstance(outcome, Failure) and outcome.overran:
        shown = orjson.dumps(sample).decode()
        on = shown if len(shown) <= 20 else "a sample"
        return f"`{source}`: {outcome.reason} on {on}; simplify the expression"
    return None


class Quarantine:
    """What is not to be evaluated any more because it overran, by any key that changes when it does.

    `count` is how many were ever put in.
    """

    def __init__(self) -> None:
        self.count = 0
        self._reasons: dict[Hashable, str] = {}

    def observe(self, key: Hashable, outcomes: Iterable[Outcome]) -> bool:
        """Put the key in if an outcome says that it overran. Whether that is new."""
        reason = next((found.reason for found in outcomes if isinstance(found, Failure) and found.overran), None)
        if reason is None or key in self._reasons:
            return False
        self._reasons[key] = reason
        self.count += 1
        return True

    def reason(self, key: Hashable) -> str | None:
        """Why the key must not be evaluated, or None when it may."""
        return self._reasons.get(key)

    def keep_only(self, keys: Iterable[Hashable]) -> None:
        """Let out everything but these: what was changed or deleted needs no place."""
        kept = set(keys)
        self._reasons = {key: reason for key, reason in self._reasons.items() if key in kept}
