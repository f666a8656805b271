"""What a pod belongs to, read from its stamps; of a pod without stamps, from those that its admission would give it.

There is one reading for both, so a cluster without the webhook looks like one with it. Whether stamps are right is
`audit`'s question, not asked here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache

import orjson

from catalog.definition import Json, JsonObject
from catalog.expressions import Outcome
from catalog.library import CompiledDefinition
from catalog.resources import Devices
from catalog.structure import Structure
from webhook.admit import POD
from webhook.lineage import controller_reference
from webhook.live.owners import OwnerIndex
from webhook.live.snapshot import map_at
from webhook.stamps import Stamps, pod_stamps

_AMOUNT = re.compile(r"[0-9]{1,12}(\.[0-9]{1,3})?")


@dataclass(frozen=True, slots=True, order=True)
class WorkloadReference:
    """Names one workload; the uid is empty for a pod that is its own workload."""

    group: str
    kind: str
    namespace: str
    name: str
    uid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Membership:
    """A pod's place. What is unknown is empty or None; `gpu_total` counts GPUs of the whole workload.

    `component` is known only where the workload's structure was at hand. `stamped` tells that the pod itself says so.
    """

    id: str
    workload: WorkloadReference
    role: str
    instance: str = ""
    gang: str = ""
    gang_size: int | None = None
    gang_min: int | None = None
    gpu_total: Decimal | None = None
    stamped: bool = False


class StampReader:
    """Reads memberships of pods: their own stamps under a prefix, or stamps computed from their owners."""

    def __init__(self, index: OwnerIndex) -> None:
        self._index = index
        self._own = f"{index.policy.prefix}/"

    def stamped(self, pod: JsonObject) -> Membership | None:
        """What the pod's own stamps say; None when they name no workload."""
        return _membership(map_at(pod, "metadata", "labels"), map_at(pod, "metadata", "annotations"), self._own)

    def computed(self, pod: JsonObject, devices: Devices) -> Membership | str | None:
        """What admission would say: a membership, None for a pod of no described owner, or why it can't be told."""
        stamps = self.stamps(pod, devices)
        if stamps is None:
            return None
        found = _membership(stamps.labels, stamps.annotations, "")
        return found if found is not None else stamps.unresolved.get("workload-id")

    def stamps(self, pod: JsonObject, devices: Devices) -> Stamps | None:
        """The stamps that a pod would get if it were created now; None when nothing would be written."""
        lineage = self._index.lineage(pod)
        own = self._own_structure(pod)
        if own is None and lineage.broken is None and not lineage.described:
            return None
        return pod_stamps(pod, devices, lineage, own, self._isolated(pod, lineage.described, own))

    def _own_structure(self, pod: JsonObject) -> Structure | None:
        """The structure of a pod that is its own workload."""
        if controller_reference(pod) is not None:
            return None
        compiled = self._index.catalog.find(POD)
        return self._index.resolved(compiled, pod) if compiled is not None else None

    def _isolated(
        self, pod: JsonObject, described: tuple[Structure, ...], own: Structure | None
    ) -> Mapping[str, Outcome]:
        if self._index.catalog.is_plain:
            return {}
        structures = described or ((own,) if own is not None else ())
        compiled: dict[int, CompiledDefinition] = {id(each.compiled): each.compiled for each in structures}
        return {
            source: outcome
            for each in compiled.values()
            for source, outcome in self._index.outcomes(each.selection.pending(pod)).items()
        }


def _membership(labels: Mapping[str, Json], annotations: Mapping[str, Json], prefix: str) -> Membership | None:
    id_ = labels.get(f"{prefix}workload-id")
    workload = _reference(annotations.get(f"{prefix}workload"))
    if not isinstance(id_, str) or workload is None:
        return None
    return Membership(
        id=id_,
        workload=workload,
        role=_text(labels.get(f"{prefix}role")),
        instance=_text(annotations.get(f"{prefix}instance")),
        gang=_text(annotations.get(f"{prefix}gang")),
        gang_size=_count(labels.get(f"{prefix}gang-size")),
        gang_min=_count(annotations.get(f"{prefix}gang-min")),
        gpu_total=_amount(labels.get(f"{prefix}gpu-total")),
        stamped=bool(prefix),
    )


def _text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Json) -> int | None:
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else None


def _amount(value: Json) -> Decimal | None:
    return Decimal(value) if isinstance(value, str) and _AMOUNT.fullmatch(value) else None


def _reference(value: Json) -> WorkloadReference | None:
    return _reference_of(value) if isinstance(value, str) else None


@lru_cache(maxsize=16_384)
def _reference_of(text: str) -> WorkloadReference | None:
    """The workload that the annotation names; None for anything else than what is written there."""
    try:
        document = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(document, dict):
        return None
    if not all(isinstance(document.get(field), str) for field in ("apiGroup", "kind", "namespace", "name")):
        return None
    group, kind, namespace, name = (_text(document[field]) for field in ("apiGroup", "kind", "namespace", "name"))
    return WorkloadReference(group, kind, namespace, name, _text(document.get("uid"))) if name else None
