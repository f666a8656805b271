"""Definitions come and go while the process runs; what was good stays in force until something good takes its place."""

from typing import Any

import pytest

from catalog.definition import GroupVersionKind
from catalog.library import Catalog, CompiledDefinition
from catalog.parse import parse
from tests.catalog.parse.documents import smallest
from webhook.definitions import DefinitionsInForce, Source

RUN = GroupVersionKind("example.com", "v1", "Run")


def definition(name: str = "runs", **root: Any) -> dict[str, Any]:
    """The smallest definition, of a kind `Run`."""
    document = smallest()
    document["metadata"]["name"] = name
    document["spec"]["structureDefinition"]["rootComponent"] |= root
    return document


BAD = definition(nonsense=1)


async def nothing_overruns(_: CompiledDefinition) -> tuple[str, ...]:
    """Every expression ends."""
    return ()


@pytest.fixture
async def definitions() -> DefinitionsInForce:
    """None yet."""
    return DefinitionsInForce(nothing_overruns)


def in_force(definitions: DefinitionsInForce) -> str | None:
    """Where the definition of the kind comes from."""
    found = definitions.catalog.find(RUN)
    return found.definition.origin if found is not None else None


async def offer(
    definitions: DefinitionsInForce, source: Source, key: str, document: Any, created: str = ""
) -> tuple[str, ...]:
    """Offer under a key that is the origin as well."""
    return await definitions.offer(source, key, document, origin=key, created=created)


async def test_a_good_definition_takes_effect_at_once(definitions: DefinitionsInForce) -> None:
    """Subscribers are told of the new catalogue."""
    told: list[Catalog] = []
    definitions.subscribe(told.append)

    assert await offer(definitions, Source.RESOURCE, "a", definition()) == ()

    assert in_force(definitions) == "a"
    assert told == [definitions.catalog]


async def test_a_bad_change_keeps_what_was_good(definitions: DefinitionsInForce) -> None:
    """Its problems are known, and the next good change takes effect."""
    await offer(definitions, Source.RESOURCE, "a", definition())
    before = definitions.catalog

    problems = await offer(definitions, Source.RESOURCE, "a", BAD)

    assert any("nonsense" in problem for problem in problems)
    assert definitions.catalog is before
    entry = definitions.entry(Source.RESOURCE, "a")
    assert entry is not None
    assert entry.problems == problems
    assert await offer(definitions, Source.RESOURCE, "a", definition(role="x")) == ()
    assert definitions.catalog is not before


async def test_a_bad_definition_describes_nothing(definitions: DefinitionsInForce) -> None:
    """There was none before it."""
    assert await offer(definitions, Source.RESOURCE, "a", BAD)
    assert in_force(definitions) is None
    definitions.withdraw(Source.RESOURCE, "a")
    assert definitions.keys(Source.RESOURCE) == frozenset()


async def test_an_expression_that_overruns_is_a_problem() -> None:
    """Found out by trying, where it can be stopped."""

    async def overruns(_: CompiledDefinition) -> tuple[str, ...]:
        return ("it does not end",)

    definitions = DefinitionsInForce(overruns)
    assert await offer(definitions, Source.RESOURCE, "a", definition()) == ("it does not end",)
    assert in_force(definitions) is None


async def test_later_sources_go_before_earlier_ones(definitions: DefinitionsInForce) -> None:
    """Package, Karta, WorkloadDefinition, folder; withdrawn, the earlier one is back."""
    definitions.install(Source.PACKAGED, [parse(definition(), "packaged")])
    for source in (Source.RESOURCE, Source.DIRECTORY, Source.KARTA):
        await offer(definitions, source, source.name, definition())
    assert in_force(definitions) == "DIRECTORY"
    assert definitions.superseded_by(Source.RESOURCE, "RESOURCE") == "DIRECTORY"

    for source, left in ((Source.DIRECTORY, "RESOURCE"), (Source.RESOURCE, "KARTA"), (Source.KARTA, "packaged")):
        definitions.withdraw(source, source.name)
        assert in_force(definitions) == left


async def test_of_two_in_one_source_the_older_wins(definitions: DefinitionsInForce) -> None:
    """Whatever order they are read in; the loser is told by whom it lost."""
    await offer(definitions, Source.RESOURCE, "young", definition("young"), created="2026-02-01T00:00:00Z young")
    await offer(definitions, Source.RESOURCE, "old", definition("old"), created="2026-01-01T00:00:00Z old")

    assert in_force(definitions) == "old"
    assert definitions.superseded_by(Source.RESOURCE, "young") == "old"
    assert definitions.superseded_by(Source.RESOURCE, "old") is None
