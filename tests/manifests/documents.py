"""Reads the manifests: every YAML document of the tree, and what kubectl makes of a kustomization. Judges nothing."""

import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.tools.table import tool
from tests.manifests.generated import MANIFESTS

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the parser in C, where it is built, is ten times as fast

Documents = tuple[tuple[Path, Any], ...]

KUSTOMIZATIONS = tuple(
    str(path.parent.relative_to(MANIFESTS))
    for path in sorted(MANIFESTS.rglob("kustomization.yaml"))
    if "kind: Component" not in path.read_text()
)
"""Every folder that can be built and applied by itself, relative to `manifests/`."""


@cache
def every_document() -> Documents:
    """Every object in the tree with its file, read once; parts that only kustomize understands aside."""
    return tuple(_documents())


def _documents() -> Iterator[tuple[Path, Any]]:
    for path in sorted(MANIFESTS.rglob("*.yaml")):
        if path.name != "kustomization.yaml":
            for document in yaml.load_all(path.read_text(), Loader=LOADER):
                yield path, document


def of_kind(kind: str) -> list[Any]:
    """The objects of a kind, patches among them."""
    return [document for _, document in every_document() if document["kind"] == kind]


def named(kind: str, name: str, folder: str = "base") -> Any:
    """The one object of that kind and name under the folder."""
    (found,) = (
        document
        for path, document in every_document()
        if path.is_relative_to(MANIFESTS / folder) and (document["kind"], document["metadata"]["name"]) == (kind, name)
    )
    return found


@cache
def built(kustomization: str) -> list[Any]:
    """What `kubectl kustomize` makes of a folder; the test is skipped where kubectl is not built."""
    kubectl = tool("kubectl")
    if not kubectl.built:
        pytest.skip("kubectl is not built; `make cluster-tools` builds it")
    command = [str(kubectl.binary), "kustomize", "."]
    folder = MANIFESTS / kustomization
    output = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    assert output.stderr == ""
    return list(yaml.load_all(output.stdout, Loader=LOADER))
