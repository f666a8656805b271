"""The page of the command line tells the shapes of the JSON that is printed, no field more and none less."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import pytest

from tests.docs.pages import DOCS
from tests.webhook.live.made_up import MadeUp, condition, template, unschedulable
from webhook.cli.backfill import Done, Left
from webhook.cli.backfill import document as backfill_document
from webhook.cli.main import COMMANDS
from webhook.live.audit import audit
from webhook.live.description import describe, gang_view
from webhook.live.documents import (
    absent_gangs_document,
    audit_document,
    description_document,
    gang_document,
    listed,
    pod_document,
    tree_document,
    usage_document,
    workload_document,
)
from webhook.live.nodes import nodes_with
from webhook.live.scheduler_groups import scheduler_groups
from webhook.live.snapshot import Unread
from webhook.live.tree import owner_tree
from webhook.live.usage import By, usage_by

PAGE = (DOCS / "command-line.md").read_text()
ROW = re.compile(r"^\| (?P<fields>`[^|]+) \| (?P<types>[^|]+) \| ", re.MULTILINE)
TYPES = {str: "string", bool: "boolean", int: "number", float: "number", type(None): "null", dict: "object"}
MAPS = ("accelerators", "topology")
"""Objects whose keys are data."""

UNREAD = (Unread(group="ray.io", kind="RayJob", reason="may not be listed"),)


def told(section: str) -> dict[str, set[str]]:
    """Each field that a section's table tells, with its types."""
    _, _, rest = PAGE.partition(f"\n### {section}\n")
    text = re.split(r"\n(?:###|A pod:)", rest)[0] if section else PAGE.partition("\nA pod:\n")[2].partition("\n###")[0]
    return {
        field: set(row["types"].split(" or "))
        for row in ROW.finditer(text)
        for field in re.findall(r"`([^`]+)`", row["fields"])
    }


def printed(document: Any, known: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    """Path and type of each value; an object or list that the page tells as a whole is not looked into."""
    if isinstance(document, dict) and "object" not in known.get(path, ()):
        for key, value in document.items():
            name = "*" if path.rpartition(".")[2] in MAPS else key
            yield from printed(value, known, f"{path}.{name}" if path else name)
    elif isinstance(document, list):
        for value in document:
            yield from printed(value, known, f"{path}[]")
    else:
        yield path, TYPES[type(document)]


def cluster() -> MadeUp:
    """One in which every field has something to say."""
    made = MadeUp()
    made.node("node-0", gpus=8, labels={"topology.kubernetes.io/zone": "a"})
    made.node("node-1", gpus=8, labels={"topology.kubernetes.io/zone": "b"})
    pods = made.pods_of_jobset(made.jobset(workers=4))
    made.stamp()
    made.objects[0]["status"] = {"conditions": [condition("StartupPolicyCompleted")]}
    pods[0]["metadata"]["annotations"] |= {"scheduling.k8s.io/group-name": "pg", "workload-stamp.io/gang-min": "2"}
    pods[1]["metadata"]["labels"]["workload-stamp.io/role"] = "odd"
    pods[2]["spec"].pop("nodeName")
    pods[2]["status"] = {"phase": "Pending", **unschedulable()}
    made.group("scheduling.volcano.sh/v1beta1", "pg", {"minMember": 3}, phase="Inqueue")
    made.jobset("waiting")
    made.add("TrainJob", "sft", {"runtimeRef": {"name": "torch"}})
    made.pod("stray", template(1)["spec"], owner=MadeUp().add("Widget", "w"))
    made.pod("orphan", owner=MadeUp().add("Job", "gone"))
    return made


def documents() -> dict[str, list[Any]]:
    """Documents of each kind, as the commands print them."""
    made = cluster()
    found, groups = made.inventory(), scheduler_groups(made.groups)
    nodes = nodes_with(made.nodes, found.pods, made.policy.accelerators)
    workload = made.workload("train")
    description = describe(workload, found.index, nodes, groups)
    event = {"lastTimestamp": "2026-01-01T00:00:00Z", "involvedObject": {"kind": "Pod", "name": "p"}}
    views = [gang_document(gang_view(gang, nodes, groups), workload) for gang in workload.gangs]
    views += [gang_document(gang_view(gang, None, {}), workload) for gang in workload.gangs]
    absent = [absent_gangs_document(made.workload("waiting"), 1, size) for size in (3, None)]
    tables: tuple[By, ...] = ("namespace", "kind", "workload", "node")
    per_node = usage_by(found, "node", nodes)
    usages = [usage_document(by, usage_by(found, by, nodes), per_node, UNREAD) for by in tables]
    audited = audit(made.snapshot(), found.index, lambda _: True)
    workloads = {each.reference.uid: each for each in found.workloads}
    done = Done(failures=["Pod team-a/p: forbidden"])
    return {
        "WorkloadList": [listed("WorkloadList", map(workload_document, found.workloads), UNREAD)],
        "WorkloadDescription": [
            description_document(description, [event]),
            description_document(describe(made.workload("sft"), found.index, None, {}), []),
        ],
        "": [{"pods": [pod_document(pod) for pod in found.pods]}],
        "GangList": [listed("GangList", views, UNREAD, withoutPods=absent)],
        "Usage": [*usages, usage_document("namespace", usage_by(found, "namespace", None), None, UNREAD)],
        "Tree": [tree_document(owner_tree(made.objects[0], found.index), workloads)],
        "Audit": [audit_document(audited, UNREAD)],
        "Backfill": [backfill_document(audited, Left(stale=1, fixed=1), done, dry_run=True)],
    }


DOCUMENTS = documents()


@pytest.mark.parametrize("section", DOCUMENTS, ids=lambda section: section or "pods")
def test_the_page_tells_what_is_printed(section: str) -> None:
    """Every field is told with its type, and every field that is told is printed."""
    known = told(section)
    values = [value for document in DOCUMENTS[section] for value in printed(document, known)]

    assert {path for path, _ in values} | {path for path, types in known.items() if types & {"object", "null"}} == set(
        known
    ), "fields that are printed and not told, or told and not printed"
    for path, kind in values:
        assert kind in known[path], (path, kind)
    for document in DOCUMENTS[section]:
        assert orjson.loads(orjson.dumps(document)) == document


def test_every_document_names_its_kind_and_version() -> None:
    """A tree aside, which is an object among objects."""
    for section, made in DOCUMENTS.items():
        for document in made if section not in ("", "Tree") else ():
            assert (document["apiVersion"], document["kind"]) == ("view.workload-stamp.io/v1", section)


def test_every_live_command_is_on_the_page() -> None:
    """Each by its name, with what it shows."""
    live = ("get", "describe", "tree", "top", "gangs", "audit", "backfill")

    assert set(live) <= set(COMMANDS)
    for command in live:
        assert re.search(rf"^\| `{command}\b", PAGE, re.MULTILINE), command
