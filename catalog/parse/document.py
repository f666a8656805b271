"""From a document to a definition: the whole of parsing, in order."""

from itertools import islice

from catalog.definition import Definition, Json
from catalog.parse.building import BUILDERS, Root
from catalog.parse.fields import DEFINITION, KINDS
from catalog.parse.problem import MOST_PROBLEMS, DefinitionError, Problem, listed, nearest
from catalog.parse.reading import Reading, TooManyProblems, Values
from catalog.parse.rules_between import violations
from catalog.parse.rules_within import RULES
from catalog.resources.message import shown


def parse(document: Json, origin: str) -> Definition:
    """The definition that a document states. `origin` says where the document is from, for messages.

    Raises `DefinitionError` with every problem of the document, at most `MOST_PROBLEMS` and a word that there are more.
    Nothing else is raised, whatever the document is.
    """
    not_ours = _kind_problem(document)
    if not_ours is not None:
        raise DefinitionError((not_ours,))
    reading = Reading(BUILDERS, RULES)
    try:
        definition = _definition(reading.read(DEFINITION, document, ""), origin)
    except TooManyProblems:
        raise _refusal(reading.problems) from None
    is_upstream = document["apiVersion"] != KINDS[0][0]
    problems = [*reading.problems, *islice(violations(definition, is_upstream=is_upstream), MOST_PROBLEMS + 1)]
    if problems:
        raise _refusal(problems)
    return definition


def _refusal(problems: list[Problem]) -> DefinitionError:
    if len(problems) <= MOST_PROBLEMS:
        return DefinitionError(tuple(problems))
    more = Problem("definition", "has more problems than these", None, "correct these first")
    return DefinitionError((*problems[:MOST_PROBLEMS], more))


def _kind_problem(document: Json) -> Problem | None:
    """Of a document that is no definition at all only that is said."""
    if not isinstance(document, dict):
        return Problem("definition", "is no object", shown(document), f"write a {KINDS[0][1]}")
    api_version, kind = document.get("apiVersion"), document.get("kind")
    if (api_version, kind) in KINDS:
        return None
    for known_version, known_kind in KINDS:
        if kind == known_kind:
            what = f"is no version of {known_kind} that is understood"
            return Problem("apiVersion", what, shown(api_version), f"write {known_version}")
    kinds = tuple(known for _, known in KINDS)
    near = nearest(kind, kinds) if isinstance(kind, str) else None
    remedy = f"write {near} if that is meant" if near else f"write {listed(kinds, 'or')}"
    return Problem("kind", "is no kind of definition", shown(kind), remedy)


def _definition(values: Values, origin: str) -> Definition:
    structure: Values = values["spec"]["structureDefinition"]
    gangs: Values = (values["spec"]["optimizationInstructions"] or {}).get("gangScheduling") or {}
    root: Root = structure["rootComponent"]
    return Definition(
        name=values["metadata"]["name"],
        origin=origin,
        root=root.component,
        children=structure["childComponents"],
        additional_child_kinds=structure["additionalChildKinds"],
        gang_groups=gangs.get("podGroups", ()),
        pod_group=gangs.get("podGroup"),
        spawns_workloads=root.spawns_workloads,
        root_stamps=root.root_stamps,
        answered_by=root.answered_by,
    )
