"""What `resolve` shows of manifests, whatever form they come in."""

import json
import textwrap
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.webhook.cli.command import run
from tests.webhook.cli.definitions import definition
from tests.webhook.cli.manifests import SERVICE, chain, job, jobset, owned_by, pod_spec, review, text

TREE = """\
JobSet team-a/train  1 leader + 2 workers · 12 GPUs · Initializing
├── replicatedjob  3 pods · 12 GPUs
│   ├── leader  1 pod, 4 GPUs
│   └── workers  2 pods, 4 GPUs each
└── gang jobs: 3 pods (leader, workers)
"""


def resolved(*objects: dict[str, Any], arguments: tuple[str, ...] = ()) -> list[Any]:
    """What `-o json` prints of the objects."""
    ended = run("resolve", "-", "-o", "json", *arguments, given=text(*objects))
    assert ended.code == 0, ended.err
    found: list[Any] = json.loads(ended.out)
    return found


def tree(obj: dict[str, Any]) -> list[str]:
    """The lines of an object's tree."""
    return run("resolve", "-", given=text(obj)).out.splitlines()


def test_tree_shows_roles_pods_gpus_gangs_and_status() -> None:
    """The default output is the object's structure as a tree."""
    ended = run("resolve", "-", given=text(jobset(namespace="team-a")))
    assert (ended.code, ended.out, ended.err) == (0, TREE, "")


def test_table_has_a_row_for_each_object() -> None:
    """`-o table` shows several objects beside each other."""
    ended = run("resolve", "-", "-o", "table", given=text(jobset(namespace="team-a"), job()))
    assert ended.out == textwrap.dedent("""\
        NAMESPACE  KIND    NAME   STATUS        ROLES                 PODS  GPUS  GANG
        team-a     JobSet  train  Initializing  1 leader + 2 workers     3    12     3
        default    Job     solo   Initializing  1 job                    1     1
        """)


def test_wide_table_adds_the_id_and_the_definition() -> None:
    """`-o wide` tells the workload-id that admission would write, and which definition was used."""
    header, row = run("resolve", "-", "-o", "wide", given=text(jobset(namespace="team-a"))).out.splitlines()
    assert header.split()[-2:] == ["WORKLOAD-ID", "DEFINITION"]
    assert row.split()[-2:] == ["train-4a9ff231a1", "jobset-x-k8s-io-jobset-v1alpha2"]


def test_json_has_every_number() -> None:
    """`-o json` is for programs: numbers are numbers, and unknown ones null with their reasons."""
    (found,) = resolved(jobset(namespace="team-a"))
    assert (found["podsTotal"], found["gpuTotal"], found["gangSize"]) == (3, 12, 3)
    assert found["workloadId"] == "train-4a9ff231a1"
    instances = {each["id"]: each for each in found["components"][0]["instances"]}
    assert (instances["workers"]["pods"], instances["workers"]["gpusPerPod"], instances["workers"]["gpus"]) == (2, 4, 8)
    assert found["unknown"] == []


def test_yaml_says_the_same_as_json() -> None:
    """`-o yaml` has one document an object, with the content of `-o json`."""
    given = text(jobset(), job())
    documents = list(yaml.safe_load_all(run("resolve", "-", "-o", "yaml", given=given).out))
    assert documents == json.loads(run("resolve", "-", "-o", "json", given=given).out)


@pytest.mark.parametrize(
    "given",
    [
        text(jobset(), job()),
        json.dumps([jobset(), job()]),
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [jobset(), job()]}),
        yaml.safe_dump_all([jobset(), None, job()]),
        "# a comment\n---\n" + yaml.safe_dump_all([jobset(), job()]) + "---\n",
        "\ufeff" + yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [jobset(), job()]}),
    ],
)
def test_several_objects_come_in_any_form(given: str) -> None:
    """JSON values, arrays, Lists and YAML documents are taken apart, in order."""
    ended = run("resolve", "-", "-o", "json", given=given)
    assert [each["kind"] for each in json.loads(ended.out)] == ["JobSet", "Job"]


def test_a_typed_list_gives_its_items_their_kind() -> None:
    """Items of a JobList, as `kubectl get --raw` prints it, name no kind themselves."""
    item = {"metadata": job()["metadata"], "spec": job()["spec"]}
    (found,) = resolved({"apiVersion": "batch/v1", "kind": "JobList", "items": [item]})
    assert (found["kind"], found["gpuTotal"]) == ("Job", 1)


