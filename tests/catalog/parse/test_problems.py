"""What is refused, with the words in which it is refused."""

import pytest

from catalog.definition import Json, JsonObject
from catalog.parse import DefinitionError, Problem, parse
from tests.catalog.parse.documents import CHILDREN, GANGS, ROOT, changed, complete, smallest, with_gang_fields

STATUS = f"{ROOT}.statusDefinition"
TEMPLATE = {"podTemplateSpecPath": ".spec.template"}


def problems_of(document: Json) -> list[str]:
    """The problems of a document, in order; none when it is valid."""
    try:
        parse(document, "run.yaml")
    except DefinitionError as refused:
        return [str(problem) for problem in refused.problems]
    return []


Fragment = tuple[str, Json, list[str]]
"""A path, what is put there in the complete definition, and the problems."""

WRONG_TYPES: list[Fragment] = [
    ("spec", [], ["spec: is no object, found a list with 0 entries, write an object with structureDefinition"]),
    (
        "metadata",
        "run",
        ['metadata: is no object, found "run", write an object with name'],
    ),
    (
        f"{ROOT}.kind",
        "Run",
        [f'{ROOT}.kind: is no object, found "Run", write an object with version and kind'],
    ),
    (
        f"{ROOT}.spawnsWorkloads",
        "true",
        [f'{ROOT}.spawnsWorkloads: is no boolean, found "true", write true or false, without quotes'],
    ),
    (
        f"{ROOT}.rootStamps",
        "all",
        [f'{ROOT}.rootStamps: is none of the known words, found "all", write identity, full, annotations or none'],
    ),
    (f"{ROOT}.rootStamps", 1, [f"{ROOT}.rootStamps: is a number where a string belongs, found 1, quote it"]),
    (CHILDREN, {"a": 1}, [f"{CHILDREN}: is no list, found an object with 1 field, write a list, even for one entry"]),
    (
        f"{CHILDREN}[3]",
        None,
        [f"{CHILDREN}[3]: is no object, found null, write an object with name and ownerRef"],
    ),
    (
        f"{CHILDREN}[0].podSelector.componentTypeSelector.value",
        True,
        [
            (
                f"{CHILDREN}[0].podSelector.componentTypeSelector.value: is a boolean where a string belongs, "
                "found true, quote it: without quotes YAML takes on, off, yes, no, true and false for booleans"
            )
        ],
    ),
    (
        f"{CHILDREN}[0].podSelector.componentTypeSelector.matchLabels",
        {"a b": "x", "c": 1, "d": "e f"},
        [
            (
                f'{CHILDREN}[0].podSelector.componentTypeSelector.matchLabels["a b"]: is no name of a label, '
                'found "a b", write a name such as example.com/role'
            ),
            (
                f"{CHILDREN}[0].podSelector.componentTypeSelector.matchLabels.c: is a number where a string belongs, "
                "found 1, quote it"
            ),
            (
                f"{CHILDREN}[0].podSelector.componentTypeSelector.matchLabels.d: is no value that a label can have, "
                'found "e f", write the label as pods have it'
            ),
        ],
    ),
    (
        f"{CHILDREN}[1].podSelector.componentTypeSelector.matchLabels",
        {},
        [
            (
                f"{CHILDREN}[1].podSelector.componentTypeSelector.matchLabels: is no map of labels, "
                "found an object with 0 fields, write at least one label, as name: value"
            )
        ],
    ),
    (
        f"{CHILDREN}[2].scaleDefinition.replicasPath",
        1,
        [f"{CHILDREN}[2].scaleDefinition.replicasPath: is a number where a string belongs, found 1, quote it"],
    ),
    (
        f"{CHILDREN}[2].instanceIdPath",
        [".a"],
        [f"{CHILDREN}[2].instanceIdPath: is no string, found a list with 1 entry, write a string"],
    ),
    (
        f"{CHILDREN}[1].specDefinition",
        ".spec",
        [
            (
                f'{CHILDREN}[1].specDefinition: is no object, found ".spec", write an object with podTemplateSpecPath, '
                "podSpecPath, metadataPath and fragmentedPodSpecDefinition"
            )
        ],
    ),
    (
        f"{GANGS}.podGroups[0].members",
        "driver",
        [f'{GANGS}.podGroups[0].members: is no list, found "driver", write a list, even for one entry'],
    ),
    (
        f"{STATUS}.statusMappings.running[0].byConditions",
        "Ready",
        [
            (
                f"{STATUS}.statusMappings.running[0].byConditions: "
                'is no list, found "Ready", write a list, even for one entry'
            )
        ],
    ),
    (
        f"{STATUS}.statusMappings",
        [],
        [
            (
                f"{STATUS}.statusMappings: is no object, found a list with 0 entries, write an object with resuming, "
                "suspending, suspended, running, failed, completed, initializing and degraded"
            )
        ],
    ),
    (
        f"{ROOT}.name",
        "\ud800",
        [f'{ROOT}.name: has characters that are no text, found "\\ud800", write it anew'],
    ),
]

