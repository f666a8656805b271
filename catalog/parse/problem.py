"""What is wrong with a definition: one sentence for each problem, with its place."""

import re
from dataclasses import dataclass

from catalog.resources.message import shown

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem. `found` is the value as a message shows it, None where there is no value to show.

    `path` leads from the document's root: `spec.structureDefinition.childComponents[0].name`.
    """

    path: str
    what: str
    found: str | None
    remedy: str

    def __str__(self) -> str:
        found = "" if self.found is None else f", found {self.found}"
        return f"{self.path}: {self.what}{found}, {self.remedy}"


class DefinitionError(ValueError):
    """A document that is no valid definition; `problems` holds everything that is wrong with it, in its own order."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


def below(path: str, name: str) -> str:
    """The path of a field: `path.name`, or `path["na.me"]` for a name that is no plain word."""
    if not _PLAIN_NAME.fullmatch(name):
        return f"{path}[{shown(name)}]"
    return f"{path}.{name}" if path else name


def listed(words: tuple[str, ...], conjunction: str = "and") -> str:
    """Words as a sentence has them: `a, b and c`."""
    *first, last = words
    return f"{', '.join(first)} {conjunction} {last}" if first else last
