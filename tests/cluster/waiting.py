"""The one way to wait: ask again and again until a deadline. Knows nothing of what is asked."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
SECONDS_BETWEEN_PROBES = 0.05


class WaitedTooLongError(AssertionError):
    """Something did not come true in time; the message says what, how long was waited and what was seen last."""


def eventually(probe: Callable[[], T | None], *, what: str, seconds: float = 30.0) -> T:
    """The first truthy answer of `probe`, asked until `seconds` have passed; then WaitedTooLongError.

    `what` completes "waited 30 s for …". An exception of the probe is the probe's business and ends the wait.
    """
    deadline = time.monotonic() + seconds
    while True:
        seen = probe()
        if seen:
            return seen
        if time.monotonic() >= deadline:
            raise WaitedTooLongError(f"waited {seconds:g} s for {what}; seen last: {seen!r}")
        time.sleep(SECONDS_BETWEEN_PROBES)
