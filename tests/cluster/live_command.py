"""Runs the live commands in this process, as somebody with a kubeconfig would, and gives back what they print.

    live = LiveCommand(kubeconfig)
    live.json("get", "jobset", "-n", namespace)["items"]
    live("audit", "-A").code

A start of the whole program takes a second, mostly imports, and these tests ask often. Knows nothing of any kind.
"""

import contextlib
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webhook.cli.main import main


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


class LiveCommand:
    """`workload-stamp` as one user."""

    def __init__(self, kubeconfig: Path) -> None:
        """`kubeconfig` is given to every command."""
        self._kubeconfig = kubeconfig

    def __call__(self, command: str, *arguments: str) -> Ended:
        """The ended command, whatever came of it."""
        out, err = io.StringIO(), io.StringIO()
        code: Any = 0
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                main([command, *arguments, "--kubeconfig", str(self._kubeconfig)])
            except SystemExit as ended:
                code = ended.code
        return Ended(code=int(code or 0), out=out.getvalue(), err=err.getvalue())

    def text(self, command: str, *arguments: str) -> str:
        """What a command prints that must succeed."""
        ended = self(command, *arguments)
        assert ended.code == 0, ended.err
        return ended.out

    def json(self, command: str, *arguments: str) -> Any:
        """The same, parsed from its JSON."""
        return json.loads(self.text(command, *arguments, "-o", "json"))

    def row(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """The row that `get` has for one workload, if it has one."""
        items = self.json("get", kind, "-n", namespace)["items"]
        return next((item for item in items if item["name"] == name), None)

    def status(self, kind: str, namespace: str, name: str) -> str:
        """The status of one workload; empty when it has no row."""
        row = self.row(kind, namespace, name)
        return row["status"] if row else ""
