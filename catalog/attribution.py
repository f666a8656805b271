"""Which component, instance and gang of a described object a pod belongs to.

Membership in the object itself is decided by owner references, elsewhere; here only the pod is read, through the
selectors and grouping keys of the object's definition (definitions.md, sections 3.5 to 3.7).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from catalog.definition import Component, Expression, GangMember, Json, JsonObject, PodSelector
from catalog.expressions import Outcome
from catalog.library import NOTHING_ISOLATED, ancestors
from catalog.structure import GangNumbers, Leaf, Results, Structure, Unknown, is_own_name


@dataclass(frozen=True, slots=True, kw_only=True)
class GangSeat:
    """A pod's place in a gang of the object.

    `group` is empty when the object has a single group, `keys` are the grouping keys that differ inside the object;
    `size` and `minimum` count pods (`minimum` is None when the object states none).
    """

    group: str
    keys: tuple[str, ...]
    size: int | Unknown
    minimum: int | Unknown | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """The pod's component in the object, with the instance where the component has instances."""

    leaf: Leaf
    instance: str | None


class PodReading:
    """A pod as one object's definition reads it: its expressions are evaluated once, for component and gang alike."""

    __slots__ = ("_pod", "_results", "structure")

    def __init__(
        self, structure: Structure, pod: JsonObject, isolated: Mapping[str, Outcome] = NOTHING_ISOLATED
    ) -> None:
        program = structure.compiled.selection
        self.structure = structure
        self._pod = pod
        self._results = Results(structure.definition, program.sources, program.evaluate(pod, isolated))

    def attribution(self) -> Attribution | Unknown | None:
        """The pod's component: the first leaf whose selector holds; `None` when no leaf claims it.

        A selector that cannot be evaluated makes it unknown: the pod might be that component's.
        """
        for leaf in self.structure.leaves:
            claimed = self._claimed_by(leaf)
            if isinstance(claimed, Attribution | Unknown):
                return claimed
        return None

    def _claimed_by(self, leaf: Leaf) -> Attribution | Unknown | None:
        selector = leaf.component.selector
        if selector is None or not (selector.chooses_component or selector.instance):
            is_sole = len(self.structure.compiled.leaves) == 1
            return Attribution(leaf=leaf, instance=None) if is_sole else None
        holds = self._holds(selector)
        if holds is not True:
            return holds or None
        if not leaf.has_instances or selector.instance is None:
            return Attribution(leaf=leaf, instance=None)
        if leaf.fault is not None:
            return Unknown(leaf.fault)
        return self._instance_of(leaf, selector.instance)

    def _holds(self, selector: PodSelector) -> bool | Unknown:
        labels = _labels(self._pod)
        if any(labels.get(key) != value for key, value in selector.match_labels.items()):
            return False
        if selector.key is None:
            return True
        found = self._results.one(selector.key)
        if isinstance(found, Unknown):
            return found
        return found not in (None, "") if selector.value is None else printed(found) == selector.value

    def _instance_of(self, leaf: Leaf, path: Expression) -> Attribution | Unknown | None:
        found = self._results.one(path)
        if isinstance(found, Unknown):
            return found
        if found in (None, ""):
            return None
        id_ = printed(found)
        if id_ not in leaf.ids:
            return None
        return Attribution(leaf=leaf, instance=id_)

    def seat(self, attribution: Attribution) -> GangSeat | Unknown | None:
        """The pod's place in a gang that this object states; `None` when no stated gang covers it."""
        if self.structure.gang_fault is not None:
            return Unknown(self.structure.gang_fault)
        for level in (attribution.leaf.component, *ancestors(self.structure.definition, attribution.leaf.component)):
            for gang, member in self._members(level):
                accepted = self._accepted(member)
                if isinstance(accepted, Unknown):
                    return accepted
                if accepted:
                    return self._seat_in(gang, member, level, attribution)
        return None

    def _members(self, component: Component) -> Iterator[tuple[GangNumbers, GangMember]]:
        for gang in self.structure.gangs:
            for member in gang.group.members:
                if member.component == component.name:
                    yield gang, member

    def _accepted(self, member: GangMember) -> bool | Unknown:
        for condition in member.filters:
            answer = self._results.one(condition)
            if isinstance(answer, Unknown):
                return answer
            if answer is not True:
                return False
        return True

    def _seat_in(
        self, gang: GangNumbers, member: GangMember, level: Component, attribution: Attribution
    ) -> GangSeat | Unknown | None:
        instance = self._instance_at(level, attribution)
        if isinstance(instance, Unknown):
            return instance
        keys = self._keys(gang, member, instance)
        if keys is None or isinstance(keys, Unknown):
            return keys
        size = gang.sizes.of(instance)
        if size is None:
            size = Unknown(f"gang group {gang.group.name}: no size is stated for instance {instance!r}")
        elif size == 0:
            # The pod is there all the same: something below the object was scaled.
            size = Unknown(f"gang group {gang.group.name}: the object asks for no such gang")
        return GangSeat(
            group=gang.group.name if len(self.structure.gangs) > 1 else "",
            keys=keys,
            size=size,
            minimum=gang.minimums.of(instance),
        )

    def _instance_at(self, level: Component, attribution: Attribution) -> str | Unknown | None:
        """The pod's instance of the component that is the gang's member: its own, or that of an ancestor."""
        if level is attribution.leaf.component:
            return attribution.instance
        if level.instance_ids is None or level.selector is None or level.selector.instance is None:
            return attribution.instance
        found = self._results.one(level.selector.instance)
        return found if isinstance(found, Unknown) else printed(found)

    def _keys(self, gang: GangNumbers, member: GangMember, instance: str | None) -> tuple[str, ...] | Unknown | None:
        keys: list[str] = []
        if gang.gang_ids is not None:
            if isinstance(gang.gang_ids, Unknown):
                return gang.gang_ids
            named = gang.gang_ids.get(instance or "", "")
            if not named:
                return None
            if len({each for each in gang.gang_ids.values() if each}) > 1:
                keys.append(named)
        for path in member.group_by:
            if is_own_name(self.structure.definition, path):
                continue
            found = self._results.one(path)
            if isinstance(found, Unknown):
                return found
            if found in (None, ""):
                return Unknown(f"{self._results.place(path)}: the pod has no such grouping key")
            keys.append(printed(found))
        return tuple(keys)


def printed(value: Json) -> str:
    """A scalar as jq prints it: strings bare, integers without exponent."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _labels(pod: JsonObject) -> Mapping[str, Json]:
    metadata = pod.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    return labels if isinstance(labels, dict) else {}
