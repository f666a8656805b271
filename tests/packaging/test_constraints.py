"""`constraints.txt` pins what `pyproject.toml` asks for, and all that comes with it."""

import re
import tomllib
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parents[2]
CONSTRAINTS = (REPOSITORY / "constraints.txt").read_text()
PYPROJECT_TEXT = (REPOSITORY / "pyproject.toml").read_text()
PYPROJECT: dict[str, Any] = tomllib.loads(PYPROJECT_TEXT)


def _direct() -> list[Requirement]:
    """What pyproject.toml asks for: to run, for extras, to develop, to build."""
    project = PYPROJECT["project"]
    extras = project["optional-dependencies"].values()
    groups = PYPROJECT["dependency-groups"].values()
    lists = (project["dependencies"], *extras, *groups, PYPROJECT["build-system"]["requires"])
    return [Requirement(text) for text in dict.fromkeys(chain.from_iterable(lists))]


def _pinned() -> dict[str, str]:
    """Each pinned package's name and version."""
    pins = re.findall(r"^([\w.-]+)==([^\s;\\]+)", CONSTRAINTS, flags=re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


def _entries() -> list[str]:
    """The file, a string for each package with its hashes; comments left out."""
    lines = [line for line in CONSTRAINTS.splitlines() if not line.lstrip().startswith("#")]
    return re.split(r"\n(?=\S)", "\n".join(lines))


@pytest.mark.parametrize("requirement", _direct(), ids=str)
def test_every_direct_dependency_is_pinned_within_its_bound(requirement: Requirement) -> None:
    """What pyproject.toml asks for is pinned at a version that it allows."""
    assert requirement.specifier.contains(_pinned()[canonicalize_name(requirement.name)])


def test_what_comes_with_a_dependency_is_pinned_too() -> None:
    """Every requirement of a pinned and installed package is pinned itself, so that setup resolves nothing."""
    pinned = _pinned()
    missing = set()
    for name in pinned:
        try:
            requirements = [Requirement(text) for text in metadata.requires(name) or ()]
        except metadata.PackageNotFoundError:
            continue  # meant for another platform
        needed = {
            canonicalize_name(r.name) for r in requirements if r.marker is None or r.marker.evaluate({"extra": ""})
        }
        missing |= {f"{each}, needed by {name}" for each in needed - set(pinned)}
    assert not missing


def test_every_pin_carries_hashes_and_nothing_else() -> None:
    """Each entry is a version, perhaps a platform, and hashes: no addresses, no options, no files."""
    entry = re.compile(r"[\w.-]+==[\w.+!-]+( ; [^\\]+?)?( \\\n    --hash=sha256:[0-9a-f]{64})+\n?")
    assert [each for each in _entries() if not entry.fullmatch(each)] == []


def test_every_dependency_says_why_we_pay_for_it() -> None:
    """Beside each dependency in pyproject.toml stands a reason."""
    named = [f'"{requirement}"' for requirement in PYPROJECT["project"]["dependencies"]]
    named += [f'"{requirement}"' for requirement in PYPROJECT["dependency-groups"]["dev"]]
    silent = [each for each in named if not re.search(re.escape(each) + r", +# \w", PYPROJECT_TEXT)]
    assert silent == []
