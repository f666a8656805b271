"""The worker process: killed when it overruns, small, blind to everything but its input, and soon back."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

import pytest

from catalog.definition import Json
from catalog.expressions import Failure, IsolatedRequest, Outcome, Program
from catalog.worker import MEMORY, ExpressionWorker, Quarantine, try_out

pytestmark = pytest.mark.slow

# Fine by itself; an object with a few hundred elements makes it run for hours.
ENDLESS = "[.a[] as $w | .a[] as $x | .a[] as $y | .a[] as $z | select(false)] | length"
MATCH = '.name | test("^wor")'
PATIENCE = 10.0


def request(*sources: str, document: Json) -> IsolatedRequest:
    """The request that a program makes for these expressions, none of which is evaluated in process."""
    found = Program.compile(sources).pending(document)
    assert found is not None
    assert found.sources == sources
    return found


SMALL = request(MATCH, document={"name": "worker"})
HUGE = request(ENDLESS, document={"a": [*range(1000)]})


def overran(outcomes: Mapping[str, Outcome], source: str) -> str:
    """The reason with which an expression was stopped; fails the test when it wasn't."""
    outcome = outcomes[source]
    assert isinstance(outcome, Failure)
    assert outcome.overran
    return outcome.reason


def processes_of(worker: ExpressionWorker) -> list[int]:
    """Ids of the living processes that were started from here to evaluate expressions."""
    assert worker is not None
    threads = Path("/proc/self/task").glob("*/children")
    children = [child for thread in threads for child in read(thread).split()]
    return [
        int(child) for child in children if b"catalog.expressions.isolated" in read(Path(f"/proc/{int(child)}/cmdline"))
    ]


def read(path: Path) -> bytes:
    """What the kernel says of a process or thread; nothing of one that has ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.fixture
def blocking() -> Iterator[ExpressionWorker]:
    """A worker for use without an event loop."""
    worker = ExpressionWorker()
    yield worker
    worker.close()
    assert processes_of(worker) == []


@pytest.fixture
async def worker() -> AsyncIterator[ExpressionWorker]:
    """A worker that is ready to take requests."""
    worker = ExpressionWorker()
    await worker.start()
    yield worker
    await worker.stop()
    assert processes_of(worker) == []


def test_expressions_are_evaluated(blocking: ExpressionWorker) -> None:
    """With results, without, and with errors."""
    sources = (MATCH, '.name | sub("w"; "W")', '[.list | splits(",")]', '.list | test("(")', '.none | test("a")')
    outcomes = blocking.evaluate_blocking(request(*sources, document={"name": "worker", "list": "a,b"}), PATIENCE)
    assert [outcomes[source] for source in sources] == [
        (True,),
        ("Worker",),
        (["a", "b"],),
        Failure("the expression raised an error"),
        Failure("null cannot be matched"),
    ]


def test_no_process_is_started_before_the_first_request(blocking: ExpressionWorker) -> None:
    """Packaged definitions need none."""
    assert processes_of(blocking) == []
    blocking.evaluate_blocking(SMALL, PATIENCE)
    blocking.evaluate_blocking(SMALL, PATIENCE)
    assert len(processes_of(blocking)) == 1
    assert blocking.starts == 1


def test_an_expression_that_overruns_is_killed_in_time_and_the_next_is_evaluated(blocking: ExpressionWorker) -> None:
    """The process is gone, not just ignored, and another takes its place."""
    blocking.evaluate_blocking(SMALL, PATIENCE)
    (first,) = processes_of(blocking)
    began = time.monotonic()
    outcomes = blocking.evaluate_blocking(HUGE, 0.5)
    assert time.monotonic() - began < 1.5
    assert overran(outcomes, ENDLESS) == "it takes longer than 0.5 s"
    assert not read(Path(f"/proc/{first}/cmdline"))
    assert blocking.evaluate_blocking(SMALL, PATIENCE)[MATCH] == (True,)
    assert (blocking.starts, blocking.overruns) == (2, 1)


def test_one_that_overruns_takes_no_other_with_it(blocking: ExpressionWorker) -> None:
    """Those before it keep their results; those after it have no time left, and are not blamed."""
    blocking.evaluate_blocking(SMALL, PATIENCE)
    document = {"a": [*range(1000)], "name": "worker"}
    after = '.name | test("ker$")'
    outcomes = blocking.evaluate_blocking(request(MATCH, ENDLESS, after, document=document), 0.5)
    assert outcomes[MATCH] == (True,)
    overran(outcomes, ENDLESS)
    assert outcomes[after] == Failure("the worker was not ready in time")


MEMORY_EATERS = {
    "a repeated text": ('"x" * .n | length', {"n": 1e9}),
    "a product of arrays": ("[.a[] as $x | .a[] as $y | .a[] as $z | [$x, $y, $z]] | length", {"a": [*range(500)]}),
    "doubling": ("reduce range(60) as $i (.a; . + .) | length", {"a": ["x"] * 10}),
    "doubling a text": ("reduce range(60) as $i (.a; . + .) | length", {"a": "xxxxxxxxxx"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("source, document", MEMORY_EATERS.values(), ids=MEMORY_EATERS.keys())
def test_memory_is_bounded(blocking: ExpressionWorker, source: str, document: Json) -> None:
    """The process ends when it wants more than it may have; what comes after it is evaluated."""
    document = {**document, "name": "worker"}
    outcomes = blocking.evaluate_blocking(request(source, MATCH, document=document), 30.0)
    assert "memory" in overran(outcomes, source)
    assert outcomes[MATCH] == (True,)


def test_the_limit_leaves_room_for_what_is_reasonable(blocking: ExpressionWorker) -> None:
    """A text of half the size is no problem."""
    source = '"x" * .n | length'
    assert blocking.evaluate_blocking(request(source, document={"n": MEMORY // 3}), PATIENCE)[source] == (MEMORY // 3,)


def test_a_regular_expression_that_backtracks_is_stopped(blocking: ExpressionWorker) -> None:
    """By jq's own limit or by ours."""
    source = '.name | test("^(a|a)*$")'
    outcome = blocking.evaluate_blocking(request(source, document={"name": "a" * 40 + "b"}), 1.0)[source]
    assert isinstance(outcome, Failure) or outcome == (False,)
    assert blocking.evaluate_blocking(SMALL, PATIENCE)[MATCH] == (True,)


