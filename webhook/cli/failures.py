"""Failures that a person is told in plain sentences."""


class InputProblems(Exception):
    """What was given has problems; each is one line on standard error. `exit_code` 1: the input, 2: the use."""

    def __init__(self, problems: tuple[str, ...], *, exit_code: int = 1) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
        self.exit_code = exit_code
