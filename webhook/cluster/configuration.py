"""The MutatingWebhookConfiguration as it should be: which objects the API server sends us, and how.

A pure function of the definitions in force, of what is served, and of the operator's wishes; `registration` brings
the cluster to it. The reason for each setting stands beside it.
"""

from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from catalog.definition import JsonObject
from catalog.library import Catalog
from webhook.cluster.discovery import Resource
from webhook.stamps import IGNORE_KEY

CONTRACT_VERSION = "v1"
"""The version of the stamp contract, written on the configuration."""

MANAGED_BY = "workload-stamp"
NAME = "zz-workload-stamp"
"""Configurations are called in the order of their names: the last sees what the frameworks' own webhooks added."""

NAMESPACE_NAME = "kubernetes.io/metadata.name"
OPT_IN_KEY = "stamp"

NOT_DELETED = {"name": "not-being-deleted", "expression": "!has(object.metadata.deletionTimestamp)"}
NOT_MIRRORED = {
    "name": "no-mirror-pod",
    "expression": "!('kubernetes.io/config.mirror' in object.metadata.?annotations.orValue({}))",
}
NOT_OWNED_UPDATE = {
    "name": "no-update-of-owned",
    "expression": (
        "request.operation == 'CREATE' || "
        "!object.metadata.?ownerReferences.orValue([]).exists(r, r.?controller.orValue(false))"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How the API server reaches us, and where it is to call us.

    `url` is used instead of the Service when it is given; `timeout` in seconds, `ca_bundle` PEM.
    """

    namespace: str
    service: str
    url: str | None
    ca_bundle: bytes
    timeout: int
    prefix: str
    excluded_namespaces: tuple[str, ...]
    opt_in: bool


def webhook_configuration(catalog: Catalog, served: Mapping[tuple[str, str], Resource], reach: Reach) -> JsonObject:
    """The whole configuration; kinds that are not served are left out."""
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {
            "name": NAME,
            "labels": {"app.kubernetes.io/name": "workload-stamp", "app.kubernetes.io/managed-by": MANAGED_BY},
            "annotations": {
                f"{reach.prefix}/contract": CONTRACT_VERSION,
                # AKS adds selector terms of its own unless told not to, and a controller that insists would never end.
                "admissions.enforcer/disabled": "true",
            },
        },
        "webhooks": [
            _webhook(f"pods.{reach.prefix}", [_POD_RULE], [NOT_DELETED, NOT_MIRRORED], reach),
            *_root_webhooks(catalog, served, reach),
        ],
    }


_POD_RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "resources": ["pods"],
    "operations": ["CREATE"],
    "scope": "Namespaced",
}


def _root_webhooks(catalog: Catalog, served: Mapping[tuple[str, str], Resource], reach: Reach) -> Iterable[JsonObject]:
    rules = root_rules(catalog, served)
    if rules:
        yield _webhook(f"roots.{reach.prefix}", rules, [NOT_DELETED, NOT_OWNED_UPDATE], reach)


def root_rules(catalog: Catalog, served: Mapping[tuple[str, str], Resource]) -> list[JsonObject]:
    """One rule for each described and served kind, pods aside: creation and update, never a subresource."""
    rules = []
    for group, kind in sorted(catalog.by_kind):
        resource = served.get((group, kind))
        if resource is None or (group, kind) == ("", "Pod"):
            continue
        defined = [compiled.definition.describes.version for compiled in catalog.by_kind[group, kind]]
        versions = sorted(version for version in defined if version in resource.versions)
        rules.append(
            {
                "apiGroups": [group],
                "apiVersions": versions or [resource.version],
                "resources": [resource.plural],
                "operations": ["CREATE", "UPDATE"],
                "scope": "Namespaced" if resource.namespaced else "Cluster",
            }
        )
    return rules


def _webhook(name: str, rules: list[JsonObject], conditions: list[Mapping[str, str]], reach: Reach) -> dict[str, Any]:
    ignore = f"{reach.prefix}/{IGNORE_KEY}"
    return {
        "name": name,
        "admissionReviewVersions": ["v1"],
        "clientConfig": _client(reach),
        # A stamp is an improvement, never a gate: what we cannot answer is admitted as it is.
        "failurePolicy": "Ignore",
        # All webhooks of a request share its 34 s (kubernetes/kubernetes#128162); ours takes little of them.
        "timeoutSeconds": reach.timeout,
        "matchPolicy": "Equivalent",
        # A webhook after us may change what our stamps follow from; twice is once.
        "reinvocationPolicy": "IfNeeded",
        "sideEffects": "None",
        "namespaceSelector": {"matchExpressions": _namespace_terms(reach)},
        "objectSelector": {"matchExpressions": [{"key": ignore, "operator": "NotIn", "values": ["true"]}]},
        "matchConditions": [dict(condition) for condition in conditions],
        "rules": rules,
    }


def _client(reach: Reach) -> JsonObject:
    bundle = {"caBundle": b64encode(reach.ca_bundle).decode()} if reach.ca_bundle else {}
    if reach.url is not None:
        return {"url": reach.url, **bundle}
    service = {"namespace": reach.namespace, "name": reach.service, "path": "/mutate", "port": 443}
    return {"service": service, **bundle}


def _namespace_terms(reach: Reach) -> list[JsonObject]:
    excluded = sorted({reach.namespace, *reach.excluded_namespaces})
    terms: list[JsonObject] = [
        {"key": NAMESPACE_NAME, "operator": "NotIn", "values": excluded},
        {"key": f"{reach.prefix}/{IGNORE_KEY}", "operator": "NotIn", "values": ["true"]},
    ]
    if reach.opt_in:
        terms.append({"key": f"{reach.prefix}/{OPT_IN_KEY}", "operator": "In", "values": ["true"]})
    return terms


def drifted(present: JsonObject, wanted: JsonObject) -> bool:
    """Whether the configuration in the cluster lacks anything of the wanted one.

    Only what we write is compared: the API server's defaults and other writers' additions are none of ours.
    """
    return not _covers(present.get("webhooks"), wanted["webhooks"]) or not _covers(
        present.get("metadata"), wanted["metadata"]
    )


def _covers(present: Any, wanted: Any) -> bool:
    """Whether `present` has all of `wanted`: maps by key, selector terms in any order with others between them."""
    if isinstance(wanted, dict):
        return isinstance(present, dict) and all(_covers(present.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list):
        if not isinstance(present, list):
            return False
        if all(isinstance(item, dict) and "operator" in item for item in wanted):
            return all(item in present for item in wanted)
        return len(present) == len(wanted) and all(map(_covers, present, wanted))
    return bool(present == wanted)


def with_foreign_terms(wanted: JsonObject, present: JsonObject) -> JsonObject:
    """The wanted configuration with the selector terms that others have added to the present one."""
    kept = {webhook.get("name"): webhook for webhook in present.get("webhooks") or ()}
    return {
        **wanted,
        "webhooks": [_with_terms(webhook, kept.get(webhook["name"]) or {}) for webhook in wanted["webhooks"]],
    }


def _with_terms(webhook: JsonObject, present: JsonObject) -> JsonObject:
    merged = dict(webhook)
    for selector in ("namespaceSelector", "objectSelector"):
        ours = webhook[selector]["matchExpressions"]
        keys = {term["key"] for term in ours}
        theirs = (present.get(selector) or {}).get("matchExpressions") or ()
        merged[selector] = {"matchExpressions": [*ours, *(term for term in theirs if term.get("key") not in keys)]}
    return merged


def with_present_bundle(wanted: JsonObject, present: JsonObject) -> JsonObject:
    """The wanted configuration with the CA bundles that somebody else (cert-manager) has put into the present one."""
    bundles = {each.get("name"): each["clientConfig"].get("caBundle") for each in present.get("webhooks") or ()}
    return {
        **wanted,
        "webhooks": [
            {**webhook, "clientConfig": {"caBundle": bundles[webhook["name"]], **webhook["clientConfig"]}}
            if bundles.get(webhook["name"])
            else webhook
            for webhook in wanted["webhooks"]
        ],
    }