def test_results_without_end_are_stopped(blocking: ExpressionWorker) -> None:
    """They never reach this process."""
    source = "[range(600)] as $x | $x[] | $x[]"
    outcome = blocking.evaluate_blocking(request(source, document={}), PATIENCE)[source]
    assert outcome == Failure("its results are larger than 1 MiB", overran=True)


def test_the_process_sees_no_environment(blocking: ExpressionWorker, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is in ours, and may not write files."""
    monkeypatch.setenv("WORKLOAD_STAMP_SECRET", "hunter2")
    blocking.evaluate_blocking(SMALL, PATIENCE)
    (process,) = processes_of(blocking)
    assert Path(f"/proc/{process}/environ").read_bytes() == b""
    limits = Path(f"/proc/{process}/limits").read_text()
    for limit in ("Max file size", "Max core file size"):
        assert next(line for line in limits.splitlines() if line.startswith(limit)).split()[len(limit.split())] == "0"


def test_a_process_that_is_killed_by_others_is_replaced(blocking: ExpressionWorker) -> None:
    """Between two requests, without anybody noticing."""
    blocking.evaluate_blocking(SMALL, PATIENCE)
    (process,) = processes_of(blocking)
    os.kill(process, signal.SIGKILL)
    assert blocking.evaluate_blocking(SMALL, PATIENCE)[MATCH] == (True,)
    assert blocking.overruns == 0


async def test_a_process_killed_under_a_request_is_a_failure_that_did_not_overrun(worker: ExpressionWorker) -> None:
    """The kernel may end it for want of memory elsewhere: it is tried once more, and the expression isn't to blame."""
    waiting = asyncio.create_task(worker.evaluate(HUGE, 3 * PATIENCE))
    for starts in (1, 2):
        while worker.starts < starts or not (processes := processes_of(worker)):  # noqa: ASYNC110 - likewise
            await asyncio.sleep(0.01)
        await busy(processes[0])
        os.kill(processes[0], signal.SIGKILL)
    assert await waiting == {ENDLESS: Failure("the worker ended unexpectedly")}


async def busy(process: int) -> None:
    """Wait until a process computes, which it does for longer than it takes to start."""
    until = time.monotonic() + PATIENCE
    while ticks(process) < 50:
        assert time.monotonic() < until
        await asyncio.sleep(0.01)


def ticks(process: int) -> int:
    """Processor time of a process, in hundredths of a second."""
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[11])


async def test_requests_wait_for_one_another_each_with_its_own_deadline(worker: ExpressionWorker) -> None:
    """One with little time gives up while another runs; one with more is evaluated after it."""
    await worker.evaluate(SMALL, PATIENCE)
    endless = asyncio.create_task(worker.evaluate(HUGE, 1.0))
    await asyncio.sleep(0)
    began = time.monotonic()
    hasty = await worker.evaluate(SMALL, 0.3)
    assert time.monotonic() - began < 0.9
    assert hasty == {MATCH: Failure("the worker was busy with other requests")}
    assert await worker.evaluate(SMALL, PATIENCE) == {MATCH: (True,)}
    overran(await endless, ENDLESS)


