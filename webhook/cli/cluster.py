"""What the commands that look at a cluster share: how it is reached, what describes its kinds, and plain failures."""

import asyncio
import gc
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from catalog import load
from catalog.definition import Definition, JsonObject
from catalog.library import Catalog, CompiledDefinition
from catalog.parse import DefinitionError, parse
from catalog.worker import ExpressionWorker
from webhook.cli import terminal
from webhook.cli.failures import InputProblems
from webhook.cli.printable import printable
from webhook.cli.workbench import ISOLATED_SECONDS, policy_of
from webhook.cluster.client import Access, ApiError, ApiServer, ConnectionFault
from webhook.cluster.discovery import Discovery, Resource
from webhook.cluster.kubeconfig import is_in_cluster
from webhook.cluster.reading import POD, KindKey, Progress, Reader, Unauthorised, Wanted
from webhook.cluster.resources import COLLECTIONS
from webhook.definitions import Source
from webhook.live.nodes import Node, nodes_with
from webhook.live.owners import OwnerIndex
from webhook.live.pods import live_pods
from webhook.live.snapshot import Snapshot, Unread, text_at
from webhook.live.workloads import Inventory, inventory
from webhook.stamps import Policy

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How the cluster is reached and read, from the command line. `namespace` None is the context's own."""

    access: Access
    namespace: str | None
    all_namespaces: bool
    definitions: tuple[Path, ...]
    policy: Policy


@dataclass(slots=True, kw_only=True)
class Session:
    """A connection that is open: definitions are loaded and served kinds known.

    `namespace` is empty for all of them; `notes` are sentences that people should know about what they are shown.
    """

    server: ApiServer
    discovery: Discovery
    catalog: Catalog
    policy: Policy
    namespace: str
    worker: ExpressionWorker
    advance: Callable[[int, int | None], None]
    notes: list[str] = field(default_factory=list)

    @property
    def place(self) -> str:
        """Where we look, for sentences."""
        return f"namespace {self.namespace}" if self.namespace else "all namespaces"

    def reader(self) -> Reader:
        """A reader that shows its progress."""
        return Reader(
            self.server, self.discovery, self.catalog, prefix=self.policy.prefix, on_progress=self._on_progress
        )

    def _on_progress(self, progress: Progress) -> None:
        self.advance(progress.read, progress.read + progress.coming if progress.coming else None)

    def index(self, snapshot: Snapshot) -> OwnerIndex:
        """The owners of a snapshot."""
        return OwnerIndex(
            snapshot,
            self.catalog,
            self.policy,
            lambda request: self.worker.evaluate_blocking(request, ISOLATED_SECONDS),
        )

    def inventory(self, snapshot: Snapshot) -> Inventory:
        """The workloads of a snapshot."""
        return inventory(snapshot, self.index(snapshot))

    def kind(self, word: str) -> tuple[KindKey, Resource]:
        """The one described and served kind that a word means. Raises InputProblems."""
        found = {key: each for key, each in self.discovery.kinds.items() if key in self._kinds and each.is_called(word)}
        if not found:
            raise InputProblems((self._no_kind(word),))
        if len(found) > 1:
            choices = ", ".join(f"{each.plural}.{each.group}".rstrip(".") for each in found.values())
            raise InputProblems((f"{word} may be any of {choices}: say which",))
        return next(iter(found.items()))

    @property
    def _kinds(self) -> frozenset[KindKey]:
        return frozenset(self.catalog.by_kind)

    def _no_kind(self, word: str) -> str:
        if any(each.is_called(word) for each in self.discovery.kinds.values()):
            return f"{word}: no definition describes this kind; `workload-stamp definitions list` names those that are"
        return f"{word}: {self.server.host} serves no kind of this name"

    def tell(self, unread: Iterable[Unread]) -> None:
        """Say on standard error what could not be shown, one line a reason."""
        for note in [*self.notes, *_sentences(unread, self.place)]:
            click.echo(printable(note), err=True)


def _sentences(unread: Iterable[Unread], place: str) -> Iterator[str]:
    by_reason: dict[str, list[str]] = {}
    for each in unread:
        by_reason.setdefault(each.reason, []).append(each.kind)
    for reason, kinds in by_reason.items():
        yield f"not shown: {', '.join(kinds)}: {reason} in {place}"


