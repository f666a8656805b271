"""Owners are followed to the top, read once, believed only while they may be, and whatever goes wrong has a reason."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog import load
from catalog.library import Catalog, CompiledDefinition
from catalog.resources import AcceleratorPolicy
from catalog.structure import resolve
from tests.webhook.cluster.conftest import Witness
from tests.webhook.cluster.fake_api_server import FakeApiServer
from tests.webhook.polling import until
from webhook.cluster import owner_cache
from webhook.cluster.client import ApiServer
from webhook.cluster.discovery import Discovery
from webhook.cluster.owner_cache import OwnerCache
from webhook.cluster.owners import ClusterOwners
from webhook.cluster.rates import TokenBucket
from webhook.lineage import Lineage, kind_named
from webhook.stamps import Policy

TEAM = "team-a"
JOB = "/apis/batch/v1/namespaces/team-a/jobs/train"
DEPLOYMENT = "/apis/apps/v1/namespaces/team-a/deployments/web"
REPLICA_SET = "/apis/apps/v1/namespaces/team-a/replicasets/web-1"
CATALOG = Catalog.of([CompiledDefinition(definition) for definition in load.packaged().definitions])


def job(parallelism: int = 2, **metadata: Any) -> dict[str, Any]:
    """A Job as it is stored."""
    pod = {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": "1"}}}]}
    spec = {"parallelism": parallelism, "completions": parallelism, "completionMode": "Indexed"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {**spec, "template": {"spec": pod}},
    }


def reference(owner: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """An object's metadata that names its controller."""
    found = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    return {"ownerReferences": [{**found, **changes}]}


def pod_of(owner: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A pod that names this owner, or nearly."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", **reference(owner, **changes)}, "spec": {}}


async def nothing_isolated(*_: object) -> dict[str, Any]:
    """The packaged definitions need no worker."""
    return {}


@pytest.fixture
def make(server: ApiServer, witness: Witness) -> Callable[..., ClusterOwners]:
    """`make(rate=…, burst=…, cache_size=…)`: an owner source of the fake API server."""

    def owners(*, cache_size: int = 100, **limits: Any) -> ClusterOwners:
        return ClusterOwners(
            server,
            Discovery(server),
            OwnerCache(Policy(), witness.metrics, cache_size),
            nothing_isolated,
            witness.metrics,
            supervision=witness.supervision,
            **{"rate": 1000.0, "burst": 1000, **limits},
        )

    return owners


@pytest.fixture
async def owners(make: Callable[..., ClusterOwners]) -> ClusterOwners:
    """One whose watches would tell of every change."""
    owners = make()
    owners.cache.is_followed = lambda _group, _kind: True
    return owners


async def lineage(owners: ClusterOwners, obj: Any, *, namespace: str = TEAM, seconds: float = 2.0) -> Lineage:
    """The owners of an object, known in time."""
    return await owners.lineage(obj, namespace, CATALOG, asyncio.get_running_loop().time() + seconds)


def names(found: Lineage) -> list[str]:
    """The owners' names, nearest first."""
    return [owner.name for owner in found.owners]


async def test_owners_are_followed_to_the_top_and_remembered(fake: FakeApiServer, owners: ClusterOwners) -> None:
    """Pod, ReplicaSet, Deployment: each is read once, the second pod reads nothing."""
    deployment = fake.put(DEPLOYMENT, {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {}})
    replica_set = fake.put(
        REPLICA_SET,
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": reference(deployment), "spec": {}},
    )

    assert names(await lineage(owners, pod_of(replica_set))) == ["web-1", "web"]
    read = len(fake.requests)
    assert names(await lineage(owners, pod_of(replica_set))) == ["web-1", "web"]

    assert len(fake.requests) == read
    assert fake.count("GET", "/replicasets/web-1") == fake.count("GET", "/deployments/web") == 1


async def test_an_owner_is_read_once_for_all_who_wait(fake: FakeApiServer, owners: ClusterOwners) -> None:
    """A thousand pods of a new Job cost one read."""
    train = fake.put(JOB, job())
    found = await asyncio.gather(*(lineage(owners, pod_of(train)) for _ in range(1000)))

    assert all(names(each) == ["train"] for each in found)
    assert fake.count("GET", "/jobs/train") == 1


