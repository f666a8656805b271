"""The definitions in force while the process runs: several sources, each of which may change at any time.

A change takes effect as a new catalogue. A definition that is not good is not used; what was in force under the same
key stays, until a good one replaces it or its source withdraws it (definitions.md, sections 1 and 5).
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from catalog.definition import Definition, Json
from catalog.expressions import ExpressionError
from catalog.library import Catalog, CompiledDefinition
from catalog.parse import DefinitionError, parse


class Source(IntEnum):
    """Where a definition comes from; of two for one kind the one of the later source is in force."""

    PACKAGED = 0
    KARTA = 1
    RESOURCE = 2
    DIRECTORY = 3


TryOut = Callable[[CompiledDefinition], Awaitable[tuple[str, ...]]]
"""Tries a definition's expressions where they can be stopped, and says which overran; empty when none did."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One offered definition: `good` is in force (subject to precedence), `problems` say why the newest offer is not.

    `created` orders definitions of one source (text that sorts by time), `digest` recognises an unchanged offer.
    """

    key: str
    created: str
    good: CompiledDefinition | None
    problems: tuple[str, ...] = ()
    digest: object = field(default=None, compare=False)


class DefinitionsInForce:
    """Every source's definitions, and the catalogue that follows from them."""

    def __init__(self, try_out: TryOut) -> None:
        self._try_out = try_out
        self._entries: dict[Source, dict[str, Entry]] = {source: {} for source in Source}
        self._subscribers: list[Callable[[Catalog], None]] = []
        self._one_at_a_time = asyncio.Lock()
        self.catalog = Catalog.of()

    def subscribe(self, subscriber: Callable[[Catalog], None]) -> None:
        """Have `subscriber` called with each new catalogue."""
        self._subscribers.append(subscriber)

    def install(self, source: Source, definitions: Sequence[Definition]) -> None:
        """Put definitions in force that were checked before, such as the packaged ones."""
        for definition in definitions:
            good = CompiledDefinition(definition)
            self._entries[source][definition.origin] = Entry(key=definition.origin, created="", good=good)
        self._rebuild()

    async def offer(
        self, source: Source, key: str, document: Json, *, origin: str, created: str = "", digest: object = None
    ) -> tuple[str, ...]:
        """Check a definition and put it in force; the problems, when it is not good. Offers are taken in turn."""
        async with self._one_at_a_time:
            before = self._entries[source].get(key)
            compiled, problems = await self._checked(document, origin)
            good = compiled or (before.good if before is not None else None)
            self._entries[source][key] = Entry(key=key, created=created, good=good, problems=problems, digest=digest)
            if compiled is not None:
                self._rebuild()
            return problems

    async def _checked(self, document: Json, origin: str) -> tuple[CompiledDefinition | None, tuple[str, ...]]:
        # In a thread: a document made to be slow must not keep admissions waiting.
        try:
            definition = await asyncio.to_thread(parse, document, origin)
            compiled = await asyncio.to_thread(CompiledDefinition, definition)
        except DefinitionError as error:
            return None, tuple(str(problem) for problem in error.problems)
        except ExpressionError as error:
            return None, error.problems
        overran = await self._try_out(compiled)
        return (None, overran) if overran else (compiled, ())

    def withdraw(self, source: Source, key: str) -> None:
        """A definition is gone; its kind falls back to an earlier source, or is described no longer."""
        if self._entries[source].pop(key, None) is not None:
            self._rebuild()

    def entry(self, source: Source, key: str) -> Entry | None:
        """What was last offered under that key."""
        return self._entries[source].get(key)

    def keys(self, source: Source) -> frozenset[str]:
        """The keys of everything that a source has offered."""
        return frozenset(self._entries[source])

    def superseded_by(self, source: Source, key: str) -> str | None:
        """The name of the definition that has this one's kind instead of it; `None` while it is in force."""
        entry = self._entries[source].get(key)
        if entry is None or entry.good is None:
            return None
        winner = self.catalog.exact.get(entry.good.definition.describes)
        if winner is entry.good:
            return None
        kind = entry.good.definition.describes
        others = self.catalog.by_kind.get((kind.group, kind.kind), ())
        return (winner or others[0]).definition.origin if winner or others else None

    def _rebuild(self) -> None:
        self.catalog = Catalog.of(*(_oldest_first(self._entries[source]) for source in Source))
        for subscriber in self._subscribers:
            subscriber(self.catalog)


def _oldest_first(entries: dict[str, Entry]) -> list[CompiledDefinition]:
    ordered = sorted(entries.values(), key=lambda entry: (entry.created, entry.key))
    return [entry.good for entry in ordered if entry.good is not None]
