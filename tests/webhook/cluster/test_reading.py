"""A cluster read once: in pages and at once, with what may not be read noted and owners followed."""

from typing import Any

import pytest
from aiohttp import web

from tests.golden.cases import packaged_catalog
from tests.webhook.cluster.fake_api_server import FakeApiServer
from tests.webhook.live.made_up import MadeUp, Object
from webhook.cluster.client import ApiError, ApiServer
from webhook.cluster.discovery import Discovery
from webhook.cluster.reading import Progress, Reader, Unauthorised, Wanted
from webhook.live.snapshot import Snapshot

PATHS = {
    "Pod": "/api/v1/namespaces/{}/pods/{}",
    "Job": "/apis/batch/v1/namespaces/{}/jobs/{}",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments/{}",
    "ReplicaSet": "/apis/apps/v1/namespaces/{}/replicasets/{}",
    "JobSet": "/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets/{}",
}


@pytest.fixture
async def fake(fake: FakeApiServer) -> FakeApiServer:
    """One that serves JobSets and nodes too."""
    fake.kinds += [
        ("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets", True),
        ("", "v1", "Node", "nodes", False),
        ("scheduling.run.ai", "v2alpha2", "PodGroup", "podgroups", True),
    ]
    return fake


def store(fake: FakeApiServer, *objects: Object) -> None:
    """Put objects where they belong."""
    for obj in objects:
        metadata = obj["metadata"]
        fake.put(PATHS[obj["kind"]].format(metadata["namespace"], metadata["name"]), obj)


async def reader(server: ApiServer, progress: list[tuple[int, int]] | None = None) -> Reader:
    """A reader with the packaged definitions."""
    discovery = Discovery(server)
    await discovery.refresh()
    seen = progress if progress is not None else []

    def note(each: Progress) -> None:
        seen.append((each.read, each.coming))

    return Reader(server, discovery, packaged_catalog(), prefix="workload-stamp.io", on_progress=note)


def names(snapshot: Snapshot) -> tuple[set[str], set[str], set[str]]:
    """Names of objects, of owners and of pods."""
    parts = (snapshot.objects, snapshot.owners, snapshot.pods)
    objects, owners, pods = ({obj["metadata"]["name"] for obj in part} for part in parts)
    return objects, owners, pods


async def test_everything_described_is_read_with_its_kind(fake: FakeApiServer, server: ApiServer) -> None:
    """Items of lists carry no kind; whoever looks at them gets it."""
    cluster = MadeUp()
    cluster.pods_of_jobset(cluster.jobset())
    store(fake, *cluster.objects, *cluster.pods)
    for obj in fake.objects.values():
        obj.pop("kind")
        obj.pop("apiVersion")

    found = await (await reader(server)).snapshot(Wanted())

    assert sorted(obj["kind"] for obj in found.objects) == ["Job", "Job", "Job", "JobSet"]
    assert {(pod["apiVersion"], pod["kind"]) for pod in found.pods} == {("v1", "Pod")}
    assert (found.nodes, found.groups, found.unread) == (None, (), ())


async def test_lists_come_in_pages_and_tell_how_far_they_are(fake: FakeApiServer, server: ApiServer) -> None:
    """Each page is counted."""
    fake.page = 2
    cluster = MadeUp()
    for number in range(5):
        cluster.pod(f"p-{number}")
    store(fake, *cluster.pods)
    progress: list[tuple[int, int]] = []

    found = await (await reader(server, progress)).snapshot(Wanted(kinds=frozenset()))

    assert len(found.pods) == 5
    assert max(read for read, _ in progress) == 5
    assert fake.count("GET", "/api/v1/pods.*continue") == 2


async def test_what_may_not_be_listed_is_noted_and_the_rest_shown(fake: FakeApiServer, server: ApiServer) -> None:
    """A user who may read Jobs and not JobSets."""
    cluster = MadeUp()
    cluster.add("Job", "j")
    store(fake, *cluster.objects)
    fake.faults.append(lambda request: (403, "Forbidden") if "jobsets" in request.path else None)

    found = await (await reader(server)).snapshot(Wanted())

    assert names(found)[0] == {"j"}
    assert [(each.kind, each.reason) for each in found.unread] == [("JobSet", "may not be listed")]


