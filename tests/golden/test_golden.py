"""Every golden case gives exactly the stamps that it states, and the patch that writes them is right."""

import base64
from dataclasses import replace

import jsonpatch
import orjson
import pytest

from tests.golden.cases import Case, all_cases, expected_stamps, found_stamps, packaged_catalog
from webhook.admit import admit, needs_lineage
from webhook.documents import DocumentOwners
from webhook.lineage import NO_OWNERS
from webhook.stamps import Policy

CASES = all_cases()
POLICY = Policy()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path.parent.name}/{case.path.stem}")
def test_case_gives_the_stamps_it_states(case: Case) -> None:
    """Object in, stamps out, for each admission of the case."""
    for step, decision in case.decisions(packaged_catalog(), POLICY):
        found = found_stamps(decision)

        assert expected_stamps(step, found) == found, f"{case.title}: {step.what}"


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.path.parent.name}/{case.path.stem}")
def test_patched_object_carries_the_stamps_and_a_second_admission_changes_nothing(case: Case) -> None:
    """The patch is applied with an independent library; what comes out needs no patch."""
    catalog = packaged_catalog()
    owners = DocumentOwners(case.cluster, POLICY)
    for step, decision in case.decisions(catalog, POLICY):
        review = step.review
        lineage = NO_OWNERS
        if needs_lineage(review, catalog, POLICY.prefix):
            lineage = owners.lineage_of(review.obj, review.namespace, catalog)
        response = orjson.loads(admit(review, lineage, catalog, POLICY).body)["response"]
        patch = orjson.loads(base64.b64decode(response["patch"])) if "patch" in response else []
        stored = jsonpatch.apply_patch(review.obj, patch)

        assert response["allowed"] is True
        if decision.stamps is None:
            assert patch == []
            continue
        for field, stamps in (("labels", decision.stamps.labels), ("annotations", decision.stamps.annotations)):
            ours = {
                key.removeprefix("workload-stamp.io/"): value
                for key, value in (stored["metadata"].get(field) or {}).items()
                if key.startswith("workload-stamp.io/")
            }
            assert stamps == ours, f"{case.title}: {step.what}"
        again = orjson.loads(admit(replace(review, obj=stored), lineage, catalog, POLICY).body)["response"]
        assert "patch" not in again, f"{case.title}: {step.what}"
