"""Runs `workload-stamp` in this process, as a person would, and gives back what is printed.

    ended = run("resolve", "-", given=JOBSET)
    ended.code, ended.out, ended.err

A start of the whole program takes most of a second; only what is about processes starts one.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass

from click.testing import CliRunner

from webhook.cli.main import main


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def told(self) -> list[str]:
        """The lines on standard error."""
        return self.err.splitlines()


def run(*arguments: str, given: str | bytes = b"", environ: Mapping[str, str] | None = None) -> Ended:
    """The ended command, whatever came of it; `given` is its standard input. A fault of ours fails the test."""
    code: object = 0
    with CliRunner().isolation(input=given, env=environ) as (out, err, _):
        try:
            main(list(arguments))
        except SystemExit as ended:
            code = ended.code
        sys.stdout.flush()
        sys.stderr.flush()
        printed, told = out.getvalue().decode(), err.getvalue().decode()
    assert "internal error" not in told, told
    assert isinstance(code, int), code
    return Ended(code=code, out=printed, err=told)
