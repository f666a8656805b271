"""What is remembered of owners, by uid: where each points and what it asks for, and when that may be believed.

It is believed as long as a watch of its kind would have told of a change, else for a few seconds. Does no I/O: the
reader and the watches of root kinds put in what they see.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from catalog.definition import GroupVersionKind, JsonObject
from catalog.expressions import Outcome
from catalog.library import NOTHING_ISOLATED, Catalog, CompiledDefinition
from catalog.structure import Structure, resolve
from webhook.cluster.telemetry import ClusterMetrics
from webhook.cluster.views import fingerprint, version_number
from webhook.lineage import OwnerReference, controller_reference
from webhook.stamps import Policy

STALE_FOR = 5.0
"""Seconds after a review of an update during which an owner is read anew unless the watch has seen it."""

BELIEVED_FOR = 5.0
"""Seconds for which a described object is believed that no watch follows."""

PASSED_THROUGH_BELIEVED_FOR = 60.0
"""The same for an object of which only the owner is asked: it changes when it is adopted, if ever."""


@dataclass(slots=True, kw_only=True)
class Remembered:
    """One owner: where it points, and its structure when its kind is described.

    `read_at` and `stale_since` are event-loop times, `version` its resource version where that is a number.
    """

    kind: GroupVersionKind
    namespace: str
    name: str
    uid: str
    next: OwnerReference | None
    compiled: CompiledDefinition | None
    structure: Structure | None
    fingerprint: tuple[object, ...]
    version: int
    read_at: float
    stale_since: float | None = None


def nothing_followed(_group: str, _kind: str) -> bool:
    """For who has no watches."""
    return False


class OwnerCache:
    """Bounded: the least recently used owner is forgotten. `is_followed` says whether a kind's watch is current."""

    def __init__(self, policy: Policy, metrics: ClusterMetrics, size: int) -> None:
        self._policy = policy
        self._metrics = metrics
        self._size = size
        self._loop = asyncio.get_running_loop()
        self._owners: OrderedDict[str, Remembered] = OrderedDict()
        self.is_followed: Callable[[str, str], bool] = nothing_followed
        metrics.owners_remembered.set_function(lambda: len(self._owners))

    def __len__(self) -> int:
        return len(self._owners)

    def find(self, reference: OwnerReference, namespace: str, catalog: Catalog) -> Remembered | None:
        """The owner, when what is remembered is what the reference means and can be believed."""
        found = self._owners.get(reference.uid)
        result = "missed" if found is None else self._doubt(found, reference, namespace, catalog) or "remembered"
        self._metrics.owner_lookups.labels(result).inc()
        if result != "remembered":
            return None
        self._owners.move_to_end(reference.uid)
        return found

    def _doubt(self, found: Remembered, reference: OwnerReference, namespace: str, catalog: Catalog) -> str | None:
        """Why what is remembered does not do, None when it does."""
        if (found.kind.group, found.kind.kind) != (reference.kind.group, reference.kind.kind):
            return "missed"
        if found.name != reference.name or found.namespace not in ("", namespace):
            return "missed"  # a reference is user input: who knows a uid must not be taken into another namespace
        if found.compiled is not definition_of(catalog, found.kind):
            return "redefined"
        now = self._loop.time()
        if found.stale_since is not None and now < found.stale_since + STALE_FOR:
            return "stale"
        if found.compiled is not None and self.is_followed(found.kind.group, found.kind.kind):
            return None
        believed_for = PASSED_THROUGH_BELIEVED_FOR if found.compiled is None else BELIEVED_FOR
        return None if now < found.read_at + believed_for else "aged"

    def keep(
        self,
        obj: JsonObject,
        kind: GroupVersionKind,
        compiled: CompiledDefinition | None,
        isolated: Mapping[str, Outcome],
    ) -> Remembered:
        """Remember an object as it was shown; the newer one of two views of it stays."""
        metadata = obj["metadata"]
        before, version = self._owners.get(metadata["uid"]), version_number(obj)
        if before is not None and before.compiled is compiled and before.version > version:
            return before  # a read that was overtaken by the watch
        structure = None
        if compiled is not None:
            structure = resolve(
                compiled, obj, self._policy.accelerators, namespace=metadata.get("namespace", ""), isolated=isolated
            )
        mark = fingerprint(obj, compiled)
        unchanged = before is not None and before.fingerprint == mark
        remembered = Remembered(
            kind=kind,
            namespace=metadata.get("namespace", ""),
            name=metadata["name"],
            uid=metadata["uid"],
            next=controller_reference(obj),
            compiled=compiled,
            structure=structure,
            fingerprint=mark,
            version=version,
            read_at=self._loop.time(),
            # A read may come before the update that was reviewed is stored.
            stale_since=before.stale_since if before is not None and unchanged else None,
        )
        self._owners[remembered.uid] = remembered
        self._owners.move_to_end(remembered.uid)
        while len(self._owners) > self._size:
            self._owners.popitem(last=False)
        return remembered

    def updated(self, structure: Structure) -> None:
        """A review changes this object: until the watch has seen it, it is read anew when needed."""
        found = self._owners.get(structure.uid)
        if found is not None and found.structure is not None and differs(found.structure, structure):
            found.stale_since = self._loop.time()

    def seen(self, obj: JsonObject, kind: GroupVersionKind, catalog: Catalog) -> bool:
        """A watch shows a described object as it is now; whether anything that matters has changed since last time."""
        metadata = obj.get("metadata") or {}
        uid, compiled = metadata.get("uid"), definition_of(catalog, kind)
        if not uid or compiled is None:
            return False
        found = self._owners.get(uid)
        if found is not None and found.compiled is compiled and found.fingerprint == fingerprint(obj, compiled):
            found.version = max(found.version, version_number(obj))
            return False
        if found is not None and found.stale_since is not None:
            self._metrics.watch_lag_seconds.observe(self._loop.time() - found.stale_since)
        if compiled.structure.pending(obj) is not None:
            self.gone(uid)  # read through, where waiting for another process is possible
        else:
            self.keep(obj, kind, compiled, NOTHING_ISOLATED)
        return True

    def gone(self, uid: str) -> None:
        """Forget an owner."""
        self._owners.pop(uid, None)


def definition_of(catalog: Catalog, kind: GroupVersionKind) -> CompiledDefinition | None:
    """The definition through which an owner is read: none for a pod that owns pods (contract, section 2)."""
    return None if kind.kind == "Pod" and not kind.group else catalog.find(kind)


def differs(one: Structure, other: Structure) -> bool:
    """Whether two structures of one object would stamp its pods differently."""
    return (one.leaves, one.gangs, one.gang_fault) != (other.leaves, other.gangs, other.gang_fault)
