"""Finds YAML files in a folder and applies them; definitions are waited for. Knows nothing of whose they are."""

from functools import partial
from pathlib import Path

from tests.cluster.api_client import api_path
from tests.cluster.control_plane import ControlPlane
from tests.cluster.waiting import eventually


def manifests(folder: Path, *patterns: str) -> list[Path]:
    """Files under the folder, kustomizations aside; every pattern must find some."""
    paths = []
    for pattern in patterns:
        found = sorted(path for path in folder.glob(pattern) if path.name != "kustomization.yaml")
        assert found, f"no file {pattern} in {folder}"
        paths += found
    return paths


def apply_files(control_plane: ControlPlane, files: list[Path]) -> None:
    """Apply manifests, and wait until the definitions among them are served."""
    names = [word for file in files for word in ("-f", str(file))]
    applied = control_plane.kubectl("apply", "--server-side", "--force-conflicts", "-o", "name", *names).split()
    definitions = [name.partition("/")[2] for name in applied if name.startswith("customresourcedefinition")]
    for name in definitions:
        path = api_path("apiextensions.k8s.io/v1", "customresourcedefinitions", name=name)
        eventually(partial(_is_served, control_plane, path), what=f"{name} to be served")


def _is_served(control_plane: ControlPlane, path: str) -> bool:
    conditions = control_plane.client.get(path).get("status", {}).get("conditions") or []  # null at first
    return any(condition["type"] == "Established" and condition["status"] == "True" for condition in conditions)
