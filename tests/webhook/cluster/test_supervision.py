"""A task of the cluster room that fails is begun again, and nobody has to wonder why."""

import asyncio
from itertools import pairwise

import pytest

from tests.webhook.cluster.conftest import Witness
from tests.webhook.polling import until
from webhook.cluster import supervision as supervision_module
from webhook.cluster.client import ApiError


@pytest.mark.parametrize(
    "fault,counted", [(KeyError("x"), 1), (ApiError(500, "InternalError", "the cluster's fault"), 0), (None, 0)],
    ids=["ours", "the-clusters", "it-just-ended"],
)  # fmt: skip
async def test_a_task_that_ends_is_begun_again(
    fault: Exception | None, counted: int, witness: Witness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a fault of ours is counted as one; each is told."""
    monkeypatch.setattr(supervision_module, "FIRST_PAUSE", 0.01)
    runs: list[int] = []

    async def work() -> None:
        runs.append(1)
        if len(runs) > 1:
            await asyncio.Event().wait()
        if fault is not None:
            raise fault

    task = asyncio.create_task(witness.supervision.keep("upkeep", work))
    await until(lambda: len(runs) == 2)
    task.cancel()

    assert len(witness.failures) == counted
    assert ("KeyError" in witness.log) == (counted == 1)
    assert ("the cluster's fault" in witness.log) == isinstance(fault, ApiError)


async def test_pauses_grow_while_a_task_keeps_failing(witness: Witness, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails at once each time must not fill the log."""
    monkeypatch.setattr(supervision_module, "FIRST_PAUSE", 0.02)
    runs: list[float] = []

    async def work() -> None:
        runs.append(asyncio.get_running_loop().time())
        raise KeyError

    task = asyncio.create_task(witness.supervision.keep("upkeep", work))
    await until(lambda: len(runs) == 5)
    task.cancel()

    gaps = [later - earlier for earlier, later in pairwise(runs)]
    assert gaps == sorted(gaps)
    assert gaps[-1] >= 0.16


async def test_the_same_sentence_is_told_once(witness: Witness) -> None:
    """A fault that lasts is one line, another one is the next."""
    for sentence in ("away", "away", "back", "away"):
        witness.supervision.tell("server", sentence)
    assert witness.log.count("away") == 2
    assert witness.log.count("back") == 1
