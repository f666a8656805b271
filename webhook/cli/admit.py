"""`workload-stamp admit`: what admission would write, without a cluster; the way to debug a definition."""

import base64
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
import orjson

from catalog.definition import JsonObject
from catalog.expressions import Outcome
from webhook.admit import admit, decide, needs_lineage, pending_evaluations
from webhook.cli.admission_text import Admitted, admission_lines
from webhook.cli.failures import InputProblems
from webhook.cli.manifests import Found, FoundObject, files_argument, is_review, objects_in, read_once, reviewed
from webhook.cli.output import print_json, print_yaml
from webhook.cli.terminal import print_lines
from webhook.cli.workbench import Workbench, namespace_option, workbench_options
from webhook.documents import DocumentOwners
from webhook.lineage import NO_OWNERS, kind_named
from webhook.review import BadReview, Review, decode

USER = "somebody"
"""Who sends a plain object; warnings are for people."""


@click.command("admit")
@files_argument
@click.option(
    "--owners",
    multiple=True,
    metavar="FILE",
    type=click.Path(allow_dash=True, readable=False),
    help="Objects that own the admitted ones: their Job, their JobSet and so on up. May be repeated.",
)
@click.option(
    "--operation",
    type=click.Choice(["CREATE", "UPDATE"]),
    default="CREATE",
    show_default=True,
    help="What is done with plain objects; AdmissionReviews say it themselves.",
)
@click.option(
    "-o",
    "--output",
    type=click.Choice(["table", "json", "object", "yaml"]),
    default="table",
    show_default=True,
    help="json is the answer to each review, object and yaml the object as it would be stored.",
)
@namespace_option
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
    """Show what admission would stamp on the objects in each FILE, without a cluster.

    A FILE is YAML or JSON with any number of AdmissionReviews or plain objects; `-` is standard input. What is
    admitted counts as an owner too when it has a uid; --owners comes first.

    -o json and -o object print one line for each input, in the order of the inputs. What can't be read, or is a
    review that the webhook would refuse (HTTP 400), has no line; it is named on standard error, the others are
    answered all the same, and the exit code is 1.
    """
    read_once((*files, *owners))
    found, given = objects_in(files), objects_in(owners)
    reviews, refused = _reviews(found, operation, namespace)
    known = [*(obj for obj in _objects(found) if _text(obj, "uid")), *_objects(given)]
    desk = DocumentOwners(_in_namespace(known, namespace), workbench.policy, workbench.evaluate)
    _print([_admit(workbench, desk, review) for review in reviews], output, workbench.policy.prefix)
    problems = (*given.problems, *found.problems, *refused)
    if problems:
        raise InputProblems(problems)


def _print(admitted: Sequence[Admitted], output: str, prefix: str) -> None:
    if output == "json":
        print_json((orjson.loads(each.answer.body) for each in admitted), one_a_line=True)
    elif output == "object":
        print_json((each.stored for each in admitted), one_a_line=True)
    elif output == "yaml":
        print_yaml(each.stored for each in admitted)
    else:
        for position, each in enumerate(admitted):
            lines = admission_lines(each, prefix)
            print_lines(["", *lines] if position else lines)


def _objects(found: Found) -> Iterator[JsonObject]:
    """The objects themselves; of an AdmissionReview, the one that it is about."""
    for each in found.objects:
        obj = reviewed(each.value)
        if isinstance(obj, dict):
            yield obj


def _in_namespace(objects: Sequence[JsonObject], namespace: str) -> Iterator[JsonObject]:
    for obj in objects:
        metadata = obj.get("metadata")
        if isinstance(metadata, dict):
            yield {**obj, "metadata": {"namespace": namespace, **metadata}}


def _reviews(found: Found, operation: str, namespace: str) -> tuple[list[Review], tuple[str, ...]]:
    """The reviews, plain objects made into some, and what would be refused."""
    reviews: list[Review] = []
    refused: list[str] = []
    for each in found.objects:
        try:
            reviews.append(_review(each, operation, namespace))
        except BadReview as error:
            refused.append(f"{each.where}: {error}")
    return reviews, tuple(refused)


def _review(found: FoundObject, operation: str, namespace: str) -> Review:
    obj = found.value
    if is_review(obj):
        return decode(orjson.dumps(obj))
    kind = kind_named(obj["apiVersion"], obj["kind"])
    assert kind is not None, "objects are read with apiVersion and kind"
    return Review(
        uid="admit",
        kind=kind,
        subresource="",
        name=_text(obj, "name"),
        namespace=_text(obj, "namespace") or namespace,
        operation=operation,
        username=USER,
        obj=obj,
    )


def _text(obj: JsonObject, field: str) -> str:
    metadata = obj.get("metadata")
    value = metadata.get(field) if isinstance(metadata, dict) else None
    return value if isinstance(value, str) else ""


def _admit(workbench: Workbench, desk: DocumentOwners, review: Review) -> Admitted:
    catalog, policy = workbench.catalog, workbench.policy
    lineage = NO_OWNERS
    if needs_lineage(review, catalog, policy.prefix):
        lineage = desk.lineage_of(review.obj, review.namespace, catalog)
    isolated: dict[str, Outcome] = {}
    for _, request in pending_evaluations(review, lineage, catalog, policy.prefix):
        isolated.update(workbench.evaluate(request))
    answer = admit(review, lineage, catalog, policy, isolated)
    response: Mapping[str, Any] = orjson.loads(answer.body)["response"]
    return Admitted(
        review=review,
        decision=decide(review, lineage, catalog, policy, isolated),
        answer=answer,
        patch=orjson.loads(base64.b64decode(response["patch"])) if "patch" in response else (),
        warnings=response.get("warnings", ()),
    )
