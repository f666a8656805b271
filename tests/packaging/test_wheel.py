"""The wheel, as somebody installs it: whole, and at work outside the tree."""

import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
DEFINITIONS = REPOSITORY / "catalog" / "definitions"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the tree with the installed backend."""
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(REPOSITORY)]
    subprocess.run(command, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` folder of a new environment that holds the wheel.

    Dependencies come from this environment by a `.pth` file: quick, and offline. Python follows no `.pth` found in
    that way, so the tree itself, installed here as editable, is out of sight.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin"


def _run(command: list[str], outside: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder that is not the tree; stderr is part of the failure report."""
    return subprocess.run(command, cwd=outside, check=False, capture_output=True, text=True)


def test_wheel_holds_every_definition(wheel: Path) -> None:
    """Each YAML file of the catalogue is in the wheel, and there are some."""
    in_tree = {path.relative_to(REPOSITORY).as_posix() for path in DEFINITIONS.glob("**/*.yaml")}
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = {name for name in archive.namelist() if name.endswith(".yaml")}
    assert in_wheel == in_tree
    assert in_tree


def test_wheel_holds_nothing_but_the_three_packages(wheel: Path) -> None:
    """Neither tests nor tooling are shipped."""
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"webhook", "catalog", "certs"}


def test_installed_code_is_the_wheels(installed: Path, tmp_path: Path) -> None:
    """Outside the tree, Python finds the packages in the new environment."""
    code = "import catalog, certs, webhook; print(catalog.__file__, certs.__file__, webhook.__file__, sep='\\n')"
    ran = _run([str(installed / "python"), "-c", code], tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert all(Path(line).is_relative_to(installed.parent) for line in ran.stdout.splitlines())


@pytest.mark.parametrize("command", ["workload-stamp", "kubectl-workload"])
def test_installed_command_lists_the_packaged_definitions(command: str, installed: Path, tmp_path: Path) -> None:
    """`definitions list` works outside the tree, under both names, and knows JobSet."""
    ran = _run([str(installed / command), "definitions", "list"], tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "JobSet" in ran.stdout


def test_installed_demo_prints_what_the_readme_shows(installed: Path, tmp_path: Path) -> None:
    """The main job runs outside the tree, and the README's table is what it prints."""
    (shown,) = re.findall(r"```text\n(.+?)```", (REPOSITORY / "README.md").read_text(), flags=re.DOTALL)
    ran = _run([str(installed / "workload-stamp"), "demo"], tmp_path)
    assert ran.returncode == 0, ran.stderr
    printed = {tuple(line.split()) for line in ran.stdout.splitlines()}
    assert [line for line in shown.splitlines() if tuple(line.split()) not in printed] == []
