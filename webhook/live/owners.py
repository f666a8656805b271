"""Owners among the objects of a snapshot, followed as admission follows them, each resolved once.

Where an owner that has to be read is not in the snapshot, the lineage is broken, as it would be at an admission.
"""

from collections.abc import Callable, Iterator, Mapping

from catalog.definition import JsonObject
from catalog.expressions import IsolatedRequest, Outcome
from catalog.library import NOTHING_ISOLATED, Catalog, CompiledDefinition
from catalog.structure import Structure, resolve
from webhook.lineage import (
    MAX_OWNERS,
    NO_OWNERS,
    Lineage,
    Owner,
    OwnerReference,
    controller_reference,
    next_owner,
)
from webhook.live.snapshot import Snapshot, kind_of, text_at
from webhook.stamps import Policy

Evaluate = Callable[[IsolatedRequest], Mapping[str, Outcome]]
"""Has expressions evaluated outside the process, waiting for the outcomes."""


def nothing_evaluated(_: IsolatedRequest) -> Mapping[str, Outcome]:
    """For catalogues that are known to be plain: what has to be evaluated elsewhere stays unknown."""
    return NOTHING_ISOLATED


class OwnerIndex:
    """The objects of a snapshot by uid, with their structures and lineages as they are asked for."""

    def __init__(
        self, snapshot: Snapshot, catalog: Catalog, policy: Policy, evaluate: Evaluate = nothing_evaluated
    ) -> None:
        self.catalog = catalog
        self.policy = policy
        self._evaluate = evaluate
        self._objects: dict[str, JsonObject] = {}
        self._whole: set[str] = set()
        self._structures: dict[str, Structure | None] = {}
        self._lineages: dict[str, Lineage] = {}
        self._children: dict[str, list[JsonObject]] = {}
        for obj in snapshot.objects:
            self._whole.add(text_at(obj, "metadata", "uid"))
        for obj in (*snapshot.objects, *snapshot.owners, *snapshot.pods):
            self._add(obj)

    def _add(self, obj: JsonObject) -> None:
        uid = text_at(obj, "metadata", "uid")
        if uid in self._objects:
            return
        self._objects[uid] = obj
        reference = controller_reference(obj)
        if reference is not None:
            self._children.setdefault(reference.uid, []).append(obj)

    def renew(self, obj: JsonObject) -> None:
        """Take an object over as it is now; what followed from its former state is forgotten."""
        uid = text_at(obj, "metadata", "uid")
        self._objects[uid] = obj
        self._structures.pop(uid, None)
        self._lineages.clear()

    def get(self, uid: str) -> JsonObject | None:
        """The object with that uid."""
        return self._objects.get(uid)

    def children(self, uid: str) -> tuple[JsonObject, ...]:
        """The objects whose controller is the one with that uid, in the order of the snapshot."""
        return tuple(self._children.get(uid, ()))

    def owner_of(self, obj: JsonObject) -> JsonObject | None:
        """The controller of an object, if it is in the snapshot; whether admission would read it plays no part."""
        reference = controller_reference(obj)
        return self._objects.get(reference.uid) if reference is not None else None

    def definition(self, obj: JsonObject) -> CompiledDefinition | None:
        """The definition through which an object is read: none for pods, and none where only metadata is there."""
        if text_at(obj, "metadata", "uid") not in self._whole:
            return None
        return self.catalog.find(kind_of(obj))

    def structure(self, obj: JsonObject) -> Structure | None:
        """A described object's structure, resolved when it is first asked for."""
        uid = text_at(obj, "metadata", "uid")
        if uid not in self._structures:
            compiled = self.definition(obj)
            self._structures[uid] = self.resolved(compiled, obj) if compiled is not None else None
        return self._structures[uid]

    def resolved(self, compiled: CompiledDefinition, obj: JsonObject) -> Structure:
        """An object as that definition reads it."""
        return resolve(compiled, obj, self.policy.accelerators, isolated=self.outcomes(compiled.structure.pending(obj)))

    def outcomes(self, request: IsolatedRequest | None) -> Mapping[str, Outcome]:
        """What the expressions give that cannot be evaluated in this process."""
        return NOTHING_ISOLATED if request is None else self._evaluate(request)

    def lineage(self, obj: JsonObject) -> Lineage:
        """The owners of an object, nearest first; the objects of one controller share theirs."""
        reference = next_owner(obj, self.catalog)
        return NO_OWNERS if reference is None else self._lineage_from(reference)

    def _lineage_from(self, reference: OwnerReference) -> Lineage:
        known = self._lineages.get(reference.uid)
        if known is None:
            known = self._lineages[reference.uid] = self._followed(reference)
        return known

    def _followed(self, first: OwnerReference) -> Lineage:
        owners: list[Owner] = []
        seen: set[str] = set()
        reference: OwnerReference | None = first
        while reference is not None:
            found = self._objects.get(reference.uid)
            broken = _fault(reference, found, seen)
            if found is None or broken is not None:
                return Lineage(owners=tuple(owners), broken=broken)
            seen.add(reference.uid)
            owners.append(self._owner(found))
            reference = next_owner(found, self.catalog)
        return Lineage(owners=tuple(owners))

    def _owner(self, obj: JsonObject) -> Owner:
        return Owner(
            kind=kind_of(obj),
            namespace=text_at(obj, "metadata", "namespace"),
            name=text_at(obj, "metadata", "name"),
            uid=text_at(obj, "metadata", "uid"),
            structure=self.structure(obj),
        )

    def described_below(self, uid: str) -> Iterator[Structure]:
        """The structures of the described objects below one, level by level."""
        level = [uid]
        seen = {uid}
        while level:
            children = [child for parent in level for child in self._children.get(parent, ())]
            level = []
            for child in children:
                child_uid = text_at(child, "metadata", "uid")
                if child_uid in seen:
                    continue
                seen.add(child_uid)
                level.append(child_uid)
                structure = self.structure(child)
                if structure is not None:
                    yield structure


def _fault(reference: OwnerReference, found: JsonObject | None, seen: set[str]) -> str | None:
    named = f"{reference.kind.kind} {reference.name}"
    if found is None:
        return f"owner {named} could not be read"
    if reference.uid in seen:
        return f"owner {named} owns itself in a circle"
    return f"more than {MAX_OWNERS} owners" if len(seen) >= MAX_OWNERS else None
