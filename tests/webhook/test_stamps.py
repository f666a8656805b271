"""The composition rules, on made-up lineages: who is the workload, who gives role, gang and GPUs, what roots carry."""

from decimal import Decimal
from typing import Any

import orjson
import pytest

from catalog.library import CompiledDefinition
from catalog.resources import Devices
from catalog.structure import Structure
from tests.catalog.made_up import definition, groups, leaf, resolved, template, train
from webhook.lineage import NO_OWNERS, Lineage, Owner
from webhook.stamps import Stamps, described_stamps, pod_stamps, root_stamps

GPUS = Devices(gpus=Decimal(4), accelerators={"nvidia.com/gpu": Decimal(4)})
WRAP = {"group": "example.com", "version": "v1", "kind": "Wrap"}
JOBS = {"group": "batch", "version": "v1", "kind": "Job"}


def owners(*nearest_first: Structure) -> Lineage:
    """The lineage of a pod with these described owners."""
    return Lineage(
        owners=tuple(
            Owner(kind=each.kind, namespace=each.namespace, name=each.name, uid=each.uid, structure=each)
            for each in nearest_first
        )
    )


def structure(compiled: CompiledDefinition, name: str = "t", **spec: Any) -> Structure:
    """An object of that name."""
    obj = train(**spec)
    return resolved(compiled, {**obj, "metadata": {**obj["metadata"], "name": name, "uid": f"uid-{name}"}})


def worker(name: str = "t", gang: dict[str, Any] | None = None, **root: Any) -> Structure:
    """An object with four workers of four GPUs, and a gang where one is asked for."""
    compiled = definition(root=root, children=[leaf("worker")], gang=gang)
    return structure(compiled, name, worker={"replicas": 4, "template": template(4)})


def wrapper(**parts: Any) -> Structure:
    """An object above others, without pods of its own unless `parts` give it some."""
    return structure(definition(kind=WRAP, **parts), "w")


def stamped(*nearest_first: Structure, pod: dict[str, Any] | None = None, devices: Devices = GPUS) -> Stamps:
    """The stamps of a worker pod with these owners."""
    return pod_stamps(pod or {"metadata": {"labels": {"role": "worker"}}}, devices, owners(*nearest_first), None)


GANG = {"podGroups": [{"name": "g", "members": [{"componentName": "worker"}], "minPath": "2"}]}


def test_the_topmost_described_object_is_the_workload() -> None:
    """Identity from the top, role and gang from below, where the top says nothing of them."""
    found = stamped(worker(gang=GANG), wrapper())

    assert found.labels["workload-kind"] == "Wrap"
    assert found.labels["workload-id"].startswith("w-")
    assert (found.labels["role"], found.labels["gang-size"]) == ("worker", "4")
    assert found.annotations["gang"].startswith("t-")
    assert found.annotations["gang-min"] == "2"
    assert orjson.loads(found.annotations["workload"])["uid"] == "uid-w"


def test_a_schedule_is_no_workload_and_gives_nothing() -> None:
    """Each run is a workload of its own."""
    found = stamped(worker(), wrapper(root={"spawnsWorkloads": True}))

    assert found.labels["workload-kind"] == "Train"
    assert stamped(wrapper(root={"spawnsWorkloads": True})).labels == {}


def test_the_topmost_object_that_states_gangs_answers_for_them() -> None:
    """Even when it covers this pod with none; one below is not asked then."""
    covers_nobody = {"podGroups": [{"name": "g", "members": [{"componentName": "head"}]}]}
    above = structure(
        definition(kind=WRAP, children=[leaf("head"), leaf("worker")], gang=covers_nobody),
        "w",
        head={"replicas": 1, "template": template()},
        worker={"replicas": 4, "template": template(4)},
    )
    found = stamped(worker(gang=GANG), above)

    assert found.labels["gang-size"] == "1"
    assert "gang" not in found.annotations


def test_without_stated_gangs_a_pod_is_alone() -> None:
    """A pod that no stated gang covers has size 1 and no gang."""
    found = stamped(worker())

    assert found.labels["gang-size"] == "1"
    assert "gang" not in found.annotations


