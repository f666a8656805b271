"""What only a process of its own shows: exit codes, streams that are closed or full, signals, and how it starts."""

import os
import pty
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.webhook.cli.manifests import jobset, text
from tests.webhook.cli.processes import PROGRAM, environment, started

pytestmark = pytest.mark.slow

ANYWHERE = ("--bind-address", "127.0.0.1:0", "--metrics-bind-address", "127.0.0.1:0")


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    """A file with a JobSet."""
    path = tmp_path / "jobset.json"
    path.write_text(text(jobset()))
    return str(path)


def test_exit_codes_tell_good_bad_and_wrong() -> None:
    """0 good, 1 the input has problems, 2 wrong use."""
    assert [started(*words).returncode for words in (["--version"], ["resolve", "/none"], ["resolve"])] == [0, 1, 2]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_one_line(manifest: str) -> None:
    """Output that can't be written is a failure, and no traceback."""
    for words in (["resolve", manifest], ["resolve", manifest, "-o", "json"], ["--help"]):
        with Path("/dev/full").open("w") as full:
            ended = started(*words, stdout=full)
        assert (ended.returncode, ended.stderr) == (1, "the output: No space left on device\n")


def test_a_reader_that_goes_away_is_no_failure(manifest: str) -> None:
    """`… | head -1` ends quietly."""
    for words in (["resolve", manifest], ["definitions", "list"], ["definitions", "list", "-o", "json"], ["--help"]):
        reading, writing = os.pipe()
        os.close(reading)
        ended = started(*words, stdout=writing)
        os.close(writing)
        assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.skipif(sys.platform != "linux", reason="needs a shell that closes streams")
