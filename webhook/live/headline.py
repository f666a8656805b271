"""One word for several statuses that hold at once.

The vocabulary allows several; a row, a filter and a metric need the one that tells most.
"""

from collections.abc import Sequence

from catalog.definition import Status

AT_REST = frozenset({Status.COMPLETED, Status.FAILED, Status.SUSPENDED})
"""Statuses of a workload that asks for nothing now."""

_ALIVE = frozenset({Status.RUNNING, Status.INITIALIZING, Status.RESUMING, Status.DEGRADED})


def headline(statuses: Sequence[Status]) -> Status:
    """The first that holds, in the vocabulary's order; but degraded for what is, unless it rests or has ended."""
    first = statuses[0]
    return Status.DEGRADED if Status.DEGRADED in statuses and first in _ALIVE else first