def cluster_options(command: Command) -> Command:
    """Give a command the options of a connection, and the connection as its first argument."""

    @wraps(command)
    def with_connection(*arguments: Any, **options: Any) -> Any:
        given = {name: options.pop(name) for name in _OPTION_NAMES}
        return command(_connection(**given), *arguments, **options)

    for option in reversed(_OPTIONS):
        with_connection = option(with_connection)
    return with_connection  # type: ignore[return-value]


_OPTIONS = (
    click.option("-n", "--namespace", metavar="NAME", help="The namespace [default: the context's]."),
    click.option("-A", "--all-namespaces", is_flag=True, help="All namespaces."),
    click.option("--kubeconfig", type=click.Path(path_type=Path), help="How to reach the cluster [KUBECONFIG]."),
    click.option("--context", metavar="NAME", help="The kubeconfig's context [default: the current one]."),
    click.option("--as", "as_user", metavar="USER", help="Act as somebody else."),
    click.option("--as-group", "as_groups", multiple=True, metavar="GROUP", help="And as a member of this group."),
    click.option(
        "--definitions",
        "-d",
        multiple=True,
        type=click.Path(exists=True, path_type=Path),
        metavar="PATH",
        help="Further definitions, a file or a folder; they go before the cluster's.",
    ),
    click.option(
        "--prefix",
        default="workload-stamp.io",
        show_default=True,
        envvar="WORKLOAD_STAMP_PREFIX",
        help="Prefix of the stamps.",
    ),
    click.option(
        "--gpu-weights",
        metavar="WEIGHTS",
        envvar="WORKLOAD_STAMP_GPU_WEIGHTS",
        help="What counts as how many GPUs: resource=weight,…",
    ),
)
_OPTION_NAMES = (
    "namespace",
    "all_namespaces",
    "kubeconfig",
    "context",
    "as_user",
    "as_groups",
    "definitions",
    "prefix",
    "gpu_weights",
)


def _connection(
    *,
    namespace: str | None,
    all_namespaces: bool,
    kubeconfig: Path | None,
    context: str | None,
    as_user: str | None,
    as_groups: tuple[str, ...],
    definitions: tuple[Path, ...],
    prefix: str,
    gpu_weights: str | None,
) -> Connection:
    if as_groups and as_user is None:
        raise InputProblems(("--as-group: --as is missing: a group alone can't be acted as",), exit_code=2)
    if namespace is not None and all_namespaces:
        raise InputProblems(("--namespace: --all-namespaces is given as well; give one of them",), exit_code=2)
    access = Access(
        kubeconfig=kubeconfig,
        context=context,
        in_cluster=is_in_cluster(kubeconfig, os.environ),
        impersonate_user=as_user,
        impersonate_groups=as_groups,
    )
    return Connection(
        access=access,
        namespace=namespace,
        all_namespaces=all_namespaces,
        definitions=definitions,
        policy=policy_of(prefix, gpu_weights),
    )


def run(connection: Connection, work: Callable[[Session], Awaitable[T]], *, what: str = "reading") -> T:
    """Open a session, do the work, close it. What goes wrong with the cluster is one line, raised as InputProblems."""
    results: list[T] = []
    try:
        with _collection_put_off():
            asyncio.run(_run(connection, work, what, results))
    except ConnectionFault as fault:
        raise InputProblems((str(fault),)) from None
    except ApiError as error:
        raise InputProblems((str(error),)) from None
    return results[0]


async def _run(connection: Connection, work: Callable[[Session], Awaitable[T]], what: str, results: list[T]) -> None:
    """The result goes into `results`: of what a task returns asyncio makes a text when it gives the signals back."""
    with terminal.progress(what) as advance:
        async with _session(connection, advance) as session:
            results.append(await work(session))


