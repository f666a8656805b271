"""`workload-stamp audit`: stamps that are not what they should be; exit code 1 when there are any."""

from collections import Counter
from collections.abc import Iterator

import click
from rich.text import Text

from webhook.cli import terminal
from webhook.cli.cluster import Connection, Session, cluster_options, read_everything, run
from webhook.cli.output import print_document, several
from webhook.cli.terminal import Column
from webhook.cluster.client import ApiError
from webhook.cluster.registration import PATH as REGISTRATION
from webhook.live.audit import Audit, Audited, Finding, audit
from webhook.live.documents import audit_document
from webhook.live.scope import Scope, scope_of
from webhook.live.snapshot import Snapshot

STYLES = {Finding.MISSING: "yellow", Finding.STALE: "cyan", Finding.WRONG: "red", Finding.FOREIGN: "magenta"}

COLUMNS = (
    Column(title="NAMESPACE", least=9, cut="middle"),
    Column(title="KIND"),
    Column(title="NAME", least=16, cut="middle"),
    Column(title="FINDING"),
    Column(title="KEY", least=12),
    Column(title="FOUND", least=8),
    Column(title="SHOULD BE", least=9),
)


@click.command("audit")
@click.option("-o", "--output", type=click.Choice(["table", "json", "yaml"]), default="table", help="How to print.")
@cluster_options
def command(connection: Connection, output: str) -> int:
    """Compare the stamps of pods and workloads with what they should be now.

    Missing: not there. Stale: right when it was written, and its object has changed since. Wrong: never right. Foreign:
    not ours to be there. Exit code 1 when there is any finding. Opted-out objects and namespaces are left alone, as by
    the webhook.
    """

    async def judge(session: Session) -> Audit:
        snapshot = await read_everything(session)
        scope = await read_scope(session)
        found = audit(snapshot, session.index(snapshot), scope.includes)
        if output == "table":
            _print(found, with_namespace=not session.namespace)
            click.echo(summary(found), err=True)
        else:
            print_document(audit_document(found, snapshot.unread), output)
        _tell(session, snapshot, found)
        return found

    return 1 if run(connection, judge).faulty else 0


async def read_scope(session: Session) -> Scope:
    """Where the webhook stamps, by its registration; what may not be read is noted."""
    registration = None
    try:
        registration = await session.server.get(REGISTRATION)
    except ApiError as error:
        if error.code != 404:
            session.notes.append(f"the webhook's registration may not be read, its defaults are assumed: {error}")
    namespaces = []
    try:
        if session.namespace:
            namespaces.append(await session.server.get(f"/api/v1/namespaces/{session.namespace}", metadata_only=True))
        else:
            async for page in session.server.pages("/api/v1/namespaces", metadata_only=True):
                namespaces += page.items
    except ApiError as error:
        session.notes.append(f"namespaces may not be read, so which opt out is not known: {error}")
    return scope_of(registration, namespaces, session.policy.prefix)


def _print(found: Audit, *, with_namespace: bool) -> None:
    first = 0 if with_namespace else 1
    rows = [row[first:] for audited in found.faulty for row in _rows(audited)]
    if rows:
        terminal.print_table(COLUMNS[first:], rows)


def _rows(audited: Audited) -> Iterator[tuple[Text | str, ...]]:
    """One row a key, and one for all that are missing; the object's names stand in each, for who searches them."""
    missing = [each.key for each in audited.differences if each.finding is Finding.MISSING]
    rows = [each for each in audited.differences if each.finding is not Finding.MISSING or len(missing) == 1]
    named = (audited.namespace, audited.kind.kind, audited.name)
    if len(missing) > 1:
        yield (*named, Text(Finding.MISSING.value, style=STYLES[Finding.MISSING]), ", ".join(missing), "", "")
    for each in rows:
        finding = Text(each.finding.value, style=STYLES[each.finding])
        yield (*named, finding, each.key, each.found or "", each.wanted or "")


def summary(found: Audit) -> str:
    """What was looked at and what was found, in a sentence."""
    counts = Counter(each.finding for audited in found.faulty for each in audited.differences)
    kinds = ", ".join(f"{counts[finding]} {finding.value}" for finding in Finding if counts[finding])
    verdict = f"{several(len(found.faulty), 'object')} with findings ({kinds})" if found.faulty else "nothing found"
    return f"{several(found.looked_at, 'object')} looked at, {found.left_alone} left alone: {verdict}"


def _tell(session: Session, snapshot: Snapshot, found: Audit) -> None:
    session.tell(snapshot.unread)
    reasons = Counter(each.reason for each in found.unchecked)
    for reason, count in reasons.most_common(10):
        click.echo(f"not judged: {several(count, 'object')}: {reason}", err=True)
