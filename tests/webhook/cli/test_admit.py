"""What `admit` shows and answers, for reviews and for plain objects."""

import base64
import json
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
import yaml

from tests.webhook.cli.command import Ended, run
from tests.webhook.cli.definitions import definition
from tests.webhook.cli.manifests import SERVICE, chain, job, jobset, owned_by, pod_spec, review, text

PREFIX = "workload-stamp.io/"
STAMPED_POD = """\
Pod team-a/train-workers-0-0-…  (stamped)
label       workload-stamp.io/workload-id    train-4a9ff231a1
label       workload-stamp.io/workload-kind  JobSet
label       workload-stamp.io/role           workers
label       workload-stamp.io/gang-size      3
label       workload-stamp.io/gpu-total      12
annotation  workload-stamp.io/workload       {"apiGroup":"jobset.x-k8s.io","kind":"JobSet","namespace":"team-a",\
"name":"train","uid":"uid-of-train"}
annotation  workload-stamp.io/instance       workers
annotation  workload-stamp.io/gang           train-4a9ff231a1
annotation  workload-stamp.io/gpus           4
annotation  workload-stamp.io/accelerators   {"nvidia.com/gpu":4}
"""


@pytest.fixture
def owners(tmp_path: Path) -> Path:
    """A file with the JobSet and the Job that own the pod of the chain."""
    path = tmp_path / "owners.json"
    path.write_text(json.dumps(chain()[:2]))
    return path


def admitted(*objects: Any, arguments: tuple[str, ...] = ()) -> Ended:
    """`admit` of the objects."""
    return run("admit", "-", *arguments, given=text(*objects))


def answers(ended: Ended) -> list[dict[str, Any]]:
    """The responses that `-o json` prints, one a line."""
    return [json.loads(line)["response"] for line in ended.out.splitlines()]


def labels(ended: Ended) -> list[dict[str, str]]:
    """Our labels on each object that `-o object` prints, without the prefix."""
    stored = [json.loads(line) for line in ended.out.splitlines()]
    return [
        {key.removeprefix(PREFIX): value for key, value in obj["metadata"].get("labels", {}).items() if PREFIX in key}
        for obj in stored
    ]


def test_the_table_lists_the_stamps(owners: Path) -> None:
    """A pod shows every label and annotation that it would carry."""
    ended = admitted(chain()[2], arguments=("--owners", str(owners)))
    assert (ended.code, ended.out, ended.err) == (0, STAMPED_POD, "")


def test_json_is_the_answer_to_the_review(owners: Path) -> None:
    """`-o json` prints what the API server would be sent; the patch applies to the object."""
    pod = chain()[2]
    (response,) = answers(admitted(review(pod, uid="u-1"), arguments=("--owners", str(owners), "-o", "json")))
    assert (response["uid"], response["allowed"], response["patchType"]) == ("u-1", True, "JSONPatch")
    patched = jsonpatch.apply_patch(pod, base64.b64decode(response["patch"]).decode())
    assert patched["metadata"]["labels"][PREFIX + "role"] == "workers"


def test_object_and_yaml_are_the_object_as_stored(owners: Path) -> None:
    """`-o object` prints it as a line of JSON, `-o yaml` as a YAML document."""
    arguments = ("--owners", str(owners), "-o")
    stored = json.loads(admitted(chain()[2], arguments=(*arguments, "object")).out)
    assert stored["metadata"]["annotations"][PREFIX + "gpus"] == "4"
    assert yaml.safe_load(admitted(chain()[2], arguments=(*arguments, "yaml")).out) == stored


def test_answers_come_in_the_order_of_the_inputs(tmp_path: Path) -> None:
    """Several files and documents, reviews and plain objects: a line for each, in order."""
    (tmp_path / "a.json").write_text(json.dumps([review(job("a"), uid="a"), review(SERVICE, uid="b")]))
    (tmp_path / "b.yaml").write_text(yaml.safe_dump_all([review(job("c"), uid="c"), job("d")]))
    ended = run("admit", str(tmp_path / "a.json"), "-", str(tmp_path / "b.yaml"), "-o", "json", given=text(job("m")))
    assert [each["uid"] for each in answers(ended)] == ["a", "b", "admit", "c", "admit"]


