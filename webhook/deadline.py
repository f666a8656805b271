"""How long a review may take, and holding an admission to it.

This module must not know HTTP, nor what is waited for.
"""

import asyncio
from collections.abc import Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")

MIN_MARGIN = 0.05
"""Seconds kept of any time allowed, for the answer to be written and to travel."""


class DeadlineExceeded(Exception):
    """The time was over before there was a result."""


def time_allowed(asked: float | None, own: float, margin: float) -> float:
    """Seconds that a review may take: the sender's limit (None: not stated) or our own, less a margin for the way back.

    `margin` is a share of the limit; of a very short limit half is kept at most.
    """
    limit = own if asked is None else min(asked, own)
    return max(limit - max(MIN_MARGIN, limit * margin), limit / 2)


async def within(coroutine: Coroutine[Any, Any, T], deadline: float) -> T:
    """The result of `coroutine`; cancels it and raises DeadlineExceeded at `deadline` (event-loop time, seconds).

    Most admissions never wait, and a timer costs as much as a tenth of one: so the first step is taken without.
    """
    started = _Started(coroutine)
    if started.finished:
        return started.result
    limit = asyncio.timeout_at(deadline)
    try:
        async with limit:
            return await started
    except TimeoutError:
        if limit.expired():
            raise DeadlineExceeded from None
        raise


class _Started(Generic[T]):
    """A coroutine that has run until it had to wait for the first time, or to its end. Awaiting it runs the rest."""

    __slots__ = ("_coroutine", "_first", "finished", "result")

    result: T

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        self._coroutine = coroutine
        self.finished = False
        try:
            self._first = coroutine.send(None)
        except StopIteration as stop:
            self.finished = True
            self.result = stop.value

    def __await__(self) -> Generator[Any, Any, T]:
        waited = self._first
        while True:
            try:
                try:
                    sent = yield waited
                except GeneratorExit:
                    self._coroutine.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - it is the coroutine's to handle, cancellation too
                    waited = self._coroutine.throw(error)
                else:
                    waited = self._coroutine.send(sent)
            except StopIteration as stop:
                result: T = stop.value
                return result