WRONG_NAMES: list[Fragment] = [
    (
        f"{ROOT}.nmae",
        5,
        [f"{ROOT}.nmae: is no field of rootComponent, found 5, write name if that is meant"],
    ),
    (
        f"{CHILDREN}[0].OwnerRef",
        "run",
        [f'{CHILDREN}[0].OwnerRef: is no field of childComponent, found "run", write ownerRef if that is meant'],
    ),
    (
        f"{CHILDREN}[0].ownerName",
        "run",
        [f'{CHILDREN}[0].ownerName: is no field of childComponent, found "run", write ownerRef if that is meant'],
    ),
    (
        f"{CHILDREN}[0].spawnsWorkloads",
        True,
        [f"{CHILDREN}[0].spawnsWorkloads: is no field of childComponent, found true, move it to rootComponent"],
    ),
    (
        f"{ROOT}.replicasPath",
        ".spec.replicas",
        [f'{ROOT}.replicasPath: is no field of rootComponent, found ".spec.replicas", move it to scaleDefinition'],
    ),
    (
        f"{GANGS}.podGroups[0].zzz",
        {"a": 1},
        [
            (
                f"{GANGS}.podGroups[0].zzz: is no field of podGroups, found an object with 1 field, "
                "write name, members, gangIdPath, minPath, sizePath or isEnabledExpression"
            )
        ],
    ),
    (
        f"{STATUS}.statusMappings.undefined",
        [],
        [
            (
                f"{STATUS}.statusMappings.undefined: is no field of statusMappings, found a list with 0 entries, "
                "write resuming, suspending, suspended, running, failed, completed, initializing or degraded"
            )
        ],
    ),
    (
        "spec.structureDefinitions",
        None,
        ["spec.structureDefinitions: is no field of spec, found null, write structureDefinition if that is meant"],
    ),
    ("extra", 1, ["extra: is no field of definition, found 1, write apiVersion, kind, metadata, spec or status"]),
]

MISSING: list[Fragment] = [
    ("metadata", {"labels": {}}, ["metadata.name: is missing, write the definition's name"]),
    (
        f"{ROOT}.kind",
        {"group": "example.com"},
        [f"{ROOT}.kind.version: is missing, write the API version", f"{ROOT}.kind.kind: is missing, write the kind"],
    ),
    (f"{ROOT}.kind", None, [f"{ROOT}.kind: is missing, write the kind of object that the definition describes"]),
    (f"{ROOT}.name", "", [f'{ROOT}.name: is empty, found "", write the component\'s name']),
    (STATUS, None, [f"{STATUS}: is missing, write how the object's status is read"]),
    (STATUS, {}, [f"{STATUS}.statusMappings: is missing, write how to recognise each status, {{}} when none can be"]),
    (f"{CHILDREN}[3].ownerRef", None, [f"{CHILDREN}[3].ownerRef: is missing, write the name of the component above"]),
    (
        f"{CHILDREN}[2].podSelector.componentInstanceSelector",
        {},
        [
            (
                f"{CHILDREN}[2].podSelector.componentInstanceSelector.idPath: is missing, "
                "write what on the pod is the id of its instance"
            )
        ],
    ),
    (
        f"{ROOT}.suspendDefinition",
        {"suspendActions": [], "resumeActions": [{"path": ".spec.suspend"}]},
        [
            (
                f"{ROOT}.suspendDefinition.suspendActions: has too few entries, found a list with 0 entries, "
                "write at least 1"
            ),
            (
                f"{ROOT}.suspendDefinition.resumeActions[0].value: is missing, "
                'write the value to set as JSON, for example "true"'
            ),
        ],
    ),
    (
        f"{GANGS}.podGroups[0].members",
        [],
        [f"{GANGS}.podGroups[0].members: has too few entries, found a list with 0 entries, write at least 1"],
    ),
    (
        f"{STATUS}.statusMappings.running",
        [{"byConditions": [{"status": "True"}]}, {"byExpression": {"expression": ".a"}}],
        [
            f"{STATUS}.statusMappings.running[0].byConditions[0].type: is missing, write the condition's type",
            (
                f"{STATUS}.statusMappings.running[1].byExpression.expectedResult: is missing, "
                "write the result as jq's tostring prints it"
            ),
        ],
    ),
]