@pytest.mark.parametrize("is_remembered", [False, True])
@pytest.mark.parametrize(
    "namespace,changes",
    [("team-b", {}), (TEAM, {"name": "other"}), (TEAM, {"kind": "CronJob"})],
    ids=["another-namespace", "another-name", "another-kind"],
)
async def test_a_forged_reference_leads_nowhere(
    *, namespace: str, changes: dict[str, str], is_remembered: bool, fake: FakeApiServer, owners: ClusterOwners
) -> None:
    """Knowing a uid takes nobody into another's workload, whether that one is remembered or not."""
    train = fake.put(JOB, job())
    if is_remembered:
        await lineage(owners, pod_of(train))

    found = await lineage(owners, pod_of(train, **changes), namespace=namespace)

    assert found.broken is not None
    assert found.owners == ()
    assert names(await lineage(owners, pod_of(train))) == ["train"]


async def test_a_forged_reference_answers_for_no_true_one(fake: FakeApiServer, owners: ClusterOwners) -> None:
    """Asked at the same time with the same uid, the true pod still finds its owner."""
    train = fake.put(JOB, job())
    forged, true = await asyncio.gather(
        lineage(owners, pod_of(train), namespace="team-b"), lineage(owners, pod_of(train))
    )

    assert forged.broken is not None
    assert names(true) == ["train"]


@pytest.mark.parametrize(
    "fault,reason",
    [((404, "NotFound"), "not-found"), ((403, "Forbidden"), "forbidden"), ((500, "InternalError"), "unreachable"),
     ((429, "TooManyRequests"), "unreachable"), (5.0, "deadline")],
    ids=["404", "403", "500", "429", "slow"],
)  # fmt: skip
async def test_whatever_goes_wrong_is_a_reason_in_time(
    fault: Any, reason: str, fake: FakeApiServer, owners: ClusterOwners, witness: Witness
) -> None:
    """The owner is unknown, why is told and counted, and there is time left to answer."""
    train = fake.put(JOB, job())
    fake.faults.append(lambda request: fault if "/jobs/" in request.path else None)
    loop = asyncio.get_running_loop()
    begun = loop.time()

    found = await lineage(owners, pod_of(train), seconds=0.5)

    assert loop.time() < begun + 0.5
    assert found.broken is not None
    assert "Job train" in found.broken
    assert witness.metric("lineages_broken_total", reason=reason) == 1


async def test_a_slow_read_serves_the_next_pod(fake: FakeApiServer, owners: ClusterOwners) -> None:
    """The read goes on after the pod that waited for it went without; who comes later finds it remembered."""
    train = fake.put(JOB, job())
    fake.faults.append(lambda request: 0.4 if "/jobs/" in request.path else None)

    assert (await lineage(owners, pod_of(train), seconds=0.3)).broken is not None
    assert names(await lineage(owners, pod_of(train), seconds=2)) == ["train"]

    assert fake.count("GET", "/jobs/train") == 1


async def test_another_object_of_that_name_is_not_the_owner(fake: FakeApiServer, owners: ClusterOwners) -> None:
    """It was deleted and made again: its uid is another."""
    train = fake.put(JOB, job())
    fake.delete(JOB)
    fake.put(JOB, job())

    found = await lineage(owners, pod_of(train))

    assert found.broken == "owner Job train has another uid than the reference"


async def test_a_circle_of_owners_has_no_top(fake: FakeApiServer, owners: ClusterOwners, witness: Witness) -> None:
    """Two objects that own each other are followed once."""
    path = JOB.replace("train", "other")
    one = fake.put(JOB, job())
    other = fake.put(path, job(**reference(one)))
    fake.put(JOB, job(**reference(other)))

    found = await lineage(owners, pod_of(one))

    assert found.broken is not None
    assert witness.metric("lineages_broken_total", reason="cycle") == 1


async def test_more_than_twelve_owners_are_too_many(
    fake: FakeApiServer, owners: ClusterOwners, witness: Witness
) -> None:
    """A chain without end is given up."""
    owner = fake.put(f"{JOB}-0", job())
    for number in range(1, 14):
        owner = fake.put(f"{JOB}-{number}", job(**reference(owner)))

    found = await lineage(owners, pod_of(owner))

    assert len(found.owners) == 12
    assert witness.metric("lineages_broken_total", reason="depth") == 1