async def test_many_at_once_are_all_answered(worker: ExpressionWorker) -> None:
    """In any order, by one process."""
    documents = [{"name": f"worker-{at}" if at % 2 else f"leader-{at}"} for at in range(50)]
    answers = await asyncio.gather(
        *(worker.evaluate(request(MATCH, document=document), PATIENCE) for document in documents)
    )
    assert [answer[MATCH] for answer in answers] == [(at % 2 == 1,) for at in range(50)]
    assert worker.starts == 1


async def test_a_cancelled_request_leaves_the_worker_in_order(worker: ExpressionWorker) -> None:
    """What was asked for goes on to its deadline; then the next is evaluated."""
    await worker.evaluate(SMALL, PATIENCE)
    cancelled = [asyncio.create_task(worker.evaluate(HUGE, 0.5)) for _ in range(3)]
    await asyncio.sleep(0.1)
    for task in cancelled:
        task.cancel()
    assert await asyncio.gather(*cancelled, return_exceptions=True) != []
    assert await worker.evaluate(SMALL, PATIENCE) == {MATCH: (True,)}
    assert worker.overruns == 1


async def test_the_event_loop_goes_on_while_an_expression_runs(worker: ExpressionWorker) -> None:
    """The process has an interpreter of its own."""
    await worker.evaluate(SMALL, PATIENCE)
    waiting = asyncio.create_task(worker.evaluate(HUGE, 0.5))
    longest = 0.0
    while not waiting.done():
        before = time.thread_time()
        await asyncio.sleep(0.001)
        longest = max(longest, time.thread_time() - before)
    assert longest < 0.05
    overran(await waiting, ENDLESS)


async def test_stopping_ends_what_is_under_way() -> None:
    """At once, with a failure; afterwards nothing is evaluated."""
    worker = ExpressionWorker()
    await worker.start()
    await worker.evaluate(SMALL, PATIENCE)
    (process,) = processes_of(worker)
    waiting = asyncio.create_task(worker.evaluate(HUGE, PATIENCE))
    await busy(process)
    began = time.monotonic()
    await worker.stop()
    assert isinstance((await waiting)[ENDLESS], Failure)
    assert time.monotonic() - began < PATIENCE / 2
    assert processes_of(worker) == []
    assert await worker.evaluate(SMALL, PATIENCE) == {MATCH: Failure("the worker is not running")}


def test_a_deadline_too_short_to_start_a_process_blames_no_expression(blocking: ExpressionWorker) -> None:
    """The process goes on getting ready, for the next request."""
    outcome = blocking.evaluate_blocking(SMALL, 0.001)[MATCH]
    assert outcome == Failure("the worker was not ready in time")
    assert blocking.evaluate_blocking(SMALL, PATIENCE)[MATCH] == (True,)
    assert blocking.starts == 1


def test_trying_out_finds_what_overruns_on_a_sample() -> None:
    """On an empty object, on null and on samples given; failing is no problem there, nor is what can't run away."""
    harmless = (".spec.replicas", MATCH, ENDLESS, ".a.b.c", "reduce .a[]? as $x (0; . + 1)")
    assert try_out(harmless) == ()
    loop = "[range(1000) as $a | range(1000) as $b | range(1000) as $c | select(false)] | length"
    assert try_out((MATCH, loop), deadline=0.5) == (
        f"`{loop}`: it takes longer than 0.5 s on {{}}; simplify the expression",
        f"`{loop}`: it takes longer than 0.5 s on null; simplify the expression",
    )
    assert try_out((ENDLESS,), samples=({"a": [*range(1000)]},), deadline=0.5) == (
        f"`{ENDLESS}`: it takes longer than 0.5 s on a sample; simplify the expression",
    )


def test_what_overran_is_in_quarantine_until_it_changes() -> None:
    """By any key; other failures are no reason."""
    quarantine = Quarantine()
    slow = Failure("it takes longer than 1 s", overran=True)
    assert not quarantine.observe(("job", 1), [(1,), Failure("division by zero")])
    assert quarantine.reason(("job", 1)) is None
    assert quarantine.observe(("job", 1), [(1,), slow])
    assert not quarantine.observe(("job", 1), [slow])
    assert quarantine.reason(("job", 1)) == "it takes longer than 1 s"
    assert quarantine.reason(("job", 2)) is None
    assert quarantine.observe(("other", 7), [slow])
    quarantine.keep_only([("job", 2), ("other", 7)])
    assert quarantine.reason(("job", 1)) is None
    assert quarantine.reason(("other", 7)) is not None
    assert quarantine.count == 2
