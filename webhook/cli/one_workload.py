"""Finds the one workload that `KIND/NAME` means, with all that belongs to it, reading no more than that takes."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from catalog.definition import JsonObject
from webhook.cli.cluster import Session
from webhook.cli.failures import InputProblems
from webhook.cluster.client import ApiError
from webhook.cluster.reading import POD, KindKey, Reader, Wanted
from webhook.identity import workload_id
from webhook.lineage import controller_reference
from webhook.live.snapshot import Snapshot, kind_of, text_at
from webhook.live.workloads import Inventory, LiveWorkload

MAX_UP = 12
"""Owners above an object that are followed."""

EVENTS_OF_PODS = 10
"""Pods whose events are asked for: those that do not run come first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The object that was named, what was read around it, and the workload that it is or belongs to."""

    obj: JsonObject
    snapshot: Snapshot
    inventory: Inventory
    workload: LiveWorkload | None


def named(words: Sequence[str]) -> tuple[str, str]:
    """Kind and name of `KIND/NAME` or `KIND NAME`. Raises InputProblems."""
    kind, _, name = " ".join(words).replace(" ", "/", 1).partition("/")
    if not kind or not name or "/" in name or " " in name:
        raise InputProblems((f"{' '.join(words)}: expected KIND/NAME or KIND NAME, such as jobset/train",), exit_code=2)
    return kind, name


async def find(session: Session, words: Sequence[str], *, nodes: bool = False, groups: bool = False) -> Target:
    """The workload that the words mean. Raises InputProblems when there is no such object."""
    if not session.namespace:
        raise InputProblems(("-A: one workload is in one namespace; give it with -n",), exit_code=2)
    word, name = named(words)
    key, resource = session.kind(word)
    reader = session.reader()
    obj = await reader.get(resource, session.namespace, name)
    if obj is None:
        raise InputProblems((f"{resource.kind} {name} does not exist in {session.place}",))
    above = await _above(session, reader, obj)
    kinds = reader.with_parts({key, *((kind_of(each).group, kind_of(each).kind) for each in above)})
    wanted = Wanted(
        namespace=session.namespace,
        kinds=kinds,
        pods=_selectors(session, [obj, *above]),
        nodes=nodes,
        groups=groups,
    )
    described = [each for each in (obj, *above) if _key(each) != POD and session.catalog.describes(*_key(each))]
    snapshot = await reader.snapshot(wanted, described)
    inventory = session.inventory(snapshot)
    return Target(obj=obj, snapshot=snapshot, inventory=inventory, workload=_workload_of(inventory, [obj, *above]))


def _key(obj: JsonObject) -> KindKey:
    return kind_of(obj).group, kind_of(obj).kind


async def _above(session: Session, reader: Reader, obj: JsonObject) -> list[JsonObject]:
    """The controllers above an object, nearest first, as far as they may be read and are ours to read."""
    found: list[JsonObject] = []
    reference = controller_reference(obj)
    while reference is not None and len(found) < MAX_UP:
        if not session.catalog.walks_through(reference.kind.group, reference.kind.kind):
            return found
        resource = session.discovery.known(reference.kind.group, reference.kind.kind)
        try:
            owner = await reader.get(resource, session.namespace, reference.name) if resource is not None else None
        except ApiError:
            return found
        if owner is None or text_at(owner, "metadata", "uid") != reference.uid:
            return found
        found.append(owner)
        reference = controller_reference(owner)
    return found


def _selectors(session: Session, chain: Sequence[JsonObject]) -> tuple[str, ...]:
    """Stamped pods of whatever in the chain is the workload, and every pod without stamps."""
    key = f"{session.policy.prefix}/workload-id"
    ids = [
        workload_id(*_key(obj), text_at(obj, "metadata", "namespace"), text_at(obj, "metadata", "name"))
        for obj in chain
    ]
    return (f"{key} in ({','.join(sorted(set(ids)))})", f"!{key}")


def _workload_of(inventory: Inventory, chain: Sequence[JsonObject]) -> LiveWorkload | None:
    """The workload among the objects of a chain (nearest first): the topmost that is one and no schedule."""
    by_object = {id_: each for each in inventory.workloads if (id_ := _uid(each))}
    found = [by_object[uid] for obj in chain if (uid := text_at(obj, "metadata", "uid")) in by_object]
    proper = [each for each in found if not each.is_schedule]
    return proper[-1] if proper else found[-1] if found else None


def _uid(workload: LiveWorkload) -> str:
    return text_at(workload.obj, "metadata", "uid") if workload.obj is not None else ""


async def events(session: Session, workload: LiveWorkload) -> list[JsonObject]:
    """The events of a workload and of some of its pods, the last one last; none where they may not be read."""
    pods = sorted(workload.pods, key=lambda pod: (pod.is_running and pod.is_ready, pod.name))[:EVENTS_OF_PODS]
    uids = [_uid(workload), *(pod.uid for pod in pods)]
    lists = await asyncio.gather(*(_events_of(session, workload.reference.namespace, uid) for uid in uids if uid))
    found = {text_at(event, "metadata", "uid"): event for listed in lists for event in listed}
    return sorted(found.values(), key=time_of)


def time_of(event: JsonObject) -> str:
    """When an event was last seen, as RFC 3339 text."""
    return text_at(event, "lastTimestamp") or text_at(event, "eventTime") or text_at(event, "firstTimestamp")


async def _events_of(session: Session, namespace: str, uid: str) -> list[JsonObject]:
    path = f"/api/v1/namespaces/{namespace}/events"
    found: list[JsonObject] = []
    try:
        async for page in session.server.pages(path, field_selector=f"involvedObject.uid={uid}"):
            found += page.items
    except ApiError as error:
        note = f"not shown: events: {error}"
        if note not in session.notes:
            session.notes.append(note)
    return found
