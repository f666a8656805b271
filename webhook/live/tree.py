"""The chain of owners as a tree: from the topmost object that was read down to the pods."""

from dataclasses import dataclass

from catalog.definition import GroupVersionKind, JsonObject
from webhook.lineage import MAX_OWNERS, controller_reference
from webhook.live.nodes import natural
from webhook.live.owners import OwnerIndex
from webhook.live.snapshot import kind_of, text_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """One object and what it controls. `beyond` names a controller that was not read, only at the top."""

    obj: JsonObject
    kind: GroupVersionKind
    name: str
    uid: str
    children: tuple["Branch", ...]
    beyond: str = ""


def owner_tree(obj: JsonObject, index: OwnerIndex) -> Branch:
    """The whole tree in which the object stands, whoever is at its top."""
    top, seen = obj, {text_at(obj, "metadata", "uid")}
    while (owner := index.owner_of(top)) is not None and text_at(owner, "metadata", "uid") not in seen:
        top = owner
        seen.add(text_at(owner, "metadata", "uid"))
    reference = controller_reference(top) if index.owner_of(top) is None else None
    beyond = f"{reference.kind.kind} {reference.name}" if reference is not None else ""
    return _branch(top, index, frozenset(), beyond)


def _branch(obj: JsonObject, index: OwnerIndex, above: frozenset[str], beyond: str = "") -> Branch:
    uid = text_at(obj, "metadata", "uid")
    way = above | {uid}
    below = () if len(way) > MAX_OWNERS + 1 else index.children(uid)
    children = [_branch(child, index, way) for child in below if text_at(child, "metadata", "uid") not in way]
    return Branch(
        obj=obj,
        kind=kind_of(obj),
        name=text_at(obj, "metadata", "name"),
        uid=uid,
        children=tuple(sorted(children, key=lambda each: (each.kind.kind, natural(each.name)))),
        beyond=beyond,
    )
