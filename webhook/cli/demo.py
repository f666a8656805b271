"""`workload-stamp demo`: a running webhook stamps the example that everything starts from, over HTTPS.

The server is the real one with the packaged definitions, in a process of its own; what it is sent is what an API
server sends. Only the objects are made up, as no cluster is there to make them.
"""

import asyncio
import base64
import contextlib
import os
import signal
import ssl
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import click
import orjson

from catalog.definition import JsonObject
from webhook.cli.failures import InputProblems
from webhook.cli.terminal import Column, print_lines, table
from webhook.patch import apply

START_SECONDS = 20.0
ANSWER_SECONDS = 10.0
STOP_SECONDS = 10.0
GPUS = 4
PREFIX = "workload-stamp.io/"
LABELS = ("workload-id", "workload-kind", "role", "gang-size", "gpu-total")
UIDS = {"train": "6a2f1c9e-0000-4000-8000-000000000001"}


@click.command("demo")
def command() -> None:
    """Watch a running webhook stamp an example, over HTTPS.

    Starts the webhook with the packaged definitions and a certificate of its own on a free port of this machine, sends
    it what an API server would send for a JobSet of one leader and two workers with four GPUs each, shows what they
    were stamped with, and stops it. Needs no cluster and leaves nothing behind.
    """
    try:
        asyncio.run(_demo())
    except TimeoutError:
        raise InputProblems(("the webhook did not answer, or did not stop, in time",)) from None
    except aiohttp.ClientError as error:
        raise InputProblems((f"the webhook could not be asked: {error}",)) from None


async def _demo() -> None:
    jobset = _jobset()
    jobs = [_job(jobset, role, index) for role, count in (("leader", 1), ("workers", 2)) for index in range(count)]
    with tempfile.TemporaryDirectory() as folder:
        owners = Path(folder) / "owners.json"
        owners.write_bytes(orjson.dumps([_stored(jobset), *jobs]))
        async with _server(owners, folder) as url:
            click.echo(f"The webhook answers at {url}\n")
            answers = [await _admit(url, "jobsets", jobset)]
            answers += [await _admit(url, "pods", _pod(job)) for job in jobs]
    _print_table(answers)
    selector = f"{PREFIX}workload-id={answers[0][1]['metadata']['labels'][f'{PREFIX}workload-id']},{PREFIX}role=workers"
    click.echo(f"\nkubectl get pods -l {selector}")
    for name, obj in answers:
        if obj["metadata"]["labels"].get(f"{PREFIX}role") == "workers":
            click.echo(f"  {name}")


@asynccontextmanager
async def _server(owners: Path, folder: str) -> AsyncIterator[str]:
    """The real `serve`, on a free port of the loopback interface; stopped as a cluster stops it."""
    arguments = ["serve", "--self-signed", "--owners", str(owners), "--log-level", "info", "--lame-duck", "0s"]
    arguments += ["--bind-address", "127.0.0.1:0", "--metrics-bind-address", "127.0.0.1:0"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("WORKLOAD_STAMP_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "webhook", *arguments, stderr=asyncio.subprocess.PIPE, cwd=folder, env=environ
    )
    assert process.stderr is not None, "it was asked for"
    try:
        url = await _address(process.stderr)
        reading = asyncio.create_task(_drain(process.stderr))
        yield url
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(STOP_SECONDS):
            code = await process.wait()
        await reading
        if code != 0:
            raise InputProblems((f"the webhook ended with exit code {code}",))
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _address(log: asyncio.StreamReader) -> str:
    """Where the server says that it serves; what it says instead is the failure's reason."""
    lines: list[str] = []
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(START_SECONDS):
            async for line in log:
                lines.append(line.decode(errors="replace").strip())
                with contextlib.suppress(orjson.JSONDecodeError):
                    event = orjson.loads(line)
                    if isinstance(event, dict) and event.get("event") == "serving":
                        return str(event["reviews"])
    raise InputProblems(("the webhook did not start", *lines))


async def _drain(log: asyncio.StreamReader) -> None:
    async for _ in log:
        pass


async def _admit(url: str, resource: str, obj: JsonObject) -> tuple[str, JsonObject]:
    """Send what an API server would send, and return the object as it would be stored."""
    trust = ssl.create_default_context()
    trust.check_hostname = False
    trust.verify_mode = ssl.CERT_NONE  # the certificate was made a moment ago, by the process that we started
    async with (
        aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS)) as session,
        session.post(f"{url}?timeout=3s", json=_review(resource, obj), ssl=trust) as response,
    ):
        response.raise_for_status()
        answer = (await response.json())["response"]
    stored = apply(obj, orjson.loads(base64.b64decode(answer.get("patch", "W10="))))
    return obj["metadata"].get("name") or obj["metadata"]["generateName"] + "…", stored


def _review(resource: str, obj: JsonObject) -> JsonObject:
    group, _, version = obj["apiVersion"].rpartition("/")
    kind = {"group": group, "version": version, "kind": obj["kind"]}
    who = "ada@example.com" if resource == "jobsets" else "system:serviceaccount:kube-system:job-controller"
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": f"demo-{obj['metadata'].get('name') or obj['metadata']['generateName']}",
            "kind": kind,
            "resource": {"group": group, "version": version, "resource": resource},
            **({"name": obj["metadata"]["name"]} if "name" in obj["metadata"] else {}),
            "namespace": obj["metadata"]["namespace"],
            "operation": "CREATE",
            "userInfo": {"username": who},
            "object": obj,
            "oldObject": None,
            "dryRun": False,
        },
    }


def _pod_spec() -> JsonObject:
    resources = {"limits": {"nvidia.com/gpu": str(GPUS)}, "requests": {"nvidia.com/gpu": str(GPUS)}}
    return {"containers": [{"name": "train", "image": "example.com/train:1", "resources": resources}]}


def _jobset() -> JsonObject:
    template = {"spec": {"parallelism": 1, "completions": 1, "template": {"spec": _pod_spec()}}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "train", "namespace": "team-a"},
        "spec": {
            "replicatedJobs": [
                {"name": "leader", "replicas": 1, "template": template},
                {"name": "workers", "replicas": 2, "template": template},
            ]
        },
    }


def _stored(jobset: JsonObject) -> JsonObject:
    return {**jobset, "metadata": {**jobset["metadata"], "uid": UIDS["train"]}}


def _job(jobset: JsonObject, role: str, index: int) -> JsonObject:
    name = f"train-{role}-{index}"
    labels = {"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/replicatedjob-name": role}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "team-a",
            "uid": f"uid-of-{name}",
            "labels": labels,
            "ownerReferences": [_reference(_stored(jobset))],
        },
        "spec": {"parallelism": 1, "completions": 1, "template": {"metadata": {"labels": labels}, "spec": _pod_spec()}},
    }


def _pod(job: JsonObject) -> JsonObject:
    name = job["metadata"]["name"]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{name}-0-",
            "namespace": "team-a",
            "labels": {**job["metadata"]["labels"], "batch.kubernetes.io/job-name": name},
            "ownerReferences": [_reference(job)],
        },
        "spec": _pod_spec(),
    }


def _reference(owner: JsonObject) -> JsonObject:
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _print_table(answers: Sequence[tuple[str, JsonObject]]) -> None:
    """An object in a row with its labels; nothing is cut, whatever the terminal's width."""
    columns = [Column(title=title) for title in ("OBJECT", *(label.upper() for label in LABELS))]
    rows = [
        (f"{obj['kind']}/{name}", *(obj["metadata"]["labels"].get(PREFIX + label, "") for label in LABELS))
        for name, obj in answers
    ]
    print_lines(table(columns, rows, None))
