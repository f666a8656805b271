"""`workload-stamp backfill`: gives existing pods and workloads the stamps that they should have."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import click

from catalog.definition import JsonObject
from webhook.cli.audit import read_scope
from webhook.cli.cluster import Connection, Session, cluster_options, read_everything, run
from webhook.cli.output import print_document, several
from webhook.cluster.application import apply_stamps
from webhook.cluster.client import ApiError
from webhook.cluster.rates import TokenBucket
from webhook.live.audit import Audit, Audited, Auditor, audit
from webhook.live.documents import API_VERSION
from webhook.live.owners import OwnerIndex

WORKERS = 4
"""Objects worked on at a time; the rate is what bounds them."""


@dataclass(slots=True, kw_only=True)
class Done:
    """What became of the objects that were due: counts by result, and each failure with its reason."""

    results: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    interrupted: bool = False


@click.command("backfill")
@click.option("--dry-run", is_flag=True, help="Have the API server check every change, and store none.")
@click.option("--rate", type=click.FloatRange(0.1, 1000), default=20, show_default=True, help="Objects a second.")
@click.option("--stale", is_flag=True, help="Also bring pods up to date that carry what was true at their creation.")
@click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", help="How to print.")
@cluster_options
def command(connection: Connection, *, dry_run: bool, rate: float, stale: bool, output: str) -> int:
    """Write missing and wrong stamps onto pods and workloads that exist, by server-side apply, nothing but our keys.

    What `audit` finds is brought to what it should be, within what each kind allows. What is good already is passed
    over, so an interrupted run goes on where it was when it is started again. Exit code 1 when something failed.
    """

    async def fill(session: Session) -> Done:
        snapshot = await read_everything(session)
        scope = await read_scope(session)
        index = session.index(snapshot)
        found = audit(snapshot, index, scope.includes)
        due, left = _split(found, stale=stale)
        done = await _Backfill(session, index, rate=rate, dry_run=dry_run).run(due)
        _report(found, left, done, dry_run=dry_run, output=output)
        session.tell(snapshot.unread)
        return done

    done = run(connection, fill, what="stamping")
    return 1 if done.failures or done.interrupted else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Faulty objects that are left as they are: stale pods, and what may be written at creation only."""

    stale: int
    fixed: int


def _split(found: Audit, *, stale: bool) -> tuple[list[Audited], Left]:
    """What is to be done; roots before pods, so that who watches them sees the whole first."""
    changeable = [each for each in found.faulty if each.wanted is not None]
    due = [each for each in changeable if stale or not (_is_pod(each) and each.is_only_stale)]
    left = Left(stale=len(changeable) - len(due), fixed=len(found.faulty) - len(changeable))
    return sorted(due, key=_is_pod), left


def _is_pod(audited: Audited) -> bool:
    return (audited.kind.group, audited.kind.kind) == ("", "Pod")


class _Backfill:
    """Works off what is due, at a bounded rate; each object is read anew and judged again before it is written."""

    def __init__(self, session: Session, index: OwnerIndex, *, rate: float, dry_run: bool) -> None:
        self._session = session
        self._index = index
        self._auditor = Auditor(index)
        self._dry_run = dry_run
        self._loop = asyncio.get_running_loop()
        self._bucket = TokenBucket(rate, 1, self._loop.time())
        self._done = Done()
        self._count = 0

    async def run(self, due: Sequence[Audited]) -> Done:
        """All of it; Ctrl-C ends early, with what was done until then."""
        waiting = iter(due)
        workers = [asyncio.create_task(self._work(waiting, len(due))) for _ in range(WORKERS)]
        try:
            await asyncio.gather(*workers)
        except asyncio.CancelledError:
            self._done.interrupted = True
            self._done.results["not done"] = len(due) - self._count
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        return self._done

    async def _work(self, waiting: Iterable[Audited], total: int) -> None:
        for audited in waiting:
            await asyncio.sleep(self._bucket.delay(self._loop.time(), float("inf")) or 0)
            result = await self._try(audited)
            self._count += 1
            self._done.results[result] += 1
            self._session.advance(self._count, total)

    async def _try(self, audited: Audited) -> str:
        try:
            return await self._mend(audited)
        except ApiError as error:
            if error.code in (404, 409):
                return "gone"
            place = f"{audited.namespace}/" if audited.namespace else ""
            self._done.failures.append(f"{audited.kind.kind} {place}{audited.name}: {error}")
            return "failed"

    async def _mend(self, audited: Audited) -> str:
        resource = self._session.discovery.known(audited.kind.group, audited.kind.kind)
        assert resource is not None, "it was listed"
        path = resource.path(audited.namespace, audited.name, audited.kind.version)
        obj: JsonObject = await self._session.server.get(path)
        obj["apiVersion"], obj["kind"] = audited.kind.api_version, audited.kind.kind
        if obj["metadata"].get("uid") != audited.uid:
            return "gone"
        self._index.renew(obj)
        again = self._auditor.verdict(obj)
        if not isinstance(again, Audited) or again.wanted is None:
            return "good meanwhile"
        await apply_stamps(
            self._session.server, resource, obj, again.wanted, self._session.policy.prefix, dry_run=self._dry_run
        )
        return "stamped"


def _report(found: Audit, left: Left, done: Done, *, dry_run: bool, output: str) -> None:
    if output != "text":
        print_document(document(found, left, done, dry_run=dry_run), output)
        return
    verb = "would be stamped" if dry_run else "stamped"
    click.echo(f"{several(done.results['stamped'], 'object')} {verb}, of {found.looked_at} looked at")
    notes = {
        f"{done.results['good meanwhile']} were put right by others meanwhile": done.results["good meanwhile"],
        f"{done.results['gone']} were gone or replaced": done.results["gone"],
        f"{left.stale} carry what was true at their creation; --stale brings them up to date": left.stale,
        f"{left.fixed} may be stamped at their creation only": left.fixed,
        f"{len(found.unchecked)} can't be judged: an owner could not be read": len(found.unchecked),
        f"{found.left_alone} are opted out or not ours": found.left_alone,
        f"interrupted: {done.results['not done']} not done; start it again to go on": int(done.interrupted),
    }
    for note, count in notes.items():
        if count:
            click.echo(note, err=True)
    for failure in done.failures:
        click.echo(f"failed: {failure}", err=True)


def document(found: Audit, left: Left, done: Done, *, dry_run: bool) -> JsonObject:
    """What was done and what not, for programs."""
    return {
        "apiVersion": API_VERSION,
        "kind": "Backfill",
        "dryRun": dry_run,
        "lookedAt": found.looked_at,
        "stamped": done.results["stamped"],
        "goodMeanwhile": done.results["good meanwhile"],
        "gone": done.results["gone"],
        "staleLeft": left.stale,
        "notChangeable": left.fixed,
        "unchecked": len(found.unchecked),
        "leftAlone": found.left_alone,
        "failed": list(done.failures),
        "notDone": done.results["not done"],
        "interrupted": done.interrupted,
    }
