"""The JSON Patch that brings an object's metadata to its stamps, proved by applying it.

A patch that does not apply fails the user's request even under `failurePolicy: Ignore`, so none leaves this module
that was not applied to the very object and found to give exactly the stamps (RFC 6902; kubernetes/kubernetes#129459).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catalog.definition import Json, JsonObject
from webhook.review import PatchOperation
from webhook.stamps import IGNORE_KEY, Stamps

MAX_ANNOTATIONS = 256 * 1024
"""Bytes of all keys and values together (Kubernetes apimachinery, `pkg/api/validation`: TotalAnnotationSizeLimitB)."""


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


def stamp_patch(obj: JsonObject, stamps: Stamps, prefix: str) -> Patch:
    """The patch for `obj`, which is not changed. Raises `PatchRefused` when it cannot be proved right.

    Keys under the prefix that are not among the stamps are removed, except the users' own one.
    """
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        raise PatchRefused("the object has no metadata to write to")
    labels = _wanted(_map(metadata, "labels"), stamps.labels, prefix)
    annotations = _wanted(_map(metadata, "annotations"), stamps.annotations, prefix)
    without_annotations = _bytes_of(annotations) > MAX_ANNOTATIONS
    if without_annotations:
        annotations = _wanted(_map(metadata, "annotations"), {}, prefix)
    operations = (*_map_operations(metadata, "labels", labels), *_map_operations(metadata, "annotations", annotations))
    _prove(obj, operations, labels, annotations)
    displaced = (
        *_displaced(metadata, "labels", labels, prefix),
        *_displaced(metadata, "annotations", annotations, prefix),
    )
    return Patch(operations=operations, displaced=displaced, without_annotations=without_annotations)


def _map(metadata: JsonObject, field: str) -> Mapping[str, Json]:
    value = metadata.get(field)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise PatchRefused(f"metadata.{field} is not a map")
    return value


def _wanted(present: Mapping[str, Json], stamped: Mapping[str, str], prefix: str) -> dict[str, Json]:
    """The map as it should become: everybody else's keys as they are, ours as stamped."""
    ours, kept = f"{prefix}/", f"{prefix}/{IGNORE_KEY}"
    wanted = {key: value for key, value in present.items() if key == kept or not key.startswith(ours)}
    wanted.update({ours + key: value for key, value in stamped.items()})
    return wanted


def _bytes_of(annotations: Mapping[str, Json]) -> int:
    return sum(len(key.encode()) + len(str(value).encode()) for key, value in annotations.items())


def _map_operations(metadata: JsonObject, field: str, wanted: Mapping[str, Json]) -> list[PatchOperation]:
    """Operations that bring one map of the metadata to `wanted`: the map is made when missing, never replaced."""
    present = metadata.get(field)
    if present is None:
        return [{"op": "add", "path": f"/metadata/{field}", "value": dict(sorted(wanted.items()))}] if wanted else []
    operations: list[PatchOperation] = [
        {"op": "remove", "path": f"/metadata/{field}/{escaped(key)}"} for key in sorted(present.keys() - wanted.keys())
    ]
    for key in sorted(wanted):
        if key not in present:
            operations.append({"op": "add", "path": f"/metadata/{field}/{escaped(key)}", "value": wanted[key]})
        elif present[key] != wanted[key]:
            operations.append({"op": "replace", "path": f"/metadata/{field}/{escaped(key)}", "value": wanted[key]})
    return operations


def escaped(key: str) -> str:
    """A key as one token of a JSON pointer (RFC 6901): `~` first, then `/`."""
    return key.replace("~", "~0").replace("/", "~1")


def _displaced(metadata: JsonObject, field: str, wanted: Mapping[str, Json], prefix: str) -> list[str]:
    present = _map(metadata, field)
    return sorted(key for key, value in present.items() if key.startswith(f"{prefix}/") and wanted.get(key) != value)


def _prove(
    obj: JsonObject,
    operations: Sequence[PatchOperation],
    labels: Mapping[str, Json],
    annotations: Mapping[str, Json],
) -> None:
    if not operations:
        return
    patched = apply(obj, operations)
    expected: JsonObject = {**obj, "metadata": {**obj["metadata"]}}
    for field, wanted in (("labels", labels), ("annotations", annotations)):
        if wanted or expected["metadata"].get(field) is not None:
            expected["metadata"][field] = wanted
    if patched["metadata"] != expected["metadata"] or patched.keys() != obj.keys():
        raise PatchRefused("applied to the object, the patch does not give the stamps")


def apply(obj: JsonObject, operations: Sequence[PatchOperation]) -> JsonObject:
    """`obj` with the operations applied, strictly, as the API server applies them; `obj` itself is not changed.

    Only what stamps need is known: add, replace and remove of object members. Raises `PatchRefused` when an operation
    does not apply.
    """
    root = dict(obj)
    fresh: set[int] = {id(root)}
    for operation in operations:
        parent, key = _locate(root, operation["path"], fresh)
        op = operation["op"]
        if op != "add" and key not in parent:
            raise PatchRefused(f"{op} of {operation['path']}, which is not there")
        if op == "remove":
            del parent[key]
        else:
            parent[key] = operation["value"]
    return root


def _locate(root: JsonObject, path: str, fresh: set[int]) -> tuple[JsonObject, str]:
    """The member's parent, copied on the way down so that the original stays untouched, and the member's key."""
    tokens = [token.replace("~1", "/").replace("~0", "~") for token in path.split("/")[1:]]
    holder = root
    for token in tokens[:-1]:
        child = holder.get(token)
        if not isinstance(child, dict):
            raise PatchRefused(f"{path}: {token} is not a map")
        if id(child) not in fresh:
            child = dict(child)
            holder[token] = child
            fresh.add(id(child))
        holder = child
    return holder, tokens[-1]
