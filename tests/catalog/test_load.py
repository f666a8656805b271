"""Definitions and manifests from files, folders, streams and the package."""

import io
import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from catalog.definition import Json
from catalog.load import (
    LARGEST_DEFINITIONS,
    Documents,
    LoadProblem,
    as_yaml,
    definitions,
    directory,
    documents,
    documents_of_file,
    documents_of_stream,
    file,
    packaged,
    stream,
    text_of,
)
from tests.catalog.parse.documents import complete, smallest

RUN = yaml.safe_dump(smallest())


def values(text: str) -> list[Json]:
    """The objects in a text that has no fault."""
    found = documents(text, "x.yaml")
    assert found.problems == ()
    return [document.value for document in found.documents]


def problems(text: str) -> list[str]:
    """What is wrong with a text."""
    return [str(problem) for problem in documents(text, "x.yaml").problems]


def named(name: str) -> str:
    """A valid definition of that name."""
    return yaml.safe_dump(smallest() | {"metadata": {"name": name}})


# ----------------------------------------------------------------------------------------------------- texts


def test_yaml_documents_are_read_in_order() -> None:
    """Empty ones count for nothing."""
    assert values("---\na: 1\n---\n# nothing\n---\nb: [x, 2.5, null]\n...\n") == [{"a": 1}, {"b": ["x", 2.5, None]}]
    assert values("") == []
    assert values("# nothing\n") == []


def test_json_is_read_as_json() -> None:
    """One value or several, with escapes and numbers that YAML 1.1 would take for text."""
    assert values('{"a": "\\ud83d\\ude00", "b": 1e3}') == [{"a": "\U0001f600", "b": 1000.0}]
    assert values('{"a": 1}\n{"a": 2}\n\n{"a": 3}\n') == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert values("{a: 1}") == [{"a": 1}], "YAML may begin with a brace"


def test_lists_are_taken_apart() -> None:
    """A List, a list of one kind, an array, and JSON like YAML; an entry without a kind has the list's."""
    pod, job = {"apiVersion": "v1", "kind": "Pod"}, {"apiVersion": "batch/v1", "kind": "Job"}

    assert values(json.dumps({"apiVersion": "v1", "kind": "List", "items": [pod, job]})) == [pod, job]
    assert values(yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [pod, job]})) == [pod, job]
    assert values(yaml.safe_dump({"apiVersion": "batch/v1", "kind": "JobList", "items": [{"a": 1}, job]})) == [
        {"apiVersion": "batch/v1", "kind": "Job", "a": 1},
        job,
    ]
    assert values(json.dumps([pod, job])) == [pod, job]
    assert values("kind: List\nitems: 5\n") == [{"kind": "List", "items": 5}]
    assert values("kind: List\nitems: []\n") == []


