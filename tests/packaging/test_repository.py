"""What holds for the repository as a whole: nothing local in it, documents and configuration that agree."""

import re
import shutil
import socket
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PYPROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
MAKEFILE = (REPOSITORY / "Makefile").read_text()
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")

# Written in halves, so that this file does not contain them.
REGISTRIES = (
    "pypi" + ".org",
    "python" + "hosted.org",
    "proxy." + "golang.org",
    "sum." + "golang.org",
    "registry." + "npmjs.org",
    "static." + "crates.io",
    "deb." + "debian.org",
)


def _tracked() -> list[Path]:
    """The files in git's index that exist here; skips where this is no git work tree."""
    git = shutil.which("git")
    if git is None or not (REPOSITORY / ".git").exists():
        pytest.skip("not a git work tree")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
    return [path for name in listed.split("\0") if name and (path := REPOSITORY / name).is_file()]


def _local() -> re.Pattern[str]:
    """What belongs to one machine or workplace: its folders, its name, the registries it installs from."""
    words = [rf"(?<![\w.-])/{folder}/" for folder in ("work", "root", "home")]
    words += [re.escape(registry) for registry in REGISTRIES]
    host = socket.gethostname()
    if re.search(r"\d", host) and len(host) >= 12:  # made up by a machine, no word of ours
        words.append(rf"\b{re.escape(host)}\b")
    return re.compile("|".join(words))


def test_nothing_tracked_belongs_to_one_machine() -> None:
    """No tracked file names this machine, its folders or a registry's address."""
    local = _local()
    found = []
    for path in _tracked():
        text = path.read_text(errors="replace")
        if hit := local.search(text):
            line = text.count("\n", 0, hit.start()) + 1
            found.append(f"{path.relative_to(REPOSITORY)}:{line}: {hit.group()}")
    assert found == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documents_name_targets_that_exist(document: str) -> None:
    """Every `make` command in a document is a target of the Makefile."""
    asked = set(re.findall(r"^make ([a-z-]+)|`make ([a-z-]+)", (REPOSITORY / document).read_text(), flags=re.MULTILINE))
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, flags=re.MULTILINE))
    assert {first or second for first, second in asked} <= targets


@pytest.mark.parametrize("document", DOCUMENTS)
def test_documents_link_to_files_that_exist(document: str) -> None:
    """Every relative link in a document leads somewhere."""
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", (REPOSITORY / document).read_text())
    assert [link for link in links if not (REPOSITORY / link).exists()] == []


def test_every_make_target_is_explained_and_phony() -> None:
    """`make help` lists every target that a person may type, and none is mistaken for a file."""
    typed = set(re.findall(r"^([a-z-]+):", MAKEFILE, flags=re.MULTILINE))
    explained = set(re.findall(r"^([a-z-]+):.*## ", MAKEFILE, flags=re.MULTILINE))
    phony = set(re.findall(r"^\.PHONY: ([a-z-]+)$", MAKEFILE, flags=re.MULTILINE))
    assert typed == explained == phony


def test_shell_is_the_same_for_imports_and_coverage() -> None:
    """A module is either core, with its contract and its floor on coverage, or shell, without both."""
    contracts = PYPROJECT["tool"]["importlinter"]["contracts"]
    (core,) = (each for each in contracts if each["name"].startswith("The core does no I/O"))
    importers = {line.removesuffix(" -> *").removesuffix(".**") for line in core["ignore_imports"]}
    omitted = {
        path.removesuffix(".py").removesuffix("/*").replace("/", ".")
        for path in PYPROJECT["tool"]["coverage"]["report"]["omit"]
    }
    assert importers == omitted


def test_tools_aim_at_the_oldest_python_we_promise() -> None:
    """Ruff and mypy judge by the version that `requires-python` names."""
    oldest = PYPROJECT["project"]["requires-python"].removeprefix(">=")
    assert PYPROJECT["tool"]["mypy"]["python_version"] == oldest
    assert PYPROJECT["tool"]["ruff"]["target-version"] == "py" + oldest.replace(".", "")
