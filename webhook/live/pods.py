"""A pod as it is now: where it is, how far it got, what it holds, and what it belongs to."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from catalog.definition import JsonObject
from catalog.resources import Devices, effective_devices
from webhook.live.membership import Membership, StampReader
from webhook.live.owners import OwnerIndex
from webhook.live.scheduler_groups import GroupReference, group_named_by
from webhook.live.snapshot import map_at, maps_at, text_at

OVER = frozenset({"Succeeded", "Failed"})
"""Phases of a pod that has ended: it holds nothing any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePod:
    """A pod. `gpus` is None where its devices cannot be told, `node` empty while it is on none.

    `phase` is Kubernetes' own; `waits` says why it does not run or is not ready; `membership` is None for a pod of no
    described workload, and `stray` then says why it could not be told, if so. `created` is RFC 3339 text.
    """

    namespace: str
    name: str
    uid: str
    created: str
    phase: str
    node: str
    is_ready: bool
    is_leaving: bool
    gpus: Decimal | None
    accelerators: Mapping[str, Decimal] = field(default_factory=dict)
    waits: str = ""
    membership: Membership | None = None
    stray: str = ""
    group: GroupReference | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has ended, in whatever way."""
        return self.phase in OVER

    @property
    def is_present(self) -> bool:
        """Whether it counts: neither ended nor about to be deleted."""
        return not self.is_over and not self.is_leaving

    @property
    def is_placed(self) -> bool:
        """Whether it holds its resources on a node; a pod that is being deleted still does."""
        return bool(self.node) and not self.is_over

    @property
    def is_running(self) -> bool:
        """Whether its containers were started and it is to stay."""
        return self.phase == "Running" and not self.is_leaving


def live_pods(pods: Iterable[JsonObject], index: OwnerIndex) -> tuple[LivePod, ...]:
    """Every pod, with what it belongs to."""
    reader = StampReader(index)
    return tuple(_live_pod(pod, reader, index) for pod in pods)


def _live_pod(pod: JsonObject, reader: StampReader, index: OwnerIndex) -> LivePod:
    metadata, status = map_at(pod, "metadata"), map_at(pod, "status")
    devices = devices_of(pod, index)
    membership: Membership | str | None = reader.stamped(pod)
    if membership is None:
        membership = reader.computed(pod, devices)
    phase = text_at(status, "phase") or "Pending"
    ready = _condition(status, "Ready")
    is_ready = text_at(ready, "status") == "True"
    return LivePod(
        namespace=text_at(metadata, "namespace"),
        name=text_at(metadata, "name"),
        uid=text_at(metadata, "uid"),
        created=text_at(metadata, "creationTimestamp"),
        phase=phase,
        node=text_at(pod, "spec", "nodeName"),
        is_ready=is_ready,
        is_leaving=metadata.get("deletionTimestamp") is not None,
        gpus=devices.gpus,
        accelerators=devices.accelerators,
        waits="" if is_ready or phase == "Succeeded" else _why_it_waits(status),
        membership=membership if isinstance(membership, Membership) else None,
        stray=membership if isinstance(membership, str) else "",
        group=group_named_by(pod),
    )


def devices_of(pod: JsonObject, index: OwnerIndex) -> Devices:
    """The devices that a pod asks for, from its own spec."""
    return effective_devices(map_at(pod, "spec"), map_at(pod, "metadata", "annotations"), index.policy.accelerators)


def _condition(status: JsonObject, kind: str) -> JsonObject:
    return next((entry for entry in maps_at(status, "conditions") if entry.get("type") == kind), {})


def _why_it_waits(status: JsonObject) -> str:
    """The most telling reason: of a container, of the scheduler, of the kubelet."""
    for containers in ("initContainerStatuses", "containerStatuses"):
        for container in maps_at(status, containers):
            reason = _reason_of_container(container)
            if reason:
                return reason
    scheduled = _condition(status, "PodScheduled")
    if scheduled.get("status") == "False":
        return text_at(scheduled, "message") or text_at(scheduled, "reason")
    return text_at(status, "message") or text_at(status, "reason")


def _reason_of_container(container: JsonObject) -> str:
    waiting, ended = map_at(container, "state", "waiting"), map_at(container, "state", "terminated")
    if text_at(waiting, "reason") not in ("", "PodInitializing", "ContainerCreating"):
        return text_at(waiting, "reason")
    if ended.get("exitCode") not in (None, 0):
        return f"{text_at(ended, 'reason') or 'Error'} (exit code {ended['exitCode']})"
    return ""
