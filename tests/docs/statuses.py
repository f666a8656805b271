"""Writes the page of statuses from the packaged definitions: what a framework says, and what it is in our vocabulary.

Knows the definitions, and what the cluster tests have seen real controllers do; not how pages are kept current.
"""

from collections.abc import Iterator

from catalog.definition import ConditionMatch, Definition, Matcher, Status, StatusMapping
from tests.cluster.live_objects import HELD, KINDS
from tests.golden.cases import packaged_catalog


def kinds() -> str:
    """A section for each kind: where its status is read, and a row for each status."""
    definitions = sorted((compiled.definition for compiled in packaged_catalog()), key=_order)
    return "\n\n".join(_section(definition) for definition in definitions)


def _order(definition: Definition) -> tuple[bool, str, str, str]:
    kind = definition.describes
    return ("." in kind.group, kind.kind, kind.group, kind.version)


def _section(definition: Definition) -> str:
    kind, mapping = definition.describes, definition.root.status
    lines = [f"### {kind.kind} (`{kind.api_version}`)", ""]
    if mapping is None or not mapping.matchers:
        return "\n".join([*lines, "Its controller writes no status that could be read: always Undefined."])
    source = "; ".join(_sources(mapping))
    if source:
        lines += [f"Read from {source}.", ""]
    lines += ["| status | when |", "|---|---|"]
    held = _held(definition)
    for status in Status:
        matchers = mapping.matchers.get(status, ())
        if matchers:
            mark = " ✓" if status.value in held else ""
            lines.append(f"| {status.value}{mark} | {'<br>or '.join(_when(matcher) for matcher in matchers)} |")
    return "\n".join(lines)


def _held(definition: Definition) -> tuple[str, ...]:
    """The statuses that were seen with the real controller, of this very version."""
    kind = definition.describes
    known = KINDS.get(kind.kind)
    return HELD.get(kind.kind, ()) if known is not None and known.api_version == kind.api_version else ()


def _sources(mapping: StatusMapping) -> Iterator[str]:
    if mapping.phase is not None:
        yield f"the phase {_code(mapping.phase.text)}"
    if mapping.conditions is not None:
        yield f"the conditions {_code(mapping.conditions.path.text)}"


def _when(matcher: Matcher) -> str:
    parts: list[str] = []
    if matcher.by_phase is not None:
        parts.append(f"phase is {_code(matcher.by_phase)}" if matcher.by_phase else "phase is empty")
    parts += [_condition(wanted) for wanted in matcher.by_conditions]
    if matcher.by_expression is not None:
        expected = matcher.by_expression.expected
        text = _code(matcher.by_expression.expression.text)
        parts.append(text if expected == "true" else f"{text} is {_code(expected)}")
    return " and ".join(parts)


def _condition(wanted: ConditionMatch) -> str:
    text = f"condition {_code(wanted.type)}"
    text += f" is {wanted.status}" if wanted.status else " is there"
    return text + (f" with reason {_code(wanted.reason)}" if wanted.reason else "")


def _code(text: str) -> str:
    """Code in a cell of a table: on one line, with its bars escaped."""
    return f"`{' '.join(text.split())}`".replace("|", "\\|")
