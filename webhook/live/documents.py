"""The views as JSON for programs; `docs/command-line.md` has the shapes, and a test holds it to them.

Numbers that are not known are null. Amounts of GPUs are whole numbers, or decimals with at most three places.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from catalog.definition import JsonObject
from catalog.resources import device_text
from catalog.structure import Unknown
from webhook.live.audit import Audit, Audited, Unchecked
from webhook.live.description import ComponentView, Description, GangView, InstanceView, Place
from webhook.live.gangs import GangsAsked, LiveGang
from webhook.live.pods import LivePod
from webhook.live.snapshot import Unread, text_at
from webhook.live.tree import Branch
from webhook.live.usage import By, Usage, total
from webhook.live.workloads import LiveRole, LiveWorkload

API_VERSION = "view.workload-stamp.io/v1"
"""Of every document; a field that is removed or changes its meaning changes it."""


def listed(kind: str, items: Iterable[Any], unread: Iterable[Unread], **more: Any) -> JsonObject:
    """A document with items, and what is not in it because it could not be read."""
    return {
        "apiVersion": API_VERSION,
        "kind": kind,
        "items": list(items),
        **more,
        "unread": [{"group": each.group, "kind": each.kind, "reason": each.reason} for each in unread],
    }


def number(value: int | Decimal | Unknown | None) -> int | float | None:
    """A number for programs; null when it is unknown."""
    if value is None or isinstance(value, Unknown):
        return None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(device_text(value))
    return value


def workload_document(workload: LiveWorkload) -> JsonObject:
    """One workload as `get` shows it."""
    reference = workload.reference
    return {
        "group": reference.group,
        "version": workload.version,
        "kind": reference.kind,
        "namespace": reference.namespace,
        "name": reference.name,
        "uid": reference.uid,
        "workloadId": workload.id,
        "created": workload.created,
        "status": workload.status.value,
        "statuses": [status.value for status in workload.statuses],
        "isSchedule": workload.is_schedule,
        "roles": [_role(role) for role in workload.roles],
        "pods": {"asked": number(workload.pods_asked), **_pod_numbers(workload.pods)},
        "gpus": {
            "asked": number(workload.gpus_asked),
            "placed": number(workload.gpus_placed),
            "running": number(workload.gpus_running),
        },
        "gangs": _gang_numbers(workload.gangs, workload.gangs_asked),
    }


def _role(role: LiveRole) -> JsonObject:
    placed = (pod.gpus for pod in role.pods if pod.is_placed and pod.gpus is not None)
    running = (pod.gpus for pod in role.pods if pod.is_running and pod.gpus is not None)
    return {
        "role": role.role,
        "pods": {"asked": number(role.pods_asked), **_pod_numbers(role.pods)},
        "gpus": {
            "asked": number(role.gpus_asked),
            "placed": number(sum(placed, Decimal(0))),
            "running": number(sum(running, Decimal(0))),
        },
    }


def _pod_numbers(pods: Sequence[LivePod]) -> JsonObject:
    present = [pod for pod in pods if pod.is_present]
    return {
        "present": len(present),
        "placed": sum(1 for pod in present if pod.node),
        "running": sum(1 for pod in present if pod.is_running),
        "ready": sum(1 for pod in present if pod.is_ready),
        "ended": sum(1 for pod in pods if pod.is_over),
    }


def _gang_numbers(gangs: Sequence[LiveGang], asked: tuple[GangsAsked, ...] | Unknown) -> JsonObject:
    sizes = sorted({each.size for each in asked}) if not isinstance(asked, Unknown) else []
    return {
        "asked": None if isinstance(asked, Unknown) else sum(each.count for each in asked),
        "whole": sum(1 for gang in gangs if gang.is_whole),
        "sizes": sizes or sorted({gang.size for gang in gangs if gang.size is not None}),
    }


def pod_document(pod: LivePod) -> JsonObject:
    """One pod."""
    membership = pod.membership
    return {
        "name": pod.name,
        "uid": pod.uid,
        "created": pod.created,
        "phase": pod.phase,
        "ready": pod.is_ready,
        "leaving": pod.is_leaving,
        "node": pod.node or None,
        "gpus": number(pod.gpus),
        "accelerators": {name: number(amount) for name, amount in pod.accelerators.items()},
        "waits": pod.waits or None,
        "role": membership.role if membership is not None else None,
        "instance": membership.instance or None if membership is not None else None,
        "gang": membership.gang or None if membership is not None else None,
        "stamped": membership is not None and membership.stamped,
    }


def description_document(description: Description, events: Iterable[JsonObject]) -> JsonObject:
    """One workload as `describe` shows it."""
    return {
        "apiVersion": API_VERSION,
        "kind": "WorkloadDescription",
        "workload": workload_document(description.workload),
        "components": [_component(component) for component in description.components],
        "otherPods": [pod_document(pod) for pod in description.others],
        "placement": {
            "nodes": [_place(place) for place in description.nodes],
            "topology": {key: [_place(place) for place in places] for key, places in description.topology.items()},
        },
        "gangs": [gang_document(view) for view in description.gangs],
        "phase": description.phase or None,
        "conditions": list(description.conditions),
        "events": [event_document(event) for event in events],
    }


def _component(component: ComponentView) -> JsonObject:
    return {"component": component.name, "instances": [_instance(instance) for instance in component.instances]}


def _instance(instance: InstanceView) -> JsonObject:
    return {
        "id": instance.id or None,
        "role": instance.role,
        "podsAsked": number(instance.pods_asked),
        "gpusPerPod": number(instance.gpus_each),
        "pods": [pod_document(pod) for pod in instance.pods],
    }


def _place(place: Place) -> JsonObject:
    return {"name": place.name, "pods": place.pods, "gpus": number(place.gpus)}


def event_document(event: JsonObject) -> JsonObject:
    """One event of the cluster."""
    return {
        "time": text_at(event, "lastTimestamp") or text_at(event, "eventTime") or text_at(event, "firstTimestamp"),
        "type": text_at(event, "type"),
        "reason": text_at(event, "reason"),
        "object": f"{text_at(event, 'involvedObject', 'kind')}/{text_at(event, 'involvedObject', 'name')}",
        "message": text_at(event, "message"),
    }


def absent_gangs_document(workload: LiveWorkload, count: int, size: int | None) -> JsonObject:
    """Gangs of a workload that have no pod yet, as `gangs` shows them."""
    return {"workload": _reference(workload), "gangs": count, "size": size}


def _reference(workload: LiveWorkload) -> JsonObject:
    reference = workload.reference
    return {
        "group": reference.group,
        "kind": reference.kind,
        "namespace": reference.namespace,
        "name": reference.name,
    }


def gang_document(view: GangView, workload: LiveWorkload | None = None) -> JsonObject:
    """One gang as `gangs` shows it; in a description, without its workload."""
    gang, lack = view.gang, view.lack
    return {
        **({"workload": _reference(workload)} if workload is not None else {}),
        "gang": gang.id,
        "size": gang.size,
        "minimum": gang.minimum,
        "present": len(gang.present),
        "placed": gang.placed,
        "running": gang.running,
        "state": gang.state.value,
        "canBeWhole": True if gang.is_whole else lack.can_be_whole if lack is not None else None,
        "missing": lack.missing if lack is not None else 0,
        "waiting": [pod.name for pod in lack.waiting] if lack is not None else [],
        "schedulerGroups": [
            {
                "scheduler": each.reference.scheduler,
                "name": each.reference.name,
                "minimum": each.group.minimum if each.group is not None else None,
                "phase": (each.group.phase or None) if each.group is not None else None,
                "agreement": each.agreement.value,
            }
            for each in view.comparisons
        ],
    }


def usage_document(
    by: By, rows: Sequence[Usage], nodes: Sequence[Usage] | None, unread: Iterable[Unread]
) -> JsonObject:
    """The table that `top` shows, with its total, and that of the nodes where they could be read."""
    return listed(
        "Usage",
        [_usage(by, row) for row in rows],
        unread,
        by=by,
        total=_amounts(total(rows)),
        nodes=None if nodes is None else _amounts(total(nodes)),
    )


NAMES: Mapping[By, tuple[str, ...]] = {
    "namespace": ("namespace",),
    "kind": ("kind",),
    "workload": ("namespace", "kind", "name"),
    "node": ("node",),
}
"""What the names of a row are, by kind of table."""


def _usage(by: By, row: Usage) -> JsonObject:
    names = dict.fromkeys(NAMES[by]) if not row.names else dict(zip(NAMES[by], row.names, strict=True))
    return {**names, **_amounts(row)}


def _amounts(row: Usage) -> JsonObject:
    return {
        "workloads": row.workloads,
        "pods": row.pods,
        "asked": number(row.asked),
        "askedIsPartial": row.is_partial,
        "placed": number(row.placed),
        "running": number(row.running),
        "idle": number(row.idle),
        "allocatable": number(row.allocatable),
        "free": number(row.free),
    }


def tree_document(branch: Branch, workloads: Mapping[str, LiveWorkload]) -> JsonObject:
    """An object and what it controls; `workloads` are by uid."""
    workload = workloads.get(branch.uid)
    return {
        "group": branch.kind.group,
        "kind": branch.kind.kind,
        "name": branch.name,
        "uid": branch.uid,
        "isWorkload": workload is not None and not workload.is_schedule,
        "status": workload.status.value if workload is not None else None,
        "children": [tree_document(child, workloads) for child in branch.children],
    }


def audit_document(found: Audit, unread: Iterable[Unread]) -> JsonObject:
    """What `audit` found."""
    return listed(
        "Audit",
        [_audited(each) for each in found.faulty],
        unread,
        lookedAt=found.looked_at,
        leftAlone=found.left_alone,
        unchecked=[_unchecked(each) for each in found.unchecked],
    )


def _audited(audited: Audited) -> JsonObject:
    return {
        **_object(audited),
        "repairable": audited.wanted is not None,
        "differences": [
            {
                "key": each.key,
                "in": each.field,
                "finding": each.finding.value,
                "found": each.found,
                "wanted": each.wanted,
            }
            for each in audited.differences
        ],
    }


def _unchecked(unchecked: Unchecked) -> JsonObject:
    return {**_object(unchecked), "reason": unchecked.reason}


def _object(named: Audited | Unchecked) -> JsonObject:
    return {"group": named.kind.group, "kind": named.kind.kind, "namespace": named.namespace, "name": named.name}
