"""One replica's cluster room as a whole: it waits for an API server, says when it is ready, and leads one at a time."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from catalog import load
from certs.authority import KeyPair
from tests.webhook.cluster.conftest import Witness
from tests.webhook.cluster.fake_api_server import FakeApiServer
from tests.webhook.polling import until
from tests.webhook.test_definitions import definition, nothing_overruns
from webhook.cluster import client, registration, watches
from webhook.cluster.client import Access
from webhook.cluster.registration import PATH as CONFIGURATION
from webhook.cluster.resources import COLLECTIONS
from webhook.cluster.runtime import ClusterRuntime, Upkeep
from webhook.definitions import DefinitionsInForce, Source
from webhook.stamps import Policy

pytestmark = pytest.mark.slow

DEFINITIONS = COLLECTIONS[Source.RESOURCE][2]
TEAM = "/api/v1/namespaces/team-a"
PODS = f"{TEAM}/pods"
DEPLOYMENTS = "/apis/apps/v1/namespaces/team-a/deployments"
LABELS = "workload-stamp.io/workload-id"

UPKEEP = Upkeep(
    access=Access(), identity="", namespace="stamps", service="stamp", url=None, excluded_namespaces=(), opt_in=False,
    registration="auto", webhook_timeout=3, lease_name="upkeep", lease_duration=2.0, lease_renewal=0.1,
    reconcile_rate=1000.0, reconcile_interval=0.2, owner_cache_size=100, owner_get_rate=100.0, owner_get_burst=100,
    own_certificates=True,
)  # fmt: skip


class Room:
    """A running cluster room and what it was given."""

    runtime: ClusterRuntime

    def __init__(self) -> None:
        self.witness = Witness()
        self.pairs: list[KeyPair] = []
        self.definitions = DefinitionsInForce(nothing_overruns)
        self.definitions.install(Source.PACKAGED, load.packaged().definitions)

    @property
    def leads(self) -> bool:
        """Whether it does upkeep."""
        return self.witness.metric("leading") == 1


Open = Callable[..., Any]


async def nothing_isolated(*_: object) -> dict[str, Any]:
    """The packaged definitions need no worker."""
    return {}


@pytest.fixture
def open_room(fake: FakeApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Open:
    """Opens a room with changed upkeep, and closes it at the end of the block; nothing in it may have failed."""
    monkeypatch.setattr(registration, "NOT_YET", 0.05)
    monkeypatch.setattr(watches, "FIRST_PAUSE", 0.05)

    @asynccontextmanager
    async def room(name: str = "replica-0", **changes: Any) -> AsyncIterator[Room]:
        async with fake.client(tmp_path):
            access = Access(kubeconfig=tmp_path / "kubeconfig")
        room = Room()
        running = ClusterRuntime.running(
            replace(UPKEEP, access=access, identity=name, **changes),
            room.definitions,
            Policy(),
            room.witness.metrics,
            isolated=nothing_isolated,
            on_pair=room.pairs.append,
            is_serving=lambda: bool(room.pairs),
            logger=room.witness.logger,
            count=room.witness.failures.append,
        )
        async with running as room.runtime:
            yield room
        assert room.witness.failures == []

    return room


async def test_a_replica_sets_itself_up(fake: FakeApiServer, open_room: Open) -> None:
    """Certificates first, then the registration that publishes their authority, and it is ready meanwhile."""
    async with open_room() as room:
        await until(lambda: CONFIGURATION in fake.objects)
        assert room.pairs
        assert room.runtime.fault() is None
        await until(lambda: room.witness.metric("registered") == 1)


async def test_without_an_api_server_it_waits(fake: FakeApiServer, open_room: Open) -> None:
    """It starts, is not ready, ends nothing, and gets to work once there is one."""
    down = lambda _: (503, "ServiceUnavailable")  # noqa: E731
    fake.faults.append(down)
    async with open_room() as room:
        await until(lambda: "lease" in room.witness.log)
        assert room.runtime.fault() is not None
        fake.faults.remove(down)

        await until(lambda: CONFIGURATION in fake.objects and room.runtime.fault() is None)


async def test_it_is_ready_once_it_knows_the_clusters_definitions(fake: FakeApiServer, open_room: Open) -> None:
    """A replica that joins in a rollout would else leave pods of added frameworks without stamps."""
    fake.put(f"{DEFINITIONS}/runs", definition())
    fake.faults.append(lambda request: 0.3 if request.path == DEFINITIONS else None)
    async with open_room() as room:
        assert room.runtime.fault() == "the definitions in the cluster have not been read yet"
        await until(lambda: room.runtime.fault() is None)
        assert room.definitions.catalog.describes("example.com", "Run")


async def test_definitions_that_are_not_served_or_not_allowed_are_not_waited_for(
    fake: FakeApiServer, open_room: Open
) -> None:
    """Without our CRD the package's definitions are all there are."""
    fake.not_served.add(DEFINITIONS)
    fake.faults.append(lambda request: (403, "Forbidden") if "kartas" in request.path else None)
    async with open_room() as room:
        await until(lambda: room.runtime.fault() is None)


async def test_leadership_changes_hands(fake: FakeApiServer, open_room: Open) -> None:
    """Two replicas serve one certificate; when the leader leaves, the other takes over what it finds."""
    async with AsyncExitStack() as stack:
        one = await stack.enter_async_context(open_room("one", lease_duration=60.0))
        await until(lambda: CONFIGURATION in fake.objects)
        before = fake.objects[CONFIGURATION]
        async with open_room("two", lease_duration=60.0) as two:
            await until(lambda: two.pairs)
            assert one.leads
            assert not two.leads
            assert one.pairs[-1] == two.pairs[-1]
            await stack.aclose()
            await until(lambda: two.leads)
            sweeps = fake.count("GET", "^/api/v1/pods")
            await until(lambda: fake.count("GET", "^/api/v1/pods") > sweeps)
            assert fake.objects[CONFIGURATION] == before


