"""What `definitions list`, `show` and `validate` say."""

import json
import time
from pathlib import Path

import pytest
import yaml

from tests.webhook.cli.command import run
from tests.webhook.cli.definitions import REPLICAS_LINE, definition, karta, resource_interface

PLACE = "spec.structureDefinition.rootComponent.scaleDefinition.replicasPath"


def write(folder: Path, name: str, content: str | bytes) -> str:
    """A file in the folder."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


# --------------------------------------------------------------------------------------------- validate


@pytest.mark.parametrize("content", [definition(), karta(), resource_interface()])
def test_a_good_definition_of_any_format_is_ok(content: str, tmp_path: Path) -> None:
    """Ours and upstream's formats are checked alike."""
    path = write(tmp_path, "engine.yaml", content)
    ended = run("definitions", "validate", path)
    assert (ended.code, ended.out, ended.err) == (0, f"{path}: OK, example.com/v1 Engine\n", "")


def test_standard_input_is_checked_too() -> None:
    """`-` holds definitions, several documents of them."""
    ended = run("definitions", "validate", "-", given=definition("A") + "---\n" + karta("B"))
    assert ended.code == 0
    assert ended.out.splitlines() == ["standard input: OK, example.com/v1 A", "standard input: OK, example.com/v1 B"]


def test_every_problem_is_told_at_once_with_file_and_line(tmp_path: Path) -> None:
    """A file with several faults, and others beside it: each fault is a line."""
    faulty = definition(replicas="env.HOME").replace("specDefinition", "specDefinitio")
    bad = write(tmp_path, "bad.yaml", faulty)
    torn = write(tmp_path, "torn.yaml", "a: [")
    ended = run("definitions", "validate", bad, torn, str(tmp_path / "missing.yaml"))
    assert ended.code == 1
    places = [line.split(": ")[0] for line in ended.told]
    assert places == [f"{bad}:9", f"{bad}:10", f"{torn}:2", f"{tmp_path}/missing.yaml"]
    assert "write specDefinition if that is meant" in ended.told[0]
    assert "`env` reads the environment of the process" in ended.told[1]


def test_of_a_folder_every_file_is_checked(tmp_path: Path) -> None:
    """Good ones are listed though others are bad; what is no definition file is passed over."""
    good = write(tmp_path, "good.yaml", definition("Good"))
    bad = write(tmp_path, "bad.yml", definition("Bad", replicas=".a b"))
    write(tmp_path, "README.md", "not YAML: [")
    write(tmp_path, ".hidden.yaml", "a: [")
    (tmp_path / "below").mkdir()
    below = write(tmp_path / "below", "more.json", json.dumps(yaml.safe_load(definition("More"))))
    ended = run("definitions", "validate", str(tmp_path))
    assert ended.code == 1
    assert ended.out.splitlines() == [f"{below}: OK, example.com/v1 More", f"{good}: OK, example.com/v1 Good"]
    assert len(ended.told) == 1
    assert ended.err.startswith(f"{bad}:{REPLICAS_LINE}: {PLACE}: ")


@pytest.mark.parametrize("content", ["", "# nothing\n", "---\n---\n", "null"])
def test_a_file_without_definitions_is_a_problem(content: str, tmp_path: Path) -> None:
    """Whoever checks a file expects something in it."""
    path = write(tmp_path, "a.yaml", content)
    ended = run("definitions", "validate", path)
    assert (ended.code, ended.told) == (1, [f"{path}: there is no definition in it"])


def test_an_empty_folder_is_a_problem(tmp_path: Path) -> None:
    """A mistyped mount must not pass for good definitions."""
    ended = run("definitions", "validate", str(tmp_path))
    assert (ended.code, ended.told) == (1, [f"{tmp_path}: there is no definition in it"])


def test_a_manifest_is_no_definition(tmp_path: Path) -> None:
    """A file may hold what goes with a definition; one that holds nothing else is told so."""
    path = write(tmp_path, "a.yaml", "apiVersion: v1\nkind: Service\n")
    ended = run("definitions", "validate", path)
    assert ended.code == 1
    assert ended.err == f"{path}: there is no definition in it\n"


@pytest.mark.parametrize(
    "kind, remedy", [("WorkloadDefinitoin", "write WorkloadDefinition"), ("Karta", "write run.ai/v1alpha1")]
)
def test_what_looks_like_a_definition_is_judged_as_one(tmp_path: Path, kind: str, remedy: str) -> None:
    """Another kind of our group, and our kind of another group, are told with what would be right."""
    path = write(tmp_path, "a.yaml", f"apiVersion: workload-stamp.io/v1alpha1\nkind: {kind}\n")
    ended = run("definitions", "validate", path)
    assert ended.code == 1
    assert f"{path}:" in ended.err
    assert remedy in ended.err


@pytest.mark.parametrize(
    "replicas",
    [
        "[range(1000) as $a | range(1000) as $b | range(1000) as $c | 1] | add",
        '"x" * 1000000000 | length',
        '[range(1000) as $a | range(1000) as $b | "0123456789" * 1000] | length',
    ],
)
def test_jq_that_does_not_end_or_eats_memory_is_stopped_within_seconds(replicas: str, tmp_path: Path) -> None:
    """It is told with its line, and no definition to be used."""
    path = write(tmp_path, "a.yaml", definition(replicas=replicas))
    began = time.monotonic()
    ended = run("definitions", "validate", path)
    assert time.monotonic() - began < 20
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"{path}:{REPLICAS_LINE}: {PLACE}: `{replicas}`: it takes ")


