"""`workload-stamp uninstall`: leaves a cluster as it was before, in an order in which nobody is hindered."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import Progress, TextColumn

from catalog.definition import Definition, JsonObject
from catalog.library import Catalog, CompiledDefinition
from catalog.parse import DefinitionError, parse
from webhook.cli.definitions_folder import packaged_definitions
from webhook.cli.failures import InputProblems
from webhook.cluster.client import Access, ApiError, ApiServer, ConnectionFault
from webhook.cluster.discovery import Discovery
from webhook.cluster.removal import Installed, Part, Removal
from webhook.cluster.resources import COLLECTIONS
from webhook.cluster.stamp_removal import StampRemoval
from webhook.options import subdomain
from webhook.settings import Settings

REPLICAS_GONE_WITHIN = 90.0
"""Seconds that replicas are waited for: twice what one takes to leave, and some."""

NAMESPACE_GONE_WITHIN = 120.0
"""Seconds that the namespace is waited for."""

POLICIES_FORGOTTEN_AFTER = 3.0
"""Seconds until the API server no longer refuses what a deleted policy refused."""

DEFAULTS = Settings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """What is asked for on the command line."""

    kubeconfig: Path | None
    context: str | None
    namespace: str
    lease_name: str
    prefix: str
    remove_stamps: bool
    restart_pods: bool
    remove_definitions: bool
    rate: float
    dry_run: bool
    yes: bool


def _prefix(_: click.Context, __: click.Parameter, value: str) -> str:
    try:
        return subdomain(value)
    except ValueError:
        raise click.BadParameter(f"found {value!r}, expected a DNS subdomain such as workload-stamp.io") from None


@click.command("uninstall")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="How to reach the cluster [default: kubectl's].")
@click.option("--context", help="The kubeconfig's context [default: the current one].")
@click.option("-n", "--namespace", default=DEFAULTS.namespace, show_default=True, help="The webhook's namespace.")
@click.option("--lease-name", default=DEFAULTS.lease_name, show_default=True, help="The Lease of its leader.")
@click.option("--prefix", default=DEFAULTS.prefix, show_default=True, callback=_prefix, help="Prefix of the stamps.")
@click.option("--remove-stamps", is_flag=True, help="Remove the stamps from pods and workloads as well.")
@click.option(
    "--restart-pods",
    is_flag=True,
    help="With --remove-stamps: also from workloads whose controller may start their pods anew when a label changes.",
)
@click.option("--remove-definitions", is_flag=True, help="Remove WorkloadDefinitions that people have written, too.")
@click.option("--rate", type=click.FloatRange(0.1, 10_000), default=50.0, show_default=True, help="Objects a second.")
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("-y", "--yes", is_flag=True, help="Don't ask.")
def command(**options: Any) -> None:
    """Remove the webhook: its registration first, so that no request waits for it, then everything else.

    Stamps stay on the objects unless their removal is asked for. Exit code 1 when something could not be removed.
    """
    wishes = Wishes(**options)
    try:
        problems = asyncio.run(_uninstall(wishes))
    except ConnectionFault as fault:
        raise InputProblems((str(fault),), exit_code=2) from None
    except ApiError as error:
        raise InputProblems((str(error),)) from None
    if problems:
        raise InputProblems(tuple(problems))


async def _uninstall(wishes: Wishes) -> list[str]:
    """Everything, in order; what could not be removed."""
    access = Access(kubeconfig=wishes.kubeconfig, context=wishes.context)
    async with ApiServer.connect(access) as server:
        discovery = Discovery(server)
        await discovery.refresh()
        removal = Removal(server, discovery, namespace=wishes.namespace, lease=wishes.lease_name)
        installed = await removal.installed(definitions=wishes.remove_definitions)
        catalog = await _catalog(server) if wishes.remove_stamps else Catalog.of()
        _show(installed, wishes)
        if not wishes.dry_run and not wishes.yes:
            click.confirm("Go on?", abort=True, err=True)
        steps = _Steps(removal, dry_run=wishes.dry_run)
        await steps.silence(installed)
        if wishes.remove_stamps:
            steps.problems += await _remove_stamps(server, discovery, catalog, wishes)
        await steps.delete(installed.rest)
        await steps.delete_what_came_back()
        await steps.wait_for_namespace()
    return steps.problems


class _Steps:
    """Deletes and tells; what fails is noted and hinders nothing else."""

    def __init__(self, removal: Removal, *, dry_run: bool) -> None:
        self._removal = removal
        self._dry_run = dry_run
        self._deleted: list[Part] = []
        self.problems: list[str] = []

    async def silence(self, installed: Installed) -> None:
        """See to it that nothing is stamped any more: the registration, then those who could make it again."""
        if installed.registration is not None:
            await self.delete((installed.registration,))
        await self.delete(installed.policies)
        await self.delete(installed.deployments)
        if any(part in self._deleted for part in installed.policies):
            await asyncio.sleep(POLICIES_FORGOTTEN_AFTER)
        deleted = any(part in self._deleted for part in installed.deployments)
        if deleted and not await self._removal.replicas_gone(REPLICAS_GONE_WITHIN):
            self.problems.append(f"replicas still run after {REPLICAS_GONE_WITHIN:g} s")
        await self.delete_what_came_back()

    async def delete_what_came_back(self) -> None:
        """A leader that had not noticed yet, or is told `--registration=always`, may have registered anew."""
        again = None if self._dry_run else await self._removal.registration()
        if again is not None:
            await self.delete((again,))

    async def delete(self, parts: Sequence[Part]) -> None:
        """Delete parts one after the other."""
        for part in parts:
            if self._dry_run:
                continue
            try:
                await self._removal.delete(part)
            except ApiError as error:
                self.problems.append(f"{part}: {error}")
            else:
                self._deleted.append(part)
                click.echo(f"deleted {part}")

    async def wait_for_namespace(self) -> None:
        """A namespace goes when all in it is gone, and the command ends when it has."""
        for part in self._deleted:
            if part.name.startswith("Namespace ") and not await self._removal.gone(part, NAMESPACE_GONE_WITHIN):
                self.problems.append(f"{part} is still there after {NAMESPACE_GONE_WITHIN:g} s")


def _show(installed: Installed, wishes: Wishes) -> None:
    if not installed.parts:
        click.echo("Nothing is installed.")
    for part in installed.parts if wishes.dry_run or not wishes.yes else ():
        click.echo(f"{'would delete' if wishes.dry_run else 'to be deleted:'} {part}")
    for reason in installed.kept:
        click.echo(f"kept {reason}")


async def _catalog(server: ApiServer) -> Catalog:
    """The packaged definitions and the cluster's good ones: whose kinds may carry stamps."""
    sources = [[CompiledDefinition(definition) for definition in packaged_definitions()]]
    for _, _, collection in COLLECTIONS.values():
        try:
            documents = [obj async for page in server.pages(collection) for obj in page.items]
        except ApiError as error:
            if error.code != 404:
                raise
            continue
        sources.append([CompiledDefinition(good) for good in map(_parsed, documents) if good is not None])
    return Catalog.of(*sources)