WRONG_FORMS: list[Fragment] = [
    (
        "metadata.name",
        "Run_1",
        [
            (
                'metadata.name: has the wrong form, found "Run_1", '
                "write a DNS subdomain: lower-case letters, digits, dashes and dots"
            )
        ],
    ),
    (
        f"{ROOT}.kind",
        {"group": "example.com/v1", "version": "V1", "kind": "run job"},
        [
            (
                f'{ROOT}.kind.group: has the wrong form, found "example.com/v1", '
                "write an API group such as batch or jobset.x-k8s.io"
            ),
            f'{ROOT}.kind.version: has the wrong form, found "V1", write an API version such as v1',
            f'{ROOT}.kind.kind: has the wrong form, found "run job", write a kind such as JobSet',
        ],
    ),
    (
        f"{ROOT}.kind.group",
        "",
        [f"{ROOT}.kind.group: is missing, write the API group of Run: the core group has no such kind"],
    ),
    (
        f"{CHILDREN}[0].role",
        "the driver",
        [
            (
                f'{CHILDREN}[0].role: has the wrong form, found "the driver", '
                "write at most 63 letters, digits, dashes, underscores and dots, a letter or digit at both ends"
            )
        ],
    ),
    (
        f"{ROOT}.suspendDefinition.suspendActions[0].value",
        "Suspended",
        [
            (
                f'{ROOT}.suspendDefinition.suspendActions[0].value: is no JSON, found "Suspended", '
                "write it as JSON, for example '\"Suspended\"' for a string"
            )
        ],
    ),
    (
        f"{GANGS}.podGroups[0].members[0].filters",
        [".a", "", None, ".a"],
        [
            f'{GANGS}.podGroups[0].members[0].filters[3]: repeats entry 0, found ".a", write each only once',
            f'{GANGS}.podGroups[0].members[0].filters[1]: is empty, found "", write a jq expression',
            f"{GANGS}.podGroups[0].members[0].filters[2]: is no string, found null, write a string",
        ],
    ),
]

