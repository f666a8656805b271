"""Creates objects as fast as the API server takes them, from several connections, and times each.

Knows nothing of what is created. In one process, so a little of each time is the sender's own.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.cluster.api_client import ApiClient

SENDERS = 8
DRY_RUN = {"dryRun": "All"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """What came of it: each object as it was answered, each creation's seconds, and how long all of it took."""

    made: tuple[Any, ...]
    seconds: tuple[float, ...]
    duration: float

    def quantile(self, share: float) -> float:
        """Seconds that this share of the creations stayed below."""
        return sorted(self.seconds)[min(len(self.seconds) - 1, int(share * len(self.seconds)))]

    @property
    def rate(self) -> float:
        """Creations a second."""
        return len(self.seconds) / self.duration


def create(
    client: ApiClient,
    path: str,
    document: Callable[[int], Any],
    count: int,
    *,
    senders: int = SENDERS,
    query: Mapping[str, str] | None = None,
) -> Burst:
    """Create `document(0)`, … at `path`; ApiError or OSError of any of them ends it."""
    made: list[Any] = [None] * count
    seconds: list[float] = [0.0] * count
    numbers = iter(range(count))
    problems: list[Exception] = []
    lock = threading.Lock()

    def send() -> None:
        while not problems:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            begun = time.monotonic()
            try:
                made[number] = client.post(path, document(number), query=query)
            except Exception as problem:  # noqa: BLE001 - raised again by whoever waits
                problems.append(problem)
            seconds[number] = time.monotonic() - begun

    begun = time.monotonic()
    threads = [threading.Thread(target=send) for _ in range(senders)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return Burst(made=tuple(made), seconds=tuple(seconds), duration=time.monotonic() - begun)
