"""What the commands that need no cluster share: the catalogue, the policy, documents from files, isolation."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from catalog import load
from catalog.definition import Definition, JsonObject
from catalog.expressions import IsolatedRequest, Outcome
from catalog.library import Catalog, CompiledDefinition
from catalog.resources import AcceleratorPolicy, PolicyError
from catalog.worker import ExpressionWorker
from webhook.cli.failures import InputProblems
from webhook.stamps import Policy

ISOLATED_SECONDS = 2.0
"""Seconds that an expression may take here: a person waits longer than an admission."""

STDIN = "-"

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Workbench:
    """The catalogue and policy that a command works with."""

    catalog: Catalog
    policy: Policy
    _worker: ExpressionWorker

    def evaluate(self, request: IsolatedRequest) -> Mapping[str, Outcome]:
        """Evaluate expressions in their own process, waiting for the outcome."""
        return self._worker.evaluate_blocking(request, ISOLATED_SECONDS)

    @classmethod
    def open(cls, definitions: Sequence[Path], prefix: str, gpu_weights: str | None) -> "Workbench":
        """The packaged definitions and those of files and folders. Raises InputProblems with every problem."""
        return cls(catalog_with(definitions), policy_of(prefix, gpu_weights), ExpressionWorker())


def catalog_with(definitions: Sequence[Path]) -> Catalog:
    """The packaged catalogue, and before it what the given files and folders define."""
    packaged, problems = load.packaged()
    given: list[Definition] = []
    for path in definitions:
        found, faults = load.directory(path) if path.is_dir() else load.file(path)
        given.extend(found)
        problems = (*problems, *faults)
    if problems:
        raise InputProblems(tuple(str(problem) for problem in problems))
    return Catalog.of([CompiledDefinition(each) for each in packaged], [CompiledDefinition(each) for each in given])


def policy_of(prefix: str, gpu_weights: str | None) -> Policy:
    """The stamping policy of the flags."""
    try:
        accelerators = AcceleratorPolicy.parse(gpu_weights) if gpu_weights else AcceleratorPolicy()
    except PolicyError as error:
        raise InputProblems(tuple(f"--gpu-weights: {problem}" for problem in error.problems), exit_code=2) from None
    return Policy(prefix=prefix, accelerators=accelerators)


def workbench_options(command: Command) -> Command:
    """Give a command the options of a workbench, and the workbench itself as its first argument."""

    @wraps(command)
    def with_workbench(
        *arguments: Any, definitions: tuple[Path, ...], prefix: str, gpu_weights: str | None, **keywords: Any
    ) -> Any:
        return command(Workbench.open(definitions, prefix, gpu_weights), *arguments, **keywords)

    for option in (
        click.option("--gpu-weights", metavar="WEIGHTS", help="What counts as how many GPUs: resource=weight,…"),
        click.option("--prefix", default="workload-stamp.io", show_default=True, help="Prefix of the keys."),
        click.option(
            "--definitions",
            "-d",
            multiple=True,
            type=click.Path(exists=True, path_type=Path),
            metavar="PATH",
            help="Further definitions, a file or a folder; they go before packaged ones.",
        ),
    ):
        with_workbench = option(with_workbench)
    return with_workbench  # type: ignore[return-value]


def read_documents(paths: Sequence[str]) -> list[tuple[str, JsonObject]]:
    """Every object in the files (`-` is standard input), Lists taken apart, each with where it stands.

    Raises InputProblems for what can't be read and for documents that are no objects.
    """
    found: list[tuple[str, JsonObject]] = []
    problems: list[str] = []
    for path in paths:
        documents, faults = _read(path)
        problems.extend(str(fault) for fault in faults)
        for position, document in enumerate(documents):
            where = f"{path}[{position}]" if len(documents) > 1 else path
            obj = document.value
            if not isinstance(obj, dict):
                problems.append(f"{where}: is no object")
            elif not isinstance(obj.get("apiVersion"), str) or not isinstance(obj.get("kind"), str):
                problems.append(f"{where}: has no apiVersion or no kind")
            else:
                found.append((where, obj))
    if problems:
        raise InputProblems(tuple(problems))
    return found


def _read(path: str) -> load.Documents:
    if path == STDIN:
        return load.documents_of_stream(sys.stdin.buffer, "standard input")
    return load.documents_of_file(Path(path))