WITHIN_ONE_OBJECT: list[Fragment] = [
    (
        f"{CHILDREN}[1].specDefinition",
        {"podTemplateSpecPath": ".a", "podSpecPath": ".b", "fragmentedPodSpecDefinition": {}},
        [
            (
                f"{CHILDREN}[1].specDefinition: says more than once where the pod spec is, "
                "found podTemplateSpecPath, podSpecPath and fragmentedPodSpecDefinition, keep one of them"
            )
        ],
    ),
    (
        f"{CHILDREN}[1].specDefinition",
        {"podTemplateSpecPath": ".a", "metadataPath": ".b"},
        [
            (
                f'{CHILDREN}[1].specDefinition.metadataPath: goes with podSpecPath only, found ".b", '
                "leave it out, or write podSpecPath"
            )
        ],
    ),
    (
        f"{CHILDREN}[1].specDefinition",
        {},
        [
            (
                f"{CHILDREN}[1].specDefinition: does not say where the pod spec is, "
                "write podTemplateSpecPath, podSpecPath or fragmentedPodSpecDefinition"
            )
        ],
    ),
    (
        f"{CHILDREN}[3].instanceIdPath",
        ".spec.ids[]",
        [
            (
                f'{CHILDREN}[3].instanceIdPath: has no selector that tells a pod\'s instance, found ".spec.ids[]", '
                "write podSelector.componentInstanceSelector.idPath"
            )
        ],
    ),
    (
        f"{CHILDREN}[1].podSelector.componentInstanceSelector",
        {"idPath": ".metadata.name"},
        [
            (
                f"{CHILDREN}[1].podSelector.componentInstanceSelector: has no instances to choose from, "
                'found ".metadata.name", write instanceIdPath'
            )
        ],
    ),
    (
        f"{CHILDREN}[2].podSelector.componentTypeSelector",
        {},
        [f"{CHILDREN}[2].podSelector.componentTypeSelector: selects nothing, write keyPath or matchLabels"],
    ),
    (
        f"{CHILDREN}[2].podSelector.componentTypeSelector",
        {"value": "x", "matchLabels": {"a": "b"}},
        [
            (
                f"{CHILDREN}[2].podSelector.componentTypeSelector.value: has no keyPath to be compared with, "
                'found "x", write keyPath'
            )
        ],
    ),
    (
        f"{STATUS}.statusMappings.running",
        [{}, {"byConditions": []}, {"byPhase": ""}],
        [
            f"{STATUS}.statusMappings.running[{index}]: matches every object, "
            "write byPhase, byConditions or byExpression"
            for index in range(3)
        ],
    ),
    (f"{ROOT}.ownerRef", "run", [f'{ROOT}.ownerRef: is not for the root component, found "run", leave it out']),
    (
        f"{CHILDREN}[0].statusDefinition.statusMappings",
        {"failed": [{"byPhase": "Bad"}, {"byConditions": [{"type": "A"}, {"type": "B"}]}]},
        [
            (
                f"{CHILDREN}[0].statusDefinition.statusMappings.failed[0].byPhase: has no phase to look at, "
                'found "Bad", write phaseDefinition'
            ),
            (
                f"{CHILDREN}[0].statusDefinition.statusMappings.failed[1].byConditions: has no conditions to look at, "
                'found "A", write conditionsDefinition'
            ),
        ],
    ),
]

BETWEEN_COMPONENTS: list[Fragment] = [
    (
        f"{CHILDREN}[3].name",
        "run",
        [
            f'{ROOT}.answeredBy: names no child component, found "inner", write driver, helper, part or run',
            f'{CHILDREN}[3].name: is taken by {ROOT}, found "run", give each component its own name',
        ],
    ),
    (
        f"{CHILDREN}[1].ownerRef",
        "drivr",
        [f'{CHILDREN}[1].ownerRef: names no component, found "drivr", write driver if that is meant'],
    ),
    (
        f"{CHILDREN}[1].ownerRef",
        "???",
        [f'{CHILDREN}[1].ownerRef: names no component, found "???", write run, driver, helper, part or inner'],
    ),
    (
        f"{CHILDREN}[0].ownerRef",
        "helper",
        [
            (
                f"{CHILDREN}[0].ownerRef: leads back to the component itself, found driver → helper → driver, "
                "let it lead to the root"
            )
        ],
    ),
    (
        f"{CHILDREN}[3].ownerRef",
        "inner",
        [f"{CHILDREN}[3].ownerRef: leads back to the component itself, found inner → inner, let it lead to the root"],
    ),
    (
        f"{CHILDREN}[1].podSelector",
        None,
        [
            (
                f"{CHILDREN}[1].podSelector: does not tell its pods from those of others, "
                'found "driver" and "part", write componentTypeSelector'
            )
        ],
    ),
    (
        f"{CHILDREN}[1].podSelector",
        {"replicaSelector": {"keyPath": ".a"}},
        [
            (
                f"{CHILDREN}[1].podSelector: does not tell its pods from those of others, "
                'found "driver" and "part", write componentTypeSelector'
            )
        ],
    ),
    (
        f"{CHILDREN}[3]",
        {
            "name": "inner",
            "kind": {"group": "other.example.com", "version": "v2", "kind": "Inner"},
            "ownerRef": "run",
            "specDefinition": TEMPLATE,
            "podSelector": {"componentTypeSelector": {"matchLabels": {"example.com/kind": "helper"}}},
        },
        [
            (
                f'{ROOT}.answeredBy: names a component with a pod spec, found "inner", '
                "leave out its specDefinition: the pods are its own definition's to describe"
            ),
            (
                f"{CHILDREN}[3].podSelector: selects the same pods as {CHILDREN}[1], found example.com/kind=helper, "
                "let each select its own"
            ),
        ],
    ),
    (
        f"{ROOT}.answeredBy",
        "run",
        [
            f'{ROOT}.answeredBy: names no child component, found "run", write driver, helper, part or inner',
        ],
    ),
    (
        f"{CHILDREN}[3].kind",
        None,
        [
            (
                f'{ROOT}.answeredBy: names a component without a kind, found "inner", '
                "write its kind, by which its own definition is found"
            )
        ],
    ),
    (
        "spec.structureDefinition.additionalChildKinds[3]",
        {"group": "batch", "version": "v1", "kind": "Job"},
        [
            (
                "spec.structureDefinition.additionalChildKinds[3]: repeats entry 0, "
                'found "batch", "v1" and "Job", write each only once'
            )
        ],
    ),
]

