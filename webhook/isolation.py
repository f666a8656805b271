"""Expressions that are not proven harmless, evaluated in a process of their own, and not again when one overran."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from catalog.expressions import Failure, IsolatedRequest, Outcome
from catalog.library import CompiledDefinition
from catalog.worker import ExpressionWorker, Quarantine, try_out
from webhook.log import Logger
from webhook.metrics import Metrics

PATIENCE = 0.5
"""Seconds at most for one evaluation, whatever the admission's own deadline."""

Isolated = Callable[[CompiledDefinition, IsolatedRequest], Awaitable[Mapping[str, Outcome]]]
"""Has expressions evaluated outside the process; never raises."""


class WorkerIsolation:
    """Evaluates under a deadline; a definition whose expression overran is quarantined until it changes."""

    def __init__(self, worker: ExpressionWorker, metrics: Metrics, logger: Logger) -> None:
        self._worker = worker
        self._metrics = metrics
        self._logger = logger
        self._quarantine = Quarantine()

    async def outcomes(
        self, definition: CompiledDefinition, request: IsolatedRequest, deadline: float
    ) -> Mapping[str, Outcome]:
        """The outcome of each expression before `deadline` (event-loop time, seconds). Never raises."""
        known = self._quarantine.reason(definition)
        if known is not None:
            return dict.fromkeys(request.sources, Failure(f"not evaluated again until the definition changes: {known}"))
        seconds = min(PATIENCE, deadline - asyncio.get_running_loop().time())
        outcomes = await self._worker.evaluate(request, max(0.0, seconds))
        if self._quarantine.observe(definition, outcomes.values()):
            self._metrics.expression_timeouts.inc()
            self._logger.error(
                "definition quarantined",
                definition=definition.definition.name,
                reason=self._quarantine.reason(definition),
            )
        return outcomes

    async def outcomes_soon(self, definition: CompiledDefinition, request: IsolatedRequest) -> Mapping[str, Outcome]:
        """`outcomes` for callers without a deadline of their own. Never raises."""
        return await self.outcomes(definition, request, asyncio.get_running_loop().time() + PATIENCE)

    async def try_out(self, definition: CompiledDefinition) -> tuple[str, ...]:
        """The problems of a definition's expressions when they are tried on nothing."""
        return await asyncio.to_thread(partial(try_out, definition.sources, worker=self._worker))
