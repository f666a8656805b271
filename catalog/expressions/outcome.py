"""What an evaluation gives: results or the reason why there are none, and what is handed to the worker.

Plain values, safe to send between processes; no behaviour.
"""

from dataclasses import dataclass
from typing import TypeAlias

from catalog.definition import Json

MAX_NUMBER = 2**53 - 1
"""The largest whole number that a double, which is all that jq has, tells from the next."""
MAX_REASON_LENGTH = 120
"""Characters of a failure's reason."""


class ExpressionError(Exception):
    """Expressions that may not be used; `problems` says why, one sentence each."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Failure:
    """An expression gave no usable result.

    `reason` has at most `MAX_REASON_LENGTH` characters and tells nothing of the document but types.
    `overran` is set when the expression took more time or memory than it may: it should not be tried again on
    documents like this one.
    """

    reason: str
    overran: bool = False


Outcome: TypeAlias = tuple[Json, ...] | Failure
"""All results of an expression in order, or why there are none. A result may share parts of the document."""


@dataclass(frozen=True, slots=True)
class IsolatedRequest:
    """Expressions to evaluate where they can be stopped, and the key-sorted JSON text to evaluate them on."""

    sources: tuple[str, ...]
    document: bytes