async def test_expired_credentials_end_everything(fake: FakeApiServer, server: ApiServer) -> None:
    """Nothing is shown as if it were all there is."""
    reading = await reader(server)
    fake.faults.append(lambda _: (401, "Unauthorized"))

    with pytest.raises(Unauthorised, match="does not accept the credentials"):
        await reading.snapshot(Wanted())


async def test_a_list_that_expires_is_begun_anew(fake: FakeApiServer, server: ApiServer) -> None:
    """A slow reader whose continuation the API server has forgotten."""
    fake.page = 1
    cluster = MadeUp()
    cluster.pod("a")
    cluster.pod("b")
    store(fake, *cluster.pods)
    expired: list[str] = []

    def expire(request: web.BaseRequest) -> tuple[int, str] | None:
        if "continue" not in request.query or expired:
            return None
        expired.append(request.path)
        return 410, "Expired"

    fake.faults.append(expire)

    found = await (await reader(server)).snapshot(Wanted(kinds=frozenset()))

    assert names(found)[2] == {"a", "b"}


async def test_a_server_that_keeps_failing_is_noted(fake: FakeApiServer, server: ApiServer) -> None:
    """After a few attempts, with its own words."""
    fake.faults.append(lambda request: (503, "Unavailable") if "jobsets" in request.path else None)

    found = await (await reader(server)).snapshot(Wanted())

    assert [each.reason for each in found.unread] == ["could not be listed: Unavailable"]
    assert fake.count("GET", "jobsets") == 3


async def test_old_replica_sets_are_read_as_metadata(fake: FakeApiServer, server: ApiServer) -> None:
    """Those of a Deployment lead the way up; one with a life of its own is read whole."""
    cluster = MadeUp()
    deployment = cluster.add("Deployment", "web", {"template": {}})
    part = cluster.add("ReplicaSet", "web-1", {"template": {}}, owner=deployment)
    alone = cluster.add("ReplicaSet", "alone", {"template": {}})
    store(fake, deployment, part, alone)

    objects, owners, _ = names(await (await reader(server)).snapshot(Wanted()))

    assert (objects, owners) == ({"web", "alone"}, {"web-1"})


async def test_many_replica_sets_of_their_own_are_listed_whole(fake: FakeApiServer, server: ApiServer) -> None:
    """One list is cheaper than a request for each."""
    cluster = MadeUp()
    for number in range(21):
        cluster.add("ReplicaSet", f"alone-{number}", {"template": {}})
    store(fake, *cluster.objects)

    objects, _, _ = names(await (await reader(server)).snapshot(Wanted()))

    assert len(objects) == 21
    assert fake.count("GET", "replicasets/") == 0


async def test_owners_of_pods_without_stamps_are_followed(fake: FakeApiServer, server: ApiServer) -> None:
    """Level by level, only as far as is needed, and only those."""
    cluster = MadeUp()
    cluster.pods_of_jobset(cluster.jobset())
    cluster.jobset("other")
    store(fake, *cluster.objects, *cluster.pods)

    objects, _, _ = names(await (await reader(server)).snapshot(Wanted(kinds=frozenset())))

    assert objects == {"train", "train-leader-0", "train-workers-0", "train-workers-1"}


async def test_owners_of_stamped_pods_are_not_asked_for(fake: FakeApiServer, server: ApiServer) -> None:
    """Their stamps say all: with the webhook, pods cost one list."""
    cluster = MadeUp()
    cluster.pods_of_jobset(cluster.jobset())
    cluster.stamp()
    store(fake, *cluster.objects, *cluster.pods)

    objects, owners, pods = names(await (await reader(server)).snapshot(Wanted(kinds=frozenset())))

    assert (objects, owners) == (set(), set())
    assert len(pods) == 3