def test_files_and_standard_input_are_read_in_order(tmp_path: Path) -> None:
    """Several FILEs are one after the other; `-` is one of them."""
    (tmp_path / "a.yaml").write_text(text(job("a")))
    (tmp_path / "b.yaml").write_text(text(job("b")))
    ended = run(
        "resolve", str(tmp_path / "a.yaml"), "-", str(tmp_path / "b.yaml"), "-o", "json", given=text(job("mid"))
    )
    assert [each["name"] for each in json.loads(ended.out)] == ["a", "mid", "b"]


def test_undescribed_kinds_beside_others_are_named_on_standard_error() -> None:
    """A release has Services and ConfigMaps in it: they are told, and no failure."""
    ended = run("resolve", "-", given=yaml.safe_dump_all([SERVICE, jobset(namespace="team-a")]))
    assert (ended.code, ended.out) == (0, TREE)
    assert ended.told == ["standard input:1: Service front is of no described kind (v1)"]


def test_nothing_described_is_a_failure() -> None:
    """When no object can be shown the exit code says so, and standard error what there is."""
    ended = run("resolve", "-", given=text(SERVICE))
    assert (ended.code, ended.out) == (1, "")
    assert ended.told == ["standard input: Service front is of no described kind (v1)"]


def test_good_files_are_shown_though_others_cannot_be_read(tmp_path: Path) -> None:
    """Each FILE that can't be read is one line; the others are shown all the same, and the exit code is 1."""
    (tmp_path / "good.yaml").write_text(text(jobset(namespace="team-a")))
    (tmp_path / "empty.yaml").write_text("")
    (tmp_path / "binary").write_bytes(b"\x7fELF\x02\xff\xfe\x00")
    (tmp_path / "broken.yaml").write_text("a: [1,\nb: 2\n")
    paths = [str(tmp_path / name) for name in ("good.yaml", "empty.yaml", "binary", "broken.yaml", "missing.yaml")]
    ended = run("resolve", *paths, str(tmp_path))
    assert (ended.code, ended.out) == (1, TREE)
    assert ended.told == [
        f"{tmp_path}/empty.yaml: there is no object in it",
        f"{tmp_path}/binary:1: is no UTF-8 text: invalid start byte",
        f"{tmp_path}/broken.yaml:3: is no YAML: while parsing a flow sequence, did not find expected ',' or ']'",
        f"{tmp_path}/missing.yaml: cannot be read: No such file or directory",
        f"{tmp_path}: is a folder, name the files in it",
    ]


def test_a_huge_file_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    """What no cluster could hold is not read into memory."""
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(65 << 20)
    ended = run("resolve", str(path))
    assert (ended.code, ended.told) == (1, [f"{path}: has more than {64 << 20} bytes"])


@pytest.mark.parametrize(
    "given, told",
    [
        ("5", "is 5, expected an object with apiVersion and kind"),
        ("hello", "is the text 'hello', expected an object with apiVersion and kind"),
        ("a: b", "has no apiVersion and no kind, so it is no Kubernetes object"),
        ("{apiVersion: v1, kind: 7}", "has no kind, so it is no Kubernetes object"),
        ('{"apiVersion": "v1", "kind": ""}', "has no kind, so it is no Kubernetes object"),
        ('{"apiVersion":"v1","kind":"Pod","a":1e1000}', None),
        ('{"apiVersion":"v1","kind":"Pod","a":' + "9" * 40 + "}", "can't be sent to an API server: Integer exceeds"),
        ('{"apiVersion":"v1","kind":"Pod","a":"\\ud800"}', "can't be sent to an API server: str is not valid UTF-8"),
    ],
)
def test_what_is_no_object_is_said_so(given: str, told: str | None) -> None:
    """Each value that is no Kubernetes object is told with what was found."""
    ended = run("resolve", "-", given=given)
    if told is None:
        assert ended.code == 0
    else:
        assert ended.code == 1
        assert ended.err.startswith(f"standard input: {told}")


def test_standard_input_can_be_read_only_once() -> None:
    """`-` twice is wrong use, not an empty second file."""
    ended = run("resolve", "-", "-", given=text(job()))
    assert ended.code == 2
    assert "given twice" in ended.err


def test_the_namespace_option_stands_for_objects_that_name_none() -> None:
    """As with kubectl; the workload-id depends on it."""
    found = resolved(jobset(), jobset(namespace="other"), arguments=("-n", "team-a"))
    assert [each["namespace"] for each in found] == ["team-a", "other"]
    assert found[0]["workloadId"] == "train-4a9ff231a1"
    assert found[1]["workloadId"] != found[0]["workloadId"]


