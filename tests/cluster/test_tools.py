"""Cluster tools are built from pinned Go modules, whole or not at all, and anew when what they come from changes."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.tools.building import Outcome, build, sources
from tests.cluster.tools.table import TOOLS, Tool, UnknownToolError, tool, tools

REPOSITORY = Path(__file__).resolve().parents[2]
GO_MOD = """module tools.example/hello
go 1.26
require greetings.example/hello v1.2.3
replace greetings.example/hello => ./greetings
"""
PROGRAM = 'package main\n\nimport "os"\n\nfunc main() { os.Stdout.WriteString("hello") }\n'

with_go = pytest.mark.skipif(shutil.which("go") is None, reason="no `go` on the PATH")


@pytest.fixture
def hello(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """A tool of one file, in a Go module that needs no network, with a cache of its own."""
    if shutil.which("go"):  # what is already compiled of Go's own library lies where the next variable points, too
        asked = subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True, check=True)
        monkeypatch.setenv("GOCACHE", asked.stdout.strip())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    program = tmp_path / "hello" / "greetings" / "cmd"
    program.mkdir(parents=True)
    (tmp_path / "hello" / "go.mod").write_text(GO_MOD)
    (tmp_path / "hello" / "go.sum").write_text("")
    (program.parent / "go.mod").write_text("module greetings.example/hello\ngo 1.26\n")
    (program / "main.go").write_text(PROGRAM)
    return Tool(name="hello", module="hello", package="greetings.example/hello/cmd", group="test", modules=tmp_path)


def one(tool: Tool, *, budget_seconds: float | None = None) -> Outcome:
    """Outcome of building one tool."""
    (outcome,) = build((tool,), budget_seconds=budget_seconds)
    return outcome


def is_built(tool: Tool) -> bool:
    """Whether it is now."""
    return tool.built


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command as `make` calls it."""
    return subprocess.run(
        [sys.executable, "-m", "tests.cluster.tools", *arguments],
        capture_output=True, text=True, check=False, cwd=REPOSITORY, env=environment,
    )  # fmt: skip


@with_go
@pytest.mark.slow
def test_a_missing_tool_is_built_once(hello: Tool) -> None:
    """The first run builds a program that works, the second finds it there."""
    assert not is_built(hello)

    first = one(hello)

    assert (first.problem, is_built(hello)) == ("", True)
    assert first.seconds > 0
    assert subprocess.run([hello.binary], capture_output=True, check=True).stdout == b"hello"
    assert one(hello).seconds == 0


@with_go
@pytest.mark.slow
def test_another_version_is_built_beside_the_old_one(hello: Tool, tmp_path: Path) -> None:
    """What a go.mod requires decides the folder, so two work trees with different versions don't disturb each other."""
    one(hello)
    old = hello.binary
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "hello", other)
    (other / "go.mod").write_text(GO_MOD.replace("v1.2.3", "v1.3.0"))
    newer = Tool(name="hello", module="other", package=hello.package, group="test", modules=tmp_path)

    assert not is_built(newer)
    one(newer)

    assert is_built(newer)
    assert newer.binary != old
    assert is_built(hello)


@with_go
@pytest.mark.slow
def test_a_tool_whose_go_sum_changed_is_built_again(hello: Tool, tmp_path: Path) -> None:
    """The same version of a tool from other dependencies is another program."""
    one(hello)

    (tmp_path / "hello" / "go.sum").write_text("\n")

    assert not is_built(hello)
    assert one(hello).problem == ""
    assert is_built(hello)


@with_go
@pytest.mark.slow
def test_a_tool_that_does_not_compile_says_what_the_compiler_said(hello: Tool, tmp_path: Path) -> None:
    """The outcome names the problem; nothing half-built is left in the cache."""
    (tmp_path / "hello" / "greetings" / "cmd" / "main.go").write_text("package main\n\nfunc main() { nothing() }\n")

    outcome = one(hello)

    assert "undefined: nothing" in outcome.problem
    assert not is_built(hello)
    assert [path.name for path in hello.folder.parent.iterdir()] == [".lock"]


@with_go
def test_no_build_is_begun_when_the_budget_is_spent(hello: Tool) -> None:
    """A budget of nothing builds nothing and says so."""
    outcome = one(hello, budget_seconds=0)

    assert "budget" in outcome.problem
    assert not is_built(hello)


@with_go
def test_sources_of_a_controller_are_those_it_is_built_from() -> None:
    """The folder of a Go module carries the version that the tool's own go.mod pins."""
    jobset = tool("jobset")

    folder = sources(jobset.module_folder, jobset.go_module)

    assert folder.name.endswith(f"@{jobset.version}")
    assert (folder / "config" / "components" / "crd" / "bases").is_dir()


@pytest.mark.parametrize("each", TOOLS, ids=lambda each: each.name)
def test_every_tool_is_pinned_by_a_go_mod_and_a_go_sum(each: Tool) -> None:
    """Its package is one of the module's tools, its version is stated, and all it is built from has a checksum."""
    assert each.package in (each.module_folder / "go.mod").read_text().split()
    assert each.version.startswith("v")
    assert f"{each.go_module} {each.version} h1:" in (each.module_folder / "go.sum").read_text()


def test_kubernetes_programs_carry_their_version() -> None:
    """A client refuses a server without a version; it is linked in."""
    version = tool("kube-apiserver").version

    assert f"-X k8s.io/component-base/version.gitVersion={version}" in tool("kube-apiserver").build_flags[3]
    assert "gitVersion" not in tool("jobset").build_flags[3]


def test_a_group_means_its_tools_by_importance() -> None:
    """`control-plane` is what has to run for a pod to be made, kubectl included."""
    names = ["kubectl", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "etcd", "kwok"]

    assert [each.name for each in tools(["kwok", "control-plane"])] == names


def test_an_unknown_name_is_told_with_those_that_are_known() -> None:
    """A misspelt tool is an error that helps."""
    with pytest.raises(UnknownToolError, match=r"no tool or group kwock; there are .*kwok"):
        tools(["kwock", "etcd"])


def test_the_command_refuses_an_unknown_name() -> None:
    """Wrong use is exit code 2."""
    ended = command("build", "--require", "kwock", PATH="/nowhere")

    assert ended.returncode == 2
    assert "no tool or group kwock" in ended.stderr


def test_without_go_the_command_fails_only_for_what_is_required(tmp_path: Path) -> None:
    """On a machine without Go, nothing required is no failure; something required is named."""
    environment = {"PATH": "/nowhere", "XDG_CACHE_HOME": str(tmp_path)}

    optional, required = command("build", **environment), command("build", "--require", "kwok", **environment)

    assert (optional.returncode, required.returncode) == (0, 1)
    assert "Go 1.26 or later is needed" in optional.stderr
    assert "required and not built: kwok" in required.stderr


def test_the_list_tells_what_is_built(tmp_path: Path) -> None:
    """With an empty cache every tool is listed as not built."""
    lines = command("list", PATH="/nowhere", XDG_CACHE_HOME=str(tmp_path)).stdout.splitlines()

    assert len(lines) == len(TOOLS)
    assert all(line.endswith("not built") for line in lines)
