"""Upstream's definitions are taken unchanged; where ours say something else, docs/differences.md says it and why."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import orjson
import pytest

from catalog.attribution import PodReading
from catalog.definition import JsonObject
from catalog.library import CompiledDefinition
from catalog.parse import parse
from catalog.structure import resolve
from tests.catalog.upstream_comparison import (
    POLICY,
    RESPECTS,
    STATUS,
    Difference,
    difference_of_status,
    differences,
)
from tests.catalog.upstream_definitions import documents
from tests.conftest import SHARED
from tests.golden.cases import packaged_catalog

PAGE = Path(__file__).resolve().parents[2] / "docs" / "differences.md"
DOCUMENTS = tuple(documents())
HEADING = re.compile(r"^### (?P<kind>\S+), `(?P<group_version>[^`]+)`$")
ROW = re.compile(rf"^\| (?P<respect>{'|'.join(RESPECTS)}) \|(?P<cells>.+)\|$")

Listed = tuple[str, str]
"""The name of a definition, and the respect in which it differs."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document["metadata"]["name"])
def test_upstream_definition_is_taken_unchanged(document: JsonObject) -> None:
    """It is parsed without a problem and every expression compiles; we describe the kind too."""
    compiled = CompiledDefinition(parse(document, "upstream"))

    assert packaged_catalog().find(compiled.definition.describes) is not None
    assert compiled.definition.name == document["metadata"]["name"]


def test_stored_definition_of_the_cluster_is_taken_too() -> None:
    """What the API server and upstream's operator add to a definition does not matter."""
    document = {**DOCUMENTS[1], "status": {"conditions": [{"type": "Ready", "status": "True"}]}}
    labels = {"run.ai/karta-group": "apps", "run.ai/karta-kind": "Deployment", "run.ai/karta-version": "v1"}
    document["metadata"] = {"name": "any-name", "labels": labels, "resourceVersion": "7", "managedFields": []}

    assert parse(document, "cluster").name == "any-name"
    older = {**document, "apiVersion": "optimization.nvidia.com/v1alpha1", "kind": "ResourceInterface"}
    assert parse(older, "cluster").describes == parse(document, "cluster").describes


@cache
def _listed() -> dict[Listed, tuple[str, ...]]:
    """What the page lists, with the cells of each row: upstream, here, why."""
    found: dict[Listed, tuple[str, ...]] = {}
    definition = ""
    for line in PAGE.read_text().splitlines():
        heading, row = HEADING.match(line), ROW.match(line)
        if heading is not None:
            definition = _name_of(heading["group_version"], heading["kind"])
        elif row is not None:
            found[definition, row["respect"]] = tuple(cell.strip() for cell in row["cells"].split(" | "))
    return found


def _name_of(group_version: str, kind: str) -> str:
    group, _, version = group_version.rpartition("/")
    return f"{(group or 'core').replace('.', '-')}-{kind.lower()}-{version}"


def test_every_difference_between_the_definitions_is_listed() -> None:
    """No golden object or pod is read differently without a row, and no row is without an example."""
    observed = {(found.definition, found.respect) for found in differences()}

    assert observed == {listed for listed in _listed() if listed[1] != STATUS}


@pytest.mark.shared
def test_every_difference_between_the_statuses_is_listed() -> None:
    """Objects as stored while their controllers ran are in another state only where a row says so."""
    observed = {(found.definition, found.respect) for found in _differences_of_statuses()}

    assert observed == {listed for listed in _listed() if listed[1] == STATUS}


def _differences_of_statuses() -> Iterator[Difference]:
    for path in sorted((SHARED / "recordings").glob("*/*/status/*.json")):
        found = difference_of_status(orjson.loads(path.read_bytes()), str(path))
        if found is not None:
            yield found


def test_every_row_says_what_upstream_does_what_we_do_and_why() -> None:
    """Three cells, none of them empty."""
    assert [listed for listed, cells in _listed().items() if len(cells) != 3 or not all(cells)] == []


def test_an_upstream_leaf_without_a_selector_claims_no_pod_beside_others() -> None:
    """Upstream's etcd of a Milvus cannot be told by its pods; no other pod becomes an etcd for that."""
    (document,) = [each for each in DOCUMENTS if each["metadata"]["name"].startswith("milvus")]
    structure = resolve(CompiledDefinition(parse(document, "upstream")), {"spec": {}}, POLICY)

    found = PodReading(structure, {"metadata": {"labels": {"app.kubernetes.io/component": "other"}}}).attribution()

    assert structure.leaf("etcd") is not None
    assert found is None
