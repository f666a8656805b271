"""The JSON Patch that brings an object's metadata to its stamps, proved by applying it.

A patch that does not apply fails the user's request even under `failurePolicy: Ignore`, so none leaves this module
that was not applied to the very object and found to give exactly the stamps (RFC 6902; kubernetes/kubernetes#129459).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from catalog.definition import Json, JsonObject
from webhook.review import PatchOperation, encoded
from webhook.stamps import IGNORE_KEY, Stamps

MAX_ANNOTATIONS = 256 * 1024
"""Bytes of all keys and values together (Kubernetes apimachinery, `pkg/api/validation`: TotalAnnotationSizeLimitB)."""


MAX_UTF8_BYTES = 4
"""Bytes of one character at most."""


class PatchRefused(Exception):
    """The patch was not proved right for this object, so it must not be sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patch:
    """The operations (none when the object already is as it should be) and what they displace.

    `displaced` names the keys under our prefix whose foreign values are replaced or removed, `without_annotations`
    tells that the annotations had no room.
    """

    operations: tuple[PatchOperation, ...]
    displaced: tuple[str, ...] = ()
    without_annotations: bool = False
    encoded: str = ""


def stamp_patch(obj: JsonObject, stamps: Stamps, prefix: str) -> Patch:
    """The patch for `obj`, which is not changed. Raises `PatchRefused` when it cannot be proved right.

    Keys under the prefix that are not among the stamps are removed, except the users' own one.
    """
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        raise PatchRefused("the object has no metadata to write to")
    form = _form(metadata, prefix)
    known: Patch | None = stamps.patches.get(form) if form is not None else None
    if known is not None:
        _prove_additions(obj, known, stamps, prefix)
        return known
    patch = _worked_out(obj, metadata, stamps, prefix)
    if form is not None:
        stamps.patches[form] = patch
    return patch


def _form(metadata: JsonObject, prefix: str) -> tuple[str, bool, bool] | None:
    """What of an object decides about the operations when it carries no key of ours: which of the maps are there.

    None for any other object, and for one whose annotations may be near their limit.
    """
    labels, annotations = metadata.get("labels"), metadata.get("annotations")
    ours = f"{prefix}/"
    for present in (labels, annotations):
        if present is None:
            continue
        if not isinstance(present, dict):
            return None
        for key in present:
            if key.startswith(ours):
                return None
    if annotations is not None and _bytes_of(annotations) > MAX_ANNOTATIONS // 2:
        return None
    return prefix, labels is not None, annotations is not None


def _prove_additions(obj: JsonObject, patch: Patch, stamps: Stamps, prefix: str) -> None:
    """Apply a patch that only adds, and look: everything that was there, and the stamps besides."""
    metadata, patched = obj["metadata"], apply(obj, patch.operations)["metadata"]
    for field, stamped in (("labels", stamps.labels), ("annotations", stamps.annotations)):
        before, after = metadata.get(field) or {}, patched.get(field) or {}
        if len(after) != len(before) + len(stamped) or not before.items() <= after.items():
            raise PatchRefused("applied to the object, the patch does not give the stamps")
        if any(after.get(named(prefix, key)) != value for key, value in stamped.items()):
            raise PatchRefused("applied to the object, the patch does not give the stamps")


def _worked_out(obj: JsonObject, metadata: JsonObject, stamps: Stamps, prefix: str) -> Patch:
    labels = _Change.of(metadata, "labels", stamps.labels, prefix)
    annotations = _Change.of(metadata, "annotations", stamps.annotations, prefix)
    without_annotations = _bytes_of(annotations.wanted) > MAX_ANNOTATIONS
    if without_annotations:
        annotations = _Change.of(metadata, "annotations", {}, prefix)
    operations = (*labels.operations, *annotations.operations)
    if operations:
        _prove(obj, operations, (labels, annotations))
    return Patch(
        operations=operations,
        displaced=(*labels.displaced, *annotations.displaced),
        without_annotations=without_annotations,
        encoded=encoded(operations) if operations else "",
    )


