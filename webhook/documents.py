"""Owners taken from given documents instead of a cluster: for the command line, the demo and the tests."""

from collections.abc import Callable, Iterable, Mapping

from catalog.definition import GroupVersionKind, Json, JsonObject
from catalog.expressions import IsolatedRequest, Outcome
from catalog.library import NOTHING_ISOLATED, Catalog, CompiledDefinition
from catalog.structure import Structure, resolve
from webhook.lineage import MAX_OWNERS, NO_OWNERS, Lineage, Owner, OwnerReference, kind_named, next_owner
from webhook.stamps import Policy

Evaluate = Callable[[IsolatedRequest], Mapping[str, Outcome]]
"""Has expressions evaluated outside the process, waiting for the outcomes."""


class DocumentOwners:
    """Objects by kind, namespace and name, followed as a cluster's would be."""

    def __init__(self, objects: Iterable[JsonObject], policy: Policy, evaluate: Evaluate | None = None) -> None:
        self._policy = policy
        self._evaluate = evaluate
        self._objects = {key: obj for obj in objects if (key := _key_of(obj)) is not None}
        self._read: dict[tuple[OwnerReference, str], tuple[CompiledDefinition | None, Owner]] = {}

    async def lineage(self, obj: JsonObject, namespace: str, catalog: Catalog, deadline: float) -> Lineage:  # noqa: ARG002
        """The owners of `obj`; documents are at hand, so the deadline (event-loop time, seconds) plays no part."""
        return self.lineage_of(obj, namespace, catalog)

    def lineage_of(self, obj: JsonObject, namespace: str, catalog: Catalog) -> Lineage:
        """The owners of `obj`, nearest first; broken where one is not among the documents or has another uid."""
        owners: list[Owner] = []
        reference = next_owner(obj, catalog)
        while reference is not None:
            found = self._find(reference, namespace)
            broken = _fault(reference, found, owners)
            if found is None or broken is not None:
                return Lineage(owners=tuple(owners), broken=broken)
            owners.append(self._owner(reference, found, namespace, catalog))
            reference = next_owner(found, catalog)
        return Lineage(owners=tuple(owners))

    def updated(self, structure: Structure) -> None:
        """Documents stay as they are."""

    def _find(self, reference: OwnerReference, namespace: str) -> JsonObject | None:
        kind = reference.kind
        for place in (namespace, ""):
            found = self._objects.get((kind.group, kind.kind, place, reference.name))
            if found is not None:
                return found
        return None

    def _owner(self, reference: OwnerReference, found: JsonObject, namespace: str, catalog: Catalog) -> Owner:
        """The owner as its definition in force reads it; read once, as documents do not change."""
        kind = kind_named(found.get("apiVersion"), found.get("kind")) or reference.kind
        compiled = catalog.find(kind) if kind.kind != "Pod" or kind.group else None
        known = self._read.get((reference, namespace))
        if known is None or known[0] is not compiled:
            known = (compiled, self._resolved(reference, found, namespace, kind, compiled))
            self._read[reference, namespace] = known
        return known[1]

    def _resolved(
        self,
        reference: OwnerReference,
        found: JsonObject,
        namespace: str,
        kind: GroupVersionKind,
        compiled: CompiledDefinition | None,
    ) -> Owner:
        structure = None
        if compiled is not None:
            request = compiled.structure.pending(found)
            isolated = self._evaluate(request) if request is not None and self._evaluate else NOTHING_ISOLATED
            structure = resolve(compiled, found, self._policy.accelerators, namespace=namespace, isolated=isolated)
        return Owner(kind=kind, namespace=namespace, name=reference.name, uid=reference.uid, structure=structure)


class NoOwnersKnown:
    """For a server without a cluster and without documents: the top of every owned object is unknown."""

    async def lineage(self, obj: JsonObject, namespace: str, catalog: Catalog, deadline: float) -> Lineage:  # noqa: ARG002
        """Broken, unless the object needs no owner to be read."""
        if next_owner(obj, catalog) is None:
            return NO_OWNERS
        return Lineage(broken="there is no cluster to read owners from")

    def updated(self, structure: Structure) -> None:
        """Nothing is remembered."""


def _key_of(obj: Json) -> tuple[str, str, str, str] | None:
    if not isinstance(obj, dict) or not isinstance(obj.get("metadata"), dict):
        return None
    kind, metadata = kind_named(obj.get("apiVersion"), obj.get("kind")), obj["metadata"]
    if kind is None or not isinstance(metadata.get("name"), str):
        return None
    namespace = metadata.get("namespace")
    return kind.group, kind.kind, namespace if isinstance(namespace, str) else "", metadata["name"]


def _fault(reference: OwnerReference, found: JsonObject | None, owners: list[Owner]) -> str | None:
    """Why the owner cannot be followed: not there, another object under its name, a cycle, too many above."""
    named = f"{reference.kind.kind} {reference.name}"
    if found is None:
        return f"owner {named} was not found"
    uid = found["metadata"].get("uid")
    if uid != reference.uid:
        return f"owner {named} has another uid than the reference"
    if any(owner.uid == reference.uid for owner in owners):
        return f"owner {named} owns itself in a circle"
    if len(owners) >= MAX_OWNERS:
        return f"more than {MAX_OWNERS} owners"
    return None
