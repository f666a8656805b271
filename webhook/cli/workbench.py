"""What the commands that need no cluster share: the catalogue, the policy, and expressions evaluated apart."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from catalog import load
from catalog.definition import Definition
from catalog.expressions import Failure, IsolatedRequest, Outcome
from catalog.library import Catalog, CompiledDefinition
from catalog.worker import ExpressionWorker, Quarantine
from webhook.cli.failures import InputProblems
from webhook.options import subdomain
from webhook.settings import Settings, SettingsError
from webhook.stamps import Policy

ISOLATED_SECONDS = 2.0
"""Seconds that an expression may take here: a person waits longer than an admission."""

DEFAULTS = Settings()

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Workbench:
    """The catalogue and policy that a command works with."""

    catalog: Catalog
    policy: Policy
    worker: ExpressionWorker
    quarantine: Quarantine = field(default_factory=Quarantine)

    def evaluate(self, request: IsolatedRequest) -> Mapping[str, Outcome]:
        """Evaluate expressions in their own process, waiting for the outcome; not again when one has overrun."""
        known = self.quarantine.reason(request.sources)
        if known is not None:
            return dict.fromkeys(request.sources, Failure(f"not evaluated again: {known}"))
        outcomes = self.worker.evaluate_blocking(request, ISOLATED_SECONDS)
        self.quarantine.observe(request.sources, outcomes.values())
        return outcomes


def catalog_with(definitions: Sequence[Path]) -> Catalog:
    """The packaged definitions, and before them what the given files and folders define.

    Raises InputProblems with every problem.
    """
    given: list[Definition] = []
    problems: list[str] = []
    for path in definitions:
        found, faults = load.directory(path) if path.is_dir() else load.file(path)
        given.extend(found)
        problems.extend(str(fault) for fault in faults)
    if problems:
        raise InputProblems(tuple(problems))
    return Catalog.of(_packaged(), [CompiledDefinition(each) for each in given])


@cache
def _packaged() -> tuple[CompiledDefinition, ...]:
    """The packaged definitions. Raises InputProblems when the installation is damaged."""
    definitions, problems = load.packaged()
    if problems:
        raise InputProblems(tuple(str(problem) for problem in problems))
    return tuple(CompiledDefinition(each) for each in definitions)


def policy_of(prefix: str, gpu_weights: str | None, device_class_weights: str | None = None) -> Policy:
    """The stamping policy of the flags, read as `serve` reads them. Raises InputProblems (wrong use)."""
    flags = {"prefix": prefix, "gpu_weights": gpu_weights, "device_class_weights": device_class_weights}
    try:
        settings = Settings.parse(flags, {})
    except SettingsError as error:
        raise InputProblems(error.problems, exit_code=2) from None
    return Policy(prefix=settings.prefix, accelerators=settings.accelerator_policy)


definitions_option = click.option(
    "-d",
    "--definitions",
    multiple=True,
    type=click.Path(exists=True, path_type=Path),
    metavar="PATH",
    help="Further definitions, a file or a folder; they go before packaged ones. May be repeated.",
)


def _namespace(_: click.Context, __: click.Parameter, value: str) -> str:
    try:
        return subdomain(value)
    except ValueError:
        raise click.BadParameter(f"found {value!r}, expected the name of a namespace such as team-a") from None


namespace_option = click.option(
    "-n",
    "--namespace",
    default="default",
    show_default=True,
    metavar="NAME",
    callback=_namespace,
    help="Namespace of objects that name none, as with kubectl.",
)


def workbench_options(command: Command) -> Command:
    """Give a command the options of a workbench, and the workbench itself as its first argument."""

    @wraps(command)
    def with_workbench(
        *arguments: Any,
        definitions: tuple[Path, ...],
        prefix: str,
        gpu_weights: str | None,
        device_class_weights: str | None,
        **keywords: Any,
    ) -> Any:
        policy = policy_of(prefix, gpu_weights, device_class_weights)
        worker = ExpressionWorker()
        try:
            workbench = Workbench(catalog=catalog_with(definitions), policy=policy, worker=worker)
            return command(workbench, *arguments, **keywords)
        finally:
            worker.close()

    for option in reversed(
        (
            definitions_option,
            click.option(
                "--prefix",
                default=DEFAULTS.prefix,
                show_default=True,
                metavar="DOMAIN",
                envvar="WORKLOAD_STAMP_PREFIX",
                help="Prefix of the stamps' keys.",
            ),
            click.option(
                "--gpu-weights",
                metavar="PATTERN=WEIGHT,…",
                envvar="WORKLOAD_STAMP_GPU_WEIGHTS",
                help="What counts as how many GPUs [default: as `serve`].",
            ),
            click.option(
                "--device-class-weights",
                metavar="PATTERN=WEIGHT,…",
                envvar="WORKLOAD_STAMP_DEVICE_CLASS_WEIGHTS",
                help="The same for device classes of Dynamic Resource Allocation.",
            ),
        )
    ):
        with_workbench = option(with_workbench)
    return with_workbench  # type: ignore[return-value]