def test_an_object_without_a_name_has_no_id_yet() -> None:
    """`generateName` is a name that does not exist yet."""
    obj = jobset()
    obj["metadata"] = {"generateName": "train-"}
    assert tree(obj)[0].startswith("JobSet default/(no name yet)  1 leader + 2 workers · 12 GPUs")
    assert resolved(obj)[0]["workloadId"] is None


def test_an_owned_object_is_part_of_another_workload() -> None:
    """The Job of a JobSet is no workload: it has no id of its own, and its owner is named."""
    _, middle, _ = chain()
    assert tree(middle)[1] == "├── part of JobSet train"
    (found,) = resolved(middle)
    assert found["workloadId"] is None
    assert found["owner"] == {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "name": "train"}


def test_a_schedule_has_no_id() -> None:
    """Each run of a CronJob is a workload of its own."""
    cron = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {"schedule": "@daily", "jobTemplate": {"spec": job()["spec"]}},
    }
    (found,) = resolved(cron)
    assert (found["workloadId"], found["podsTotal"], found["gpuTotal"]) == (None, 1, 1)


def test_unknown_numbers_stand_beside_their_reasons() -> None:
    """A `?` comes with the reason in words, below the component that it is about."""
    daemons = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "logs"},
        "spec": {"template": {"spec": pod_spec(1)}},
    }
    first, component, reason = tree(daemons)
    assert first == "DaemonSet default/logs  ? daemonset · ? GPUs · Initializing"
    assert component == "└── daemonset  ? pods, 1 GPU each"
    assert reason.startswith("    └── pods unknown: one pod for each node that fits")


def test_a_wrong_value_is_quoted_in_the_reason() -> None:
    """Somebody who mistyped a number sees it again."""
    obj = job()
    obj["spec"].update(parallelism=2.5, completions=4)
    obj["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpu": "four"}
    pods, gpus = tree(obj)[2:]
    assert pods == "    ├── pods unknown: 2.5 is not a number of pods"
    assert gpus.startswith('    └── GPUs unknown: containers[0].resources.limits["nvidia.com/gpu"]: "four" is not a ')


def ray_cluster() -> dict[str, Any]:
    """A RayCluster whose workers are scaled between 1 and 8."""
    container = {"name": "ray", "image": "example.com/ray:1"}
    group = {"groupName": "gpu", "replicas": 3, "minReplicas": 1, "maxReplicas": 8, "rayStartParams": {}}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": "elastic"},
        "spec": {
            "enableInTreeAutoscaling": True,
            "headGroupSpec": {"rayStartParams": {}, "template": {"spec": {"containers": [container]}}},
            "workerGroupSpecs": [{**group, "template": {"spec": pod_spec(2)}}],
        },
    }


def test_bounds_of_an_autoscaler_are_shown() -> None:
    """A component that is scaled between two numbers shows both."""
    lines = tree(ray_cluster())
    assert any("3 pods (1 to 8), 2 GPUs each" in line for line in lines)


def test_accelerators_that_are_no_gpus_are_shown_by_name() -> None:
    """Slices and TPUs count no GPUs, but are there."""
    obj = job()
    obj["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {
        "nvidia.com/gpu": 1,
        "nvidia.com/mig-1g.10gb": 2,
    }
    assert tree(obj)[1] == "└── job  1 pod, 1 GPU (1 nvidia.com/gpu, 2 nvidia.com/mig-1g.10gb)"


def test_status_is_read_from_the_object() -> None:
    """An object out of a cluster shows how it is."""
    obj = job()
    obj["status"] = {"conditions": [{"type": "Failed", "status": "True"}]}
    assert tree(obj)[0] == "Job default/solo  1 job · 1 GPU · Failed"
    assert resolved(obj)[0]["status"] == ["Failed"]


def test_an_object_that_is_answered_for_says_by_whom() -> None:
    """A TrainJob's JobSet has the numbers; the TrainJob shows none of its own."""
    train_job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "tune"},
        "spec": {"runtimeRef": {"name": "torch-distributed"}},
    }
    first, second, *_ = tree(train_job)
    assert first.startswith("TrainJob default/tune  ")
    assert "GPU" not in first
    assert second == "└── its JobSet says which pods, gangs and GPUs there are"


def test_stages_of_a_job_set_are_gangs_of_their_own() -> None:
    """Gangs are told apart by who is in them."""
    obj = jobset()
    obj["spec"]["replicatedJobs"][1]["dependsOn"] = [{"name": "leader", "status": "Ready"}]
    assert tree(obj)[-1] == "└── gang jobs: 1 pod (leader); 2 pods (workers)"


