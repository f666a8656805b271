"""Reviews of real controllers, admitted with their recorded owners: the stamps equal the pods that were counted."""

import pytest

from tests.conftest import SHARED
from tests.golden.cases import packaged_catalog
from tests.replay.comparison import UNKNOWN, Replay, differences
from tests.replay.exceptions import EXCEPTIONS, NOT_PROMISED, UNRESOLVED
from tests.replay.recordings import Recording, recordings

pytestmark = pytest.mark.shared

RECORDINGS = tuple(recordings(SHARED / "recordings"))

each_recording = pytest.mark.parametrize("recording", RECORDINGS, ids=lambda recording: recording.name)


@pytest.fixture
def replay(recording: Recording) -> Replay:
    """The recording under the packaged catalogue."""
    catalog = packaged_catalog()
    if recording.root_kind in NOT_PROMISED:
        pytest.skip(NOT_PROMISED[recording.root_kind])
    if not catalog.describes(*recording.root_kind):
        pytest.skip("no definition yet")
    return Replay(recording=recording, catalog=catalog)


@each_recording
def test_stamps_equal_what_was_counted(replay: Replay) -> None:
    """Roles, pods, GPUs and gangs of the stamps are those of the pods that the framework's controller made."""
    unknown, excepted = UNRESOLVED.get(replay.recording.name, {}), EXCEPTIONS.get(replay.recording.name, {})
    found = differences(replay)
    unjustified = [
        f"{check}: {sentence}"
        for check, sentences in found.items()
        for sentence in sentences
        if check not in excepted and not (check in unknown and sentence.startswith(UNKNOWN))
    ]

    assert "\n".join(unjustified) == ""
    assert (unknown.keys() | excepted.keys()) - found.keys() == set(), "entries that are not needed any more"


@each_recording
def test_every_review_is_admitted(replay: Replay) -> None:
    """Whatever a controller sends is allowed, with nothing left to evaluate elsewhere."""
    recording = replay.recording
    for review in (recording.root, *recording.others, *recording.pods, *recording.before_other_webhooks):
        assert replay.is_admitted(review), review.name


def test_every_recorded_kind_is_described() -> None:
    """No kind that was recorded as a root is without a definition, but for those that nobody promised."""
    kinds = {recording.root_kind for recording in RECORDINGS} - NOT_PROMISED.keys()

    assert sorted(kind for kind in kinds if not packaged_catalog().describes(*kind)) == []


def test_exceptions_name_recordings() -> None:
    """Every exception stands for a recording that is there."""
    assert EXCEPTIONS.keys() | UNRESOLVED.keys() <= {recording.name for recording in RECORDINGS}
