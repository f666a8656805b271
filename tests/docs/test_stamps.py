"""The page of the stamps names the stamps that are written, and tells the truth about its example."""

import re

import orjson

from tests.docs.pages import DOCS
from tests.golden.cases import all_cases, is_pod_step, packaged_catalog
from webhook.identity import workload_id
from webhook.stamps import Policy

PAGE = (DOCS / "stamps.md").read_text()
ROW = re.compile(r"^\| (?P<keys>(?:`[a-z-]+`(?:, )?)+) \| (?P<where>label|annotation) \|", re.MULTILINE)


def _section(heading: str) -> str:
    return PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]


def _listed(heading: str) -> set[tuple[str, str]]:
    rows = ROW.finditer(_section(heading))
    return {(key, row["where"]) for row in rows for key in re.findall(r"`([a-z-]+)`", row["keys"])}


def _written(*, on_pods: bool) -> set[tuple[str, str]]:
    """What golden cases write; kinds whose labels are copied have all of it as annotations."""
    found: set[tuple[str, str]] = set()
    for case in all_cases():
        for step, decision in case.decisions(packaged_catalog(), Policy()):
            if decision.stamps is not None and is_pod_step(step) is on_pods:
                found |= {(key, "label") for key in decision.stamps.labels}
                found |= {(key, "annotation") for key in decision.stamps.annotations if decision.stamps.labels}
    return found


def test_stamps_of_pods_are_those_that_are_written() -> None:
    """Each key, as a label or as an annotation."""
    assert _listed("On pods") == _written(on_pods=True)


def test_stamps_of_workloads_are_those_that_are_written() -> None:
    """Likewise, for kinds that carry labels."""
    assert _listed("On workloads") == _written(on_pods=False)


def test_the_examples_id_is_right() -> None:
    """It is the one of that JobSet."""
    assert PAGE.count(workload_id("jobset.x-k8s.io", "JobSet", "team-a", "train")) >= 3


def test_the_examples_of_roles_are_right() -> None:
    """The value of `roles` is JSON, and adds up to the example's twelve GPUs."""
    found = re.search(r"`(?P<roles>\[\{\"role\".+?\}\])`", _section("On workloads"))

    assert found is not None
    assert sum(role["gpus"] for role in orjson.loads(found["roles"])) == 12
