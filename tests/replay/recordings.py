"""Reads recordings of real controllers: admission reviews in order, the owners as stored, and what was counted.

The folder has one subfolder for each framework and case. Two generations of `case.yaml` exist, with different names for
the same numbers; this module gives them one form. It knows nothing of stamps.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import orjson
import yaml

from webhook.review import Review, decode

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """Pods that existed at one moment, by the observer's own names of their roles, and the GPUs of one pod of each."""

    label: str
    pods: Mapping[str, int]
    gpus_per_pod: Mapping[str, Decimal]

    @property
    def gpus(self) -> Decimal:
        """GPUs of all pods together."""
        return sum((number * self.gpus_per_pod[role] for role, number in self.pods.items()), Decimal(0))

    @property
    def total(self) -> int:
        """Pods of all roles together."""
        return sum(self.pods.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """A gang as the framework's own object for it stated it: all its pods and the number that is enough."""

    size: int | None
    minimum: int


@dataclass(frozen=True, kw_only=True)
class Recording:
    """One case. `counts` is empty when the root was refused."""

    folder: Path
    root_kind: tuple[str, str]
    counts: tuple[Count, ...]
    not_comparable: str | None
    pods_as_specified: int | None
    waves: tuple[int, ...]
    gangs: tuple[Gang, ...]

    @property
    def name(self) -> str:
        """Framework and case, as `jobset/in-order`."""
        return f"{self.folder.parent.name}/{self.folder.name}"

    @cached_property
    def root(self) -> Review:
        """The review of the root's creation."""
        return _review(self.folder / "root.create.json")

    @cached_property
    def pods(self) -> tuple[Review, ...]:
        """The reviews of pods in order of arrival; a bare pod is the root and has none beside."""
        return tuple(_reviews(self.folder / "pods"))

    @cached_property
    def others(self) -> tuple[Review, ...]:
        """The reviews of other objects in the namespace, and the root's updates."""
        updates = (_review(path) for path in sorted(self.folder.glob("root.update-*.json")))
        return (*_reviews(self.folder / "intermediate"), *updates)

    @cached_property
    def before_other_webhooks(self) -> tuple[Review, ...]:
        """The same requests as a webhook sees them that sorts before the framework's own; rarely recorded."""
        return tuple(_reviews(self.folder / "sorted-before-the-frameworks-webhook"))

    @cached_property
    def owners(self) -> tuple[Object, ...]:
        """The objects above the pods, as stored at the end."""
        found = orjson.loads((self.folder / "owners.json").read_bytes())
        return tuple(owner for owner in found if not owner.get("missing"))

    def chain(self, obj: Object) -> tuple[Object, ...]:
        """The recorded owners of an object, nearest first, found by uid: names are used again after a restart."""
        by_uid = {owner["metadata"]["uid"]: owner for owner in self.owners}
        found: list[Object] = []
        while (owner := by_uid.get(_controller_uid(obj))) is not None:
            found.append(owner)
            obj = owner
        return tuple(found)

    @property
    def pods_of_root(self) -> tuple[Review, ...]:
        """The pods whose owners lead to the root, beside which there may be others; a bare pod is its own root."""
        if self.root_kind == ("", "Pod"):
            return (self.root,)
        return tuple(review for review in self.pods if self.top(review.obj)["kind"] == self.root_kind[1])

    def top(self, obj: Object) -> Object:
        """The last recorded owner of an object, or the object itself when it has none."""
        return (obj, *self.chain(obj))[-1]


def _controller_uid(obj: Object) -> str:
    references = obj["metadata"].get("ownerReferences", ())
    return next((str(each["uid"]) for each in references if each.get("controller")), "")


def recordings(folder: Path) -> Iterator[Recording]:
    """Every case below the folder, in the order of their names."""
    for path in sorted(folder.glob("*/*/case.yaml")):
        yield _recording(path.parent, yaml.load(path.read_text(), Loader=yaml.CSafeLoader))


def _recording(folder: Path, case: Object) -> Recording:
    truth = case["truth"] if not case.get("errors_at_create") else None
    root = case["root"]
    group, slash, _ = root["apiVersion"].rpartition("/")
    return Recording(
        folder=folder,
        root_kind=(group if slash else "", root["kind"]),
        counts=tuple(_counts(case, truth)) if truth else (),
        not_comparable=case.get("notComparable"),
        pods_as_specified=case.get("asSpecified", {}).get("pods"),
        waves=tuple(sum(wave.values()) for wave in case.get("waves", ())),
        gangs=tuple(_gangs(case.get("gangs") or (truth or {}).get("gangs") or ())),
    )


def _counts(case: Object, truth: Object) -> Iterator[Count]:
    yield _count(str(truth.get("measured", truth.get("at"))), truth)
    for label, later in truth.get("later", {}).items():
        yield _count(label, later)
    for later in case.get("later", ()):
        yield _count(later["at"], later)


def _count(label: str, measured: Object) -> Count:
    gpus: Object = measured.get("gpusPerPod") or measured.get("gpus_per_pod") or {}
    return Count(
        label=label,
        pods=measured["roles"],
        gpus_per_pod={role: Decimal(str(number)) for role, number in gpus.items()},
    )


def _gangs(stated: Sequence[Object]) -> Iterator[Gang]:
    """The gangs that Grove's PodGangs, Volcano's PodGroups and LeaderWorkerSets stated."""
    for gang in stated:
        if "podReferences" in gang:
            yield Gang(size=gang["podReferences"], minimum=gang["minReplicasSum"])
        elif gang["kind"] == "PodGroup":
            yield Gang(size=None, minimum=gang["minMember"])
        else:
            yield from [Gang(size=gang["size"], minimum=gang["size"])] * gang["replicas"]


def _reviews(folder: Path) -> Iterator[Review]:
    for path in sorted(folder.glob("*.json")):
        yield _review(path)


def _review(path: Path) -> Review:
    return decode(path.read_bytes())