GANGS_OF_COMPONENTS: list[Fragment] = [
    (
        f"{GANGS}.podGroups[1]",
        {"name": "run", "members": [{"componentName": "prt"}, {"componentName": "prt"}]},
        [
            f'{GANGS}.podGroups[1].name: repeats entry 0, found "run", write each only once',
            f'{GANGS}.podGroups[1].members[1].componentName: repeats entry 0, found "prt", write each only once',
            (
                f'{GANGS}.podGroups[1].members[0].componentName: names no component, found "prt", '
                "write part if that is meant"
            ),
            (
                f'{GANGS}.podGroups[1].members[1].componentName: names no component, found "prt", '
                "write part if that is meant"
            ),
        ],
    ),
    (
        f"{GANGS}.podGroup.subGroups",
        [{"componentName": "parts"}, {"componentName": "driver"}, {"componentName": "driver"}],
        [
            f'{GANGS}.podGroup.subGroups[2].componentName: repeats entry 1, found "driver", write each only once',
            (
                f'{GANGS}.podGroup.subGroups[0].componentName: names no component, found "parts", '
                "write part if that is meant"
            ),
        ],
    ),
    (
        f"{GANGS}.podGroups[0].sizePath",
        ".spec.size",
        [f'{GANGS}.podGroups[0].sizePath: would not count beside podGroup, found ".spec.size", leave out one of them'],
    ),
    (
        f"{GANGS}.podGroups[0].gangIdPath",
        ".spec.stage",
        [
            (
                f'{GANGS}.podGroups[0].gangIdPath: would not count beside podGroup, found ".spec.stage", '
                "leave out one of them"
            ),
            (
                f"{GANGS}.podGroups[0].gangIdPath: needs one member with pods, and that with an instanceIdPath, "
                'found "driver" and "helper", leave it out, or make groups of one such member'
            ),
        ],
    ),
]

FRAGMENTS = [
    *WRONG_TYPES,
    *WRONG_NAMES,
    *MISSING,
    *WRONG_FORMS,
    *WITHIN_ONE_OBJECT,
    *BETWEEN_COMPONENTS,
    *GANGS_OF_COMPONENTS,
]


@pytest.mark.parametrize(
    "path, value, problems", FRAGMENTS, ids=[f"{index}-{path}" for index, (path, _, _) in enumerate(FRAGMENTS)]
)
def test_a_bad_fragment_is_refused_in_these_words(path: str, value: Json, problems: list[str]) -> None:
    """In an otherwise valid definition exactly these problems are found: none is hidden and none made up."""
    assert problems_of(changed(complete(), path, value)) == problems


@pytest.mark.parametrize("group", [[], [{"componentName": "driver"}]], ids=["two-members", "no-instances"])
def test_gang_ids_need_instances(group: list[JsonObject]) -> None:
    """They sort the instances of one component; several members, or one without instances, cannot be sorted."""
    members = group or [{"componentName": "driver"}, {"componentName": "part"}]
    found = problems_of(changed(with_gang_fields(), f"{GANGS}.podGroups[1].members", members))

    assert len(found) == 1
    assert found[0].startswith(f"{GANGS}.podGroups[1].gangIdPath: needs one member with pods")