def _parsed(document: JsonObject) -> Definition | None:
    try:
        return parse(document, document["metadata"]["name"])
    except DefinitionError:
        return None


async def _remove_stamps(server: ApiServer, discovery: Discovery, catalog: Catalog, wishes: Wishes) -> list[str]:
    """Clean every object, showing how far it has come; what could not be cleaned."""
    removal = StampRemoval(
        server,
        discovery,
        prefix=wishes.prefix,
        rate=wishes.rate,
        restart_pods=wishes.restart_pods,
        dry_run=wishes.dry_run,
    )
    shown = Console(stderr=True)
    with Progress(
        TextColumn("{task.description}"), console=shown, transient=True, disable=not shown.is_terminal
    ) as bar:
        task = bar.add_task("stamps", total=None)
        async for progress in removal.run(catalog):
            bar.update(task, description=f"{progress.seen} objects looked at, {progress.cleaned} cleaned")
    progress = removal.progress
    verb = "would be removed" if wishes.dry_run else "removed"
    click.echo(f"stamps {verb} from {progress.cleaned} of {progress.seen} objects")
    for kind, count in sorted(progress.kept.items()):
        click.echo(
            f"kept the stamps of {count} {kind} objects: without them their pods may restart; see --restart-pods"
        )
    return progress.faults
