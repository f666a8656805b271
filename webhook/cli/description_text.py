"""A description of one workload as lines for people: pods by component, places, gangs, conditions, events."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from rich.text import Text

from catalog.definition import JsonObject
from catalog.structure import Unknown
from webhook.cli import terminal
from webhook.cli.gang_text import gang_sentence
from webhook.cli.get import roles_text
from webhook.cli.one_workload import time_of
from webhook.cli.output import amount, several
from webhook.cli.printable import printable
from webhook.cli.terminal import Column
from webhook.live.description import ComponentView, Description, InstanceView, Place, gpus_of
from webhook.live.documents import event_document
from webhook.live.pods import LivePod
from webhook.live.snapshot import text_at

LAST_EVENTS = 10
PLACES_SHOWN = 20
PODS_SHOWN = 40
"""Pods of one instance that are listed; of more, those that do not run come first."""

INDENT = "  "


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What is shown of a workload. `aside` says that what was named is only a part of it."""

    description: Description
    events: tuple[JsonObject, ...]
    aside: str


def lines(view: View, limit: int | None, now: datetime) -> Iterator[Text]:
    """Everything about a workload, line by line."""
    room = terminal.width()
    yield from _head(view, now)
    yield Text()
    yield from terminal.table(_POD_COLUMNS, list(_pod_rows(view.description, limit, now)), room)
    yield from _placement(view.description, room)
    yield from _gangs(view.description, room)
    yield from _status(view.description, room, now)
    yield from _events(view.events, room, now)


def _head(view: View, now: datetime) -> Iterator[Text]:
    workload = view.description.workload
    reference = workload.reference
    line = Text(f"{reference.kind} {reference.namespace}/{reference.name}", style="bold")
    line.append("  ").append_text(terminal.status_text(workload.status))
    since = terminal.age(workload.created, now)
    yield line.append(f"  {since}" if since else "", style="dim")
    if view.aside:
        yield Text(view.aside, style="dim")
    yield Text(" · ".join(_summary(view.description)))
    yield Text(f"id {workload.id}", style="dim")


def _summary(description: Description) -> Iterator[str]:
    workload = description.workload
    roles = roles_text(workload)
    if roles:
        yield roles
    if workload.is_schedule:
        yield f"{several(workload.gpus_asked, 'GPU')} a run"
        return
    yield f"{workload.ready}/{amount(workload.pods_asked)} pods ready"
    if workload.gpus_asked != 0 or workload.gpus_running:
        yield f"{amount(workload.gpus_running)}/{amount(workload.gpus_asked)} GPUs running"
    if not isinstance(workload.gangs_asked, Unknown):
        for asked in workload.gangs_asked:
            yield f"{several(asked.count, 'gang')} of {asked.size}"


_POD_COLUMNS = (
    Column(title="COMPONENT / POD", least=32, cut="middle"),
    Column(title="STATE"),
    Column(title="NODE", least=12, cut="middle"),
    Column(title="GPUS", right=True),
    Column(title="GANG", least=8, cut="middle", gives_way=1),
    Column(title="AGE", right=True, gives_way=2),
    Column(title="WAITS FOR", least=20),
)

Row = tuple[Text | str, ...]


def _pod_rows(description: Description, limit: int | None, now: datetime) -> Iterator[Row]:
    several_gangs = len(description.gangs) > 1
    for component in description.components:
        yield from _component_rows(component, limit, now, with_gang=several_gangs, id_=description.workload.id)
    if description.others:
        yield ("other pods", "", "", "", "", "", "")
        for pod in description.others:
            yield _pod_row(pod, INDENT, now, with_gang=several_gangs, id_=description.workload.id)


def _component_rows(
    component: ComponentView, limit: int | None, now: datetime, *, with_gang: bool, id_: str
) -> Iterator[Row]:
    depth = ""
    if any(instance.id for instance in component.instances) or not component.instances:
        yield (component.name, "", "", "", "", "", "")
        depth = INDENT
    for instance in component.instances:
        yield _instance_row(component, instance, depth)
        listed = instance.pods if limit is None else _most_telling(instance.pods, limit)
        for pod in listed:
            yield _pod_row(pod, depth + INDENT, now, with_gang=with_gang, id_=id_)
        if len(listed) < len(instance.pods):
            yield (f"{depth}{INDENT}… {len(instance.pods) - len(listed)} more", "", "", "", "", "", "")


def _most_telling(pods: Sequence[LivePod], limit: int) -> Sequence[LivePod]:
    """The first pods of those that do not run, then of those that do."""
    if len(pods) <= limit:
        return pods
    return sorted(pods, key=lambda pod: pod.is_running and pod.is_ready)[:limit]


def _instance_row(component: ComponentView, instance: InstanceView, depth: str) -> Row:
    ready = sum(1 for pod in instance.pods if pod.is_ready and pod.is_present)
    state = terminal.ratio_text(str(ready), amount(instance.pods_asked)).append(" ready")
    gpus = gpus_of(pod for pod in instance.pods if pod.is_placed)
    return (f"{depth}{instance.id or component.name}", state, "", amount(gpus) if gpus else "", "", "", "")


def _pod_row(pod: LivePod, depth: str, now: datetime, *, with_gang: bool, id_: str) -> Row:
    gang = pod.membership.gang if pod.membership is not None else ""
    return (
        Text(f"{depth}{pod.name}", style="dim" if pod.is_over else ""),
        pod_state(pod),
        pod.node,
        "" if not pod.gpus else amount(pod.gpus),
        (gang.removeprefix(f"{id_}/") or "-") if with_gang else "",
        terminal.age(pod.created, now),
        Text(_first_sentence(pod.waits), style="dim"),
    )


