"""A pod's owners, nearest first, as a value; and the rule that decides where the walk up ends.

Whoever reads the owners (the cluster, a file) follows `next_owner` from object to object; nothing is read here.
"""

from dataclasses import dataclass

from catalog.definition import GroupVersionKind, Json, JsonObject
from catalog.library import Catalog
from catalog.structure import Structure

MAX_OWNERS = 12
"""Owners above one object: the longest known chain has six (RayCronJob to pod, LeaderWorkerSet under a NIMService)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerReference:
    """The controller reference of an object. Its uid is what has to be found under that name."""

    kind: GroupVersionKind
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """One verified owner. `structure` is there when its kind is described."""

    kind: GroupVersionKind
    namespace: str
    name: str
    uid: str
    structure: Structure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """The owners of an object, nearest first.

    `broken` says why an owner that has to be read could not be: then the top is unknown.
    """

    owners: tuple[Owner, ...] = ()
    broken: str | None = None

    @property
    def described(self) -> tuple[Structure, ...]:
        """The structures of the described owners, nearest first."""
        return tuple(owner.structure for owner in self.owners if owner.structure is not None)


NO_OWNERS = Lineage()

SOMETHING = OwnerReference(kind=GroupVersionKind("?", "", "?"), name="", uid="")
"""A controller that is named in a way that cannot be read: there is one, and nothing describes it."""


def controller_reference(obj: Json) -> OwnerReference | None:
    """The reference with `controller: true` of an object's metadata; a Node owner counts as none (mirror pods)."""
    metadata = obj.get("metadata") if isinstance(obj, dict) else None
    references = metadata.get("ownerReferences") if isinstance(metadata, dict) else None
    if not isinstance(references, list):
        return None
    for reference in references:
        if isinstance(reference, dict) and reference.get("controller") is True:
            return _read(reference)
    return None


def _read(reference: JsonObject) -> OwnerReference | None:
    kind = kind_named(reference.get("apiVersion"), reference.get("kind"))
    name, uid = reference.get("name"), reference.get("uid")
    if kind is None or not isinstance(name, str) or not isinstance(uid, str):
        return SOMETHING
    return None if kind.kind == "Node" and not kind.group else OwnerReference(kind=kind, name=name, uid=uid)


def kind_named(api_version: Json, kind: Json) -> GroupVersionKind | None:
    """The kind that an `apiVersion` and a `kind` name; `None` when either is no string."""
    if not isinstance(api_version, str) or not isinstance(kind, str):
        return None
    group, slash, version = api_version.rpartition("/")
    return GroupVersionKind(group if slash else "", version, kind)


def next_owner(obj: Json, catalog: Catalog) -> OwnerReference | None:
    """The owner to read next; `None` ends the lineage as complete: no controller, or of a kind not walked through."""
    reference = controller_reference(obj)
    if reference is None or not catalog.walks_through(reference.kind.group, reference.kind.kind):
        return None
    return reference
