"""libjq, behind the one door to it: compiles text, runs it on JSON text, and turns what happens into outcomes.

Knows nothing of what is allowed or linear. libjq can't be stopped and holds the interpreter lock: who calls `run` in
a serving process answers for what it costs.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jq

from catalog.definition import Json
from catalog.expressions.outcome import MAX_NUMBER, MAX_REASON_LENGTH, Failure, Outcome
from catalog.expressions.render import PRELUDE

_WRAPPED = '(try {{v: [{0}]}} catch {{e: (if type == "string" then . else "" end)}})'
_TYPES = "(null|boolean|number|string|array|object)"
_CONTENT = r"(?: \(.*\))?"
_KNOWN_ERRORS = tuple(
    (re.compile(pattern, re.DOTALL), reason)
    for pattern, reason in (
        (rf"Cannot index {_TYPES} with (?:{_TYPES}{_CONTENT}|\".*\")", "cannot index {0} with {1}"),
        (rf"Cannot iterate over {_TYPES}{_CONTENT}", "cannot iterate over {0}"),
        (
            rf"{_TYPES}{_CONTENT} and {_TYPES}{_CONTENT} cannot be (added|subtracted|multiplied)",
            "{0} and {1} cannot be {2}",
        ),
        (rf"{_TYPES}{_CONTENT} and {_TYPES}{_CONTENT} cannot be divided.* because .*zero", "division by zero"),
        (rf"{_TYPES}{_CONTENT} and {_TYPES}{_CONTENT} cannot be divided", "{0} and {1} cannot be divided"),
        (rf"{_TYPES}{_CONTENT} (has no keys|has no length|cannot be negated)", "{0} {1}"),
        (rf"{_TYPES}{_CONTENT} cannot be parsed as a (number|boolean)", "{0} cannot be read as a {1}"),
        (rf"{_TYPES}{_CONTENT} number required", "a number is needed, not {0}"),
        (rf"{_TYPES}{_CONTENT} cannot be (sorted|grouped|matched).*", "{0} cannot be {1}"),
        (r"(startswith|endswith|ltrimstr|rtrimstr|split|explode|trim)\b.*", "{0} needs strings"),
    )
)


class NumberBeyondExactness(Exception):
    """A result holds a number that a double can't hold exactly."""


@dataclass(frozen=True, slots=True, eq=False)
class Engine:
    """Rendered expressions, compiled into one program; each has its own outcome."""

    _program: Any = field(repr=False)

    @classmethod
    def compile(cls, rendered: Sequence[str]) -> "Engine":
        """Takes about a millisecond, nearly all of it for jq's own builtins. The texts are known to compile."""
        wrapped = ",\n".join(_WRAPPED.format(text) for text in rendered)
        return cls(jq.compile(f"{PRELUDE}[{wrapped}]"))

    def run(self, document: str) -> tuple[Outcome, ...]:
        """One outcome for each expression, in order. `document` is JSON text, its keys sorted."""
        (results,) = self._program.input_text(document).all()
        return tuple(_outcome(result) for result in results)


def refusal(text: str) -> str:
    """Why libjq does not compile a text, as a sentence, or an empty string."""
    try:
        jq.compile(f"{PRELUDE}\n{text}\n")
    except ValueError as error:
        return f"jq does not compile it: {str(error).splitlines()[0].removeprefix('jq: error: ')[:MAX_REASON_LENGTH]}"
    return ""


def normalised(value: Json) -> Json:
    """The same value with whole numbers as int. Raises `NumberBeyondExactness`; copies what it has to."""
    if type(value) is float:
        if not math.isfinite(value) or abs(value) > MAX_NUMBER:
            raise NumberBeyondExactness
        return int(value) if value.is_integer() else value
    if type(value) is int and abs(value) > MAX_NUMBER:
        raise NumberBeyondExactness
    if type(value) is list:
        return [normalised(element) for element in value]
    if type(value) is dict:
        return {key: normalised(element) for key, element in value.items()}
    return value


def _outcome(result: Json) -> Outcome:
    if "e" in result:
        return Failure(reason_without_content(result["e"]))
    try:
        return tuple(normalised(value) for value in result["v"])
    except NumberBeyondExactness:
        return Failure("a result is a number beyond 2^53")
    except RecursionError:
        return Failure("a result is nested too deeply")


def reason_without_content(message: str) -> str:
    """libjq quotes the document in its messages; a reason names types only."""
    for pattern, reason in _KNOWN_ERRORS:
        if found := pattern.fullmatch(message):
            return reason.format(*(group or "a string" for group in found.groups()))[:MAX_REASON_LENGTH]
    return "the expression raised an error"