async def test_a_new_leader_knows_of_a_deletion_before_it_led(fake: FakeApiServer, open_room: Open) -> None:
    """Switched off by an administrator, it stays off when leadership changes hands."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(open_room("one", lease_duration=60.0))
        await until(lambda: CONFIGURATION in fake.objects)
        async with open_room("two", lease_duration=60.0) as two:
            await until(lambda: two.witness.metric("registered") == 1)
            fake.delete(CONFIGURATION)
            await until(lambda: two.witness.metric("registered") == 0)
            await stack.aclose()
            await until(lambda: "nothing is stamped until a restart" in two.witness.log)
            assert CONFIGURATION not in fake.objects


async def test_upkeep_gives_stamps_to_what_lacks_them(fake: FakeApiServer, open_room: Open) -> None:
    """A root from before us, and a pod that waits for its id; not what is opted out, nor in a namespace that is."""
    fake.put(TEAM, {})
    fake.put("/api/v1/namespaces/team-b", {"metadata": {"labels": {"workload-stamp.io/ignore": "true"}}})
    waiting = {"workload-stamp.io/unresolved": '{"workload-id":"no name yet"}'}
    spec: dict[str, Any] = {"containers": []}
    fake.put(
        f"{DEPLOYMENTS}/web", {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": spec}}}
    )
    fake.put(
        f"{DEPLOYMENTS}/odd",
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"labels": {"workload-stamp.io/ignore": "true"}}},
    )
    fake.put(f"{PODS}/bare", {"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": waiting}, "spec": spec})
    other = fake.put(
        f"{PODS.replace('team-a', 'team-b')}/bare",
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"annotations": waiting}, "spec": spec},
    )
    async with open_room():
        await until(lambda: LABELS in fake.objects[f"{DEPLOYMENTS}/web"]["metadata"].get("labels", {}))
        await until(lambda: LABELS in fake.objects[f"{PODS}/bare"]["metadata"].get("labels", {}))
        sweeps = fake.count("GET", "^/api/v1/pods")
        await until(lambda: fake.count("GET", "^/api/v1/pods") >= sweeps + 2)

    assert waiting.keys().isdisjoint(fake.objects[f"{PODS}/bare"]["metadata"]["annotations"])
    assert fake.objects[f"{DEPLOYMENTS}/odd"]["metadata"]["labels"] == {"workload-stamp.io/ignore": "true"}
    assert fake.objects[f"{PODS.replace('team-a', 'team-b')}/bare"] == other


async def test_upkeep_obeys_root_stamps(fake: FakeApiServer, open_room: Open) -> None:
    """A kind whose objects are stamped at their creation only is never written to afterwards: it may roll out pods."""
    fake.put(TEAM, {})
    fake.kinds.append(("example.com", "v1", "Run", "runs", True))
    fake.put(f"{DEFINITIONS}/runs", definition())
    path = "/apis/example.com/v1/namespaces/team-a/runs/run"
    run = fake.put(path, {"apiVersion": "example.com/v1", "kind": "Run", "spec": {}})
    async with open_room() as room:
        await until(lambda: fake.count("GET", "^/apis/example.com/v1/runs.*watch=true"))
        sweeps = fake.count("GET", "^/api/v1/pods")
        await until(lambda: room.leads and fake.count("GET", "^/api/v1/pods") >= sweeps + 3)

    assert fake.objects[path] == run


async def test_who_only_observes_writes_no_object(fake: FakeApiServer, open_room: Open) -> None:
    """Registered and counting, but nothing is mended."""
    fake.put(TEAM, {})
    web = fake.put(f"{DEPLOYMENTS}/web", {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {}})
    async with open_room(observe=True):
        await until(lambda: CONFIGURATION in fake.objects)
        await until(lambda: fake.count("GET", "^/apis/apps/v1/deployments.*watch=true"))

    assert fake.objects[f"{DEPLOYMENTS}/web"] == web


async def test_who_is_switched_off_writes_no_object(fake: FakeApiServer, open_room: Open) -> None:
    """Deleting the configuration ends all stamping: upkeep's, too."""
    fake.put(TEAM, {})
    async with open_room() as room:
        await until(lambda: room.witness.metric("registered") == 1)
        fake.delete(CONFIGURATION)
        await until(lambda: room.witness.metric("registered") == 0)
        web = fake.put(
            f"{DEPLOYMENTS}/web", {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": {}}}}
        )
        sweeps = fake.count("GET", "^/api/v1/pods")
        await until(lambda: fake.count("GET", "^/api/v1/pods") >= sweeps + 2)

    assert fake.objects[f"{DEPLOYMENTS}/web"] == web


async def test_a_lost_serving_secret_is_made_again_at_once(fake: FakeApiServer, open_room: Open) -> None:
    """And what every replica serves follows."""
    serving = "/api/v1/namespaces/stamps/secrets/stamp-serving"
    async with open_room() as room:
        await until(lambda: room.pairs)
        fake.delete(serving)
        await until(lambda: serving in fake.objects and room.pairs[-1] != room.pairs[0], seconds=5)


async def test_a_hanging_api_server_hangs_nothing(
    fake: FakeApiServer, open_room: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that is never answered ends by itself and is made again."""
    monkeypatch.setattr(client, "REQUEST_TIMEOUT", 0.2)
    fake.faults.append(lambda request: 3600.0 if request.path == "/api/v1/namespaces" else None)
    async with open_room():
        await until(lambda: fake.count("GET", "^/api/v1/namespaces[?]") >= 2)