def test_own_definitions_go_before_packaged_ones(tmp_path: Path) -> None:
    """`-d` describes a kind of one's own, from a file or a folder."""
    (tmp_path / "engine.yaml").write_text(definition())
    engine = {
        "apiVersion": "example.com/v1",
        "kind": "Engine",
        "metadata": {"name": "e"},
        "spec": {"size": 3, "template": {"spec": pod_spec(2)}},
    }
    (found,) = resolved(engine, arguments=("-d", str(tmp_path)))
    assert (found["podsTotal"], found["gpuTotal"]) == (3, 6)


def test_a_definition_that_runs_for_ever_on_an_object_ends_within_seconds(tmp_path: Path) -> None:
    """Harmless on nothing, a bomb on this object: it is stopped, and the reason given."""
    (tmp_path / "bomb.yaml").write_text(
        definition(replicas="[.spec.l[]? as $a | .spec.l[]? as $b | .spec.l[]? as $c | 1] | add // 1")
    )
    engine = {"apiVersion": "example.com/v1", "kind": "Engine", "spec": {"l": [1] * 2000, "template": {}}}
    ended = run("resolve", "-", "-d", str(tmp_path / "bomb.yaml"), given=text(*[engine] * 50))
    assert ended.code == 0
    assert "pods unknown: it takes" in ended.out
    assert ended.out.count("pods unknown: not evaluated again: it takes") == 49


def test_gpu_weights_are_those_of_the_server() -> None:
    """What counts as a GPU can be said as `serve` is told, by flag or variable."""
    obj = job()
    obj["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = {"example.com/npu": 4}
    assert resolved(obj)[0]["gpuTotal"] == 0
    assert resolved(obj, arguments=("--gpu-weights", "example.com/npu=0.5"))[0]["gpuTotal"] == 2
    variable = {"WORKLOAD_STAMP_GPU_WEIGHTS": "example.com/npu=1"}
    ended = run("resolve", "-", "-o", "json", given=text(obj), environ=variable)
    assert json.loads(ended.out)[0]["gpuTotal"] == 4


def test_wrong_options_are_all_told_at_once() -> None:
    """Settings are checked as `serve` checks them; that is wrong use."""
    ended = run("resolve", "-", "--prefix", "Bad_Prefix", "--gpu-weights", "x", given=text(job()))
    assert ended.code == 2
    assert [line.partition(":")[0] for line in ended.told] == ["--prefix", "--gpu-weights"]


@pytest.mark.parametrize(
    "arguments",
    [("-n", "Team A"), ("-n", ""), ("-o", "xml"), ("-d", "/does/not/exist"), ("--prefix", "kubernetes.io")],
)
def test_wrong_use_exits_with_two(arguments: tuple[str, str]) -> None:
    """A namespace, format, path or prefix that can't be is wrong use."""
    ended = run("resolve", "-", *arguments, given=text(job()))
    assert (ended.code, ended.out) == (2, "")


def test_no_files_is_wrong_use() -> None:
    """Without a FILE there is nothing to do."""
    assert run("resolve").code == 2


def test_what_an_object_contains_does_not_steer_the_terminal() -> None:
    """Escape sequences, markup and marks of direction are shown, not obeyed."""
    name = "[bold]x[/bold][/y]\x1b[2J\u202e\n"
    obj = jobset(name, namespace="a\x07b")
    obj["spec"]["replicatedJobs"][0]["name"] = "[/r]\x1b[31m"
    undescribed = {"apiVersion": "v1", "kind": "Service\x1b[2J", "metadata": {"name": name}}
    for output in ("tree", "table"):
        ended = run("resolve", "-", "-o", output, given=text(obj, undescribed))
        assert ended.code == 0
        assert "[bold]x[/bold][/y]␛[2J�␊" in ended.out
        assert ended.out.replace("\n", "").isprintable()
        assert ended.err.replace("\n", "").isprintable()


def test_pods_of_a_controller_name_it() -> None:
    """A pod out of a cluster tells what it is part of."""
    owner = job(uid="u")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "ownerReferences": owned_by(owner)}}
    assert tree({**pod, "spec": pod_spec(1)})[1] == "├── part of Job solo"


def test_of_a_review_the_object_is_shown() -> None:
    """What was recorded at a webhook can be looked at."""
    assert resolved(review(jobset(namespace="team-a")))[0]["workloadId"] == "train-4a9ff231a1"
    ended = run("resolve", "-", given=text(review(None, operation="DELETE")))
    assert (ended.code, ended.told) == (
        1,
        ["standard input: AdmissionReview is of no described kind (admission.k8s.io/v1)"],
    )