@pytest.mark.slow
def test_many_expressions_that_do_not_end_are_not_all_waited_for(tmp_path: Path) -> None:
    """After some seconds the others are told as not tried; good definitions come first all the same."""
    for index in range(20):
        loop = f"[range(1000) as $a | range(1000) as $b | range(1000) as $c | {index}] | add"
        write(tmp_path, f"{index:02}.yaml", definition(f"Loop{index}", replicas=loop))
    began = time.monotonic()
    ended = run("definitions", "validate", str(tmp_path))
    assert time.monotonic() - began < 60
    assert ended.code == 1
    assert len(ended.told) == 20
    assert "were not tried: others took all the time" in ended.told[-1]


def test_a_kind_that_is_described_twice_is_noted(tmp_path: Path) -> None:
    """Of two definitions in one source one is used: a note, no fault."""
    first, second = (write(tmp_path, name, definition()) for name in ("a.yaml", "b.yaml"))
    ended = run("definitions", "validate", first, second)
    assert ended.code == 0
    assert ended.told == [
        f"{second}: note: example.com/v1 Engine is described in {first} too; only one of them is used"
    ]


def test_the_packaged_definitions_are_valid() -> None:
    """What is shipped passes the check that people's own have to pass."""
    folder = Path(__file__).parents[3] / "catalog" / "definitions"
    ended = run("definitions", "validate", str(folder))
    assert (ended.code, ended.err) == (0, "")
    assert len(ended.out.splitlines()) == len(list(folder.glob("*.yaml")))


def test_standard_input_is_checked_once() -> None:
    """`-` twice, and no path at all, are wrong use."""
    assert run("definitions", "validate", "-", "-", given=definition()).code == 2
    assert run("definitions", "validate").code == 2


# ------------------------------------------------------------------------------------------------- list


def test_the_list_has_a_row_for_each_kind() -> None:
    """Kind, group, version and roles."""
    header, *rows = run("definitions", "list").out.splitlines()
    assert header.split() == ["KIND", "GROUP", "VERSION", "ROLES"]
    assert ["JobSet", "jobset.x-k8s.io", "v1alpha2", "each", "replicatedjob"] in [row.split() for row in rows]
    assert ["MPIJob", "kubeflow.org", "v1", "launcher,", "worker"] in [row.split() for row in rows]


def test_the_list_is_there_for_programs() -> None:
    """JSON, YAML and bare names say the same."""
    found = json.loads(run("definitions", "list", "-o", "json").out)
    assert list(yaml.safe_load_all(run("definitions", "list", "-o", "yaml").out)) == found
    assert run("definitions", "list", "-o", "name").out.split() == [each["name"] for each in found]
    job_set = next(each for each in found if each["kind"] == "JobSet")
    assert (job_set["group"], job_set["version"]) == ("jobset.x-k8s.io", "v1alpha2")


def test_the_wide_list_names_the_definitions() -> None:
    """With what is written on the objects themselves."""
    rows = run("definitions", "list", "-o", "wide").out.splitlines()
    assert any(row.split()[:5] == ["Job", "batch", "v1", "full", "batch-job-v1"] for row in rows)


def test_own_definitions_are_in_the_list(tmp_path: Path) -> None:
    """`-d` adds files and folders; one of a packaged kind takes its place."""
    write(tmp_path, "engine.yaml", definition())
    rival = definition("Job").replace("example.com", "batch")
    file = write(tmp_path, "job.yaml", rival)
    found = json.loads(run("definitions", "list", "-o", "json", "-d", str(tmp_path)).out)
    assert "engine" in [each["name"] for each in found]
    assert [each["origin"] for each in found if (each["group"], each["kind"]) == ("batch", "Job")] == [file]


def test_bad_own_definitions_are_told(tmp_path: Path) -> None:
    """Instead of a list without them."""
    path = write(tmp_path, "a.yaml", definition(replicas=".a b"))
    ended = run("definitions", "list", "-d", path)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"{path}:{REPLICAS_LINE}: ")


# ------------------------------------------------------------------------------------------------- show


@pytest.mark.parametrize(
    "name",
    [
        "jobset-x-k8s-io-jobset-v1alpha2",
        "JobSet",
        "jobset",
        "JobSet.jobset.x-k8s.io",
        "jobset.v1alpha2.jobset.x-k8s.io",
    ],
)
def test_a_definition_is_shown_by_name_or_kind(name: str) -> None:
    """The text is that of the file, comments and all."""
    ended = run("definitions", "show", name)
    assert ended.code == 0
    assert ended.out.startswith("# Checked against JobSet")
    assert yaml.safe_load(ended.out)["metadata"]["name"] == "jobset-x-k8s-io-jobset-v1alpha2"


def test_of_an_ambiguous_kind_all_are_shown() -> None:
    """Job of two groups, MPIJob of two versions; with the group it is one."""
    for kind, number in (("job", 2), ("MPIJob", 2), ("job.batch", 1), ("job.batch.volcano.sh", 1), ("Pod", 1)):
        documents = list(yaml.safe_load_all(run("definitions", "show", kind).out))
        assert len(documents) == number, kind


def test_an_own_definition_is_shown(tmp_path: Path) -> None:
    """From its file, once, though two definitions in it match."""
    content = definition() + "---\n" + definition().replace("v1,", "v2,").replace("engine", "other")
    path = write(tmp_path, "a.yaml", content)
    assert run("definitions", "show", "Engine", "-d", path).out == content


@pytest.mark.parametrize(
    "name, hint", [("Jobsett", "did you mean JobSet?"), ("qqqq", "`workload-stamp definitions list`")]
)
def test_an_unknown_name_comes_with_a_hint(name: str, hint: str) -> None:
    """What was mistyped, and where to look."""
    ended = run("definitions", "show", name)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"{name}: no such definition; {hint}")