async def test_an_owner_that_is_gone_is_sought_once(fake: FakeApiServer, server: ApiServer) -> None:
    """And a kind that is not served not at all."""
    elsewhere = MadeUp()
    cluster = MadeUp()
    cluster.pod("a", owner=elsewhere.add("Job", "gone"))
    cluster.pod("b", owner=elsewhere.add("RayCluster", "gone"))
    store(fake, *cluster.pods)

    found = await (await reader(server)).snapshot(Wanted(kinds=frozenset()))

    assert names(found)[0] == set()
    assert fake.count("GET", "/jobs/gone") == 1
    assert fake.count("GET", "ray.io") == 0


async def test_many_owners_of_one_kind_are_listed(fake: FakeApiServer, server: ApiServer) -> None:
    """One list is cheaper than a request for each."""
    cluster = MadeUp()
    for number in range(21):
        cluster.pod(f"p-{number}", owner=cluster.add("Job", f"j-{number}", {"template": {}}))
    store(fake, *cluster.objects, *cluster.pods)

    found = await (await reader(server)).snapshot(Wanted(kinds=frozenset()))

    assert len(found.objects) == 21
    assert fake.count("GET", "/jobs/") == 0


async def test_nodes_and_groups_are_read_when_wanted(fake: FakeApiServer, server: ApiServer) -> None:
    """Nodes may be forbidden, which is not the same as none."""
    fake.put("/api/v1/nodes/node-0", {"status": {}})
    fake.put("/apis/scheduling.run.ai/v2alpha2/namespaces/team-a/podgroups/pg", {"spec": {"minMember": 3}})
    wanted = Wanted(kinds=frozenset(), nodes=True, groups=True)

    read = await (await reader(server)).snapshot(wanted)
    fake.faults.append(lambda request: (403, "Forbidden") if "nodes" in request.path else None)
    refused = await (await reader(server)).snapshot(wanted)

    assert read.nodes is not None
    assert [node["metadata"]["name"] for node in read.nodes] == ["node-0"]
    assert [group["kind"] for group in read.groups] == ["PodGroup"]
    assert refused.nodes is None
    assert [each.kind for each in refused.unread] == ["Node"]


async def test_one_namespace_is_read_without_rights_on_others(fake: FakeApiServer, server: ApiServer) -> None:
    """No list reaches beyond it."""
    await (await reader(server)).snapshot(Wanted(namespace="team-a"))

    lists = [path for method, path in fake.requests if method == "GET" and "limit=" in path]
    assert lists
    assert all("/namespaces/team-a/" in path for path in lists)


async def test_the_kinds_that_objects_are_made_of_come_along(server: ApiServer, fake: FakeApiServer) -> None:  # noqa: ARG001
    """A TrainJob's numbers are its JobSet's; a Job of a CronJob is needed to find its pods."""
    reading = await reader(server)

    assert {("batch", "CronJob"), ("batch", "Job")} <= reading.with_parts([("batch", "CronJob")])
    assert ("jobset.x-k8s.io", "JobSet") in reading.with_parts([("trainer.kubeflow.org", "TrainJob")])


async def test_an_object_that_is_not_there_is_none(fake: FakeApiServer, server: ApiServer) -> None:
    """Any other answer is an error."""
    reading = await reader(server)
    resource = Discovery(server)
    await resource.refresh()
    jobs = resource.known("batch", "Job")
    assert jobs is not None

    assert await reading.get(jobs, "team-a", "absent") is None
    fake.faults.append(lambda _: (403, "Forbidden"))
    with pytest.raises(ApiError):
        await reading.get(jobs, "team-a", "absent")


async def test_a_kind_is_known_by_any_of_its_words(fake: FakeApiServer, server: ApiServer) -> None:
    """Kind, plural, singular and short names in any case; with the group, and with the version too."""
    assert fake.kinds
    discovery = Discovery(server)
    await discovery.refresh()
    jobset = discovery.known("jobset.x-k8s.io", "JobSet")
    assert jobset is not None

    def called(*words: str) -> list[Any]:
        return [word for word in words if jobset.is_called(word)]

    good = ["jobset", "JobSet", "jobsets", "jobsets.jobset.x-k8s.io", "jobset.v1alpha2.jobset.x-k8s.io"]
    assert called(*good, "job", "jobsets.batch", "") == good