def test_gang_ids_of_a_member_without_pods_have_nothing_to_sort() -> None:
    """A member that stands for another definition's object bears no pods here."""
    members = [{"componentName": "inner"}]

    assert problems_of(changed(with_gang_fields(), f"{GANGS}.podGroups[1].members", members)) == [
        (
            f"{GANGS}.podGroups[1].gangIdPath: needs one member with pods, and that with an instanceIdPath, "
            "found no component with pods, leave it out, or make groups of one such member"
        )
    ]


def test_an_answering_child_needs_children() -> None:
    """Nothing can be proposed where there is nothing."""
    assert problems_of(changed(smallest(), f"{ROOT}.answeredBy", "inner")) == [
        f'{ROOT}.answeredBy: names no child component, found "inner", add the child, or leave it out'
    ]


def test_unusable_expressions_are_refused_wherever_they_stand() -> None:
    """Each with its place, what is wrong with it, its text, and what would be right."""
    document = changed(complete(), f"{CHILDREN}[2].scaleDefinition.replicasPath", ".spec[")
    document = changed(document, f"{GANGS}.podGroups[0].members[0].groupByKeyPaths", [".metadata.name", "env"])
    document = changed(document, f"{CHILDREN}[2].instanceIdPath", "." + "a" * 5000)

    bracket, length, environment = problems_of(document)

    assert bracket.startswith(f"{CHILDREN}[2].scaleDefinition.replicasPath: column ")
    assert bracket.endswith('the expression ends inside a bracket, found ".spec[", close it')
    assert length.startswith(f"{CHILDREN}[2].instanceIdPath: the expression has 5001 characters, found ")
    assert length.endswith("keep it within 4096")
    assert environment.startswith(f"{GANGS}.podGroups[0].members[0].groupByKeyPaths[1]: column 1: `env` reads ")


@pytest.mark.parametrize(
    "document, problem",
    [
        (None, "definition: is no object, found null, write a WorkloadDefinition"),
        ([1], "definition: is no object, found a list with 1 entry, write a WorkloadDefinition"),
        (
            {},
            ("kind: is no kind of definition, found null, write WorkloadDefinition, Karta or ResourceInterface"),
        ),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "data": {}},
            ('kind: is no kind of definition, found "ConfigMap", write WorkloadDefinition, Karta or ResourceInterface'),
        ),
        (
            {"apiVersion": "run.ai/v1alpha1", "kind": "karta"},
            'kind: is no kind of definition, found "karta", write Karta if that is meant',
        ),
        (
            {"apiVersion": "run.ai/v1", "kind": "Karta"},
            'apiVersion: is no version of Karta that is understood, found "run.ai/v1", write run.ai/v1alpha1',
        ),
        (
            {"kind": "WorkloadDefinition"},
            (
                "apiVersion: is no version of WorkloadDefinition that is understood, found null, "
                "write workload-stamp.io/v1alpha1"
            ),
        ),
        (
            {"apiVersion": ["x"], "kind": {"a": 1}},
            (
                "kind: is no kind of definition, found an object with 1 field, "
                "write WorkloadDefinition, Karta or ResourceInterface"
            ),
        ),
    ],
    ids=["null", "list", "empty", "ConfigMap", "lower-case", "version", "no-version", "odd"],
)
def test_what_is_no_definition_is_told_only_that(document: Json, problem: str) -> None:
    """The fields of another kind are not held against it."""
    assert problems_of(document) == [problem]


def test_a_definition_with_nothing_in_it_lacks_the_outermost_parts() -> None:
    """What is inside a missing part is not missed as well."""
    assert problems_of({"apiVersion": "run.ai/v1alpha1", "kind": "Karta"}) == [
        "metadata: is missing, write metadata with a name",
        "spec: is missing, write the definition",
    ]


