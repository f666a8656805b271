"""How the command line reaches a cluster: as whom, with which rights, and one clear line for what goes wrong."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.api_client import ApiClient, api_path
from tests.cluster.control_plane import ControlPlane
from tests.cluster.kubectl import Kubectl
from tests.cluster.live_command import Ended, LiveCommand
from tests.cluster.live_objects import KINDS, Pods, spec_of
from tests.cluster.ports import free_port
from tests.cluster.tools.table import tool
from tests.cluster.waiting import eventually
from tests.cluster.webhook_replica import REPOSITORY


@pytest.fixture
def admin(control_plane: ControlPlane) -> LiveCommand:
    """The admin's command line."""
    return LiveCommand(control_plane.files.kubeconfig("admin"))


@pytest.fixture
def job(client: ApiClient, admin: LiveCommand, namespace: str) -> str:
    """A Job with two running pods; its namespace."""
    client.post(KINDS["Job"].path(namespace), KINDS["Job"].document("j", spec_of("Job", Pods(gpus=1))))
    eventually(lambda: admin.status("jobs.batch", namespace, "j") == "Running", what="the Job to run")
    return namespace


def changed(kubeconfig: Path, target: Path, **user: Any) -> Path:
    """The kubeconfig with another user's credentials."""
    document = json.loads(kubeconfig.read_text())
    document["users"][0]["user"] = user
    target.write_text(json.dumps(document))
    return target


def grant(kubectl: Kubectl, namespace: str, *rules: str) -> None:
    """Let user `ada` read these resources in the namespace."""
    kubectl("create", "role", "look", "-n", namespace, "--verb=get,list", *(f"--resource={rule}" for rule in rules))
    kubectl("create", "rolebinding", "look", "-n", namespace, "--role=look", "--user=ada", "--group=lookers")


def one_line(ended: Ended) -> str:
    """The only line of a failure: no traceback, nothing on standard output."""
    assert (ended.code, ended.out) == (1, "")
    (line,) = ended.err.splitlines()
    return line


def test_a_user_of_one_namespace_sees_it_and_is_told_what_not(kubectl: Kubectl, admin: LiveCommand, job: str) -> None:
    """Rows of what may be listed; every kind that may not is named, and definitions where the cluster has any."""
    grant(kubectl, job, "pods", "jobs.batch")

    ended = admin("get", "-n", job, "--as", "ada")

    assert ended.code == 0
    assert [line.split()[:2] for line in ended.out.splitlines()[1:]] == [["Job", "j"]]
    (told,) = (line for line in ended.err.splitlines() if line.startswith("not shown: "))
    assert all("definition" in line.lower() for line in ended.err.splitlines() if line != told), ended.err
    assert told.endswith(f"may not be listed in namespace {job}")
    assert "Deployment" in told
    assert "Job" not in told.replace("CronJob", "").replace("JobSet", "").split(",")[0]
    for command in (("describe", "job/j"), ("tree", "job/j"), ("top",), ("gangs",), ("audit",)):
        looked = admin(*command, "-n", job, "--as", "ada")
        assert looked.code in (0, 1), (command, looked.err)
        assert "Traceback" not in looked.err


def test_who_may_read_nothing_is_told_in_one_line(admin: LiveCommand, control_plane: ControlPlane, job: str) -> None:
    """Nothing is not shown as if there were nothing."""
    for place, named in ((("-A",), "all namespaces"), (("-n", job), f"namespace {job}")):
        line = one_line(admin("get", *place, "--as", "nobody"))

        assert line == f"{control_plane.url}: pods and workloads may not be listed in {named}"


def test_who_may_not_read_an_object_sees_its_pods_by_their_stamps(
    kubectl: Kubectl, admin: LiveCommand, job: str
) -> None:
    """The workload has a row all the same, without what only its object knows."""
    admin.text("backfill", "-n", job)
    grant(kubectl, job, "pods")

    rows = json.loads(admin("get", "-n", job, "--as", "ada", "-o", "json").out)["items"]

    assert [(row["kind"], row["name"], row["status"], row["gpus"]["running"]) for row in rows] == [
        ("Job", "j", "Undefined", 2)
    ]


def test_all_groups_are_acted_as(kubectl: Kubectl, admin: LiveCommand, job: str) -> None:
    """Rights that come with the second group count."""
    grant(kubectl, job, "pods", "jobs.batch")

    assert admin("get", "jobs.batch", "-n", job, "--as", "bob", "--as-group", "others").out == ""
    seen = admin("get", "jobs.batch", "-n", job, "--as", "bob", "--as-group", "others", "--as-group", "lookers")

    assert "j " in seen.out


def test_an_unreachable_api_server_is_one_line(control_plane: ControlPlane, tmp_path: Path) -> None:
    """Which address, and why."""
    document = json.loads(control_plane.files.kubeconfig("admin").read_text())
    url = f"https://127.0.0.1:{free_port()}"
    document["clusters"][0]["cluster"]["server"] = url
    (tmp_path / "config").write_text(json.dumps(document))

    line = one_line(LiveCommand(tmp_path / "config")("get"))

    assert line == f"{url} could not be reached: Connection refused"


