"""Which pods upkeep should give stamps to, told from their metadata alone.

A pod that says itself why it has no id waits for one. A pod that carries nothing of ours was created while we could not
be reached, if it came after our registration; older ones are none of ours to change without being asked.
"""

from collections.abc import Callable

import orjson

from catalog.definition import JsonObject
from catalog.library import Catalog
from webhook.admit import must_be_left_alone_object
from webhook.lineage import controller_reference
from webhook.stamps import IGNORE_KEY

MOST_SKIPPED = 32
"""Sweeps for which a pod is passed over at most that could not be mended so far: 1, 2, 4 …"""


class Unstamped:
    """Tells which pods to look at, and which again. `registered_since` gives the time of our registration, RFC 3339."""

    def __init__(self, prefix: str, registered_since: Callable[[], str | None]) -> None:
        self._prefix = prefix
        self._registered_since = registered_since
        self._waiting: dict[str, tuple[int, int]] = {}

    def is_pod(self, pod: JsonObject, catalog: Catalog) -> bool:
        """Whether a pod without an id should have one."""
        metadata = pod["metadata"]
        if must_be_left_alone_object(pod, self._prefix):
            return False
        text = (metadata.get("annotations") or {}).get(f"{self._prefix}/unresolved")
        if text is not None:
            return _waits_for_id(text)
        return not self._is_stamped(metadata) and self._came_after_us(metadata) and _has_a_workload(pod, catalog)

    def _is_stamped(self, metadata: JsonObject) -> bool:
        keys = [*(metadata.get("labels") or {}), *(metadata.get("annotations") or {})]
        return any(key.startswith(f"{self._prefix}/") and key != f"{self._prefix}/{IGNORE_KEY}" for key in keys)

    def _came_after_us(self, metadata: JsonObject) -> bool:
        since, created = self._registered_since(), metadata.get("creationTimestamp")
        return since is not None and isinstance(created, str) and created > since

    def is_due(self, uid: str) -> bool:
        """Whether it is this pod's turn in this sweep: the more often it was looked at in vain, the rarer."""
        left, last = self._waiting.get(uid, (0, 0))
        if left > 0:
            self._waiting[uid] = (left - 1, last)
            return False
        skipped = min(max(1, last * 2), MOST_SKIPPED)
        self._waiting[uid] = (skipped, skipped)
        return True

    def only(self, uids: set[str]) -> None:
        """A sweep has found these: forget all others."""
        self._waiting = {uid: turns for uid, turns in self._waiting.items() if uid in uids}


def _waits_for_id(text: str) -> bool:
    try:
        reasons = orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return isinstance(reasons, dict) and "workload-id" in reasons


def _has_a_workload(pod: JsonObject, catalog: Catalog) -> bool:
    """Whether there is anybody to ask: its controller is of a kind that is walked through, or it has none."""
    reference = controller_reference(pod)
    if reference is None:
        return catalog.describes("", "Pod")
    return catalog.walks_through(reference.kind.group, reference.kind.kind)
