"""Objects as stored while their controllers ran: the shared vocabulary says what the observer saw."""

import re
from pathlib import Path

import orjson
import pytest

from catalog.definition import Status
from catalog.status import statuses
from tests.conftest import SHARED
from tests.golden.cases import packaged_catalog
from webhook.lineage import kind_named

pytestmark = pytest.mark.shared

FILES = tuple(sorted((SHARED / "recordings").glob("*/*/status/*.json")))

UNDER_WAY = {Status.INITIALIZING, Status.RUNNING, Status.DEGRADED}
PAUSED = {Status.SUSPENDED, Status.SUSPENDING}

HEADLINES: dict[str, set[Status]] = {
    "created": {Status.INITIALIZING, *PAUSED},
    "failed": {Status.FAILED},
    "leader-done": {Status.RUNNING},
    "pending": {Status.INITIALIZING},
    "pods-created": {Status.INITIALIZING},
    "restarted": {Status.RUNNING},
    "resumed": {Status.RUNNING},
    # Some were stored before the controller had counted its ready pods.
    "running": UNDER_WAY,
    "scaled": {Status.RUNNING},
    "succeeded": {Status.COMPLETED},
    "suspended": {Status.SUSPENDED},
    "suspended-again": {Status.SUSPENDED},
    "training": {Status.RUNNING},
    "workers-running": {Status.RUNNING},
}
"""The observer's word for a moment → the headlines that are right for it."""


def _moment(path: Path) -> str:
    return re.sub(r"^\d+-", "", path.stem)


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if _moment(path) in HEADLINES],
    ids=lambda path: "/".join(path.parts[-4:-2]) + f"/{path.stem}",
)
def test_status_is_what_the_observer_saw(path: Path) -> None:
    """The first status that matches is the moment's, for every kind that is described."""
    obj = orjson.loads(path.read_bytes())
    kind = kind_named(obj["apiVersion"], obj["kind"])
    compiled = packaged_catalog().find(kind) if kind is not None else None
    if compiled is None:
        pytest.skip("not described")

    assert statuses(compiled, obj)[0] in HEADLINES[_moment(path)]
