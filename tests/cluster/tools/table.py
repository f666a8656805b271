"""Which programs there are, from which Go module each is built, and where the built one lies.

A version is read from the `go.mod` beside the tool, so it is written down once. Runs no program: `building` does.
"""

import hashlib
import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
CONTROL_PLANE = "control-plane"
CONTROLLERS = "controllers"

# Without optimisation the compiler is much quicker; for a controller that makes a few pods its speed does not matter.
UNOPTIMISED = ("-gcflags", "all=-N -l")

REQUIREMENT = re.compile(r"^(?:require)?\s+(?P<path>[\w./~-]+)\s+(?P<version>v\S+)", re.MULTILINE)


class UnknownToolError(ValueError):
    """A name that is neither a tool's nor a group's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One program: `name` is the file's, `module` the folder with its go.mod, `package` what is compiled."""

    name: str
    module: str
    package: str
    group: str
    flags: tuple[str, ...] = ()
    stamped: bool = False  # Kubernetes' own: clients refuse a server that does not know its version
    modules: Path = HERE  # folder of the modules' folders

    @property
    def module_folder(self) -> Path:
        """Folder of the go.mod that pins the tool and all it is built from."""
        return self.modules / self.module

    @property
    def version(self) -> str:
        """Version of the Go module that holds the package, as its go.mod requires it."""
        return versions(self.module_folder)[self.go_module]

    @property
    def go_module(self) -> str:
        """Path of the Go module that holds the package: the longest required one that the package begins with."""
        required = (path for path in versions(self.module_folder) if f"{self.package}/".startswith(f"{path}/"))
        return max(required, key=len)

    @property
    def build_flags(self) -> tuple[str, ...]:
        """What `go build` is told, but for the output and the package."""
        linker = "-s -w"
        if self.stamped:
            major, minor, _ = self.version.removeprefix("v").split(".", 2)
            stamp = {"gitVersion": self.version, "gitMajor": major, "gitMinor": minor}
            linker += "".join(f" -X k8s.io/component-base/version.{key}={value}" for key, value in stamp.items())
        return ("-trimpath", "-buildvcs=false", "-ldflags", linker, *self.flags)

    @property
    def digest(self) -> str:
        """SHA-256 in hex over everything of ours that decides what is built; a change of it means to build anew."""
        parts = [(self.module_folder / name).read_bytes() for name in ("go.mod", "go.sum")]
        return hashlib.sha256(b"\0".join([*parts, repr(self.build_flags).encode()])).hexdigest()

    @property
    def folder(self) -> Path:
        """Where the built program and its digest lie."""
        return cache_folder() / f"{self.name}-{self.version}"

    @property
    def binary(self) -> Path:
        """The built program; it may not be there yet."""
        return self.folder / self.name

    @property
    def digest_file(self) -> Path:
        """Beside the program: the digest it was built with."""
        return self.folder / "built-from.sha256"

    @property
    def built(self) -> bool:
        """Whether the program is there and was built from what the tree says now."""
        if not self.binary.is_file() or not self.digest_file.is_file():
            return False
        return self.digest_file.read_text().strip() == self.digest


@cache
def versions(module_folder: Path) -> dict[str, str]:
    """Module path to version, of every requirement in the folder's go.mod."""
    return {found["path"]: found["version"] for found in REQUIREMENT.finditer((module_folder / "go.mod").read_text())}


def cache_folder() -> Path:
    """Folder that holds every built tool, shared by all work trees of one user."""
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(root).expanduser() / "workload-stamp" / "tools"


def _kubernetes(name: str) -> Tool:
    package = f"k8s.io/kubernetes/cmd/{name}"
    return Tool(name=name, module="kubernetes", package=package, group=CONTROL_PLANE, stamped=True)


def _controller(name: str, package: str) -> Tool:
    return Tool(name=name, module=name, package=package, group=CONTROLLERS, flags=UNOPTIMISED)


# By importance: what a time budget does not reach is what is missed least.
TOOLS = (
    _kubernetes("kubectl"),
    _kubernetes("kube-apiserver"),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kube-scheduler"),
    Tool(name="etcd", module="etcd", package="go.etcd.io/etcd/server/v3", group=CONTROL_PLANE),
    Tool(name="kwok", module="kwok", package="sigs.k8s.io/kwok/cmd/kwok", group="nodes"),
    _controller("jobset", "sigs.k8s.io/jobset"),
    _controller("lws", "sigs.k8s.io/lws/cmd"),
    _controller("training-operator", "github.com/kubeflow/training-operator/cmd/training-operator.v1"),
    _controller("mpi-operator", "github.com/kubeflow/mpi-operator/cmd/mpi-operator"),
    _controller("ray-operator", "github.com/ray-project/kuberay/ray-operator"),
    _controller("trainer", "github.com/kubeflow/trainer/v2/cmd/trainer-controller-manager"),
    _controller("knative", "knative.dev/serving/cmd/controller"),
)


def tool(name: str) -> Tool:
    """The tool of that name; UnknownToolError when there is none."""
    return next(iter(tools([name])))


def tools(names: list[str]) -> tuple[Tool, ...]:
    """The tools that names of tools and groups mean, by importance; UnknownToolError tells every name that is none."""
    known = {word for tool in TOOLS for word in (tool.name, tool.group)}
    unknown = sorted(set(names) - known)
    if unknown:
        raise UnknownToolError(f"no tool or group {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    return tuple(tool for tool in TOOLS if {tool.name, tool.group} & set(names))
