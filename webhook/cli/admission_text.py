"""One admission for people: which stamps are written and why some are left out, or why the object is left alone."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from catalog.definition import Json
from webhook.admit import MIRROR_ANNOTATION, Answer, Decision, is_pod
from webhook.cli.terminal import Column, table
from webhook.patch import apply
from webhook.review import PatchOperation, Review
from webhook.stamps import IGNORE_KEY

COLUMNS = (Column(title=""), Column(title=""), Column(title=""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """One review, with what would be decided and answered; `patch` and `warnings` are the answer's."""

    review: Review
    decision: Decision
    answer: Answer
    patch: Sequence[PatchOperation]
    warnings: Sequence[str]

    @property
    def stored(self) -> Json:
        """The object as an API server would store it; null where the review has none."""
        return apply(self.review.obj, self.patch) if self.patch else self.review.obj


def admission_lines(admitted: Admitted, prefix: str) -> list[Text]:
    """What is admitted and the outcome, then a line for each stamp, each removed key, each warning."""
    review, answer = admitted.review, admitted.answer
    heading = Text(f"{_named(review)}  ", style="bold").append(f"({answer.outcome})", style="not bold")
    rows = [*_stamp_rows(admitted.decision, answer, prefix), *_removed_rows(admitted.patch)]
    rows += [(Text("warning", style="yellow"), Text(), Text(each)) for each in admitted.warnings]
    if not rows:
        return [heading, Text(f"nothing is written: {_why_nothing(review, answer, prefix)}")]
    return [heading, *table(COLUMNS, rows, None)[1:]]


def _named(review: Review) -> str:
    place = f"{review.namespace}/" if review.namespace else ""
    generated = _metadata(review).get("generateName")
    name = review.name or f"{generated if isinstance(generated, str) else ''}…"
    return f"{review.kind.kind} {place}{name}"


def _metadata(review: Review) -> Mapping[str, Any]:
    metadata = review.obj.get("metadata") if isinstance(review.obj, dict) else None
    return metadata if isinstance(metadata, dict) else {}


Row = tuple[Text, Text, Text]


def _stamp_rows(decision: Decision, answer: Answer, prefix: str) -> Iterator[Row]:
    if decision.stamps is None or answer.outcome == "refused":
        return
    for kind, stamps in (("label", decision.stamps.labels), ("annotation", decision.stamps.annotations)):
        for key, value in stamps.items():
            if key != "unresolved":
                yield Text(kind, style="dim"), Text(f"{prefix}/{key}"), Text(value)
    for key, reason in sorted(decision.stamps.unresolved.items()):
        yield Text("left out", style="yellow"), Text(f"{prefix}/{key}"), Text(reason)


def _removed_rows(patch: Sequence[PatchOperation]) -> Iterator[Row]:
    for operation in patch:
        if operation["op"] == "remove":
            key = operation["path"].rpartition("/")[2].replace("~1", "/").replace("~0", "~")
            yield Text("removed", style="yellow"), Text(key), Text("is not computed for this object")


def _why_nothing(review: Review, answer: Answer, prefix: str) -> str:
    if answer.outcome == "undescribed":
        return "no definition describes its owners" if is_pod(review) else f"no definition describes {_kind(review)}"
    if answer.outcome == "skipped":
        return next(_why_left_alone(review, prefix))
    return "it is as it should be"


def _kind(review: Review) -> str:
    kind = review.kind
    return f"{kind.kind} of {kind.group or 'the core group'}"


def _why_left_alone(review: Review, prefix: str) -> Iterator[str]:
    """The reasons of `webhook.admit.must_be_left_alone` in words, and after them those of the stamps' contract."""
    metadata = _metadata(review)
    annotations, labels = metadata.get("annotations"), metadata.get("labels")
    if review.subresource:
        yield f"requests for a subresource ({review.subresource}) are left alone"
    if review.operation not in ("CREATE", "UPDATE"):
        yield f"only CREATE and UPDATE are stamped, this is {review.operation or 'no operation'}"
    if is_pod(review) and review.operation != "CREATE":
        yield "pods are stamped when they are created, and never again"
    if not isinstance(review.obj, dict) or not isinstance(review.obj.get("metadata"), dict):
        yield "it has no metadata to write to"
    if metadata.get("deletionTimestamp") is not None:
        yield "it is being deleted"
    if isinstance(annotations, dict) and MIRROR_ANNOTATION in annotations:
        yield "a mirror pod is the kubelet's"
    if isinstance(labels, dict) and labels.get(f"{prefix}/{IGNORE_KEY}") == "true":
        yield f'its label {prefix}/{IGNORE_KEY}: "true" asks for it'
    if review.operation == "UPDATE":
        yield "what this object carries is written when it is created, and never again"
    yield "its definition wants no stamps on the object itself (rootStamps: none)"
