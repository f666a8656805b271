"""What all tests share: hypothesis's settings, time limits by marker, the shared folder. No fixtures of one package."""

import os
from pathlib import Path

import hypothesis
import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"
SECONDS_ALLOWED = {"cluster": 600, "slow": 300}

# A deadline per example measures the machine, not the code; pytest-timeout catches what hangs.
hypothesis.settings.register_profile("here", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "here")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give marked tests the time they need, and skip what reads the shared folder where there is none."""
    without_shared = pytest.mark.skip(reason=f"no folder {SHARED.name}/ beside the repository")
    for item in items:
        if item.get_closest_marker("timeout") is None:
            allowed = [seconds for marker, seconds in SECONDS_ALLOWED.items() if item.get_closest_marker(marker)]
            if allowed:
                item.add_marker(pytest.mark.timeout(max(allowed)))
        if item.get_closest_marker("shared") and not SHARED.is_dir():
            item.add_marker(without_shared)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The project's shared folder; what uses it is marked `shared` and so skipped where the folder is missing."""
    return SHARED
