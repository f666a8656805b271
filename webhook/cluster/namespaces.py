"""Which namespaces are ours to stamp in, for upkeep: admission's selectors are the API server's to apply."""

from catalog.definition import JsonObject
from webhook.cluster.configuration import OPT_IN_KEY
from webhook.stamps import IGNORE_KEY


class Namespaces:
    """A sink for the watch of namespaces (their metadata is enough)."""

    def __init__(self, own: str, excluded: tuple[str, ...], prefix: str, *, opt_in: bool) -> None:
        self._excluded = frozenset({own, *excluded})
        self._ignore = f"{prefix}/{IGNORE_KEY}"
        self._opt_in_key = f"{prefix}/{OPT_IN_KEY}"
        self._opt_in = opt_in
        self._labels: dict[str, dict[str, str]] = {}

    def in_scope(self, namespace: str) -> bool:
        """Whether objects there are stamped; never before the namespace has been seen. Cluster scope always is."""
        if not namespace:
            return True
        labels = self._labels.get(namespace)
        if labels is None or namespace in self._excluded or labels.get(self._ignore) == "true":
            return False
        return not self._opt_in or labels.get(self._opt_in_key) == "true"

    def seen(self, obj: JsonObject) -> None:
        """A namespace as it is now."""
        self._labels[obj["metadata"]["name"]] = obj["metadata"].get("labels") or {}

    def gone(self, obj: JsonObject) -> None:
        """A namespace was deleted."""
        self._labels.pop(obj["metadata"]["name"], None)

    def listed(self, uids: frozenset[str]) -> None:
        """A list was read; a namespace that is missing from it holds no objects."""