BROKEN: list[Any] = [
    {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"},
    {"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "request": {"uid": "old"}},
    {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"kind": {}}},
    {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {"uid": "u"}},
    {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": []},
    {"kind": "AdmissionReview"},
    [],
    5,
]


def test_broken_reviews_among_good_ones_are_told_and_the_good_ones_answered() -> None:
    """What the webhook would refuse has no line of output but one on standard error; the exit code is 1."""
    inputs = [review(job("first"), uid="first"), *BROKEN, review(job("last"), uid="last")]
    ended = admitted(*inputs, arguments=("-o", "json"))
    assert ended.code == 1
    assert [each["uid"] for each in answers(ended)] == ["first", "last"]
    assert len(ended.told) == len(BROKEN) - 1, "an empty array holds nothing"


def test_each_broken_review_is_told_with_its_place() -> None:
    """The place is the position among the documents, the rest what is wrong."""
    ended = admitted(review(job()), BROKEN[1], BROKEN[2])
    version, uid = ended.told
    assert version.startswith("standard input[1]: expected an AdmissionReview of admission.k8s.io/v1, found ")
    assert uid == "standard input[2]: request.uid is None, expected a non-empty string"


@pytest.mark.parametrize(
    "given, why",
    [
        (review(None, operation="DELETE", oldObject=job()), "only CREATE and UPDATE are stamped, this is DELETE"),
        (review(None, operation="CONNECT", subResource="exec"), "requests for a subresource (exec) are left alone"),
        (review(job(), subResource="status", operation="UPDATE"), "requests for a subresource (status)"),
        (review(chain()[2], operation="UPDATE"), "pods are stamped when they are created, and never again"),
        (review({**job(), "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), "it is being deleted"),
        (job(labels={PREFIX + "ignore": "true"}), f'its label {PREFIX}ignore: "true" asks for it'),
        ({**job(), "metadata": None}, "it has no metadata to write to"),
        (SERVICE, "no definition describes Service of the core group"),
        (
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "ownerReferences": owned_by(
                        {**SERVICE, "metadata": {"name": "x", "uid": "y"}, "apiVersion": "example.com/v1"}
                    )
                },
                "spec": {},
            },
            "no definition describes its owners",
        ),
        (
            {**chain()[2], "metadata": {"annotations": {"kubernetes.io/config.mirror": "x"}}},
            "a mirror pod is the kubelet's",
        ),
    ],
)
def test_why_nothing_is_written_is_said(given: dict[str, Any], why: str) -> None:
    """An object that is left alone shows the reason, and is answered all the same."""
    ended = admitted(given)
    assert ended.code == 0
    assert ended.out.splitlines()[1].startswith(f"nothing is written: {why}")
    (response,) = answers(admitted(given, arguments=("-o", "json")))
    assert response["allowed"] is True
    assert "patch" not in response


def test_a_dry_run_is_answered_as_the_real_one() -> None:
    """Nothing depends on `dryRun`."""
    real, dry = (admitted(review(job(), dryRun=dry), arguments=("-o", "json")).out for dry in (False, True))
    assert real == dry


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(json.dumps(chain()[:2]), id="array"),
        pytest.param(json.dumps({"apiVersion": "v1", "kind": "List", "items": chain()[:2]}), id="list"),
        pytest.param(text(*chain()[:2]), id="json"),
        pytest.param(yaml.safe_dump_all(chain()[:2]), id="yaml"),
    ],
)
def test_owners_come_in_any_form(content: str, tmp_path: Path) -> None:
    """A JSON array, a List, several JSON or YAML documents."""
    path = tmp_path / "owners"
    path.write_text(content)
    assert admitted(chain()[2], arguments=("--owners", str(path))).out == STAMPED_POD


def test_owners_may_be_given_several_times(tmp_path: Path) -> None:
    """Each owner in its own file; one of them an AdmissionReview about it."""
    top, middle, pod = chain()
    (tmp_path / "top").write_text(text(review(top)))
    (tmp_path / "middle").write_text(text(middle))
    arguments = ("--owners", str(tmp_path / "top"), "--owners", str(tmp_path / "middle"))
    assert admitted(pod, arguments=arguments).out == STAMPED_POD


def test_what_is_admitted_owns_what_comes_with_it() -> None:
    """A whole chain in one file needs no --owners; reviews count as well as plain objects."""
    assert admitted(*chain()).out.endswith(STAMPED_POD)
    assert admitted(*(review(obj) for obj in chain())).out.endswith(STAMPED_POD)


def test_given_owners_go_before_what_is_admitted(owners: Path) -> None:
    """A manifest beside the stored objects has no uid, or another one: the stored object is the owner."""
    ended = admitted(jobset(namespace="team-a", uid="another"), chain()[2], arguments=("--owners", str(owners)))
    assert ended.out.endswith(STAMPED_POD)


def test_a_missing_owner_is_a_reason() -> None:
    """Without the owner the top is unknown: only what the pod itself tells is written."""
    ended = admitted(chain()[2])
    assert "left out    workload-stamp.io/workload-id   owner Job train-workers-0 was not found" in ended.out


def test_bad_owners_are_told_and_the_rest_is_answered(tmp_path: Path) -> None:
    """A file of owners that can't be read is a line; what is admitted is answered without them."""
    (tmp_path / "bad").write_text("a: [")
    ended = admitted(job(), arguments=("--owners", str(tmp_path / "bad"), "--owners", str(tmp_path / "none")))
    assert ended.code == 1
    assert ended.out.startswith("Job default/solo  (stamped)")
    assert [line.split(":")[0] for line in ended.told] == [str(tmp_path / "bad"), str(tmp_path / "none")]


def test_objects_and_owners_cannot_both_be_standard_input() -> None:
    """`-` can be read once."""
    assert admitted(job(), arguments=("--owners", "-")).code == 2


def test_the_namespace_option_stands_for_objects_that_name_none(owners: Path) -> None:
    """Objects and their owners without a namespace are in the one that is given."""
    pod = chain()[2]
    del pod["metadata"]["namespace"]
    ended = admitted(pod, arguments=("-n", "team-a", "--owners", str(owners)))
    assert ended.out == STAMPED_POD
    assert labels(admitted(job(), arguments=("-o", "object"))) != labels(
        admitted(job(), arguments=("-o", "object", "-n", "team-a"))
    )


def test_an_update_of_a_workload_carries_all_its_stamps() -> None:
    """`--operation UPDATE` is what a scale sends; its stamps follow the object."""
    ended = admitted(jobset(), arguments=("--operation", "UPDATE", "-o", "object"))
    assert labels(ended)[0]["gpu-total"] == "12"


def test_an_update_of_an_owned_object_is_left_alone() -> None:
    """Its controller applies it again and again."""
    ended = admitted(chain()[1], arguments=("--operation", "UPDATE"))
    assert "what this object carries is written when it is created" in ended.out


def test_what_was_there_under_the_prefix_is_shown_as_removed_and_warned_of() -> None:
    """The prefix is ours: other values are replaced, and who wrote them is told."""
    ended = admitted(job(labels={PREFIX + "role": "mine", PREFIX + "workload-kind": "Mine"}))
    assert "removed     workload-stamp.io/role" in ended.out
    assert "warning" in ended.out


def test_an_object_that_carries_its_stamps_is_unchanged() -> None:
    """A second admission changes nothing, and shows what the stamps are."""
    stored = json.loads(admitted(job(), arguments=("-o", "object")).out)
    ended = admitted(stored)
    assert ended.out.startswith("Job default/solo  (unchanged)\nlabel       workload-stamp.io/workload-id")
    assert "patch" not in answers(admitted(stored, arguments=("-o", "json")))[0]


def test_another_prefix_is_used_everywhere() -> None:
    """`--prefix` is that of the server."""
    ended = admitted(job(), arguments=("--prefix", "stamps.example.com"))
    assert "label       stamps.example.com/workload-id" in ended.out
    assert PREFIX not in ended.out


@pytest.mark.parametrize("prefix", ["Bad", "a b", "", "-x", "k8s.io", "x.kubernetes.io", "a" * 300])
def test_a_bad_prefix_is_wrong_use(prefix: str) -> None:
    """What `serve` refuses is refused here, in its words."""
    ended = admitted(job(), arguments=("--prefix", prefix))
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("--prefix: found ")


def test_gpu_weights_change_the_total() -> None:
    """`--gpu-weights` and `--device-class-weights` are those of the server."""
    ended = admitted(job(), arguments=("--gpu-weights", "nvidia.com/gpu=0.25", "-o", "object"))
    assert labels(ended)[0]["gpu-total"] == "0.25"
    assert admitted(job(), arguments=("--gpu-weights", "nvidia.com/gpu=much")).code == 2
    assert admitted(job(), arguments=("--device-class-weights", "=")).code == 2


def test_a_definition_can_be_debugged(tmp_path: Path) -> None:
    """`--definitions` describes a kind of one's own; its pods are stamped through it."""
    (tmp_path / "engine.yaml").write_text(definition())
    engine = {
        "apiVersion": "example.com/v1",
        "kind": "Engine",
        "metadata": {"name": "e", "uid": "u"},
        "spec": {"size": 2, "template": {"spec": pod_spec(2)}},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "e-0", "ownerReferences": owned_by(engine)}}
    ended = admitted(engine, {**pod, "spec": pod_spec(2)}, arguments=("-d", str(tmp_path), "-o", "object"))
    assert [found["workload-kind"] for found in labels(ended)] == ["Engine", "Engine"]
    assert labels(ended)[1]["gpu-total"] == "4"


def test_bad_definitions_are_told_before_anything_is_admitted(tmp_path: Path) -> None:
    """Every problem of every definition, with file and line."""
    (tmp_path / "bad.yaml").write_text(definition(replicas="env.HOME"))
    ended = admitted(job(), arguments=("-d", str(tmp_path)))
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith(f"{tmp_path}/bad.yaml:10: spec.structureDefinition.rootComponent")


def test_nothing_to_admit_is_a_failure() -> None:
    """An empty input is told."""
    ended = run("admit", "-")
    assert (ended.code, ended.told) == (1, ["standard input: there is no object in it"])


@pytest.mark.shared
def test_recorded_reviews_are_answered_with_their_owners(shared: Path) -> None:
    """What real controllers sent, with the owners as they were stored, is stamped."""
    folder = shared / "recordings" / "jobset" / "leader-workers"
    pods = sorted(str(path) for path in (folder / "pods").glob("*.json"))
    ended = run("admit", *pods, "--owners", str(folder / "owners.json"), "-o", "object")
    assert ended.code == 0
    assert [found["role"] for found in labels(ended)] == ["leader", "workers", "workers"]
    assert {(found["gang-size"], found["gpu-total"]) for found in labels(ended)} == {("3", "12")}
