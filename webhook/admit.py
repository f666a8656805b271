"""The decision about one admission: a review and its lineage in, the answer's bytes out.

Pure: the shell reads owners and has expressions evaluated elsewhere beforehand, and passes both as values.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from catalog.definition import GroupVersionKind, Json, JsonObject
from catalog.expressions import IsolatedRequest, Outcome
from catalog.library import NOTHING_ISOLATED, Catalog, CompiledDefinition
from catalog.resources import effective_devices
from catalog.structure import Structure, resolve
from webhook.lineage import NO_OWNERS, Lineage, controller_reference
from webhook.patch import Patch, PatchRefused, stamp_patch
from webhook.review import Review, Verdict, encode
from webhook.stamps import IGNORE_KEY, Policy, Stamps, pod_stamps, root_stamps

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
POD = GroupVersionKind("", "v1", "Pod")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The AdmissionReview to send, and what the shell logs and counts about it.

    `outcome`: `stamped`, `unchanged` (nothing to patch), `undescribed`, `skipped`, `observed` (not patched by
    settings), `refused` (a patch could not be proved right), `failed` (our fault; admitted unpatched).
    `structure` is that of an admitted root, as it will be.
    """

    body: bytes
    outcome: str
    facts: Mapping[str, Any]
    structure: Structure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided before anything is encoded; `stamps` is None when the object is left alone."""

    outcome: str
    stamps: Stamps | None = None
    structure: Structure | None = None


LEFT_ALONE = Decision(outcome="skipped")
UNDESCRIBED = Decision(outcome="undescribed")


def is_pod(review: Review) -> bool:
    """Whether the review is about a pod."""
    return review.kind.kind == "Pod" and not review.kind.group


def must_be_left_alone(review: Review, prefix: str) -> bool:
    """Whether nothing may be written, whatever the catalogue says (contract, section 7)."""
    if review.subresource or review.operation not in ("CREATE", "UPDATE"):
        return True
    if is_pod(review) and review.operation != "CREATE":
        return True
    return must_be_left_alone_object(review.obj, prefix)


def must_be_left_alone_object(obj: Json, prefix: str) -> bool:
    """Whether an object forbids itself to be written to: no metadata, being deleted, a mirror pod, opted out."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    if not isinstance(metadata, dict) or metadata.get("deletionTimestamp") is not None:
        return True
    labels, annotations = metadata.get("labels"), metadata.get("annotations")
    if isinstance(annotations, dict) and MIRROR_ANNOTATION in annotations:
        return True
    return isinstance(labels, dict) and labels.get(f"{prefix}/{IGNORE_KEY}") == "true"


def needs_lineage(review: Review, catalog: Catalog, prefix: str) -> bool:
    """Whether the owners have to be known: for pods and described objects that are created with a controller owner."""
    if review.operation != "CREATE" or must_be_left_alone(review, prefix):
        return False
    if not is_pod(review) and catalog.find(review.kind) is None:
        return False
    return controller_reference(review.obj) is not None


def admit(
    review: Review,
    lineage: Lineage,
    catalog: Catalog,
    policy: Policy,
    isolated: Mapping[str, Outcome] = NOTHING_ISOLATED,
) -> Answer:
    """Decide, patch, encode. `lineage` is empty where `needs_lineage` says no."""
    decision = decide(review, lineage, catalog, policy, isolated)
    if decision.stamps is None:
        return _answer(review, decision.outcome, Verdict(), decision)
    try:
        patch = stamp_patch(review.obj, decision.stamps, policy.prefix)
    except PatchRefused as refusal:
        return _answer(review, "refused", Verdict(warnings=(f"workload-stamp: not stamped: {refusal}",)), decision)
    if not patch.operations:
        unchanged = "unchanged" if decision.outcome == "stamped" else decision.outcome
        return _answer(review, unchanged, Verdict(), decision)
    if policy.observe:
        return _answer(review, "observed", Verdict(), decision)
    verdict = Verdict(operations=patch.operations, warnings=_warnings(review, patch), patch=patch.encoded)
    return _answer(review, decision.outcome, verdict, decision)


