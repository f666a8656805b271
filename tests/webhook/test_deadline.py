"""How long a review may take, and what happens to one that takes longer."""

import asyncio
import gc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.deadline import MIN_MARGIN, DeadlineExceeded, time_allowed, within


def soon(seconds: float) -> float:
    """That many seconds from now, in event-loop time."""
    return asyncio.get_running_loop().time() + seconds


class TestTimeAllowed:
    """The time for one review."""

    @pytest.mark.parametrize(
        "asked, own, expected",
        [(10.0, 2.0, 1.6), (1.0, 2.0, 0.8), (None, 2.0, 1.6), (0.2, 2.0, 0.15), (0.06, 2.0, 0.03)],
    )
    def test_is_the_smaller_limit_less_a_margin(self, asked: float | None, own: float, expected: float) -> None:
        """A fifth is kept, at least 50 ms, and of a very short time at most half."""
        assert time_allowed(asked, own, 0.2) == pytest.approx(expected)

    @given(asked=st.none() | st.floats(0, 1e6), own=st.floats(0.1, 30), margin=st.floats(0, 0.9))
    def test_never_exceeds_what_was_asked(self, asked: float | None, own: float, margin: float) -> None:
        """There is always some time, and always some left for the way back."""
        limit = own if asked is None else min(asked, own)
        allowed = time_allowed(asked, own, margin)

        assert limit / 2 <= allowed
        assert allowed <= max(limit - MIN_MARGIN, limit / 2)


class TestWithin:
    """A coroutine that is held to a deadline."""

    async def test_gives_the_result_of_one_that_never_waits(self) -> None:
        """What is known at once is given at once, whatever the deadline."""

        async def known() -> int:
            return 42

        assert await within(known(), soon(-1)) == 42

    async def test_gives_the_result_of_one_that_waits(self) -> None:
        """It may wait for futures, sleep, and pass values through."""
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def waits() -> int:
            await asyncio.sleep(0)
            found = await future
            await asyncio.sleep(0.001)
            return found

        asyncio.get_running_loop().call_soon(future.set_result, 42)

        assert await within(waits(), soon(10)) == 42

    @pytest.mark.parametrize("waits", [False, True])
    async def test_passes_on_what_it_raises(self, *, waits: bool) -> None:
        """An exception comes out as it is, raised before or after it waited."""

        async def fails() -> None:
            if waits:
                await asyncio.sleep(0)
            raise KeyError("x")

        with pytest.raises(KeyError):
            await within(fails(), soon(10))

    async def test_lets_it_catch_what_it_waited_for(self) -> None:
        """An exception of an awaited future is its own to handle."""
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def catches() -> str:
            try:
                await future
            except ZeroDivisionError:
                await asyncio.sleep(0)
                return "caught"
            return "not raised"

        asyncio.get_running_loop().call_soon(future.set_exception, ZeroDivisionError())

        assert await within(catches(), soon(10)) == "caught"

    async def test_cancels_it_at_the_deadline(self) -> None:
        """One that waits for ever is cancelled, may clean up, and DeadlineExceeded is raised."""
        cleaned: list[str] = []

        async def hangs() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                cleaned.append("up")

        began = asyncio.get_running_loop().time()
        with pytest.raises(DeadlineExceeded):
            await within(hangs(), began + 0.05)

        assert 0.05 <= asyncio.get_running_loop().time() - began < 1
        assert cleaned == ["up"]

    async def test_tells_its_own_timeouts_apart(self) -> None:
        """A TimeoutError that it raises itself is an error like any other."""

        async def times_out() -> None:
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()

        with pytest.raises(TimeoutError):
            await within(times_out(), soon(10))

    async def test_is_cancelled_with_its_caller(self) -> None:
        """Cancelling who waits cancels the coroutine, and is no deadline."""
        started, ended = asyncio.Event(), asyncio.Event()

        async def hangs() -> None:
            started.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        task = asyncio.create_task(within(hangs(), soon(10)))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

        assert ended.is_set()

    async def test_leaves_no_coroutine_unfinished(self) -> None:
        """One that is dropped while it waits is closed, not warned about."""
        closed: list[str] = []

        async def hangs() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                closed.append("yes")

        waiting = within(hangs(), soon(10))
        waiting.send(None)
        waiting.close()
        gc.collect()

        assert closed == ["yes"]
