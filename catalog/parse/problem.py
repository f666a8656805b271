"""What is wrong with a definition: one sentence for each problem, with its place."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice

from catalog.resources.message import shown

MOST_PROBLEMS = 100
"""Problems of one document that are told; who has more has sent something else than a definition."""

_MOST_COMPARED = 32  # names among which the nearest is looked for: comparing is slow
_LONGEST_COMPARED = 64
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


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The one of the names that was probably meant, if any of them is near."""
    known = tuple(islice(names, _MOST_COMPARED))
    return next(iter(get_close_matches(name[:_LONGEST_COMPARED], known, n=1)), None)
