"""Custom resource definitions of projects whose objects our manifests contain, without their controllers.

    install_definitions(control_plane, "cert-manager")

Upstream's own files, from Go modules pinned like the tools' (`tools/*/go.mod`). Nothing acts on such objects.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.cluster.control_plane import ControlPlane
from tests.cluster.manifests import apply_files, manifests
from tests.cluster.tools.building import sources
from tests.cluster.tools.table import HERE


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a project keeps its definitions: the Go module, and patterns of files in it."""

    go_module: str
    patterns: tuple[str, ...]


SOURCES: Mapping[str, Source] = {
    "cert-manager": Source(go_module="github.com/cert-manager/cert-manager", patterns=("deploy/crds/*.yaml",)),
    "prometheus-operator": Source(
        go_module="github.com/prometheus-operator/prometheus-operator",
        patterns=("example/prometheus-operator-crd/*.yaml",),
    ),
}


def install_definitions(control_plane: ControlPlane, name: str) -> None:
    """Apply a project's definitions and wait until they are served; again is harmless.

    GoMissingError or ModuleMissingError when the files can't be had.
    """
    source = SOURCES[name]
    apply_files(control_plane, manifests(sources(HERE / name, source.go_module), *source.patterns))
