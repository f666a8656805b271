"""Which namespaces the webhook stamps in, as its registration in the cluster says; without one, by its defaults."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from catalog.definition import JsonObject
from webhook.live.snapshot import map_at, maps_at, text_at
from webhook.stamps import IGNORE_KEY

NEVER_STAMPED = frozenset({"kube-system", "workload-stamp-system"})
"""Namespaces left out unless the registration says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The terms of the registration's namespace selector, and the labels of namespaces.

    A namespace whose labels could not be read counts as stamped in unless its name alone rules it out.
    """

    terms: Sequence[JsonObject]
    labels: Mapping[str, Mapping[str, str]]

    def includes(self, namespace: str) -> bool:
        """Whether objects there are stamped; those of no namespace always are."""
        if not namespace:
            return True
        labels = {**self.labels.get(namespace, {}), "kubernetes.io/metadata.name": namespace}
        known = namespace in self.labels
        return all(_holds(term, labels) for term in self.terms if known or term.get("key") in labels)


def scope_of(registration: JsonObject | None, namespaces: Iterable[JsonObject], prefix: str) -> Scope:
    """The scope by a MutatingWebhookConfiguration of ours (None when there is none, or it may not be read)."""
    labels = {
        text_at(each, "metadata", "name"): {
            key: value for key, value in map_at(each, "metadata", "labels").items() if isinstance(value, str)
        }
        for each in namespaces
    }
    pods = None if registration is None else next(iter(maps_at(registration, "webhooks")), None)
    terms = _default_terms(prefix) if pods is None else list(maps_at(pods, "namespaceSelector", "matchExpressions"))
    return Scope(terms=terms, labels=labels)


def _default_terms(prefix: str) -> list[JsonObject]:
    return [
        {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": sorted(NEVER_STAMPED)},
        {"key": f"{prefix}/{IGNORE_KEY}", "operator": "NotIn", "values": ["true"]},
    ]


def _holds(term: JsonObject, labels: Mapping[str, str]) -> bool:
    """One requirement of a label selector (apimachinery, pkg/labels/selector.go): NotIn holds for an absent key."""
    key, values = text_at(term, "key"), term.get("values") or ()
    match term.get("operator"):
        case "In":
            return labels.get(key) in values
        case "NotIn":
            return labels.get(key) not in values
        case "Exists":
            return key in labels
        case _:
            return key not in labels
