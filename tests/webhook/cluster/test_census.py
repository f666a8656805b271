"""Workloads and GPUs counted while a replica leads, and not otherwise."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.golden.cases import packaged_catalog
from tests.webhook.cluster.conftest import Witness
from tests.webhook.cluster.fake_api_server import FakeApiServer
from tests.webhook.live.made_up import MadeUp
from tests.webhook.polling import until
from webhook.cluster.census import WorkloadCensus
from webhook.cluster.client import ApiServer
from webhook.cluster.discovery import Discovery
from webhook.live.snapshot import kind_of
from webhook.stamps import Policy

POD = "/api/v1/namespaces/team-a/pods/{}"
JOB = "/apis/batch/v1/namespaces/team-a/jobs/{}"


@asynccontextmanager
async def counting(server: ApiServer, witness: Witness) -> AsyncIterator[WorkloadCensus]:
    """A census that leads, counting all the time."""
    discovery = Discovery(server)
    await discovery.refresh()
    census = WorkloadCensus(
        server,
        discovery,
        Policy(),
        witness.metrics.workloads,
        supervision=witness.supervision,
        catalog=packaged_catalog,
        interval=0.02,
    )
    task = asyncio.create_task(census.run())
    try:
        yield census
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def jobs(witness: Witness, status: str = "Initializing") -> float:
    """How many Jobs of that status are exported."""
    return witness.metric("workloads", kind="Job", status=status, namespace="team-a")


async def test_roots_and_running_pods_are_exported(fake: FakeApiServer, server: ApiServer, witness: Witness) -> None:
    """What was there before we led is looked at once; pods are asked for as running, stamped, and metadata only."""
    cluster = MadeUp()
    job = cluster.add(
        "Job",
        "j",
        {"template": {"spec": {"containers": [{"name": "m", "resources": {"limits": {"nvidia.com/gpu": "2"}}}]}}},
    )
    cluster.pod("j-x", job["spec"]["template"]["spec"], owner=job)
    cluster.stamp()
    fake.put(JOB.format("j"), job)
    fake.put(POD.format("j-x"), cluster.pods[0])

    async with counting(server, witness):
        await until(lambda: jobs(witness) == 1)
        gpus = {"kind": "Job", "namespace": "team-a", "role": "job"}
        assert witness.metric("gpus_asked", **gpus) == 2
        assert witness.metric("gpus_running", **gpus) == 2
        assert witness.metric("census_age_seconds") >= 0
        assert fake.count("GET", r"/api/v1/pods\?.*workload-id.*status\.phase.*Running")

    assert witness.registry.get_sample_value("workload_stamp_census_age_seconds") is None
    assert jobs(witness) == 0


async def test_the_watches_keep_it_current(fake: FakeApiServer, server: ApiServer, witness: Witness) -> None:
    """A Job that completes, and one that is deleted."""
    cluster = MadeUp()
    job = fake.put(JOB.format("j"), cluster.add("Job", "j", {"template": {}}))

    async with counting(server, witness) as census:
        await until(lambda: jobs(witness) == 1)
        done = {**job, "status": {"conditions": [{"type": "Complete", "status": "True"}]}}
        census.seen(done, kind_of(job))
        await until(lambda: jobs(witness, "Completed") == 1)
        census.gone(job["metadata"]["uid"])
        await until(lambda: jobs(witness, "Completed") == 0)


async def test_what_the_watches_no_longer_know_is_forgotten(
    fake: FakeApiServer, server: ApiServer, witness: Witness
) -> None:
    """An object that was deleted while the list was read leaves no ghost."""
    fake.put(JOB.format("j"), MadeUp().add("Job", "j", {"template": {}}))

    async with counting(server, witness) as census:
        await until(lambda: jobs(witness) == 1)
        census.exists = lambda _: False
        await until(lambda: jobs(witness) == 0)


async def test_a_replica_that_does_not_lead_keeps_nothing(server: ApiServer, witness: Witness) -> None:
    """Watches tell it all the same."""
    census = WorkloadCensus(
        server,
        Discovery(server),
        Policy(),
        witness.metrics.workloads,
        supervision=witness.supervision,
        catalog=packaged_catalog,
    )
    job = MadeUp().add("Job", "j", {"template": {}})

    census.seen(job, kind_of(job))
    census.gone(job["metadata"]["uid"])

    assert list(witness.registry.collect())
    assert jobs(witness) == 0


async def test_pods_that_can_t_be_counted_leave_the_last_numbers(
    fake: FakeApiServer, server: ApiServer, witness: Witness
) -> None:
    """Why is logged; the age of the numbers tells that they are old."""
    fake.put(JOB.format("j"), MadeUp().add("Job", "j", {"template": {}}))

    async with counting(server, witness):
        await until(lambda: jobs(witness) == 1)
        fake.faults.append(lambda request: (500, "Odd") if request.path == "/api/v1/pods" else None)
        await until(lambda: "running pods could not be counted: Odd" in witness.log)

        assert jobs(witness) == 1
    assert witness.failures == []


async def test_odd_stamps_count_as_no_gpus(fake: FakeApiServer, server: ApiServer, witness: Witness) -> None:
    """Whoever writes stamps by hand breaks no sum."""
    cluster = MadeUp()
    fake.put(JOB.format("j"), cluster.add("Job", "j", {"template": {}}))
    for number, text in enumerate(("NaN", "-4", "many")):
        pod = cluster.pod(f"p-{number}", annotations={"workload-stamp.io/gpus": text})
        fake.put(POD.format(f"p-{number}"), pod)

    async with counting(server, witness):
        await until(lambda: jobs(witness) == 1)

        assert witness.metric("gpus_running", kind="", namespace="team-a", role="") == 0
