"""Waiting for something to become true, with a deadline instead of a sleep of a guessed length."""

import asyncio
import inspect
from collections.abc import Callable


async def until(condition: Callable[[], object], *, seconds: float = 10) -> None:
    """Wait until `condition`, which may be awaitable, holds; fails the test when it doesn't within `seconds`."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not await _value(condition()):
        assert asyncio.get_running_loop().time() < deadline, f"not within {seconds} seconds"
        await asyncio.sleep(0.005)


async def _value(found: object) -> object:
    return await found if inspect.isawaitable(found) else found
