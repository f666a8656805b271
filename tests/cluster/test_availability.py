"""What a person without the built tools sees: a reason, not an error; in CI an error, not silence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
ONE_TEST = "tests/cluster/test_control_plane.py::test_eight_nodes_offer_eight_gpus_each"


def run(cache: Path, **environment: str) -> str:
    """What pytest prints for one cluster test, with another folder of tools."""
    outside = {name: value for name, value in os.environ.items() if name != "CI" and not name.startswith("PYTEST")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", ONE_TEST],
        capture_output=True, text=True, check=False, cwd=REPOSITORY,
        env={**outside, "XDG_CACHE_HOME": str(cache), **environment},
    ).stdout  # fmt: skip


@pytest.mark.slow
def test_without_the_tools_a_cluster_test_is_skipped_with_the_reason(tmp_path: Path) -> None:
    """The summary says which programs are missing and what builds them."""
    output = run(tmp_path)

    assert "1 skipped" in output
    assert "not built: kubectl, kube-apiserver" in output
    assert "`make cluster-tools` builds them" in output
    assert "lws v0" in output  # one of the controllers that a separate section names


@pytest.mark.slow
def test_in_ci_a_cluster_test_without_the_tools_fails(tmp_path: Path) -> None:
    """With CI=true a control plane that was not built is a failure that says the same."""
    output = run(tmp_path, CI="true")

    assert "1 error" in output
    assert "(required, as CI=true)" in output
