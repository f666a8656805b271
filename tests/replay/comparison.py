"""Compares the stamps of one recording's reviews with what was counted: every difference is a sentence.

A check is a function from a `Replay` to its differences; `CHECKS` names them all.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import orjson

from catalog.library import Catalog
from catalog.structure import Structure, Unknown, resolve
from tests.replay.exceptions import EDITED, EDITED_LATER, ROLES, TWO_AT_ONCE
from tests.replay.recordings import Count, Gang, Recording
from webhook.admit import Decision, admit, decide, needs_lineage, pending_evaluations
from webhook.documents import DocumentOwners
from webhook.identity import workload_id
from webhook.lineage import NO_OWNERS, Lineage, kind_named
from webhook.review import Review
from webhook.stamps import NO_NAME_YET, Policy, Stamps, role_of

POLICY = Policy()

UNKNOWN = "not stamped"
"""How a difference begins that is no wrong value, but none."""


@dataclass(frozen=True, kw_only=True)
class Replay:
    """A recording under a catalogue; everything is computed when it is first asked for."""

    recording: Recording
    catalog: Catalog

    def decision(self, review: Review) -> Decision:
        """What the webhook decides about a review, with the recorded owners."""
        return decide(review, self._lineage(review), self.catalog, POLICY)

    def _lineage(self, review: Review) -> Lineage:
        if not needs_lineage(review, self.catalog, POLICY.prefix):
            return NO_OWNERS
        owners = DocumentOwners(self.recording.chain(review.obj), POLICY)
        return owners.lineage_of(review.obj, review.namespace, self.catalog)

    def is_admitted(self, review: Review) -> bool:
        """Whether the review is answered as it must be: allowed, and nothing left to another process."""
        lineage = self._lineage(review)
        assert not pending_evaluations(review, lineage, self.catalog, POLICY.prefix)
        answer = admit(review, lineage, self.catalog, POLICY)
        return answer.outcome != "failed" and orjson.loads(answer.body)["response"]["allowed"] is True

    @cached_property
    def structure(self) -> Structure:
        """The object that answers for the whole: the root as created, or the one below that it names."""
        root = self.recording.root
        compiled = self.catalog.find(root.kind)
        assert compiled is not None, "the root's kind is described"
        structure = resolve(compiled, root.obj, POLICY.accelerators, namespace=root.namespace)
        answering = structure.answered_by
        if answering is None:
            return structure
        return next(found for found in self._owners_of_kind(answering.group, answering.kind))

    def _owners_of_kind(self, group: str, kind: str) -> Iterator[Structure]:
        for obj in self.recording.owners:
            found = kind_named(obj["apiVersion"], obj["kind"])
            compiled = self.catalog.find(found) if found is not None else None
            if compiled is not None and (compiled.definition.describes.group, obj["kind"]) == (group, kind):
                yield resolve(compiled, obj, POLICY.accelerators)

    @cached_property
    def pods(self) -> tuple[tuple[Review, Stamps], ...]:
        """The root's pods with their stamps, in order of arrival."""
        return tuple((review, self.stamps(review)) for review in self.recording.pods_of_root)

    def stamps(self, review: Review) -> Stamps:
        """The stamps of a pod."""
        stamps = self.decision(review).stamps
        assert stamps is not None, "pods are never left alone here"
        return stamps

    @cached_property
    def distinct_pods(self) -> tuple[Stamps, ...]:
        """Stamps of the pods, each pod once: a name that comes again is the pod made anew."""
        named = {review.obj["metadata"]["name"]: stamps for review, stamps in self.pods if review.name}
        return (*named.values(), *(stamps for review, stamps in self.pods if not review.name))

    @property
    def created(self) -> Count:
        """The count that the root's creation asks for."""
        first, *later = self.recording.counts
        if self.recording.name in EDITED:
            return first
        others = TWO_AT_ONCE | EDITED_LATER.get(self.recording.name, frozenset())
        return _largest(first, [count for count in later if count.label not in others])

    @property
    def stored(self) -> Count:
        """The count that the owners as stored at the end ask for."""
        label = EDITED.get(self.recording.name)
        return next((count for count in self.recording.counts if count.label == label), self.created)

    @property
    def has_repeats(self) -> bool:
        """Whether pods were made more than once: restarts, rollouts, retries, refused creations."""
        return len(self.pods) > self.stored.total


def _largest(first: Count, later: Iterable[Count]) -> Count:
    """The largest number of each role: stages follow one another, a suspended object starts without pods."""
    counts = (first, *later)
    roles = dict.fromkeys(role for count in counts for role in count.pods)
    return Count(
        label=first.label,
        pods={role: max(count.pods.get(role, 0) for count in counts) for role in roles},
        gpus_per_pod={role: gpus for count in counts for role, gpus in count.gpus_per_pod.items()},
    )


