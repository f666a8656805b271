"""What is generated from the catalogue is current, covers it, and fits the frameworks' own definitions."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from catalog.definition import RootStamps
from catalog.parse.fields import Object, objects
from tests.manifests.documents import named
from tests.manifests.generated import (
    AGGREGATE_LABEL,
    definition_crd,
    described_kinds_role,
    generated,
    packaged_definitions,
    plural,
)

CRD_NAMES = re.compile(r"^  group: (\S+)\n  names:\n((?:   .*\n)+)", re.MULTILINE)


@pytest.mark.parametrize("path", generated(), ids=lambda path: path.name)
def test_generated_files_are_current(path: Path) -> None:
    """A change of the language or of a packaged definition reaches the manifests."""
    assert path.read_text() == generated()[path], "run `python -m tests.manifests.generated`"


def _allowed() -> dict[tuple[str, str], set[str]]:
    """Verbs by API group and resource, of the generated role."""
    return {
        (group, resource): set(rule["verbs"])
        for rule in described_kinds_role()["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def test_every_described_kind_can_be_read_watched_and_mended() -> None:
    """No packaged definition's kind lacks a permission; pods are listed, not watched."""
    allowed = _allowed()
    for definition in packaged_definitions():
        kind = definition.describes
        needed = {"get", "list", "patch"} if kind.kind == "Pod" else {"get", "list", "watch"}
        if definition.root_stamps in (RootStamps.FULL, RootStamps.ANNOTATIONS):
            needed |= {"patch"}
        assert needed <= allowed[kind.group, plural(kind.kind)], kind


def test_what_is_written_at_creation_only_may_not_be_patched() -> None:
    """Admission needs no right; upkeep does not touch the objects of these kinds, and may not."""
    later = {
        (definition.describes.group, plural(definition.describes.kind))
        for definition in packaged_definitions()
        if definition.root_stamps in (RootStamps.FULL, RootStamps.ANNOTATIONS)
    }
    assert {key for key, verbs in _allowed().items() if "patch" in verbs} == later | {("", "pods")}


def test_every_kind_between_an_object_and_its_pods_can_be_read() -> None:
    """What a definition names as a child kind is on the way from a pod to its workload."""
    allowed = _allowed()
    for definition in packaged_definitions():
        children = [child.kind for child in definition.children if child.kind is not None]
        for kind in (*definition.additional_child_kinds, *children):
            assert "get" in allowed[kind.group, plural(kind.kind)], kind


def test_nothing_is_allowed_that_no_definition_names() -> None:
    """A kind that leaves the catalogue leaves the role."""
    named_kinds = {("", "pods")}
    for definition in packaged_definitions():
        children = [child.kind for child in definition.children if child.kind is not None]
        for kind in (definition.describes, *definition.additional_child_kinds, *children):
            named_kinds.add((kind.group, plural(kind.kind)))
    assert _allowed().keys() == named_kinds


def test_the_role_is_aggregated_to_the_webhooks() -> None:
    """Its label is the one that the webhook's ClusterRole selects."""
    (selector,) = named("ClusterRole", "workload-stamp")["aggregationRule"]["clusterRoleSelectors"]
    assert selector["matchLabels"] == {AGGREGATE_LABEL: "true"}
    assert described_kinds_role()["metadata"]["labels"] == selector["matchLabels"]


@pytest.mark.shared
def test_plurals_are_the_frameworks_own(shared: Path) -> None:
    """Each described kind whose CRD is at hand is called there as in our role."""
    own = {}
    for file in sorted(shared.glob("frameworks/*/crds/*.yaml")):
        for group, names in CRD_NAMES.findall(file.read_text()):  # parsing megabytes of schemas would take a minute
            words = yaml.safe_load(names)
            own[group, words["kind"]] = words["plural"]
    assert len(own) > 50
    for definition in packaged_definitions():
        children = [child.kind for child in definition.children if child.kind is not None]
        for kind in (definition.describes, *definition.additional_child_kinds, *children):
            assert plural(kind.kind) == own.get((kind.group, kind.kind), plural(kind.kind)), kind


def _schema() -> dict[str, Any]:
    schema: dict[str, Any] = definition_crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def _fields(schema: Any, *, path: str = "") -> list[tuple[str, Any]]:
    """Every field below a schema, as path and schema."""
    found = []
    for name, field in schema.get("properties", {}).items():
        found.append((f"{path}.{name}", field))
        found += _fields(field, path=f"{path}.{name}")
    if "items" in schema:
        found += _fields(schema["items"], path=f"{path}[]")
    return found


def test_every_field_of_the_language_is_in_the_schema_and_described() -> None:
    """`kubectl explain` tells of each field what it is."""
    fields = _fields(_schema()["properties"]["spec"])
    (spec,) = (shape for shape in objects() if shape.name == "spec")
    assert len(fields) == _count(spec)
    assert [path for path, field in fields if not field.get("description", "").endswith(".")] == []


def _count(shape: Object) -> int:
    return sum(len(each.fields) for each in objects(shape))


def test_the_schema_refuses_no_definition() -> None:
    """A definition with faults is stored, so that its status can name them all: nothing required, nothing pruned."""
    for path, field in [("", _schema()), (".spec", _schema()["properties"]["spec"]), *_fields(_schema())]:
        if path.startswith(".status") or path in (".apiVersion", ".kind", ".metadata"):
            continue
        assert not field.keys() & {"required", "pattern", "enum", "maxLength", "maxItems", "minItems"}, path
        assert field.get("x-kubernetes-preserve-unknown-fields") or field["type"] == "array", path
        assert field.get("nullable") or "type" not in field or path == "", path
