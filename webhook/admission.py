"""One admission from bytes to answer, with the reading and waiting that the pure core leaves out."""

from collections.abc import Callable, Mapping
from typing import Protocol

from catalog.definition import JsonObject
from catalog.expressions import IsolatedRequest, Outcome
from catalog.library import NOTHING_ISOLATED, Catalog, CompiledDefinition
from catalog.structure import Structure
from webhook.admit import Answer, admit, needs_lineage, pending_evaluations
from webhook.lineage import NO_OWNERS, Lineage
from webhook.review import Review, decode
from webhook.stamps import Policy


class OwnerSource(Protocol):
    """Who reads owners: a cluster, or documents. Called for each object that is created with a controller owner."""

    async def lineage(self, obj: JsonObject, namespace: str, catalog: Catalog, deadline: float) -> Lineage:
        """The owners of `obj`, nearest first, read before `deadline` (event-loop time, seconds). Never raises."""
        ...

    def updated(self, structure: Structure) -> None:
        """An admitted update gives a described object this structure."""
        ...


class Isolation(Protocol):
    """Who evaluates expressions that are not proven harmless, outside this process."""

    async def outcomes(
        self, definition: CompiledDefinition, request: IsolatedRequest, deadline: float
    ) -> Mapping[str, Outcome]:
        """The outcome of each expression, a `Failure` where there was no result before `deadline`. Never raises."""
        ...


class Admission:
    """Answers admission reviews under the catalogue in force at the time of each."""

    def __init__(
        self, catalog: Callable[[], Catalog], policy: Policy, owners: OwnerSource, isolation: Isolation
    ) -> None:
        self._catalog = catalog
        self._policy = policy
        self._owners = owners
        self._isolation = isolation

    async def __call__(self, body: bytes, deadline: float) -> Answer:
        """The answer to the review in `body`. Raises `BadReview` when it is none."""
        review, catalog, prefix = decode(body), self._catalog(), self._policy.prefix
        lineage = NO_OWNERS
        if needs_lineage(review, catalog, prefix):
            lineage = await self._owners.lineage(review.obj, review.namespace, catalog, deadline)
        isolated = NOTHING_ISOLATED
        if not catalog.is_plain:
            isolated = await self._isolated(review, lineage, catalog, deadline)
        answer = admit(review, lineage, catalog, self._policy, isolated)
        if answer.structure is not None and review.operation == "UPDATE" and not review.dry_run:
            self._owners.updated(answer.structure)
        return answer

    async def _isolated(
        self, review: Review, lineage: Lineage, catalog: Catalog, deadline: float
    ) -> Mapping[str, Outcome]:
        pending = pending_evaluations(review, lineage, catalog, self._policy.prefix)
        if not pending:
            return NOTHING_ISOLATED
        outcomes: dict[str, Outcome] = {}
        for definition, request in pending:
            outcomes.update(await self._isolation.outcomes(definition, request, deadline))
        return outcomes
