"""Golden cases as data: reads the YAML files of this folder and admits what they hold.

A case file::

    title: one sentence that says what is shown
    cluster:                      # objects that exist already: owners of what is admitted
    - {apiVersion: …, kind: JobSet, metadata: {name: train}, spec: …}
    admissions:
    - what: the leader pod        # told in failures
      operation: CREATE           # the default; UPDATE for roots
      ownedBy: Job/train-leader-0 # a controller reference to an object of `cluster`
      object: {…}                 # the object as the API server sends it
      stamps: null                # null: left alone, no patch; else exactly these, keys without the prefix
        labels: {workload-id: train-…, role: leader}
        annotations: {gpus: 4, roles: [{role: leader, pods: 1, gpus: 4}]}

Everything is in namespace `team-a` unless it says otherwise. Objects of `cluster` get the uid `uid-of-<name>`;
`ownedBy` may stand in them too. In `stamps` numbers stand for their decimal text and lists and maps for their JSON;
an `unresolved` whose value is a list names only the keys that must be there with a reason.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import orjson

from catalog import load
from catalog.library import Catalog, CompiledDefinition
from webhook.admit import Decision, decide, is_pod
from webhook.documents import DocumentOwners
from webhook.lineage import NO_OWNERS, kind_named
from webhook.review import Review
from webhook.stamps import Policy

FOLDER = Path(__file__).parent
NAMESPACE = "team-a"
JSON_KEYS = ("roles", "workload", "accelerators", "unresolved")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One admission of a case, with the stamps that are expected (None: left alone)."""

    what: str
    review: Review
    expected: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One file: what exists in the cluster, and what is admitted in turn."""

    path: Path
    title: str
    cluster: tuple[dict[str, Any], ...]
    steps: tuple[Step, ...]

    def decisions(self, catalog: Catalog, policy: Policy) -> Iterator[tuple[Step, Decision]]:
        """Each admission with what the webhook decides about it."""
        owners = DocumentOwners(self.cluster, policy)
        for step in self.steps:
            owned = step.review.operation == "CREATE"
            lineage = owners.lineage_of(step.review.obj, step.review.namespace, catalog) if owned else NO_OWNERS
            yield step, decide(step.review, lineage, catalog, policy)


@cache
def packaged_catalog() -> Catalog:
    """The catalogue as shipped; every packaged definition must load."""
    definitions, problems = load.packaged()
    assert not problems, "\n".join(str(problem) for problem in problems)
    return Catalog.of([CompiledDefinition(definition) for definition in definitions])


def all_cases() -> list[Case]:
    """Every case file, in the order of their paths."""
    return [read_case(path) for path in sorted(FOLDER.rglob("*.yaml"))]


def read_case(path: Path) -> Case:
    """The case in one file."""
    (found,), faults = load.documents_of_file(path)
    assert not faults, "\n".join(map(str, faults))
    document = found.value
    cluster = tuple(_stored(obj) for obj in document.get("cluster", ()))
    by_name = {f"{obj['kind']}/{obj['metadata']['name']}": obj for obj in cluster}
    for obj in cluster:
        _adopt(obj, by_name)
    return Case(
        path=path,
        title=document["title"],
        cluster=cluster,
        steps=tuple(_step(admission, by_name) for admission in document["admissions"]),
    )


def _stored(obj: dict[str, Any]) -> dict[str, Any]:
    metadata = {"namespace": NAMESPACE, "uid": f"uid-of-{obj['metadata']['name']}", **obj["metadata"]}
    return {**obj, "metadata": metadata}


def _adopt(obj: dict[str, Any], by_name: Mapping[str, dict[str, Any]]) -> None:
    """Turn an `ownedBy` into the controller reference that it stands for."""
    name = obj.pop("ownedBy", None)
    if name is None:
        return
    owner = by_name[name]
    obj["metadata"]["ownerReferences"] = [
        {
            "apiVersion": owner["apiVersion"],
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def _step(admission: dict[str, Any], by_name: Mapping[str, dict[str, Any]]) -> Step:
    obj = {**admission["object"], "metadata": {"namespace": NAMESPACE, **admission["object"].get("metadata", {})}}
    if "ownedBy" in admission:
        obj["ownedBy"] = admission["ownedBy"]
    _adopt(obj, by_name)
    kind = kind_named(obj["apiVersion"], obj["kind"])
    assert kind is not None
    return Step(
        what=admission["what"],
        expected=admission["stamps"],
        review=Review(
            uid="golden",
            kind=kind,
            subresource="",
            name=obj["metadata"].get("name", ""),
            namespace=obj["metadata"]["namespace"],
            operation=admission.get("operation", "CREATE"),
            username="system:serviceaccount:kube-system:controller" if kind.kind == "Pod" else "ada@example.com",
            obj=obj,
        ),
    )


def found_stamps(decision: Decision) -> dict[str, Any] | None:
    """The decision in the form that case files use: JSON annotations as structures, all else as text."""
    if decision.stamps is None:
        return None
    annotations = {
        key: orjson.loads(value) if key in JSON_KEYS else value for key, value in decision.stamps.annotations.items()
    }
    return {"labels": dict(decision.stamps.labels), "annotations": annotations}


def expected_stamps(step: Step, found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The expected stamps of a step in the same form; reasons that the case does not spell out are taken as found."""
    if step.expected is None:
        return None
    labels = {key: _text(value) for key, value in step.expected.get("labels", {}).items()}
    annotations = {
        key: value if key in JSON_KEYS else _text(value) for key, value in step.expected.get("annotations", {}).items()
    }
    named = annotations.get("unresolved")
    if isinstance(named, list):
        reasons = (found or {}).get("annotations", {}).get("unresolved", {})
        annotations["unresolved"] = {key: reasons.get(key, "(a reason)") for key in named}
    return {"labels": labels, "annotations": annotations}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def is_pod_step(step: Step) -> bool:
    """Whether the step admits a pod."""
    return is_pod(step.review)
