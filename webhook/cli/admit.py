"""`workload-stamp admit`: what admission would write, without a cluster; the way to debug a definition."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click
import orjson
from rich.table import Table

from catalog.definition import JsonObject
from catalog.expressions import Outcome
from webhook.admit import Answer, Decision, admit, decide, needs_lineage, pending_evaluations
from webhook.cli.failures import InputProblems
from webhook.cli.output import console, print_json, print_yaml
from webhook.cli.workbench import Workbench, read_documents, workbench_options
from webhook.documents import DocumentOwners
from webhook.lineage import NO_OWNERS, kind_named
from webhook.patch import apply
from webhook.review import BadReview, Review, decode

USER = "somebody"
"""Who sends a plain object; warnings are for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """One input, with what would be decided and answered."""

    where: str
    review: Review
    decision: Decision
    answer: Answer


@click.command("admit")
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option("--owners", multiple=True, metavar="FILE", help="Objects that own the admitted ones; may be repeated.")
@click.option("--operation", type=click.Choice(["CREATE", "UPDATE"]), default="CREATE", show_default=True)
@click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of objects that name none.")
@click.option("-o", "--output", type=click.Choice(["table", "json", "object", "yaml"]), default="table")
@workbench_options
def command(
    workbench: Workbench,
    files: tuple[str, ...],
    *,
    owners: tuple[str, ...],
    operation: str,
    namespace: str,
    output: str,
) -> None:
    """Show what admission would stamp on the objects or AdmissionReviews in FILE…; `-` is standard input.

    -o json prints the AdmissionReview that answers each input, one a line; -o object and -o yaml print each object
    as it would be stored. What is admitted counts as owner too, when it has a uid.
    """
    documents = read_documents(files)
    reviews, problems = _reviews(documents, operation, namespace)
    known = [obj for _, obj in read_documents(owners)] + [obj for _, obj in documents]
    desk = DocumentOwners(_in_namespace(known, namespace), workbench.policy, workbench.evaluate)
    admitted = [_admit(workbench, desk, where, review) for where, review in reviews]
    if output == "json":
        print_json((orjson.loads(each.answer.body) for each in admitted), one_a_line=True)
    elif output == "object":
        print_json((_stored(each) for each in admitted), one_a_line=True)
    elif output == "yaml":
        print_yaml(_stored(each) for each in admitted)
    else:
        for each in admitted:
            console().print(_table(each, workbench.policy.prefix))
    if problems:
        raise InputProblems(tuple(problems))


def _in_namespace(objects: Sequence[JsonObject], namespace: str) -> Iterator[JsonObject]:
    for obj in objects:
        metadata = obj.get("metadata")
        if isinstance(metadata, dict):
            yield {**obj, "metadata": {"namespace": namespace, **metadata}}


def _reviews(
    documents: Sequence[tuple[str, JsonObject]], operation: str, namespace: str
) -> tuple[list[tuple[str, Review]], list[str]]:
    reviews: list[tuple[str, Review]] = []
    problems: list[str] = []
    for where, document in documents:
        if document["kind"] != "AdmissionReview":
            reviews.append((where, _review_of(document, operation, namespace)))
            continue
        try:
            reviews.append((where, decode(orjson.dumps(document))))
        except BadReview as error:
            problems.append(f"{where}: {error}")
    return reviews, problems


def _review_of(obj: JsonObject, operation: str, namespace: str) -> Review:
    kind = kind_named(obj["apiVersion"], obj["kind"])
    assert kind is not None, "documents are read with apiVersion and kind"
    metadata = obj.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    named = metadata.get("namespace")
    name = metadata.get("name")
    return Review(
        uid="admit",
        kind=kind,
        subresource="",
        name=name if isinstance(name, str) else "",
        namespace=named if isinstance(named, str) else namespace,
        operation=operation,
        username=USER,
        obj=obj,
    )


def _admit(workbench: Workbench, desk: DocumentOwners, where: str, review: Review) -> Admitted:
    catalog, policy = workbench.catalog, workbench.policy
    lineage = NO_OWNERS
    if needs_lineage(review, catalog, policy.prefix):
        lineage = desk.lineage_of(review.obj, review.namespace, catalog)
    isolated: dict[str, Outcome] = {}
    for _, request in pending_evaluations(review, lineage, catalog, policy.prefix):
        isolated.update(workbench.evaluate(request))
    return Admitted(
        where=where,
        review=review,
        decision=decide(review, lineage, catalog, policy, isolated),
        answer=admit(review, lineage, catalog, policy, isolated),
    )


def _stored(admitted: Admitted) -> JsonObject:
    response: Mapping[str, Any] = orjson.loads(admitted.answer.body)["response"]
    patch = orjson.loads(base64.b64decode(response["patch"])) if "patch" in response else []
    stored: JsonObject = apply(admitted.review.obj, patch) if patch else admitted.review.obj
    return stored


def _table(admitted: Admitted, prefix: str) -> Table:
    review, stamps = admitted.review, admitted.decision.stamps
    place = f"{review.namespace}/" if review.namespace else ""
    metadata = review.obj.get("metadata") if isinstance(review.obj, dict) else None
    generated = metadata.get("generateName") if isinstance(metadata, dict) else None
    name = review.name or f"{generated or ''}…"
    title = f"{review.kind.kind} {place}{name}  ({admitted.answer.outcome})"
    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, show_header=False)
    table.add_column("where", style="dim")
    table.add_column("key")
    table.add_column("value", overflow="fold")
    if stamps is None or not (stamps.labels or stamps.annotations):
        table.add_row("", "nothing is written", "")
        return table
    for key, value in stamps.labels.items():
        table.add_row("label", f"{prefix}/{key}", value)
    for key, value in stamps.annotations.items():
        if key != "unresolved":
            table.add_row("annotation", f"{prefix}/{key}", value)
    for key, reason in sorted(stamps.unresolved.items()):
        table.add_row("[yellow]left out[/]", f"{prefix}/{key}", reason)
    return table