def _named_as_stamped(replay: Replay, counted: Mapping[str, int]) -> dict[str, int]:
    names = ROLES.get(replay.recording.root_kind, {})
    return {names.get(role, role): number for role, number in counted.items() if number}


def _key(role: str, instance: str | None, expected: Mapping[str, int]) -> str:
    """The observer's name of a role: `worker/gpu` for an instance where he told instances apart."""
    with_instance = f"{role}/{instance}"
    several = any(name.startswith(f"{role}/") for name in expected)
    return with_instance if instance is not None and several else role


def roles(replay: Replay) -> Iterator[str]:
    """The pods of each role that the object asks for."""
    expected = _named_as_stamped(replay, replay.created.pods)
    found: Counter[str] = Counter()
    unknown: set[str] = set()
    for leaf in replay.structure.leaves:
        for instance in leaf.instances:
            role = role_of(replay.structure, leaf, instance.id or None)
            if isinstance(role, Unknown) or isinstance(instance.pods, Unknown):
                reason = role if isinstance(role, Unknown) else instance.pods
                yield _unknown(leaf.component.name, reason)
                unknown.add(leaf.component.name if isinstance(role, Unknown) else _key(role, instance.id, expected))
            else:
                found[_key(role, instance.id or None, expected)] += instance.pods
    known = {role: number for role, number in expected.items() if role not in unknown}
    if +found != known:
        yield f"stamped {dict(+found)}, counted {known}"


def pods_total(replay: Replay) -> Iterator[str]:
    """The pods of the whole object at one time."""
    yield from _compared(
        "pods", replay.structure.pods_total, replay.recording.pods_as_specified or replay.created.total
    )


def gpu_total(replay: Replay) -> Iterator[str]:
    """The GPUs of the whole object."""
    yield from _compared("GPUs", replay.structure.gpu_total, replay.created.gpus)


def _compared(what: str, stamped: int | Decimal | Unknown, counted: int | Decimal) -> Iterator[str]:
    if isinstance(stamped, Unknown):
        yield _unknown(what, stamped)
    elif stamped != counted:
        yield f"stamped {stamped} {what}, counted {counted}"


def _unknown(what: str, reason: object) -> str:
    return f"{UNKNOWN} {what}: {reason.reason if isinstance(reason, Unknown) else reason}"


def gpu_total_on_pods(replay: Replay) -> Iterator[str]:
    """The GPUs of the whole object, as each of its pods carries them."""
    expected = str(replay.stored.gpus)
    for review, stamps in replay.pods:
        if "gpu-total" not in stamps.labels:
            yield _unknown(_name(review), _stamp(stamps, "gpu-total"))
        elif stamps.labels["gpu-total"] != expected:
            yield f"{_name(review)}: stamped {stamps.labels['gpu-total']}, counted {expected}"


def gpus_of_pods(replay: Replay) -> Iterator[str]:
    """The GPUs of each pod."""
    for review, stamps in replay.pods:
        expected = {role: str(gpus) for role, gpus in replay.stored.gpus_per_pod.items()}
        if stamps.annotations.get("gpus") not in expected.values():
            yield f"{_name(review)}: stamped {_stamp(stamps, 'gpus')}, counted {expected}"


def roles_of_pods(replay: Replay) -> Iterator[str]:
    """The role that each pod carries."""
    expected = _named_as_stamped(replay, replay.stored.pods)
    found = Counter(
        _key(_stamp(stamps, "role"), stamps.annotations.get("instance"), expected) for stamps in replay.distinct_pods
    )
    same = found.keys() == expected.keys() if replay.has_repeats else found == expected
    if not same:
        yield f"stamped {dict(found)}, counted {expected}"


def identity(replay: Replay) -> Iterator[str]:
    """The pods carry their root's identity: each the same, and the one that the root has."""
    root, kind = replay.recording.root, replay.recording.root_kind
    compiled = replay.catalog.find(root.kind)
    if compiled is not None and compiled.definition.spawns_workloads:
        return
    names = {replay.recording.top(review.obj)["metadata"].get("name") for review, _ in replay.pods}
    expected = {workload_id(*kind, root.namespace, name) if name else f"({NO_NAME_YET})" for name in names}
    found = {_stamp(stamps, "workload-id") for _, stamps in replay.pods}
    kinds = {_stamp(stamps, "workload-kind") for _, stamps in replay.pods}
    if found != expected or kinds - {kind[1]}:
        yield f"stamped {found} of kind {kinds}, expected {expected}"