@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_traceback(closed: str, manifest: str) -> None:
    """As under a supervisor that gives none."""
    command = f'"$@" {closed}'
    ended = subprocess.run(
        ["sh", "-c", command, "sh", *PROGRAM, "resolve", manifest], env=environment(), capture_output=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_terminal_that_knows_ascii_only_gets_ascii(manifest: str) -> None:
    """Signs that an encoding has not are escaped, not a failure."""
    ended = started("resolve", manifest, environ={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"})
    assert ended.returncode == 0
    assert ended.stdout.isascii()
    assert "leader  1 pod, 4 GPUs" in ended.stdout


def test_file_names_in_no_encoding_are_told(tmp_path: Path) -> None:
    """A name that is no UTF-8 is shown with escapes."""
    ended = started("resolve", os.fsdecode(bytes(tmp_path) + b"/\xff.yaml"))
    assert ended.returncode == 1
    assert "cannot be read: No such file or directory" in ended.stderr
    assert "Traceback" not in ended.stderr


def on_terminal(*arguments: str, columns: int = 80) -> str:
    """What a person sees on a terminal of that width."""
    ours, theirs = pty.openpty()
    environ = environment({"COLUMNS": str(columns), "TERM": "xterm-256color"})
    environ.pop("NO_COLOR", None)
    with subprocess.Popen([*PROGRAM, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environ) as process:
        os.close(theirs)
        seen = bytearray()
        while True:
            try:
                chunk = os.read(ours, 65536)
            except OSError:  # Linux says so when the other end is closed
                break
            if not chunk:
                break
            seen += chunk
        os.close(ours)
        assert process.wait(timeout=30) == 0
    return seen.decode().replace("\r\n", "\n")


def plain(seen: str) -> list[str]:
    """The lines without their colours."""
    for code in ("0", "1", "2", "22", "33", "39", "36", "1;4"):
        seen = seen.replace(f"\x1b[{code}m", "")
    return seen.splitlines()


def test_on_a_terminal_nothing_is_wider_than_it(tmp_path: Path) -> None:
    """Trees wrap, tables give way; in a pipe nothing is cut."""
    manifest = tmp_path / "wide.json"
    obj = jobset("a-name-that-is-rather-long-for-a-table-of-eighty-columns", namespace="another-long-name-of-a-team")
    obj["spec"]["replicatedJobs"] *= 4
    for index, each in enumerate(obj["spec"]["replicatedJobs"]):
        obj["spec"]["replicatedJobs"][index] = {**each, "name": f"replicated-job-number-{index}"}
    manifest.write_text(text(obj))
    for output in ("tree", "table", "wide"):
        seen = plain(on_terminal("resolve", str(manifest), "-o", output))
        assert max(map(len, seen)) <= 80, output
    piped = started("resolve", str(manifest), "-o", "wide").stdout
    assert "a-name-that-is-rather-long-for-a-table-of-eighty-columns" in piped
    assert "2 replicated-job-number-7" in piped


def test_the_list_of_definitions_fits_a_terminal() -> None:
    """The kinds stay whole; roles are cut."""
    seen = plain(on_terminal("definitions", "list"))
    assert max(map(len, seen)) <= 80
    assert any(line.startswith("ReplicationController") for line in seen)


def test_colours_are_for_terminals(manifest: str) -> None:
    """A pipe gets none."""
    assert "\x1b[" in on_terminal("resolve", manifest)
    assert "\x1b[" not in started("resolve", manifest).stdout


def test_interrupting_ends_quietly(tmp_path: Path) -> None:
    """Ctrl-C while a file is waited for."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with (
        subprocess.Popen(
            [*PROGRAM, "resolve", str(pipe)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
        ) as process,
        pipe.open("w"),
    ):  # waits until it is read from
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, b"")
    assert b"Traceback" not in err


def test_the_help_comes_at_once() -> None:
    """No command's module is loaded for it, nor what they need."""
    code = "import sys; from webhook.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    loaded = "print(*(name for name in ('aiohttp', 'rich', 'yaml', 'jq', 'orjson', 'email') if name in sys.modules))"
    ended = subprocess.run(
        [sys.executable, "-c", code + loaded], env=environment(), capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines()[-1] == ""


# ------------------------------------------------------------------------------------------------- serve


def test_every_wrong_setting_is_told_at_once() -> None:
    """Flags and variables, each by its own name; wrong use."""
    flags = ("--bind-address", "nowhere", "--deadline", "1h", "--log-level", "loud", "--prefix", "Bad")
    ended = started(
        "serve", "--self-signed", *flags, environ={"WORKLOAD_STAMP_DRAIN": "x", "WORKLOAD_STAMP_PREFX": "y"}
    )
    assert ended.returncode == 2
    places = {line.partition(":")[0] for line in ended.stderr.splitlines()}
    expected = {
        "--bind-address",
        "--deadline",
        "--log-level",
        "--prefix",
        "WORKLOAD_STAMP_DRAIN",
        "WORKLOAD_STAMP_PREFX",
    }
    assert places == expected


@pytest.mark.parametrize(
    "flags, told",
    [
        ((), "no certificate: give --cert-file and --key-file, or --self-signed to try things out"),
        (("--cert-file", "a"), "--cert-file: --key-file is missing"),
        (("--cert-file", "/none", "--key-file", "/none"), "/none: can't be read: No such file or directory"),
        (("--self-signed", "--definitions-dir", "/none"), "/none: is no directory"),
        (("--self-signed", "--client-ca", "/none"), "--client-ca: /none can't be read"),
        (("--self-signed", "--kubeconfig", "/none"), "/none: cannot be read"),
        (("--self-signed", "--owners", "/none"), "--owners: /none: cannot be read"),
        (("--self-signed", "extra"), "Got unexpected extra argument (extra)"),
    ],
)
def test_a_server_that_cannot_start_says_why(flags: tuple[str, ...], told: str) -> None:
    """One sentence, exit code 2, no traceback."""
    ended = started("serve", *ANYWHERE, *flags)
    assert ended.returncode == 2
    assert told in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_port_that_is_taken_is_told() -> None:
    """With the flag that names it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        ended = started("serve", "--self-signed", "--bind-address", address, "--metrics-bind-address", "127.0.0.1:0")
    assert ended.returncode == 2
    assert f"--bind-address: can't listen on {address}: Address already in use" in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_server_without_a_cluster_serves_until_it_is_told_to_stop(number: signal.Signals) -> None:
    """`--self-signed` is all that is needed to try things out; then it ends well."""
    arguments = (*PROGRAM, "serve", "--self-signed", *ANYWHERE, "--lame-duck", "0s")
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, env=environment(), text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if '"event":"serving"' in line:
                process.send_signal(number)
                break
        rest = process.stderr.read()
        assert process.wait(timeout=30) == 0, rest


# -------------------------------------------------------------------------------------------------- demo


def test_the_demo_runs_anywhere_and_again(tmp_path: Path) -> None:
    """From another folder, without a terminal, with settings and a proxy in the environment, as if in a cluster."""
    environ = {
        "WORKLOAD_STAMP_PREFIX": "example.com",
        "WORKLOAD_STAMP_CERT_FILE": "/none",
        "WORKLOAD_STAMP_UNKNOWN": "x",
        "KUBERNETES_SERVICE_HOST": "10.0.0.1",
        "KUBERNETES_SERVICE_PORT": "443",
        "HTTPS_PROXY": "http://127.0.0.1:1",
    }
    for _ in range(2):
        ended = started("demo", environ=environ, cwd=tmp_path)
        assert (ended.returncode, ended.stderr) == (0, "")
        rows = [line.split() for line in ended.stdout.splitlines()]
        assert ["JobSet/train", "train-4a9ff231a1", "JobSet", "3", "12"] in rows
        assert ["Pod/train-workers-1-0-…", "train-4a9ff231a1", "JobSet", "workers", "3", "12"] in rows
    assert list(tmp_path.iterdir()) == []