async def test_an_unknown_kind_ends_the_walk_unread(fake: FakeApiServer, owners: ClusterOwners) -> None:
    """What nobody described may be anything: it is not even asked for."""
    unknown = {"apiVersion": "example.com/v1", "kind": "Unknown", "metadata": {"name": "x", "uid": "u"}}

    found = await lineage(owners, pod_of(unknown))

    assert found == Lineage()
    assert not fake.requests


async def test_a_kind_that_is_not_served_is_not_looked_for_each_time(
    fake: FakeApiServer, owners: ClusterOwners
) -> None:
    """References are user input: a made-up built-in kind must not make us read what is served again and again."""
    odd = {"apiVersion": "apps/v1", "kind": "Odd", "metadata": {"name": "x", "uid": "u"}}
    for _ in range(20):
        assert (await lineage(owners, pod_of(odd))).broken is not None

    assert fake.count("GET", "^/apis$") == 1


async def test_an_old_api_version_in_a_reference_is_read_as_it_is_served(
    fake: FakeApiServer, owners: ClusterOwners
) -> None:
    """References keep the version they were written with, however old."""
    replica_set = fake.put(REPLICA_SET, {"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": {}})

    found = await lineage(owners, pod_of(replica_set, apiVersion="extensions/v1beta1"))
    assert found == Lineage()  # another group is another kind
    found = await lineage(owners, pod_of(replica_set, apiVersion="apps/v1beta2"))
    assert names(found) == ["web-1"]


async def test_a_kind_that_is_passed_through_is_read_by_its_metadata(
    fake: FakeApiServer, owners: ClusterOwners
) -> None:
    """A LeaderWorkerSet's worker is owned through its leader pod; pods are large, and only their owner is asked for."""
    accepts: list[str] = []
    fake.faults.append(lambda request: accepts.append(request.headers["Accept"]) if "/pods/" in request.path else None)
    train = fake.put(JOB, job())
    leader = fake.put(
        "/api/v1/namespaces/team-a/pods/leader",
        {"apiVersion": "v1", "kind": "Pod", "metadata": reference(train), "spec": {}},
    )

    found = await lineage(owners, pod_of(leader))

    assert names(found) == ["leader", "train"]
    assert len(accepts) == 1
    assert "PartialObjectMetadata" in accepts[0]


async def test_reads_are_held_to_a_rate(
    fake: FakeApiServer, make: Callable[..., ClusterOwners], witness: Witness
) -> None:
    """Beyond the burst a read waits its turn; where the turn comes too late, the pod goes without."""
    owners = make(rate=1.0, burst=2)
    pods = [pod_of(fake.put(f"{JOB}-{number}", job())) for number in range(3)]

    found = [await lineage(owners, pod, seconds=0.5) for pod in pods]

    assert [each.broken is None for each in found] == [True, True, False]
    assert witness.metric("lineages_broken_total", reason="throttled") == 1


async def test_the_cache_is_bounded(fake: FakeApiServer, make: Callable[..., ClusterOwners]) -> None:
    """The least recently used is forgotten."""
    owners = make(cache_size=10)
    for number in range(25):
        await lineage(owners, pod_of(fake.put(f"{JOB}-{number}", job())))

    assert len(owners.cache) == 10


def shown(owners: ClusterOwners, obj: dict[str, Any]) -> bool:
    """What a watch does with an object."""
    kind = kind_named(obj["apiVersion"], obj["kind"])
    assert kind is not None
    return owners.cache.seen(obj, kind, CATALOG)


def gang_size(found: Lineage) -> object:
    """Pods of the gang that the nearest owner states."""
    return found.described[0].gangs[0].sizes.of(None)


async def test_a_read_that_was_overtaken_changes_nothing(fake: FakeApiServer, owners: ClusterOwners) -> None:
    """The watch has shown the newer one while the read was under way."""
    old = fake.put(JOB, job(2))
    fake.faults.append(lambda request: 0.2 if "/jobs/" in request.path else None)
    reading = asyncio.create_task(lineage(owners, pod_of(old)))
    await until(lambda: fake.count("GET", "/jobs/train"))
    shown(
        owners,
        {**old, "metadata": {**old["metadata"], "resourceVersion": "9999", "generation": 2}, "spec": job(5)["spec"]},
    )

    await reading

    assert gang_size(await lineage(owners, pod_of(old))) == 5


