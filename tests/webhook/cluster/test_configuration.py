"""The webhook configuration follows from definitions and from what is served; foreign additions are no drift."""

import copy
from dataclasses import replace
from typing import Any

import pytest

from catalog import load
from catalog.library import Catalog, CompiledDefinition
from webhook.cluster.configuration import (
    Reach,
    drifted,
    root_rules,
    webhook_configuration,
    with_foreign_terms,
    with_present_bundle,
)
from webhook.cluster.discovery import Resource

REACH = Reach(
    namespace="stamps", service="stamp", url=None, ca_bundle=b"PEM", timeout=3, prefix="stamps.example.com",
    excluded_namespaces=("kube-system", "cni"), opt_in=False,
)  # fmt: skip
CATALOG = Catalog.of([CompiledDefinition(definition) for definition in load.packaged().definitions])


def served(group: str, kind: str, plural: str, *versions: str, namespaced: bool = True) -> Resource:
    """A kind as discovery tells of it."""
    return Resource(
        group=group, version=versions[0], kind=kind, plural=plural, namespaced=namespaced, versions=versions,
        verbs=frozenset(("get", "list", "watch")),
    )  # fmt: skip


SERVED = {
    (each.group, each.kind): each
    for each in (
        served("", "Pod", "pods", "v1"),
        served("batch", "Job", "jobs", "v1"),
        served("jobset.x-k8s.io", "JobSet", "jobsets", "v1beta1", "v1alpha2"),
        served("", "ConfigMap", "configmaps", "v1"),
    )
}
CONFIGURATION = webhook_configuration(CATALOG, SERVED, REACH)
PODS, ROOTS = CONFIGURATION["webhooks"]


@pytest.mark.parametrize("webhook", [PODS, ROOTS], ids=["pods", "roots"])
def test_a_webhook_of_ours_harms_nobody(webhook: dict[str, Any]) -> None:
    """It fails open and quickly, has no side effects, is called again when it has to be, and opts out by label."""
    assert webhook["failurePolicy"] == "Ignore"
    assert webhook["timeoutSeconds"] == 3
    assert webhook["sideEffects"] == "None"
    assert webhook["reinvocationPolicy"] == "IfNeeded"
    assert webhook["matchPolicy"] == "Equivalent"
    assert webhook["admissionReviewVersions"] == ["v1"]
    terms = webhook["namespaceSelector"]["matchExpressions"]
    ignored = {"key": "stamps.example.com/ignore", "operator": "NotIn", "values": ["true"]}
    assert {
        "key": "kubernetes.io/metadata.name",
        "operator": "NotIn",
        "values": ["cni", "kube-system", "stamps"],
    } in terms
    assert ignored in terms
    assert webhook["objectSelector"]["matchExpressions"] == [ignored]


def test_pods_are_asked_about_at_their_creation_only() -> None:
    """Never an update, never a subresource such as a binding."""
    assert PODS["rules"] == [
        {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "resources": ["pods"],
            "operations": ["CREATE"],
            "scope": "Namespaced",
        }
    ]


def test_described_kinds_that_are_served_have_a_rule_each() -> None:
    """At the version of the definition, with creation and update; what is not served or not described has none."""
    rules = root_rules(CATALOG, SERVED)
    assert [(rule["resources"], rule["apiVersions"], rule["operations"]) for rule in rules] == [
        (["jobs"], ["v1"], ["CREATE", "UPDATE"]),
        (["jobsets"], ["v1alpha2"], ["CREATE", "UPDATE"]),
    ]


def test_without_a_described_kind_only_pods_are_asked_about() -> None:
    """A webhook without rules would be refused."""
    assert len(webhook_configuration(Catalog.of(), SERVED, REACH)["webhooks"]) == 1


def test_a_service_or_an_address() -> None:
    """A URL takes the Service's place."""
    assert PODS["clientConfig"]["service"] == {"namespace": "stamps", "name": "stamp", "path": "/mutate", "port": 443}
    by_url = webhook_configuration(CATALOG, SERVED, replace(REACH, url="https://127.0.0.1:1/mutate"))
    assert by_url["webhooks"][0]["clientConfig"] == {"url": "https://127.0.0.1:1/mutate", "caBundle": "UEVN"}


def test_opting_in_takes_a_label() -> None:
    """Then a namespace without it is left alone."""
    terms = webhook_configuration(CATALOG, SERVED, replace(REACH, opt_in=True))["webhooks"][0]["namespaceSelector"]
    assert {"key": "stamps.example.com/stamp", "operator": "In", "values": ["true"]} in terms["matchExpressions"]


def test_defaults_and_bookkeeping_are_no_drift() -> None:
    """What the API server fills in, and what others have added to the metadata, is none of ours."""
    present = copy.deepcopy(CONFIGURATION)
    present["metadata"] |= {
        "uid": "u",
        "generation": 3,
        "annotations": {**CONFIGURATION["metadata"]["annotations"], "x": "y"},
    }
    present["webhooks"][0]["clientConfig"]["service"]["port"] = 443
    present["webhooks"][0]["namespaceSelector"]["matchExpressions"].reverse()
    assert not drifted(present, CONFIGURATION)


def test_a_foreign_term_is_kept_and_a_changed_one_of_ours_is_not() -> None:
    """Told apart by the key that a term is about."""
    theirs = {"key": "control-plane", "operator": "DoesNotExist"}
    present = copy.deepcopy(CONFIGURATION)
    terms = present["webhooks"][0]["namespaceSelector"]["matchExpressions"]
    terms[0] = {**terms[0], "values": ["kube-system"]}
    terms.append(theirs)
    assert drifted(present, CONFIGURATION)

    merged = with_foreign_terms(CONFIGURATION, present)["webhooks"][0]["namespaceSelector"]["matchExpressions"]

    assert merged == [*PODS["namespaceSelector"]["matchExpressions"], theirs]


def test_an_injected_bundle_is_carried_over_where_we_have_none() -> None:
    """cert-manager's; our own always wins."""
    present = copy.deepcopy(CONFIGURATION)
    for webhook in present["webhooks"]:
        webhook["clientConfig"]["caBundle"] = "aW5qZWN0ZWQ="
    ours = with_present_bundle(CONFIGURATION, present)
    theirs = with_present_bundle(webhook_configuration(CATALOG, SERVED, replace(REACH, ca_bundle=b"")), present)
    assert ours == CONFIGURATION
    assert {webhook["clientConfig"]["caBundle"] for webhook in theirs["webhooks"]} == {"aW5qZWN0ZWQ="}
