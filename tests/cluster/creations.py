"""A stream of creations that goes on while something happens, with a record of each.

    with Creations(control_plane.client, path, member_of(owner), rate=20) as creations:
        replica.kill()
        creations.more(100)
    creations.made, creations.refused, creations.slowest

What the API server could not be reached for is tried again, as a controller does, and is not held against anybody;
what it refused is. Knows nothing of what is created, nor of who stamps it.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tests.cluster.api_client import ApiClient, ApiError
from tests.cluster.waiting import eventually

SENDERS = 4
AWAY = (429, 500, 503, 504)
"""What an API server answers that has lost its etcd, or is not up yet; never of a webhook's doing unless it says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """One object that was created: as it was stored, when that was (monotonic), and how long it took."""

    obj: Any
    at: float
    seconds: float


class Creations:
    """Creates at `rate` a second until the end of the block; `document(number)` is what is created."""

    def __init__(self, client: ApiClient, path: str, document: Callable[[int], Any], *, rate: float = 20.0) -> None:
        """Starts nothing."""
        self.made: list[Creation] = []
        self.refused: list[str] = []
        self.unreachable = 0
        self._judged_from = 0.0
        self._client = client
        self._path = path
        self._document = document
        self._pause = SENDERS / rate
        self._number = 0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._run, name=f"creations-{n}") for n in range(SENDERS)]

    def __enter__(self) -> Self:
        """Begin."""
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Finish what was begun."""
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def more(self, count: int, *, seconds: float = 60.0) -> None:
        """Wait until so many more were created."""
        wanted = len(self.made) + count
        eventually(lambda: len(self.made) >= wanted, what=f"{count} more creations", seconds=seconds)

    def forgive(self) -> None:
        """How long creations took until now was not for us to say: the API server itself was away."""
        self._judged_from = time.monotonic()

    @property
    def slowest(self) -> float:
        """Seconds that the slowest creation took, of those that are held against somebody."""
        return max(creation.seconds for creation in self.made if creation.at >= self._judged_from)

    def _run(self) -> None:
        while not self._ended.is_set():
            begun = time.monotonic()
            with self._lock:
                number, self._number = self._number, self._number + 1
            self._create(number)
            self._ended.wait(max(0.0, begun + self._pause - time.monotonic()))

    def _create(self, number: int) -> None:
        document = self._document(number)
        while True:
            begun = time.monotonic()
            try:
                obj = self._client.post(self._path, document)
            except OSError:
                self.unreachable += 1
            except ApiError as error:
                if error.code == 409:
                    return  # it was stored by the try before, whose answer was lost
                if error.code not in AWAY or "webhook" in error.message:
                    self.refused.append(str(error))
                    return
                self.unreachable += 1
            else:
                self.made.append(Creation(obj=obj, at=begun, seconds=time.monotonic() - begun))
                return
            if self._ended.wait(0.1):
                return