def decide(
    review: Review,
    lineage: Lineage,
    catalog: Catalog,
    policy: Policy,
    isolated: Mapping[str, Outcome] = NOTHING_ISOLATED,
) -> Decision:
    """The stamps that the reviewed object should carry, or why it is left alone."""
    if must_be_left_alone(review, policy.prefix):
        return LEFT_ALONE
    if is_pod(review):
        return _decide_pod(review, lineage, catalog, policy, isolated)
    compiled = catalog.find(review.kind)
    if compiled is None:
        return UNDESCRIBED
    return _decide_root(review, compiled, lineage, policy, isolated)


def _decide_pod(
    review: Review, lineage: Lineage, catalog: Catalog, policy: Policy, isolated: Mapping[str, Outcome]
) -> Decision:
    pod: JsonObject = review.obj
    bare = controller_reference(pod) is None
    own = catalog.find(POD) if bare else None
    if own is None and lineage.broken is None and not lineage.described:
        return Decision(outcome="undescribed", stamps=Stamps())
    spec, metadata = pod.get("spec"), pod["metadata"]
    devices = effective_devices(_object(spec), _object(metadata.get("annotations")), policy.accelerators)
    structure = _resolved(review, own, policy, isolated) if own is not None else None
    return Decision(outcome="stamped", stamps=pod_stamps(pod, devices, lineage, structure, isolated))


def _object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _decide_root(
    review: Review, compiled: CompiledDefinition, lineage: Lineage, policy: Policy, isolated: Mapping[str, Outcome]
) -> Decision:
    structure = _resolved(review, compiled, policy, isolated)
    owned = controller_reference(review.obj) is not None
    stamps = root_stamps(structure, operation=review.operation, owned=owned, lineage=lineage if owned else NO_OWNERS)
    outcome = "skipped" if stamps is None else "stamped"
    return Decision(outcome=outcome, stamps=stamps, structure=structure)


def _resolved(
    review: Review, compiled: CompiledDefinition, policy: Policy, isolated: Mapping[str, Outcome]
) -> Structure:
    return resolve(compiled, review.obj, policy.accelerators, namespace=review.namespace, isolated=isolated)


def _warnings(review: Review, patch: Patch) -> tuple[str, ...]:
    """Warnings for people; service accounts copy metadata about and would only be puzzled."""
    if not review.by_person:
        return ()
    warnings = [f"{key} is set by workload-stamp; your value was replaced" for key in patch.displaced]
    if patch.without_annotations:
        warnings.append("workload-stamp: annotations are near their size limit, only labels were written")
    return tuple(warnings)


def _answer(review: Review, outcome: str, verdict: Verdict, decision: Decision) -> Answer:
    stamps = decision.stamps
    facts: dict[str, Any] = {
        "kind": review.kind.kind,
        "group": review.kind.group,
        "namespace": review.namespace,
        "name": review.name,
        "uid": review.uid,
        "operation": review.operation,
        "operations": len(verdict.operations),
        "unresolved": tuple(stamps.unresolved) if stamps is not None else (),
    }
    return Answer(body=encode(review.uid, verdict), outcome=outcome, facts=facts, structure=decision.structure)


def pending_evaluations(
    review: Review, lineage: Lineage, catalog: Catalog, prefix: str
) -> tuple[tuple[CompiledDefinition, IsolatedRequest], ...]:
    """The expressions that must be evaluated outside the process before `admit` can use their results.

    Packaged definitions have none; see definitions.md, section 4.
    """
    if must_be_left_alone(review, prefix):
        return ()
    compiled = catalog.find(review.kind)
    found: list[tuple[CompiledDefinition, IsolatedRequest]] = []
    if compiled is not None and not (is_pod(review) and lineage.owners):
        _add(found, compiled, compiled.structure.pending(review.obj))
        _add(found, compiled, compiled.selection.pending(review.obj))
    if is_pod(review):
        for structure in lineage.described:
            _add(found, structure.compiled, structure.compiled.selection.pending(review.obj))
    return tuple(found)


def _add(
    found: list[tuple[CompiledDefinition, IsolatedRequest]],
    compiled: CompiledDefinition,
    request: IsolatedRequest | None,
) -> None:
    if request is not None:
        found.append((compiled, request))