@pytest.mark.parametrize(
    "written, value",
    [
        ("on", True),
        ("No", False),
        ("~", None),
        ("", None),
        ("2026-11-29", "2026-11-29"),
        ("12:30", "12:30"),
        ("1e3", 1000.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("-3", -3),
        ("0x10", 16),
        ("010", 8),
        ("1_000", 1000),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("=", "="),
        ("'1'", "1"),
        ("9" * 5000, "9" * 5000),
        ("1e", "1e"),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_scalars_are_read_as_kubectl_reads_them(written: str, value: Json) -> None:
    """YAML 1.1 with its booleans, without dates, base-60 numbers and what is no number in JSON."""
    assert values(f"a: {written}") == [{"a": value}]


def test_anchors_and_merges_are_followed() -> None:
    """Legitimate uses of aliases work."""
    assert values("a: &x {b: 1}\nc: *x\nd: {<<: *x, e: 2}\n") == [{"a": {"b": 1}, "c": {"b": 1}, "d": {"b": 1, "e": 2}}]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a: 1\nb: 2\na: 3\n", 'x.yaml:3: "a" is there twice in one object, keep one of them'),
        ("a:\n  on: 1\n", 'x.yaml:2: "on" is no string but the name of a field, quote it'),
        ("a:\n  1: x\n", 'x.yaml:2: "1" is no string but the name of a field, quote it'),
        ("? [a]\n: 1\n", "x.yaml:1: what is there is no string but the name of a field, quote it"),
        ("a: !!binary aGk=\n", 'x.yaml:1: has the tag "tag:yaml.org,2002:binary", which JSON has not'),
        ("a: !!set {b}\n", 'x.yaml:1: has the tag "tag:yaml.org,2002:set", which JSON has not'),
        (
            "a: !!python/object/apply:os.system [echo]\n",
            'x.yaml:1: has the tag "tag:yaml.org,2002:python/object/apply:os.system", which JSON has not',
        ),
        ("a: !mine x\n", 'x.yaml:1: has the tag "!mine", which JSON has not'),
        ("a: &a\n- *a\n", "x.yaml:1: contains itself, through an alias"),
        ("a: [1, 2\nb: 3\n", "x.yaml:2: is no YAML: while parsing a flow sequence, did not find expected ',' or ']'"),
        ("a: *b\n", "x.yaml:1: is no YAML: found undefined alias"),
        ("a: {<<: 1}\n", "x.yaml:1: is no YAML: while constructing a mapping, expected a mapping or list of mappings"),
        ("a\tb: \x00", "x.yaml: is no YAML: "),
        ("a: !!int x\n", "x.yaml: is no YAML: invalid literal for int() with base 10: 'x'"),
        ('{"a": 1, "b": {"c": 1, "c": 2}}', 'x.yaml: "c" is there twice in one object, keep one of them'),
        ('{"a": 1', "x.yaml:2: is no YAML: while parsing a flow mapping"),
        ("[" * 100_000, "x.yaml: is nested too deeply"),
        ("a: " + "[" * 100_000, "x.yaml:1: is no YAML: while increasing flow level"),
        ("a: " + "[" * 150 + "]" * 150, "x.yaml:1: is nested in more than 100 levels"),
    ],
    ids=lambda text: repr(text)[:30],
)
def test_what_cannot_be_json_is_a_problem_with_its_line(text: str, expected: str) -> None:
    """Nothing is overwritten in silence, nothing is executed, nothing is guessed."""
    (problem, *others) = problems(text)

    assert problem.startswith(expected)
    assert others == []


def test_all_faults_of_all_documents_are_found() -> None:
    """A fault of one document hides neither its other faults nor the documents beside it."""
    found = documents("a: 1\na: 2\non: 3\n---\nb: 1\n---\nc: !x 1\n", "x.yaml")

    assert [document.value for document in found.documents] == [{"b": 1}]
    assert found.problems == (
        LoadProblem("x.yaml", 2, '"a" is there twice in one object, keep one of them'),
        LoadProblem("x.yaml", 3, '"on" is no string but the name of a field, quote it'),
        LoadProblem("x.yaml", 7, 'has the tag "!x", which JSON has not'),
    )


def test_a_few_aliases_cannot_stand_for_billions() -> None:
    """In a sequence, in merges: refused by counting, before anything is made."""
    nested = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60))
    merged = "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [*a{n - 1}, *a{n - 1}]}}\n" for n in range(1, 60))

    assert problems(nested) == ["x.yaml:1: is too large with its aliases written out"]
    assert problems(merged) == ["x.yaml:1: is too large with its aliases written out"]


def plain(value: Any) -> bool:
    """Whether a value is what JSON has, through and through."""
    if isinstance(value, dict):
        return all(isinstance(name, str) and plain(inner) for name, inner in value.items())
    if isinstance(value, list):
        return all(plain(inner) for inner in value)
    return value is None or isinstance(value, str | int | float | bool)


@given(st.text(alphabet="ab:-[]{}&*<!?|>'\"#, \n\t01.e~", max_size=60) | st.text())
def test_any_text_gives_json_or_problems(text: str) -> None:
    """Nothing is raised, and nothing comes out that JSON has not."""
    found = documents(text, "x.yaml")

    assert all(plain(document.value) for document in found.documents)
    assert all(str(problem).encode(errors="surrogatepass") for problem in found.problems)


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), JSON_VALUES))
def test_json_and_yaml_of_the_same_object_are_the_same(value: dict[str, Json]) -> None:
    """Whatever the object is, as JSON text it comes back; what PyYAML writes of it comes back too."""
    value.pop("kind", None)

    assert values(json.dumps(value)) == [value]
    assert values(json.dumps(value, ensure_ascii=False)) == [value]
    assert values(yaml.safe_dump(value, default_style='"')) == [value]