@dataclass(frozen=True, slots=True)
class _Change:
    """What becomes of one map of the metadata: the map as it should be, and the operations that bring it there.

    The map is made when it is missing, never replaced.
    """

    field: str
    wanted: Mapping[str, Json]
    operations: tuple[PatchOperation, ...]
    displaced: tuple[str, ...]

    @classmethod
    def of(cls, metadata: JsonObject, field: str, stamped: Mapping[str, str], prefix: str) -> "_Change":
        present = metadata.get(field)
        if present is None:
            return cls._made(field, {named(prefix, key): value for key, value in stamped.items()})
        if not isinstance(present, dict):
            raise PatchRefused(f"metadata.{field} is not a map")
        wanted = dict(present)
        operations: list[PatchOperation] = []
        displaced: list[str] = []
        for short, value in stamped.items():
            key = named(prefix, short)
            before = present.get(key)
            if before == value:
                continue
            operations.append(
                {"op": "replace" if key in present else "add", "path": pointer(field, key), "value": value}
            )
            if key in present:
                displaced.append(key)
            wanted[key] = value
        for key in _foreign(present, stamped, prefix):
            operations.append({"op": "remove", "path": pointer(field, key)})
            displaced.append(key)
            del wanted[key]
        return cls(field, wanted, tuple(operations), tuple(sorted(displaced)))

    @classmethod
    def _made(cls, field: str, ours: Mapping[str, str]) -> "_Change":
        operation: PatchOperation = {"op": "add", "path": f"/metadata/{field}", "value": ours}
        return cls(field, ours, (operation,) if ours else (), ())


def _foreign(present: Mapping[str, Json], stamped: Mapping[str, str], prefix: str) -> list[str]:
    """Keys under the prefix that we do not write to this object, the users' own aside; in order."""
    ours = f"{prefix}/"
    under = [key for key in present if key.startswith(ours)]
    return sorted(key for key in under if key[len(ours) :] not in stamped and key[len(ours) :] != IGNORE_KEY)


@lru_cache(maxsize=1024)
def named(prefix: str, key: str) -> str:
    """The whole key. There are a dozen of them, so they are remembered."""
    return f"{prefix}/{key}"


def _bytes_of(annotations: Mapping[str, Json]) -> int:
    characters = sum(map(len, annotations)) + sum(map(len, map(str, annotations.values())))
    if characters * MAX_UTF8_BYTES <= MAX_ANNOTATIONS:
        return characters
    return sum(len(key.encode()) + len(str(value).encode()) for key, value in annotations.items())


@lru_cache(maxsize=4096)
def pointer(field: str, key: str) -> str:
    """The JSON pointer of one label or annotation. There are a few dozen keys, so they are remembered."""
    return f"/metadata/{field}/{escaped(key)}"


def escaped(key: str) -> str:
    """A key as one token of a JSON pointer (RFC 6901): `~` first, then `/`."""
    return key.replace("~", "~0").replace("/", "~1")


@lru_cache(maxsize=4096)
def _place(path: str) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """The way to the member's parent, the member's key, and the way to the member."""
    way = tuple(token.replace("~1", "/").replace("~0", "~") for token in path.split("/")[1:])
    return way[:-1], way[-1], way


def _prove(obj: JsonObject, operations: Sequence[PatchOperation], changes: Sequence[_Change]) -> None:
    """Apply the operations and look: both maps as wanted, and everything else the very same values."""
    patched = apply(obj, operations)
    metadata, before = patched["metadata"], obj["metadata"]
    touched = {change.field for change in changes}
    maps_are_right = all((metadata.get(change.field) or {}) == change.wanted for change in changes)
    rest_is_same = all(metadata.get(key) is before.get(key) for key in {*metadata, *before} - touched) and all(
        patched.get(key) is obj.get(key) for key in {*patched, *obj} - {"metadata"}
    )
    if not maps_are_right or not rest_is_same:
        raise PatchRefused("applied to the object, the patch does not give the stamps")


def apply(obj: JsonObject, operations: Sequence[PatchOperation]) -> JsonObject:
    """`obj` with the operations applied, strictly, as the API server applies them; `obj` itself is not changed.

    Only what stamps need is known: add, replace and remove of object members. Raises `PatchRefused` when an operation
    does not apply.
    """
    root = dict(obj)
    copied: dict[tuple[str, ...], JsonObject] = {(): root}
    for operation in operations:
        parents, key, way = _place(operation["path"])
        holder = copied.get(parents)
        if holder is None:
            holder = _copied_way(copied, parents, operation["path"])
        op = operation["op"]
        if op != "add" and key not in holder:
            raise PatchRefused(f"{op} of {operation['path']}, which is not there")
        if op == "remove":
            del holder[key]
        else:
            holder[key] = operation["value"]
        copied.pop(way, None)
    return root


def _copied_way(copied: dict[tuple[str, ...], JsonObject], place: tuple[str, ...], path: str) -> JsonObject:
    """The map at `place`, copied together with every map on the way to it, so that the original stays as it was."""
    if place in copied:
        return copied[place]
    parent = _copied_way(copied, place[:-1], path)
    child = parent.get(place[-1])
    if not isinstance(child, dict):
        raise PatchRefused(f"{path}: {place[-1]} is not a map")
    copied[place] = parent[place[-1]] = dict(child)
    return copied[place]
