"""One word for several statuses."""

import pytest

from catalog.definition import Status
from webhook.live.headline import headline


@pytest.mark.parametrize(
    "statuses, word",
    [
        ([Status.RUNNING], Status.RUNNING),
        ([Status.RUNNING, Status.DEGRADED], Status.DEGRADED),
        ([Status.INITIALIZING, Status.DEGRADED], Status.DEGRADED),
        ([Status.FAILED, Status.DEGRADED], Status.FAILED),
        ([Status.SUSPENDED, Status.DEGRADED], Status.SUSPENDED),
        ([Status.RUNNING, Status.COMPLETED], Status.RUNNING),
        ([Status.UNDEFINED], Status.UNDEFINED),
    ],
)
def test_the_word_that_tells_most_is_the_headline(statuses: list[Status], word: Status) -> None:
    """The first that holds; degraded before running, not before an end."""
    assert headline(statuses) is word