def gangs(replay: Replay) -> Iterator[str]:
    """As many pods share a gang as its size says; with restarts, a multiple of that."""
    shared = Counter(stamps.annotations["gang"] for stamps in replay.distinct_pods if "gang" in stamps.annotations)
    for stamps in replay.distinct_pods:
        size, gang = _stamp(stamps, "gang-size"), stamps.annotations.get("gang")
        if not size.isdigit():
            yield _unknown("gang-size", size)
            return
        number = shared[gang] if gang is not None else 1
        whole = number % int(size) == 0 if replay.has_repeats else size == str(number)
        if not whole:
            yield f"gang-size {size} on {number} pods of {gang}"
            return


def starts_together(replay: Replay) -> Iterator[str]:
    """No gang holds pods that were made only after others of it were Ready."""
    if replay.recording.name in EDITED or sum(replay.recording.waves) != len(replay.pods):
        return
    arrived = iter(replay.pods)
    for number, wave in enumerate(replay.recording.waves, start=1):
        stamps = [next(arrived)[1] for _ in range(wave)]
        for gang, pods in Counter(each.annotations.get("gang") for each in stamps).items():
            sizes = {each.labels.get("gang-size") for each in stamps if each.annotations.get("gang") == gang}
            if gang is not None and sizes != {str(pods)}:
                yield f"wave {number} made {pods} pods of {gang}, whose size is {sizes}"


def gangs_of_the_framework(replay: Replay) -> Iterator[str]:
    """The gangs that the framework's own objects stated, with the number that is enough to start."""
    if not replay.recording.gangs:
        return
    stated = Counter(replay.recording.gangs)
    found = Counter(_gangs_on_pods(replay, with_size=all(gang.size is not None for gang in stated)))
    if found != stated:
        yield f"stamped {dict(found)}, stated {dict(stated)}"


def _gangs_on_pods(replay: Replay, *, with_size: bool) -> Iterator[Gang]:
    gangs_seen = {stamps.annotations["gang"]: stamps for _, stamps in replay.pods if "gang" in stamps.annotations}
    for stamps in gangs_seen.values():
        size = int(stamps.labels["gang-size"])
        minimum = int(stamps.annotations.get("gang-min", size))
        yield Gang(size=size if with_size else None, minimum=minimum)


def order_of_webhooks(replay: Replay) -> Iterator[str]:
    """A pod gets the same stamps whether the framework's own webhook has seen it or not."""
    found = {_essence(stamps) for _, stamps in replay.pods}
    for review in replay.recording.before_other_webhooks:
        if review.kind.kind == "Pod" and _essence(stamps := replay.stamps(review)) not in found:
            yield f"{_name(review)}: {_essence(stamps)} before the framework's webhook"


def _essence(stamps: Stamps) -> tuple[str, ...]:
    keys = ("workload-id", "role", "gang-size", "gpu-total", "gpus")
    return (*(_stamp(stamps, key) for key in keys), stamps.annotations.get("gang", "-"))


def _name(review: Review) -> str:
    return review.name or str(review.obj["metadata"].get("generateName", "?"))


def _stamp(stamps: Stamps, key: str) -> str:
    """The stamp's value, or its reason in brackets."""
    value = stamps.labels.get(key, stamps.annotations.get(key))
    return value if value is not None else f"({stamps.unresolved.get(key, 'absent')})"


Check = Callable[[Replay], Iterator[str]]

ALWAYS: Mapping[str, Check] = {"identity": identity}
"""Checks that need no count."""

COUNTED: Mapping[str, Check] = {
    "roles": roles,
    "pods-total": pods_total,
    "gpu-total": gpu_total,
    "gpu-total on pods": gpu_total_on_pods,
    "gpus of pods": gpus_of_pods,
    "roles of pods": roles_of_pods,
    "gangs": gangs,
    "starts together": starts_together,
    "gangs of the framework": gangs_of_the_framework,
    "order of webhooks": order_of_webhooks,
}
"""Checks of a recording whose pods are what the object asks for."""


def checks_of(recording: Recording) -> Mapping[str, Check]:
    """The checks that the recording's evidence allows."""
    if recording.pods_as_specified is not None:
        return {**ALWAYS, "pods-total": pods_total}
    if recording.not_comparable is not None or not recording.counts:
        return ALWAYS
    return {**ALWAYS, **COUNTED}


def differences(replay: Replay) -> dict[str, list[str]]:
    """What differs, by check; nothing where everything agrees. What is not stamped begins with `UNKNOWN`."""
    found = {name: list(check(replay)) for name, check in checks_of(replay.recording).items()}
    return {name: sentences for name, sentences in found.items() if sentences}