@contextmanager
def _collection_put_off() -> Iterator[None]:
    """What is read holds no cycles, and looking for some takes two thirds of the time that parsing takes."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@asynccontextmanager
async def _session(connection: Connection, advance: Callable[[int, int | None], None]) -> AsyncIterator[Session]:
    given = _given(connection.definitions)
    async with ApiServer.connect(connection.access) as server:
        discovery = Discovery(server)
        try:
            await discovery.refresh()
        except ApiError as error:
            if error.code == 401:
                raise Unauthorised(server.host) from error
            raise
        notes: list[str] = []
        catalog = await _catalog(server, discovery, given, notes)
        namespace = "" if connection.all_namespaces else connection.namespace or server.namespace or "default"
        yield Session(
            server=server,
            discovery=discovery,
            catalog=catalog,
            policy=connection.policy,
            namespace=namespace,
            worker=ExpressionWorker(),
            advance=advance,
            notes=notes,
        )


def _given(paths: Sequence[Path]) -> list[Definition]:
    found: list[Definition] = []
    problems: list[str] = []
    for path in paths:
        definitions, faults = load.directory(path) if path.is_dir() else load.file(path)
        found.extend(definitions)
        problems.extend(str(fault) for fault in faults)
    if problems:
        raise InputProblems(tuple(problems))
    return found


async def _catalog(server: ApiServer, discovery: Discovery, given: Sequence[Definition], notes: list[str]) -> Catalog:
    """The packaged definitions, the cluster's own, and those of the command line; later ones win."""
    packaged, problems = load.packaged(_about(discovery))
    if problems:
        raise InputProblems(tuple(str(problem) for problem in problems))
    sources = [list(packaged)]
    for source in (Source.KARTA, Source.RESOURCE):
        group, kind, collection = COLLECTIONS[source]
        if discovery.known(group, kind) is not None:
            sources.append(await _cluster_definitions(server, kind, collection, notes))
    return Catalog.of(*([CompiledDefinition(each) for each in source] for source in (*sources, given)))


def _about(discovery: Discovery) -> Callable[[str], bool]:
    """Whether a packaged definition's file is about a kind that is served: of the others there are no objects."""
    served = tuple(f"{group.replace('.', '-') or 'core'}-{kind.lower()}-" for group, kind in discovery.kinds)
    return lambda name: name.startswith(served)


async def _cluster_definitions(server: ApiServer, kind: str, collection: str, notes: list[str]) -> list[Definition]:
    """Good definitions of a collection, the oldest first, as the webhook has them in force."""
    try:
        documents = [obj async for page in server.pages(collection) for obj in page.items]
    except ApiError as error:
        notes.append(f"{kind}s may not be read, only the packaged definitions are used: {error}")
        return []
    found: list[Definition] = []
    for document in sorted(documents, key=_age):
        name = text_at(document, "metadata", "name")
        try:
            found.append(parse(document, f"{kind}/{name}"))
        except DefinitionError as error:
            notes.append(f"{kind}/{name} has {len(error.problems)} problems and is not used")
    return found


def _age(document: JsonObject) -> tuple[str, str]:
    return text_at(document, "metadata", "creationTimestamp"), text_at(document, "metadata", "name")


async def nodes_with_all_pods(session: Session, snapshot: Snapshot, found: Inventory) -> tuple[Node, ...] | None:
    """The nodes with everything that is on them, whatever namespace we look at; None where that may not be read."""
    if snapshot.nodes is None:
        return None
    pods = found.pods
    if session.namespace:
        everywhere = await session.reader().snapshot(Wanted(kinds=frozenset(), owners=False))
        if everywhere.unread:
            return None
        pods = live_pods(everywhere.pods, session.index(Snapshot()))
    return nodes_with(snapshot.nodes, pods, session.policy.accelerators)


async def read_everything(session: Session, *, nodes: bool = False, groups: bool = False) -> Snapshot:
    """Every described object and every pod of the namespaces that we look at."""
    return await read(session, Wanted(namespace=session.namespace, nodes=nodes, groups=groups))


async def read(session: Session, wanted: Wanted) -> Snapshot:
    """What is wanted, as far as it may be read. Raises InputProblems when nothing of it may."""
    snapshot = await session.reader().snapshot(wanted)
    refused = {(each.group, each.kind): each.reason for each in snapshot.unread}
    if POD in refused and not snapshot.objects and len(refused) > 1:
        raise InputProblems((f"{session.server.host}: pods and workloads {refused[POD]} in {session.place}",))
    return snapshot