def test_the_total_is_the_workloads() -> None:
    """Not that of the object nearest to the pod."""
    above = structure(
        definition(kind=WRAP, children=[leaf("worker")]), "w", worker={"replicas": 9, "template": template(4)}
    )

    assert stamped(worker(), above).labels["gpu-total"] == "36"


def test_another_kind_answers_for_the_total_where_the_top_says_so() -> None:
    """`answeredBy`: the described object of that kind below."""
    job = {"name": "job", "ownerRef": "train", "kind": JOBS}
    below = structure(
        definition(kind=JOBS, children=[leaf("worker")]), "j", worker={"replicas": 2, "template": template(4)}
    )
    above = wrapper(root={"answeredBy": "job"}, children=[job])

    assert stamped(below, above).labels["gpu-total"] == "8"
    assert "gpu-total" in stamped(worker(), above).unresolved


@pytest.mark.parametrize("gpus, total", [(Decimal(4), "18"), (Decimal(0), "2"), (Decimal("0.5"), "4")])
def test_the_pod_at_hand_completes_the_one_spec_that_is_unknown(gpus: Decimal, total: str) -> None:
    """Its component counts as its pods times the GPUs of this pod."""
    compiled = definition(children=[leaf("head"), leaf("worker")])
    obj = structure(compiled, head={"replicas": 1, "template": template(2)}, worker={"replicas": 4})

    assert total == stamped(obj, devices=Devices(gpus=gpus)).labels["gpu-total"]


def test_a_part_is_never_given_for_the_whole() -> None:
    """Two unknown specs, an unknown count, another component's pod: unknown."""
    two = definition(children=[leaf("head"), leaf("worker")])
    both = structure(two, head={"replicas": 1}, worker={"replicas": 4})
    uncounted = structure(two, head={"template": template(1)}, worker={"replicas": 4})
    other = structure(two, head={"replicas": 1}, worker={"replicas": 4, "template": template(1)})

    for obj in (both, uncounted, other):
        assert "gpu-total" in stamped(obj).unresolved


def test_a_pod_that_no_component_claims_keeps_its_identity() -> None:
    """The role is left out with its reason."""
    found = stamped(worker(), pod={"metadata": {"labels": {"role": "helper"}}})

    assert found.labels["workload-kind"] == "Train"
    assert "role" in found.unresolved


def test_instances_of_a_sole_leaf_are_its_roles() -> None:
    """And stand in full in the annotation."""
    name = "Group_" + "x" * 70
    obj = structure(definition(children=[groups()]), groups=[{"name": name, "replicas": 1, "template": template(1)}])
    found = stamped(obj, pod={"metadata": {"labels": {"group": name}}})

    assert name == found.annotations["instance"]
    assert len(found.labels["role"]) == 63


def test_a_broken_lineage_leaves_the_pods_own_stamps() -> None:
    """The top is unknown."""
    found = pod_stamps({"metadata": {}}, GPUS, Lineage(broken="owner Job j was not found"), None)

    assert found.labels == {}
    assert {"gpus", "accelerators", "unresolved"} == found.annotations.keys()


def root(mode: str, *, operation: str = "CREATE", owned: bool = False, lineage: Lineage = NO_OWNERS) -> Stamps | None:
    """What is written on an object whose definition has that mode."""
    return root_stamps(worker(rootStamps=mode), operation=operation, owned=owned, lineage=lineage)


EVERYTHING = {"workload-id", "workload-kind", "gpu-total", "pods-total", "roles"}


def test_full_stamps_are_written_at_every_occasion() -> None:
    """Labels where people select, annotations for the rest."""
    for operation in ("CREATE", "UPDATE"):
        found = root("full", operation=operation)
        assert found is not None
        assert {"workload-id", "workload-kind", "gpu-total"} == found.labels.keys()
        assert {"pods-total", "roles"} == found.annotations.keys()


