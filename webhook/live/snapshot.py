"""What was read of a cluster at one time, as values: plain objects, and what could not be read.

Whoever reads (a cluster, a file) fills a snapshot; the rest of this room looks at nothing else. Knows no transport.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from catalog.definition import GroupVersionKind, JsonObject
from webhook.lineage import kind_named


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """Objects that could not be read. `reason` is one sentence for people."""

    group: str
    kind: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Objects as they were stored, each with its apiVersion and kind.

    `objects` are whole, and of described kinds; `owners` are read for the way up only, their metadata is enough.
    `nodes` is None where they could not be read; `groups` are the groups of gang schedulers.
    """

    objects: tuple[JsonObject, ...] = ()
    owners: tuple[JsonObject, ...] = ()
    pods: tuple[JsonObject, ...] = ()
    nodes: tuple[JsonObject, ...] | None = None
    groups: tuple[JsonObject, ...] = ()
    unread: tuple[Unread, ...] = ()


def kind_of(obj: JsonObject) -> GroupVersionKind:
    """The kind of an object of a snapshot."""
    kind = kind_named(obj.get("apiVersion"), obj.get("kind"))
    assert kind is not None, "a snapshot's objects name their kind"
    return kind


def text_at(obj: JsonObject, *path: str) -> str:
    """The text at a path of field names; empty when there is none."""
    value: object = obj
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, str) else ""


def map_at(obj: JsonObject, *path: str) -> JsonObject:
    """The map at a path of field names; empty when there is none."""
    value: object = obj
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def maps_at(obj: JsonObject, *path: str) -> Iterator[JsonObject]:
    """The maps in the list at a path of field names."""
    *way, last = path
    value = map_at(obj, *way).get(last)
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, dict):
            yield entry
