"""What the golden cases show of each definition: which objects of its kind they hold, and pods of which components.

Reads cases through the catalogue as the webhook would. Judges nothing: `test_coverage` does.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from catalog.attribution import Attribution, PodReading
from catalog.definition import Component, Expression, Json, JsonObject
from catalog.expressions.program import analysed
from catalog.expressions.reads import Part, read_parts
from catalog.library import Catalog, CompiledDefinition
from catalog.structure import Structure, Unknown, resolve
from tests.golden.cases import Case, is_pod_step
from webhook.documents import DocumentOwners
from webhook.lineage import controller_reference, kind_named
from webhook.stamps import Policy

STATED_NUMBERS = frozenset(
    (
        "completions",
        "instances",
        "maxReplicas",
        "minReplicas",
        "nodeCount",
        "numOfHosts",
        "parallelism",
        "podGroupSize",
        "replicas",
        "size",
    )
)
"""Names of the fields in which frameworks state numbers of pods."""

FieldPath = tuple[str, ...]
"""Keys from the root of an object; `[]` stands for each element of a list or value of a map."""


@dataclass(frozen=True, slots=True)
class Shown:
    """An object of a described kind in some case, with what its definition makes of it."""

    obj: JsonObject
    structure: Structure


@dataclass(slots=True)
class Exhibits:
    """What all cases together show of one definition.

    `attributed` names the components of pods that its selectors chose, `gpus_of_pods` holds the GPUs of those pods.
    """

    objects: list[Shown] = field(default_factory=list)
    attributed: set[str] = field(default_factory=set)
    gpus_of_pods: list[Decimal] = field(default_factory=list)

    def with_component(self, component: str) -> list[Shown]:
        """The objects in which the component exists."""
        return [shown for shown in self.objects if shown.structure.leaf(component) is not None]

    def gpu_amounts(self) -> list[Decimal]:
        """GPUs of whole objects where they are known, and of single pods."""
        totals = [shown.structure.gpu_total for shown in self.objects]
        return [*(total for total in totals if not isinstance(total, Unknown)), *self.gpus_of_pods]


def exhibits(cases: Sequence[Case], catalog: Catalog, policy: Policy) -> dict[str, Exhibits]:
    """By the name of the definition; each definition has an entry."""
    found = {compiled.definition.name: Exhibits() for compiled in catalog}
    for case in cases:
        for shown in _described_objects(case, catalog, policy):
            found[shown.structure.definition.name].objects.append(shown)
        for (step, decision), (structures, pod) in zip(
            [each for each in case.decisions(catalog, policy) if is_pod_step(each[0])],
            _pods(case, catalog, policy),
            strict=True,
        ):
            stamped = decision.stamps.annotations.get("gpus") if decision.stamps is not None else None
            for structure in structures if step.expected is not None else ():
                attribution = PodReading(structure, pod).attribution()
                if isinstance(attribution, Attribution):
                    of_kind = found[structure.definition.name]
                    of_kind.attributed.add(attribution.leaf.component.name)
                    of_kind.gpus_of_pods.extend([Decimal(stamped)] if stamped is not None else [])
    return found


def _described_objects(case: Case, catalog: Catalog, policy: Policy) -> Iterator[Shown]:
    for obj in (*case.cluster, *(step.review.obj for step in case.steps)):
        compiled = _definition_of(obj, catalog)
        if compiled is not None:
            yield Shown(obj, resolve(compiled, obj, policy.accelerators))


def _definition_of(obj: JsonObject, catalog: Catalog) -> CompiledDefinition | None:
    """The definition through which an object is read; a pod with a controller owner is read through its owners'."""
    kind = kind_named(obj["apiVersion"], obj["kind"])
    assert kind is not None
    if (kind.group, kind.kind) == ("", "Pod") and controller_reference(obj) is not None:
        return None
    return catalog.find(kind)


def _pods(case: Case, catalog: Catalog, policy: Policy) -> Iterator[tuple[tuple[Structure, ...], JsonObject]]:
    """Each admitted pod with the objects that may claim it: its described owners, or itself when it has none."""
    owners = DocumentOwners(case.cluster, policy)
    for step in case.steps:
        if not is_pod_step(step):
            continue
        pod = step.review.obj
        alone = _definition_of(pod, catalog)
        if alone is not None:
            yield (resolve(alone, pod, policy.accelerators),), pod
        else:
            yield owners.lineage_of(pod, step.review.namespace, catalog).described, pod


def stated_numbers(component: Component) -> list[FieldPath]:
    """The fields from which the number of a component's pods is read, as far as they are numbers of pods."""
    if component.scale is None or component.scale.replicas is None:
        return []
    return [path for path in fields_read(component.scale.replicas) if path and path[-1] in STATED_NUMBERS]


def fields_read(expression: Expression) -> Iterator[FieldPath]:
    """The fields of its document that an expression reads, in the order in which it does."""
    tree = analysed(expression.text).tree
    assert tree is not None
    yield from _ends(read_parts([tree]), ())


def _ends(part: Part, path: FieldPath) -> Iterator[FieldPath]:
    inner = [(name, each) for name, each in part.fields.items()]
    if part.every is not None:
        inner.append(("[]", part.every))
    if not inner:
        yield path
    for name, each in inner:
        yield from _ends(each, (*path, name))


def is_absent_somewhere(document: Json, path: FieldPath) -> bool:
    """Whether the field is not there: for a list, in one element at least."""
    if not path:
        return document is None
    name, *rest = path
    if name == "[]":
        elements = document.values() if isinstance(document, dict) else document if isinstance(document, list) else ()
        return any(is_absent_somewhere(element, tuple(rest)) for element in elements)
    return is_absent_somewhere(document.get(name) if isinstance(document, dict) else None, tuple(rest))