def test_kinds_that_copy_labels_carry_annotations_only() -> None:
    """An owned one too."""
    found = root("annotations")
    owned = root("annotations", owned=True)

    assert found is not None
    assert owned is not None
    assert (list(found.labels), set(found.annotations)) == ([], EVERYTHING)
    assert ([], {"workload-id", "workload-kind"}) == (list(owned.labels), set(owned.annotations))


def test_identity_is_written_once() -> None:
    """At creation; it never changes."""
    found = root("identity")

    assert found is not None
    assert ({"workload-id", "workload-kind"}, []) == (set(found.labels), list(found.annotations))
    assert root("identity", operation="UPDATE") is None


def test_none_is_nothing() -> None:
    """Not even identity, owned or not."""
    assert root("none") is None
    assert root("none", owned=True) is None


def test_an_owned_object_carries_its_workloads_identity_at_its_creation() -> None:
    """Its controller applies it again and again."""
    found = root("full", owned=True, lineage=owners(wrapper()))

    assert found is not None
    assert found.labels["workload-kind"] == "Wrap"
    assert found.annotations == {}
    assert root("full", owned=True, operation="UPDATE", lineage=owners(wrapper())) is None


def test_a_schedule_has_no_id() -> None:
    """Its numbers are those of one run."""
    found = root_stamps(
        worker(rootStamps="full", spawnsWorkloads=True), operation="CREATE", owned=False, lineage=NO_OWNERS
    )

    assert found is not None
    assert "workload-id" not in found.labels
    assert found.labels["gpu-total"] == "16"


def test_a_root_without_a_name_says_why_it_has_no_id() -> None:
    """It comes when the name is known."""
    obj = train(worker={"replicas": 1, "template": template()})
    del obj["metadata"]["name"]
    found = described_stamps(resolved(definition(children=[leaf("worker")]), obj))

    assert "workload-id" not in found.labels
    assert "workload-id" in found.unresolved


def test_the_common_gang_size_leaves_out_pods_in_no_gang() -> None:
    """Only when every gang has that size."""
    members = [{"componentName": "group", "groupByKeyPaths": ['.metadata.labels["group"]']}]
    gang = {
        "podGroups": [
            {
                "name": "g",
                "members": members,
                "gangIdPath": ".spec.groups[].stage",
                "sizePath": ".spec.groups[].size",
            }
        ]
    }
    compiled = definition(children=[groups()], gang=gang)
    alone = {"name": "a", "stage": "", "size": 9, "replicas": 1}
    same = [alone, {"name": "b", "stage": "x", "size": 2}, {"name": "c", "stage": "y", "size": 2}]
    mixed = [alone, {"name": "b", "stage": "x", "size": 2}, {"name": "c", "stage": "y", "size": 3}]

    assert described_stamps(structure(compiled, groups=same)).labels["gang-size"] == "2"
    assert "gang-size" not in described_stamps(structure(compiled, groups=mixed)).labels


def test_a_role_with_unknown_numbers_is_named_without_them() -> None:
    """What is known of it stands."""
    compiled = definition(children=[leaf("head"), leaf("worker")])
    obj = structure(compiled, head={"replicas": 1, "template": template(1)}, worker={"replicas": 4})

    assert orjson.loads(described_stamps(obj).annotations["roles"]) == [
        {"role": "head", "pods": 1, "gpus": 1},
        {"role": "worker", "pods": 4},
    ]


@pytest.mark.parametrize("first, second", [(1, True), (True, 1), (0, False), (False, 0)])
def test_pods_that_differ_only_in_a_values_type_are_told_apart(first: Any, second: Any) -> None:
    """What is remembered of one pod is never given to another that its definition reads otherwise."""
    members = [{"componentName": "worker", "groupByKeyPaths": [".spec.flag"]}]
    gang = {"podGroups": [{"name": "g", "members": members, "sizePath": "2"}]}
    obj = worker(gang=gang)
    pods = [{"metadata": {"labels": {"role": "worker"}}, "spec": {"flag": flag}} for flag in (first, second)]
    expected = [stamped(worker(gang=gang), pod=pod).annotations["gang"] for pod in pods]

    assert [stamped(obj, pod=pod).annotations["gang"] for pod in pods] == expected
    assert len(set(expected)) == 2
