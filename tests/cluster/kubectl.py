"""Runs kubectl as one user against one API server. Knows nothing of what it is asked to do."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

SECONDS = 120


class KubectlError(AssertionError):
    """kubectl exited with another code than 0; the message holds the command and what it said."""


class Kubectl:
    """kubectl with a kubeconfig: `kubectl("get", "pods", "-n", namespace)` is its output."""

    def __init__(self, program: Path, *, kubeconfig: Path, cache: Path) -> None:
        """`cache` is where kubectl keeps what it discovered, instead of the home directory."""
        self._program = program
        self._environment = {"KUBECONFIG": str(kubeconfig), "KUBECACHEDIR": str(cache)}

    def __call__(self, *arguments: str, stdin: Any = None) -> str:
        """Output of the command; KubectlError when it fails. `stdin` is text, or an object to be written as JSON."""
        ended = self.run(*arguments, stdin=stdin)
        if ended.returncode:
            raise KubectlError(f"kubectl {' '.join(arguments)}: exit code {ended.returncode}\n{ended.stderr.strip()}")
        return ended.stdout

    def json(self, *arguments: str, stdin: Any = None) -> Any:
        """What the command prints with `-o json`, parsed."""
        return json.loads(self(*arguments, "-o", "json", stdin=stdin))

    def run(self, *arguments: str, stdin: Any = None) -> subprocess.CompletedProcess[str]:
        """The ended command with exit code, output and errors, whatever they are."""
        text = stdin if isinstance(stdin, str) else "" if stdin is None else json.dumps(stdin)
        return subprocess.run(
            [str(self._program), *arguments], input=text, env={**os.environ, **self._environment},
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