# ---------------------------------------------------------------------------------------------- definitions


def test_a_definition_and_its_origin_are_read() -> None:
    """The origin is that of the file."""
    loaded = definitions(yaml.safe_dump(complete()), "run.yaml")

    assert loaded.problems == ()
    assert [(each.name, each.origin) for each in loaded.definitions] == [("example-com-run-v1", "run.yaml")]


def test_problems_have_the_line_of_their_place() -> None:
    """The value's line, or that of the nearest thing above what is missing."""
    text = textwrap.dedent("""\
        apiVersion: workload-stamp.io/v1alpha1
        kind: WorkloadDefinition
        metadata:
          name: runs
          labels: {a.b/c: d}
        spec:
          structureDefinition:
            rootComponent:
              name: yes
              kind: {group: example.com, version: v1, kind: Run}
              statusDefinition: {statusMappings: {}}
            childComponents:
            - name: a
              ownerRef: "yes"
            - name: b
              podSelector:
                componentTypeSelector:
                  matchLabels:
                    x.y/z: on
        """)

    assert [(problem.line, problem.text.split(":")[0]) for problem in definitions(text, "x").problems] == [
        (9, "spec.structureDefinition.rootComponent.name"),
        (15, "spec.structureDefinition.childComponents[1].ownerRef"),
        (19, 'spec.structureDefinition.childComponents[1].podSelector.componentTypeSelector.matchLabels["x.y/z"]'),
    ]


def test_problems_of_entries_of_a_list_have_lines_too() -> None:
    """Lines are those of the file, not of the entry; a JSON text has none."""
    bad = smallest() | {"metadata": {"name": "Not a name"}}
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [smallest(), bad]}, sort_keys=False)
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "Not a name" in line)

    assert [problem.line for problem in definitions(text, "x").problems] == [line]
    assert [problem.line for problem in definitions(json.dumps([bad]), "x").problems] == [None]


def test_a_document_that_is_no_object_has_a_line() -> None:
    """A problem with the document as a whole is one of its first line."""
    assert [str(problem) for problem in definitions("---\n\njust text\n", "x").problems] == [
        'x:3: definition: is no object, found "just text", write a WorkloadDefinition'
    ]


# --------------------------------------------------------------------------------------- files and streams


def test_a_file_is_read(tmp_path: Path) -> None:
    """With or without the mark that some editors put at its beginning."""
    (tmp_path / "run.yaml").write_text("\ufeff" + RUN)
    loaded = file(tmp_path / "run.yaml")

    assert [each.name for each in loaded.definitions] == ["runs"]
    assert loaded.definitions[0].origin == str(tmp_path / "run.yaml")
    assert loaded.problems == ()


def test_a_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    """Missing, a folder, no text, too large."""
    (tmp_path / "latin.yaml").write_bytes(b"a: 1\nb: \xe9\n")
    (tmp_path / "large.yaml").write_bytes(b"#" * (LARGEST_DEFINITIONS + 1))

    def only(name: str) -> str:
        (problem,) = file(tmp_path / name).problems
        return str(problem).removeprefix(f"{tmp_path}/")

    assert only("missing.yaml") == "missing.yaml: cannot be read: No such file or directory"
    assert only("") == f"{tmp_path}: cannot be read: Is a directory"
    assert only("latin.yaml") == "latin.yaml:2: is no UTF-8 text: invalid continuation byte"
    assert only("large.yaml") == "large.yaml: has more than 1048576 bytes"


def test_manifests_may_be_larger_than_definitions(tmp_path: Path) -> None:
    """A review alone can have seven megabytes."""
    (tmp_path / "reviews.json").write_text(json.dumps({"a": "x" * LARGEST_DEFINITIONS}))
    found = documents_of_file(tmp_path / "reviews.json")

    assert len(found.documents) == 1
    assert found.problems == ()


