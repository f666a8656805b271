"""Tasks that must not end: begun again after a fault of whatever kind, which is logged and counted, never silent.

Knows nothing of what the tasks do.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable

from webhook.cluster.client import ApiError, ConnectionFault
from webhook.log import Logger

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 30.0
"""Seconds until a task that failed is begun again: doubled each time, up to the longest."""

GOOD_AFTER = 60.0
"""Seconds a task must have run for its next failure to count as its first."""

REPEAT = 300.0
"""Seconds until the same sentence about the same thing is logged again."""


class Supervision:
    """Logs and counts what goes wrong beside the serving of admissions.

    `count(where)` counts a fault of ours; a fault of the cluster's (no answer, a missing right) is only logged.
    """

    def __init__(self, logger: Logger, count: Callable[[str], None]) -> None:
        self._logger = logger
        self._count = count
        self._told: dict[str, tuple[str, float]] = {}

    def tell(self, what: str, sentence: str) -> None:
        """Log what happened to `what`, once until it is another sentence."""
        now = asyncio.get_running_loop().time()
        before, at = self._told.get(what, ("", 0.0))
        if sentence != before or now >= at + REPEAT:
            self._told[what] = (sentence, now)
            self._logger.info("cluster", what=what, reason=sentence)

    def survived(self, where: str, **facts: str) -> None:
        """Log and count the exception being handled: a fault of ours."""
        self._count("cluster")
        self._logger.error("fault in the cluster room", where=where, exc_info=sys.exception(), **facts)

    async def keep(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` for ever: again when it ends, after a pause when it fails."""
        loop = asyncio.get_running_loop()
        pause = FIRST_PAUSE
        while True:
            begun = loop.time()
            try:
                await work()
            except (ApiError, ConnectionFault) as error:
                self.tell(what, str(error))
            except Exception:  # noqa: BLE001 - a fault in one task must end neither it nor the others
                self.survived(what)
            if loop.time() >= begun + GOOD_AFTER:
                pause = FIRST_PAUSE
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)