def test_all_problems_are_reported_at_once() -> None:
    """Faults of types, names, components and gangs in one document, in one go."""
    document = complete()
    for path, value in (
        ("metadata.name", "-"),
        (f"{ROOT}.rootStamp", "full"),
        (f"{CHILDREN}[0].role", "a/b"),
        (f"{CHILDREN}[1].ownerRef", "nobody"),
        (f"{CHILDREN}[1].podSelector", None),
        (f"{STATUS}.statusMappings.failed[0]", {}),
        (f"{GANGS}.podGroups[0].members[1].componentName", "none"),
    ):
        document = changed(document, path, value)

    assert [problem.split(":")[0] for problem in problems_of(document)] == [
        "metadata.name",
        f"{ROOT}.rootStamp",
        f"{STATUS}.statusMappings.failed[0]",
        f"{CHILDREN}[0].role",
        f"{CHILDREN}[1].ownerRef",
        f"{GANGS}.podGroups[0].members[1].componentName",
        f"{CHILDREN}[1].podSelector",
    ]


def test_a_faulty_name_is_not_missed_where_it_is_used() -> None:
    """Who writes `name: 1` and `ownerRef: 1` is told to quote both, not that there is no such component."""
    document = changed(changed(complete(), f"{CHILDREN}[0].name", 1), f"{CHILDREN}[1].ownerRef", "1")

    assert problems_of(document) == [
        f"{CHILDREN}[0].name: is a number where a string belongs, found 1, quote it",
    ]


def test_faulty_parts_of_rules_are_not_shown_as_something_else() -> None:
    """A rule that meets a value which was refused before says where, and shows no value."""
    document = changed(complete(), f"{CHILDREN}[1].specDefinition", {"podTemplateSpecPath": ".a", "metadataPath": 1})
    selectors = changed(complete(), f"{CHILDREN}[1].podSelector", {"componentTypeSelector": {"value": 1}})

    assert problems_of(document)[1] == (
        f"{CHILDREN}[1].specDefinition.metadataPath: goes with podSpecPath only, leave it out, or write podSpecPath"
    )
    assert problems_of(selectors)[1] == (
        f"{CHILDREN}[1].podSelector.componentTypeSelector.value: has no keyPath to be compared with, write keyPath"
    )


def test_a_flood_of_unknown_fields_is_cut_short() -> None:
    """Somebody else's document does not fill the screen."""
    document = smallest() | {f"field{number}": number for number in range(1000)}
    found = problems_of(document)

    assert len(found) == 21
    assert found[-1] == "definition: has further unknown fields, found 980 more, leave them out"


@pytest.mark.parametrize(
    "fragment",
    [
        {"childComponents": [{"name": f"c{number}", "ownerRef": f"x{number}"} for number in range(200)]},
        {"childComponents": [{"name": f"c{number}", "nosuch": 1} for number in range(200)]},
        {"childComponents": list(range(200))},
    ],
    ids=["owners", "fields", "types"],
)
def test_more_problems_than_anybody_reads_are_cut_short(fragment: JsonObject) -> None:
    """The first hundred, and a word that there are more; no document makes finding them slow."""
    document = smallest()
    document["spec"]["structureDefinition"] |= fragment
    found = problems_of(document)

    assert len(found) == 101
    assert found[-1] == "definition: has more problems than these, correct these first"


def test_of_many_names_the_first_are_proposed() -> None:
    """A remedy stays short."""
    children = [{"name": f"c{number}", "ownerRef": "run"} for number in range(50)]
    document = changed(changed(smallest(), CHILDREN, children), f"{CHILDREN}[7].ownerRef", "???")

    assert problems_of(document) == [
        (
            f'{CHILDREN}[7].ownerRef: names no component, found "???", '
            "write run, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10 or another"
        )
    ]


def test_long_lists_are_refused() -> None:
    """No list of a definition has a reason to be that long."""
    children = [{"name": f"c{number}", "ownerRef": "run"} for number in range(300)]

    assert problems_of(changed(smallest(), CHILDREN, children)) == [
        f"{CHILDREN}: has too many entries, found a list with 300 entries, write at most 256"
    ]


def test_problems_are_values() -> None:
    """They can be compared, shown without a found value, and shown all together."""
    missing, faulty = Problem("spec", "is missing", None, "write it"), Problem("a", "is no string", "1", "quote it")

    assert missing == Problem("spec", "is missing", None, "write it")
    assert str(missing) == "spec: is missing, write it"
    assert str(DefinitionError((missing, faulty))) == "spec: is missing, write it\na: is no string, found 1, quote it"
