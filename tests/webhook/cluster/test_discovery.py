"""What is served is known by group and kind, and not given up for a moment's absence."""

import pytest

from tests.webhook.cluster.fake_api_server import FakeApiServer
from webhook.cluster import discovery as discovery_module
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.discovery import Discovery

RING = ("training.example.com", "v1", "Ring", "rings", True)


@pytest.fixture
async def discovery(server: ApiServer) -> Discovery:
    """One that has read nothing yet."""
    return Discovery(server)


async def test_kinds_are_found_with_their_paths(fake: FakeApiServer, discovery: Discovery) -> None:
    """Plural, scope and version make the path; a cluster-scoped kind has no namespace in it."""
    fake.kinds.append(("example.com", "v1", "Fleet", "fleets", False))
    job, fleet = await discovery.find("batch", "Job"), await discovery.find("example.com", "Fleet")
    assert job is not None
    assert fleet is not None
    assert job.path("team-a", "train") == "/apis/batch/v1/namespaces/team-a/jobs/train"
    assert fleet.path("team-a", "one") == "/apis/example.com/v1/fleets/one"
    assert fake.count("GET", "^/apis$") == 1


async def test_a_new_kind_is_found(fake: FakeApiServer, discovery: Discovery, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its CRD came after the last reading."""
    monkeypatch.setattr(discovery_module, "FRESH_FOR", 0.0)
    assert await discovery.find("training.example.com", "Ring") is None
    fake.kinds.append(RING)
    assert await discovery.find("training.example.com", "Ring") is not None


async def test_a_missing_kind_is_given_up_only_when_it_stays_away(
    fake: FakeApiServer, discovery: Discovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An API server that has just started tells of its custom resources a moment later."""
    fake.kinds.append(RING)
    await discovery.refresh()
    fake.kinds.remove(RING)
    await discovery.refresh()
    assert discovery.known("training.example.com", "Ring") is not None
    assert discovery.doubtful == {("training.example.com", "Ring")}
    fake.kinds.append(RING)
    await discovery.refresh()
    assert not discovery.doubtful

    fake.kinds.remove(RING)
    monkeypatch.setattr(discovery_module, "DOUBT", 0.0)
    await discovery.refresh()
    assert discovery.known("training.example.com", "Ring") is None


async def test_an_aggregated_api_server_that_is_away_takes_no_kind_with_it(
    fake: FakeApiServer, discovery: Discovery, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its group is told to be stale, with no kinds in it, for as long as that lasts."""
    monkeypatch.setattr(discovery_module, "DOUBT", 0.0)
    fake.kinds.append(RING)
    await discovery.refresh()
    fake.stale_groups.add("training.example.com")
    for _ in range(3):
        await discovery.refresh()
    assert discovery.known("training.example.com", "Ring") is not None


async def test_a_reading_that_fails_changes_nothing(fake: FakeApiServer, discovery: Discovery) -> None:
    """What was served is taken to be still."""
    await discovery.refresh()
    fake.faults.append(lambda _: (503, "ServiceUnavailable"))
    with pytest.raises(ApiError):
        await discovery.refresh()
    assert discovery.known("batch", "Job") is not None