async def test_a_child_of_an_updated_owner_sees_the_update(fake: FakeApiServer, owners: ClusterOwners) -> None:
    """From the review of the update until the watch has seen it, the owner is read anew, for a read may be early."""
    old = fake.put(JOB, job(2))
    pod = pod_of(old)
    await lineage(owners, pod)
    new = {**old, "spec": job(5)["spec"]}
    compiled = CATALOG.by_kind["batch", "Job"][0]
    owners.updated(resolve(compiled, new, AcceleratorPolicy()))

    assert gang_size(await lineage(owners, pod)) == 2  # reviewed, not stored yet
    stored = fake.put(JOB, new)
    assert gang_size(await lineage(owners, pod)) == 5
    shown(owners, stored)
    read = len(fake.requests)
    assert gang_size(await lineage(owners, pod)) == 5
    assert len(fake.requests) == read


async def test_an_adoption_is_noticed(fake: FakeApiServer, owners: ClusterOwners) -> None:
    """An object gets its owner after its creation, which counts up no generation."""
    deployment = fake.put(DEPLOYMENT, {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {}})
    replica_set = fake.put(REPLICA_SET, {"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": {}})
    assert names(await lineage(owners, pod_of(replica_set))) == ["web-1"]

    adopted = fake.put(REPLICA_SET, {**replica_set, "metadata": reference(deployment)})
    assert shown(owners, adopted)

    assert names(await lineage(owners, pod_of(adopted))) == ["web-1", "web"]


async def test_news_of_a_status_is_no_work(fake: FakeApiServer, owners: ClusterOwners) -> None:
    """A controller writes statuses all the time; nothing of ours follows from them."""
    train = fake.put(JOB, job())
    assert shown(owners, train)
    assert not shown(owners, fake.put(JOB, {**train, "status": {"active": 1}}))


async def test_without_a_watch_an_owner_is_believed_for_a_moment(
    fake: FakeApiServer, make: Callable[..., ClusterOwners], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kind that may be got but not watched: a wrong number is worse than a read."""
    monkeypatch.setattr(owner_cache, "BELIEVED_FOR", 0.2)
    owners = make()
    pod = pod_of(fake.put(JOB, job(2)))
    assert gang_size(await lineage(owners, pod)) == 2
    fake.put(JOB, job(5))

    await until(partial(_gang_is, owners, pod, 5))

    assert 2 <= fake.count("GET", "/jobs/train") <= 3


async def _gang_is(owners: ClusterOwners, pod: Any, size: int) -> bool:
    return gang_size(await lineage(owners, pod)) == size


async def test_a_changed_definition_is_read_with(fake: FakeApiServer, owners: ClusterOwners) -> None:
    """What was resolved under another definition is not used."""
    pod = pod_of(fake.put(JOB, job()))
    await lineage(owners, pod)
    compiled = CompiledDefinition(CATALOG.by_kind["batch", "Job"][0].definition)
    deadline = asyncio.get_running_loop().time() + 2

    found = await owners.lineage(pod, TEAM, Catalog.of([compiled]), deadline)

    assert found.described[0].compiled is compiled


async def test_a_fault_of_ours_is_a_reason_too(
    fake: FakeApiServer, make: Callable[..., ClusterOwners], witness: Witness
) -> None:
    """An answer that nobody thought of breaks the lineage, not the admission."""
    owners = make()
    train = fake.put(JOB, job())
    fake.objects[JOB] = {"metadata": {"uid": train["metadata"]["uid"]}, "spec": {}}

    found = await lineage(owners, pod_of(train))

    assert found.broken == "owner Job train could not be understood"
    assert witness.failures == ["cluster"]


@given(
    rate=st.floats(0.5, 100),
    burst=st.integers(1, 50),
    steps=st.lists(st.floats(0, 2), max_size=200),
    patience=st.floats(0, 3),
)
def test_a_bucket_gives_no_more_than_its_rate_and_burst(
    rate: float, burst: int, steps: list[float], patience: float
) -> None:
    """Whatever comes when: by the time a token is there, no more than the burst and the rate allow have been used."""
    bucket, now, used = TokenBucket(rate, burst, 0.0), 0.0, 0
    for step in steps:
        now += step
        wait = bucket.delay(now, patience)
        if wait is not None:
            used += 1
            assert 0 <= wait <= patience
            assert used <= burst + (now + wait) * rate + 1e-6