def test_a_stream_is_read_up_to_its_limit() -> None:
    """Standard input has no size to be asked for beforehand."""
    assert [each.name for each in stream(io.BytesIO(RUN.encode()), "-").definitions] == ["runs"]
    assert documents_of_stream(io.BytesIO(b"#" * 11), "-", limit=10) == Documents(
        (), (LoadProblem("-", None, "has more than 10 bytes"),)
    )


def test_a_folder_is_read_in_order_of_its_paths(tmp_path: Path) -> None:
    """Definitions only, with all problems of all files; hidden names and other files are passed over."""
    for name in ("b.yaml", "a.yml", "c.json", "deeper/d.yaml", ".hidden.yaml", ".git/e.yaml", "README.md"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(named(path.stem.strip(".").lower()))
    (tmp_path / "bad.yaml").write_text("a: 1\na: 2\n")
    (tmp_path / "worse.yaml").write_text("kind: Karta\n")
    loaded = directory(tmp_path)

    assert [each.name for each in loaded.definitions] == ["a", "b", "c", "d"]
    assert [str(problem).removeprefix(f"{tmp_path}/").split(": ")[0] for problem in loaded.problems] == [
        "bad.yaml:2",
        "worse.yaml:1",
    ]


def test_a_mounted_config_map_is_read_once(tmp_path: Path) -> None:
    """Its files are links through `..data` into a folder that changes with every update."""
    (tmp_path / "..2026_11_29").mkdir()
    (tmp_path / "..2026_11_29" / "run.yaml").write_text(RUN)
    (tmp_path / "..data").symlink_to("..2026_11_29")
    (tmp_path / "run.yaml").symlink_to("..data/run.yaml")
    (tmp_path / "same.yaml").symlink_to("run.yaml")
    (tmp_path / "below").symlink_to("..data")

    assert [each.origin for each in directory(tmp_path).definitions] == [str(tmp_path / "below" / "run.yaml")]


def test_links_that_lead_nowhere_or_in_circles_are_problems_at_most(tmp_path: Path) -> None:
    """A folder with broken links is read to its end."""
    (tmp_path / "a.yaml").symlink_to("missing.yaml")
    (tmp_path / "b.yaml").symlink_to("b.yaml")
    (tmp_path / "up").symlink_to(".")
    (tmp_path / "z.yaml").write_text(RUN)
    loaded = directory(tmp_path)

    assert [each.name for each in loaded.definitions] == ["runs"]
    assert [problem.text for problem in loaded.problems] == [
        "cannot be read: No such file or directory",
        "cannot be read: Too many levels of symbolic links",
    ]


def test_what_is_no_folder_is_a_problem(tmp_path: Path) -> None:
    """A wrong path is told, not taken for an empty folder."""
    (tmp_path / "run.yaml").write_text(RUN)

    for name in ("run.yaml", "missing"):
        assert directory(tmp_path / name).problems == (LoadProblem(str(tmp_path / name), None, "is no directory"),)


def test_the_text_behind_a_definition_can_be_read_again(tmp_path: Path) -> None:
    """By its origin, from the package and from a file, with its comments."""
    (tmp_path / "run.yaml").write_text("# mine\n" + RUN)

    assert text_of(str(tmp_path / "run.yaml")) == "# mine\n" + RUN
    for definition in packaged().definitions:
        assert definitions(text_of(definition.origin), definition.origin).definitions == (definition,)


def test_objects_are_written_as_documents_that_can_be_read_again() -> None:
    """In the order of their fields, for people."""
    objects: list[Json] = [{"b": "é", "a": [1, None, "on", "x: y"]}, {"c": {}}]

    assert as_yaml(objects).startswith("b: é\na:\n- 1\n")
    assert values(as_yaml(objects)) == objects


def test_the_packaged_definitions_are_valid() -> None:
    """The package carries definitions, every one of them is usable, and each says where it is from."""
    loaded = packaged()

    assert [str(problem) for problem in loaded.problems] == []
    assert loaded.definitions
    assert all(each.origin.startswith("catalog/definitions/") for each in loaded.definitions)
