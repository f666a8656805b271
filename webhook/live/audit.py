"""The stamps of objects that exist, held against what they should be now.

The judgement is admission's own: the same functions give the stamps, from the owners as they are now. A pod keeps what
was true when it was created (contract, section 2), so a number that another scale explains is stale, not wrong.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from catalog.definition import GroupVersionKind, JsonObject, RootStamps
from catalog.structure import Structure
from webhook.admit import POD, must_be_left_alone_object
from webhook.lineage import Lineage, controller_reference
from webhook.live.membership import StampReader
from webhook.live.owners import OwnerIndex
from webhook.live.pods import devices_of
from webhook.live.snapshot import Snapshot, kind_of, map_at, maps_at, text_at
from webhook.stamps import IGNORE_KEY, Stamps, root_stamps

FOLLOWS_COUNTS = frozenset({"gang-size", "gang-min", "gpu-total", "gang", "roles", "pods-total"})
"""Keys whose right value changes with the object's own spec."""

IDENTITY = ("workload-id", "workload-kind")
"""Keys that never change, on every described object."""


class Finding(StrEnum):
    """What is the matter with a key."""

    MISSING = "missing"
    STALE = "stale"
    WRONG = "wrong"
    FOREIGN = "foreign"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One key that is not as it should be; keys are without the prefix. `field` is `labels` or `annotations`."""

    key: str
    field: str
    finding: Finding
    found: str | None
    wanted: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """An object with differences. `wanted` are the stamps that it should carry; None when we may not change it now."""

    kind: GroupVersionKind
    namespace: str
    name: str
    uid: str
    differences: tuple[Difference, ...]
    wanted: Stamps | None

    @property
    def is_only_stale(self) -> bool:
        """Whether it carries what was true once, and nothing else is the matter."""
        return all(each.finding is Finding.STALE for each in self.differences)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchecked:
    """An object whose stamps can't be judged, and why."""

    kind: GroupVersionKind
    namespace: str
    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What an audit found. `looked_at` counts objects that were judged, `left_alone` those that are not ours."""

    looked_at: int
    left_alone: int
    faulty: tuple[Audited, ...]
    unchecked: tuple[Unchecked, ...]


def audit(snapshot: Snapshot, index: OwnerIndex, in_scope: Callable[[str], bool]) -> Audit:
    """Judge every pod and every described object; `in_scope(namespace)` says whether those there are ours."""
    auditor = Auditor(index)
    looked_at = left_alone = 0
    faulty: list[Audited] = []
    unchecked: list[Unchecked] = []
    for obj in (*snapshot.objects, *snapshot.pods):
        if not in_scope(text_at(obj, "metadata", "namespace")) or must_be_left_alone_object(obj, index.policy.prefix):
            left_alone += 1
            continue
        verdict = auditor.verdict(obj)
        if isinstance(verdict, Unchecked):
            unchecked.append(verdict)
            continue
        looked_at += 1
        if verdict is not None:
            faulty.append(verdict)
    return Audit(looked_at=looked_at, left_alone=left_alone, faulty=tuple(faulty), unchecked=tuple(unchecked))


class Auditor:
    """Judges single objects against an index of owners."""

    def __init__(self, index: OwnerIndex) -> None:
        self._index = index
        self._reader = StampReader(index)

    def verdict(self, obj: JsonObject) -> Audited | Unchecked | None:
        """What is the matter with an object; None when nothing is."""
        kind = kind_of(obj)
        if (kind.group, kind.kind) == (POD.group, POD.kind):
            return self._verdict_on_pod(obj)
        structure = self._index.structure(obj)
        return self._verdict_on_root(obj, structure) if structure is not None else None

    def _verdict_on_pod(self, pod: JsonObject) -> Audited | Unchecked | None:
        lineage = self._index.lineage(pod)
        if lineage.broken is not None:
            return _unchecked(pod, lineage.broken)
        wanted = self._reader.stamps(pod, devices_of(pod, self._index)) or Stamps()
        has_changed = self._has_changed(lineage, text_at(pod, "metadata", "creationTimestamp"))
        return self._audited(pod, wanted, has_changed=has_changed, may_change=True)

    def _has_changed(self, lineage: Lineage, since: str) -> bool:
        """Whether an owner's spec was changed since: only then can a pod's numbers be of another time."""
        owners = (self._index.get(owner.uid) for owner in lineage.owners)
        return any(owner is not None and _changed_after(owner, since) for owner in owners)

    def _verdict_on_root(self, obj: JsonObject, structure: Structure) -> Audited | Unchecked | None:
        mode = structure.definition.root_stamps
        if mode is RootStamps.NONE:
            return None
        lineage = self._index.lineage(obj)
        owned = controller_reference(obj) is not None
        if owned and lineage.broken is not None:
            return _unchecked(obj, lineage.broken)
        now = root_stamps(structure, operation="UPDATE", owned=owned, lineage=lineage)
        if now is not None:
            has_changed = _changed_after(obj, text_at(obj, "metadata", "creationTimestamp"))
            return self._audited(obj, now, has_changed=has_changed, may_change=True)
        made = root_stamps(structure, operation="CREATE", owned=owned, lineage=lineage)
        return self._audited(obj, self._present_identity(obj, made or Stamps()), has_changed=False, may_change=False)

    def _present_identity(self, obj: JsonObject, made: Stamps) -> Stamps:
        """Of stamps that are written at creation only, those that are there: what came before us stays without.

        Controllers copy metadata to what they make, so other keys on an owned object say nothing.
        """
        labels = map_at(obj, "metadata", "labels")
        present = [key for key in IDENTITY if f"{self._index.policy.prefix}/{key}" in labels]
        return Stamps(labels={key: made.labels[key] for key in present if key in made.labels})

    def _audited(self, obj: JsonObject, wanted: Stamps, *, has_changed: bool, may_change: bool) -> Audited | None:
        differences = tuple(self._differences(obj, wanted, has_changed=has_changed, everything=may_change))
        if not differences:
            return None
        return Audited(
            kind=kind_of(obj),
            namespace=text_at(obj, "metadata", "namespace"),
            name=text_at(obj, "metadata", "name"),
            uid=text_at(obj, "metadata", "uid"),
            differences=differences,
            wanted=wanted if may_change else None,
        )

    def _differences(
        self, obj: JsonObject, wanted: Stamps, *, has_changed: bool, everything: bool
    ) -> Iterator[Difference]:
        start = f"{self._index.policy.prefix}/"
        for field, values in (("labels", wanted.labels), ("annotations", wanted.annotations)):
            present = map_at(obj, "metadata", field)
            found = {key.removeprefix(start): value for key, value in present.items() if key.startswith(start)}
            yield from _compared(field, values, found, has_changed=has_changed)
            if everything:
                yield from _left_over(field, values, found)


def _compared(
    field: str, wanted: Mapping[str, str], found: Mapping[str, str], *, has_changed: bool
) -> Iterator[Difference]:
    for key, value in wanted.items():
        if key not in found:
            yield Difference(key=key, field=field, finding=Finding.MISSING, found=None, wanted=value)
        elif found[key] != value:
            explained = has_changed and key in FOLLOWS_COUNTS
            finding = Finding.STALE if explained or key == "unresolved" else Finding.WRONG
            yield Difference(key=key, field=field, finding=finding, found=found[key], wanted=value)


def _left_over(field: str, wanted: Mapping[str, str], found: Mapping[str, str]) -> Iterator[Difference]:
    """Keys under our prefix that nobody gives this object; what could not be resolved once may be known by now."""
    for key, value in found.items():
        if key not in wanted and key != IGNORE_KEY:
            finding = Finding.STALE if key == "unresolved" else Finding.FOREIGN
            yield Difference(key=key, field=field, finding=finding, found=value, wanted=None)


def _unchecked(obj: JsonObject, reason: str) -> Unchecked:
    return Unchecked(
        kind=kind_of(obj),
        namespace=text_at(obj, "metadata", "namespace"),
        name=text_at(obj, "metadata", "name"),
        reason=reason,
    )


def _changed_after(obj: JsonObject, time: str) -> bool:
    """Whether somebody wrote to an object's spec after an RFC 3339 time, as its managedFields tell.

    The generation tells less (of a Deployment it grows with annotations too), and is all there is without them.
    """
    entries = maps_at(obj, "metadata", "managedFields")
    times = [text_at(entry, "time") for entry in entries if "f:spec" in map_at(entry, "fieldsV1")]
    if times:  # in whole seconds; of two who wrote in that very second, one was not the creator
        return max(times) > time or (len(times) > 1 and max(times) == time)
    generation = map_at(obj, "metadata").get("generation")
    return isinstance(generation, int) and generation > 1
