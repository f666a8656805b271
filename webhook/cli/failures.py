"""Failures that a person is told in plain sentences."""

from typing import IO, Any

import click

from webhook.cli.printable import printable


class InputProblems(click.ClickException):
    """What was given has problems; each is one line on standard error. `exit_code` 1: the input, 2: the use."""

    def __init__(self, problems: tuple[str, ...], *, exit_code: int = 1) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
        self.exit_code = exit_code  # type: ignore[misc]  # click has it from the class; it reads it from the error

    def show(self, file: IO[Any] | None = None) -> None:
        """Tell the problems, one a line."""
        for problem in self.problems:
            click.echo(printable(problem), file=file, err=file is None)