def _first_sentence(text: str) -> str:
    """What a scheduler says in its first sentence: the others are about claims and preemption."""
    return " ".join(text.split()).partition(". ")[0].removesuffix(".")


_PHASE_STYLES = {
    "Running": ("●", "green"),
    "Pending": ("○", "cyan"),
    "Succeeded": ("✓", "blue"),
    "Failed": ("✗", "red"),
}


def pod_state(pod: LivePod) -> Text:
    """A pod's phase, and more precisely that it leaves or is not ready."""
    mark, style = _PHASE_STYLES.get(pod.phase, ("?", "dim"))
    word = pod.phase
    if pod.is_leaving:
        mark, word, style = "◌", "Leaving", "magenta"
    elif pod.phase == "Running" and not pod.is_ready:
        mark, word, style = "◐", "NotReady", "yellow"
    return Text(f"{mark} {word}" if terminal.is_looked_at() else word, style=style)


_PLACE_COLUMNS = (
    Column(title="PLACE", least=16, cut="middle"),
    Column(title="PODS", right=True),
    Column(title="GPUS", right=True),
)


def _placement(description: Description, room: int | None) -> Iterator[Text]:
    if not description.nodes:
        return
    yield Text()
    yield terminal.heading("Placement")
    rows: list[Row] = [("by node", "", "")]
    rows += _place_rows(description.nodes)
    for key, places in description.topology.items():
        rows.append((f"by {key}", "", ""))
        rows += _place_rows(places)
    yield from terminal.table(_PLACE_COLUMNS, rows, room)


def _place_rows(places: Sequence[Place]) -> Iterator[Row]:
    for place in places[:PLACES_SHOWN]:
        yield (f"{INDENT}{place.name}", str(place.pods), amount(place.gpus) if place.gpus else "")
    if len(places) > PLACES_SHOWN:
        rest = places[PLACES_SHOWN:]
        gpus = sum((place.gpus for place in rest), Decimal(0))
        yield (f"{INDENT}… {len(rest)} more", str(sum(place.pods for place in rest)), amount(gpus) if gpus else "")


def _gangs(description: Description, room: int | None) -> Iterator[Text]:
    asked = description.workload.gangs_asked
    if not description.gangs and (isinstance(asked, Unknown) or not asked):
        return
    yield Text()
    yield terminal.heading("Gangs")
    for view in description.gangs:
        yield from terminal.wrapped(Text(f"{view.gang.id}  ").append_text(gang_sentence(view)), room, len(INDENT))
    if not isinstance(asked, Unknown):
        absent = sum(each.count for each in asked) - len(description.gangs)
        if absent > 0:
            yield Text(f"{INDENT}{several(absent, 'gang')} without any pod yet", style="yellow")


_CONDITION_COLUMNS = (
    Column(title="CONDITION"),
    Column(title="STATUS"),
    Column(title="REASON", least=12),
    Column(title="AGE", right=True, gives_way=1),
    Column(title="MESSAGE", least=16),
)


def _status(description: Description, room: int | None, now: datetime) -> Iterator[Text]:
    yield Text()
    yield terminal.heading("Status")
    words = ", ".join(status.value for status in description.workload.statuses)
    native = f"; the framework says {printable(description.phase)}" if description.phase else ""
    if description.workload.obj is None:
        native = "; its object could not be read"
    yield Text(f"{INDENT}{words}{native}")
    rows = [_condition_row(condition, now) for condition in description.conditions]
    if rows:
        yield from (Text(INDENT) + line for line in terminal.table(_CONDITION_COLUMNS, rows, _less(room)))


def _less(room: int | None) -> int | None:
    return None if room is None else room - len(INDENT)


def _condition_row(condition: JsonObject, now: datetime) -> Row:
    status = text_at(condition, "status")
    return (
        text_at(condition, "type"),
        Text(status, style="" if status == "True" else "dim"),
        text_at(condition, "reason"),
        terminal.age(text_at(condition, "lastTransitionTime"), now),
        Text(" ".join(text_at(condition, "message").split()), style="dim"),
    )


_EVENT_COLUMNS = (
    Column(title="LAST", right=True),
    Column(title="REASON"),
    Column(title="OBJECT", least=24, cut="middle"),
    Column(title="MESSAGE", least=24),
)


def _events(events_: Sequence[JsonObject], room: int | None, now: datetime) -> Iterator[Text]:
    """The last events; one that says the same of several objects is told once."""
    if not events_:
        return
    alike: dict[tuple[str, str, str], list[JsonObject]] = {}
    for event in events_:
        document = event_document(event)
        message = _first_sentence(document["message"]) if document["type"] == "Warning" else document["message"]
        key = (document["type"], document["reason"], message if document["type"] == "Warning" else str(id(event)))
        alike.setdefault(key, []).append(event)
    last = sorted(alike.values(), key=lambda group: time_of(group[-1]))[-LAST_EVENTS:]
    yield Text()
    yield terminal.heading("Events")
    rows = [_event_row(group, now) for group in last]
    yield from (Text(INDENT) + line for line in terminal.table(_EVENT_COLUMNS, rows, _less(room)))


def _event_row(alike: Sequence[JsonObject], now: datetime) -> Row:
    document = event_document(alike[-1])
    objects = {event_document(event)["object"] for event in alike}
    return (
        terminal.age(time_of(alike[-1]), now),
        Text(document["reason"], style="yellow" if document["type"] == "Warning" else ""),
        document["object"] if len(objects) == 1 else f"{len(objects)} objects",
        Text(_first_sentence(document["message"]), style="dim"),
    )