def test_an_untrusted_certificate_is_one_line(control_plane: ControlPlane, tmp_path: Path) -> None:
    """The server is not who the kubeconfig knows."""
    document = json.loads(control_plane.files.kubeconfig("admin").read_text())
    document["clusters"][0]["cluster"]["certificate-authority"] = str(control_plane.files.certificate("front-proxy-ca"))
    (tmp_path / "config").write_text(json.dumps(document))

    line = one_line(LiveCommand(tmp_path / "config")("get"))

    assert line.startswith(f"{control_plane.url} could not be reached: its certificate is not trusted: ")


def test_an_expired_token_is_one_line(control_plane: ControlPlane, tmp_path: Path) -> None:
    """What to do is part of it."""
    file = changed(control_plane.files.kubeconfig("admin"), tmp_path / "config", token="expired")

    line = one_line(LiveCommand(file)("get"))

    assert line == (f"{control_plane.url} does not accept the credentials (401): they may have expired; log in again")


@pytest.mark.parametrize(
    "text, told",
    [
        ("clusters: [", "config:"),
        ("[]", "is no kubeconfig"),
        ("{clusters: [], contexts: [], current-context: test}", "has no context test; there are none"),
        ("{clusters: [], contexts: [{name: a, context: {cluster: c}}]}", "no current context"),
        (
            "{clusters: [], contexts: [{name: a, context: {cluster: c}}], current-context: a}",
            "is not usable: Invalid kube-config file. Expected object with name c",
        ),
    ],
)
def test_a_bad_kubeconfig_is_one_line(text: str, told: str, tmp_path: Path, control_plane: ControlPlane) -> None:  # noqa: ARG001
    """Which file, and what is wrong with it."""
    (tmp_path / "config").write_text(text)

    line = one_line(LiveCommand(tmp_path / "config")("get"))

    assert line.startswith(str(tmp_path / "config"))
    assert told in line


def test_a_missing_kubeconfig_and_a_wrong_context_are_one_line(control_plane: ControlPlane, tmp_path: Path) -> None:
    """The contexts that there are are named."""
    absent = one_line(LiveCommand(tmp_path / "absent")("get"))
    other = one_line(LiveCommand(control_plane.files.kubeconfig("admin"))("get", "--context", "other"))

    assert absent == f"{tmp_path}/absent: cannot be read: No such file or directory"
    assert other.endswith("has no context other; there are: test")


def test_a_credential_plugin_is_run(control_plane: ControlPlane, tmp_path: Path, job: str) -> None:
    """Its token is used; when it fails, its own words are the line."""
    account = json.loads(control_plane.service_account(job, "looker", cluster_role="view").read_text())
    token = account["users"][0]["user"]["token"]
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": token}}
    plugin = tmp_path / "plugin"
    plugin.write_text(
        f"#!/bin/sh\n[ -e {tmp_path}/broken ] && {{ echo 'the vault is sealed' >&2; exit 3; }}\n"
        f"echo '{json.dumps(credential)}'\n"
    )
    plugin.chmod(plugin.stat().st_mode | stat.S_IXUSR)
    run = {"apiVersion": "client.authentication.k8s.io/v1", "command": str(plugin), "interactiveMode": "Never"}
    live = LiveCommand(changed(control_plane.files.kubeconfig("admin"), tmp_path / "config", exec=run))

    seen = live.row("jobs.batch", job, "j")
    (tmp_path / "broken").touch()
    line = one_line(live("get"))

    assert seen is not None
    assert seen["status"] == "Running"
    assert line == f"{tmp_path}/config is not usable: exec: process returned 3. the vault is sealed"


def test_it_is_a_plugin_of_kubectl(control_plane: ControlPlane, tmp_path: Path, job: str) -> None:
    """`kubectl workload get` finds it on the PATH, with the kubeconfigs of KUBECONFIG merged."""
    plugin = tmp_path / "kubectl-workload"
    plugin.write_text(f"#!{sys.executable}\nimport sys\nfrom webhook.cli import main\nsys.exit(main())\n")
    plugin.chmod(0o755)
    context = {"contexts": [{"name": "mine", "context": {"cluster": "test", "user": "test", "namespace": job}}]}
    (tmp_path / "mine").write_text(json.dumps({**context, "current-context": "mine"}))
    files = os.pathsep.join([str(tmp_path / "mine"), str(control_plane.files.kubeconfig("admin"))])
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "KUBECONFIG": files,
        "PYTHONPATH": str(REPOSITORY),
    }
    command = [str(tool("kubectl").binary), "workload"]

    shown = subprocess.run([*command, "get"], env=environment, capture_output=True, text=True, check=False)
    helped = subprocess.run([*command, "get", "-h"], env=environment, capture_output=True, text=True, check=False)

    assert shown.returncode == 0, shown.stderr
    assert ["Job", "j"] in [line.split()[:2] for line in shown.stdout.splitlines()]
    assert "NAMESPACE" not in shown.stdout
    assert helped.stdout.startswith("Usage: kubectl workload get ")


def test_a_kind_that_is_not_there_is_one_line(admin: LiveCommand, client: ApiClient, job: str) -> None:
    """A word for no kind, for one without a definition, for several, and a name that nothing has."""
    assert client.get(api_path("v1", "namespaces", name=job))
    assert one_line(admin("get", "frobs", "-n", job)).endswith("serves no kind of this name")
    assert "no definition describes this kind" in one_line(admin("get", "configmaps", "-n", job))
    assert one_line(admin("describe", "job.batch/absent", "-n", job)) == f"Job absent does not exist in namespace {job}"
