"""The groups of gang schedulers, and which of them a pod names: Volcano, KAI, coscheduling, Kubernetes' own.

Read to be compared with our gangs, never to decide anything. Field names from scheduling.volcano.sh/v1beta1,
scheduling.run.ai/v2alpha2, scheduling.x-k8s.io/v1alpha1, and k8s.io/api v0.36.3 (scheduling/v1alpha2, core/v1).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from catalog.definition import JsonObject
from webhook.live.snapshot import kind_of, map_at, text_at


@dataclass(frozen=True, slots=True)
class GroupReference:
    """Names a scheduler's group. `scheduler` is one of the words in `SCHEDULERS`."""

    scheduler: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerGroup:
    """A scheduler's group as stored: how many pods it wants before any is started, and its phase, if it has one."""

    reference: GroupReference
    minimum: int | None
    phase: str = ""


SCHEDULERS: Mapping[str, str] = {
    "scheduling.volcano.sh": "Volcano",
    "scheduling.run.ai": "KAI",
    "scheduling.x-k8s.io": "coscheduling",
    "scheduling.k8s.io": "Kubernetes",
}
"""API group of each PodGroup kind, and the word for its scheduler."""

GROUP_KIND = "PodGroup"

_BY_ANNOTATION = (
    ("scheduling.k8s.io/group-name", "Volcano"),
    ("scheduling.volcano.sh/group-name", "Volcano"),
    ("pod-group-name", "KAI"),
)
_BY_LABEL = (("scheduling.x-k8s.io/pod-group", "coscheduling"),)


def group_named_by(pod: JsonObject) -> GroupReference | None:
    """The group that a pod says it belongs to."""
    namespace = text_at(pod, "metadata", "namespace")
    native = text_at(pod, "spec", "schedulingGroup", "podGroupName")
    if native:
        return GroupReference("Kubernetes", namespace, native)
    for field, keys in (("annotations", _BY_ANNOTATION), ("labels", _BY_LABEL)):
        values = map_at(pod, "metadata", field)
        for key, scheduler in keys:
            name = values.get(key)
            if isinstance(name, str) and name:
                return GroupReference(scheduler, namespace, name)
    return None


def scheduler_groups(objects: Iterable[JsonObject]) -> Mapping[GroupReference, SchedulerGroup]:
    """The groups among the objects by reference; objects of other kinds are none."""
    found = (_group(obj) for obj in objects)
    return {group.reference: group for group in found if group is not None}


def _group(obj: JsonObject) -> SchedulerGroup | None:
    scheduler = SCHEDULERS.get(kind_of(obj).group)
    if scheduler is None or kind_of(obj).kind != GROUP_KIND:
        return None
    reference = GroupReference(scheduler, text_at(obj, "metadata", "namespace"), text_at(obj, "metadata", "name"))
    return SchedulerGroup(reference=reference, minimum=_minimum(obj), phase=text_at(obj, "status", "phase"))


def _minimum(obj: JsonObject) -> int | None:
    gang = map_at(obj, "spec", "schedulingPolicy", "gang")
    value = gang.get("minCount") if gang else map_at(obj, "spec").get("minMember")
    return value if isinstance(value, int) else None
