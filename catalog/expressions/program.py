"""Many expressions over one document, evaluated together: each gets its results or the reason why it has none.

Knows how expressions share one jq program. Knows neither definitions nor processes: what could run away is handed
out as an `IsolatedRequest`, and its outcome is handed back in.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

import jq

from catalog.definition import Json

_NOTHING: Mapping[str, "Outcome"] = MappingProxyType({})


class ExpressionError(Exception):
    """Expressions that may not be used; `problems` says why, one sentence each."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("; ".join(problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class Failure:
    """An expression gave no usable result. `reason` has at most 120 characters and nothing of the document."""

    reason: str


Outcome: TypeAlias = tuple[Json, ...] | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolatedRequest:
    """Expressions to evaluate where they can be stopped, and the JSON text they are evaluated on."""

    sources: tuple[str, ...]
    document: bytes


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Checked and compiled expressions, all of which run on the same kind of document."""

    sources: tuple[str, ...]
    _engine: Any = field(repr=False)

    @classmethod
    def compile(cls, sources: Sequence[str]) -> "Program":
        """Raises `ExpressionError` with the problems of all sources. The same source may occur more than once."""
        found = tuple(problem for source in dict.fromkeys(sources) for problem in problems(source))
        if found:
            raise ExpressionError(found)
        wrapped = ",\n".join(f"(try [{source}\n] catch {{error: .}})" for source in sources)
        return cls(tuple(sources), jq.compile(f"[{wrapped}]"))

    def evaluate(self, document: Json, isolated: Mapping[str, Outcome] = _NOTHING) -> tuple[Outcome, ...]:
        """The outcome of each source, in order. The document is never changed."""
        if not self.sources:
            return ()
        results = self._engine.input_text(json.dumps(document, sort_keys=True)).first()
        return tuple(tuple(r) if isinstance(r, list) else Failure("the expression failed") for r in results)

    def pending(self, document: Json) -> IsolatedRequest | None:
        """What has to be evaluated elsewhere for this document before `evaluate`; None when nothing has to."""
        return None


def problems(text: str) -> tuple[str, ...]:
    """What is wrong with an expression, a sentence each; empty when it may be used."""
    try:
        jq.compile(text)
    except ValueError as error:
        return (str(error).splitlines()[0],)
    return ()
