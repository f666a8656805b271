"""The process does in its container what it does elsewhere: nothing in it may need a writable file or a home."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.ports import LOOPBACK, free_port, healthy
from tests.cluster.waiting import eventually
from tests.manifests.generated import MANIFESTS

RING = (MANIFESTS / "examples" / "ring" / "framework.yaml").read_text().partition("---")[0]
NOT_PLAIN = 'isEnabledExpression: .metadata.name | test("^r")'

# What a read-only root file system does, for a process that is not allowed to mount one.
READ_ONLY = """
import os, runpy, sys

CHANGES = {"os.mkdir", "os.rename", "os.remove", "os.link", "os.symlink", "tempfile.mkstemp", "tempfile.mkdtemp"}

def refuse_writing(event, arguments):
    if event == "open" and isinstance(arguments[0], (str, bytes)) and not str(arguments[0]).startswith("/dev/"):
        writes = (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if writes:
            raise OSError(30, "Read-only file system", arguments[0])
    elif event in CHANGES:
        raise OSError(30, "Read-only file system", str(arguments[0]))

sys.addaudithook(refuse_writing)
sys.argv[0] = "webhook"
runpy.run_module("webhook", run_name="__main__")
"""


@pytest.mark.slow
def test_it_serves_and_evaluates_without_a_writable_file(tmp_path: Path) -> None:
    """Ready, with a definition whose expression has to be tried in a process of its own; SIGTERM ends it well."""
    definition = RING.replace("    - name: member\n", f"    - name: member\n      {NOT_PLAIN}\n")
    assert NOT_PLAIN in definition
    (tmp_path / "ring.yaml").write_text(definition)
    reviews, health = free_port(), free_port()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    process = subprocess.Popen(
        [
            sys.executable, "-c", READ_ONLY, "serve", "--self-signed", f"--bind-address={LOOPBACK}:{reviews}",
            f"--metrics-bind-address={LOOPBACK}:{health}", f"--definitions-dir={tmp_path}", "--lame-duck=0s",
        ],
        cwd=MANIFESTS.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**inherited, "HOME": "/nonexistent", "TMPDIR": "/nonexistent", "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    try:
        eventually(lambda: process.poll() is not None or healthy(health), what="the webhook to be ready")
        ready = process.poll() is None
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=20)
    finally:
        process.kill()
    assert ready, output
    assert process.returncode == 0, output
    assert "Traceback" not in output
    assert "Read-only" not in output
