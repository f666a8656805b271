"""Checks definitions as they would be used: what is written in them, and whether their expressions end when tried."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Self

from catalog import load
from catalog.definition import Definition, Expression, GroupVersionKind, Json
from catalog.expressions import Program
from catalog.library import CompiledDefinition
from catalog.worker import ExpressionWorker, try_out
from webhook.cli.manifests import STDIN, named, read

PATIENCE = 8.0
"""Seconds that may be lost on expressions that overrun, all together; those that end take milliseconds."""

SAMPLES: tuple[Json, ...] = ({}, None)
"""What expressions are tried on; one that overruns on the first is not tried on the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The definitions that can be used, sentences about those that can't, and notes about the others."""

    good: tuple[Definition, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]


def checked(paths: Sequence[str]) -> Report:
    """Check every definition in files, folders and standard input (`-`)."""
    good: list[Definition] = []
    problems: list[str] = []
    with _Trial() as trial:
        for path in paths:
            documents, faults = _documents(path)
            problems.extend(str(fault) for fault in faults)
            if not documents and not faults:
                problems.append(f"{named(path)}: there is no definition in it")
            for document in documents:
                definition, wrong = load.definition_in(document)
                wrong = wrong if definition is None else tuple(trial.problems(definition, document))
                problems.extend(str(problem) for problem in wrong)
                if definition is not None and not wrong:
                    good.append(definition)
    return Report(good=tuple(good), problems=tuple(problems), notes=tuple(_repeated(good)))


def _documents(path: str) -> load.Documents:
    if path != STDIN and Path(path).is_dir():
        return load.directory_documents(Path(path))
    return load.without_others(read(path, load.LARGEST_DEFINITIONS))


class _Trial:
    """Tries expressions in a process of their own, until too much time is lost on those that overrun."""

    def __init__(self) -> None:
        self._worker = ExpressionWorker()
        self._patience = PATIENCE

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def problems(self, definition: Definition, document: load.Document) -> Iterator[load.LoadProblem]:
        """A sentence, with its line, for each expression that does not end, or was not tried for lack of time."""
        untried: list[str] = []
        for source in CompiledDefinition(definition).sources:
            path = next((each.path for each in _expressions(definition) if each.text == source), "")
            if self._patience <= 0:
                untried += [path] if _needs_trial(source) else []
            elif (fault := self._fault(source)) is not None:
                yield load.LoadProblem(document.origin, document.line_of(path), f"{path}: {fault}")
        if untried:
            what = f"{len(untried)} expressions from {untried[0]} on were not tried: others took all the time"
            yield load.LoadProblem(document.origin, document.line_of(untried[0]), what)

    def _fault(self, source: str) -> str | None:
        for sample in SAMPLES:
            began = time.monotonic()
            overran = try_out([source], samples=[sample], worker=self._worker)
            if overran:
                self._patience -= time.monotonic() - began
                return overran[0]
        return None


def _needs_trial(source: str) -> bool:
    """Whether an expression is not known to end by its form."""
    return Program.compile([source]).pending({}) is not None


def _expressions(part: Any) -> Iterator[Expression]:
    """Every expression in a definition, in the order of its fields."""
    if isinstance(part, Expression):
        yield part
    elif is_dataclass(part):
        for field in fields(part):
            yield from _expressions(getattr(part, field.name))
    elif isinstance(part, tuple | dict):
        for each in part.values() if isinstance(part, dict) else part:
            yield from _expressions(each)


def _repeated(definitions: Sequence[Definition]) -> Iterator[str]:
    """A note for each kind that is described twice: in one source only one of the two is used."""
    first: dict[GroupVersionKind, Definition] = {}
    for definition in definitions:
        other = first.setdefault(definition.describes, definition)
        if other is not definition:
            kind = definition.describes
            yield f"{definition.origin}: note: {kind} is described in {other.origin} too; only one of them is used"
