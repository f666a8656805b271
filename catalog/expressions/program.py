"""Many expressions over one document, evaluated together: each gets its results or the reason why it has none.

Chooses for each expression where it is evaluated: in Python; by libjq in this process, all in one program on the parts
of the document that they read, where the cost is linear and bounded; or elsewhere, as an `IsolatedRequest`, whose
outcomes are handed back in. Knows neither definitions nor processes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

from catalog.definition import Json
from catalog.expressions.check import checked, problems
from catalog.expressions.cost import linear_passes
from catalog.expressions.engine import Engine
from catalog.expressions.nodes import Node
from catalog.expressions.outcome import ExpressionError, Failure, IsolatedRequest, Outcome
from catalog.expressions.plain import (
    MAX_STEPS,
    Beyond,
    Exhausted,
    Fault,
    Meter,
    NotPlain,
    Plain,
    compile_plain,
    new_meter,
)
from catalog.expressions.prune import Shape, TooLarge, Unwritable, pruned, shape, written
from catalog.expressions.reads import read_parts
from catalog.expressions.render import render

MAX_TEXT = 64 * 1024
"""Bytes of JSON text that libjq is given in this process."""
MAX_WORK = 80 * 1024
"""Bytes of JSON text times passes over them: what libjq may have to do in this process for one document.

The slowest that was found takes 0.45 µs for each (`join` on an array of one-digit numbers): 64 KiB alone would not keep
it within 50 ms.
"""
MAX_ISOLATED_TEXT = 3 * 1024 * 1024
"""Bytes; the API server takes no larger objects."""

_NOTHING: Mapping[str, Outcome] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Analysis:
    """One expression and how it may be evaluated: by `plain`, else in `passes` over its input, else only elsewhere."""

    source: str
    tree: Node
    plain: Plain | None
    slots: int
    passes: int | None


@lru_cache(maxsize=4096)
def analysed(source: str) -> Analysis:
    """Raises `ExpressionError`."""
    tree, found = checked(source)
    if tree is None:
        raise ExpressionError(found)
    if linear_passes(tree, copies=False) is not None:
        try:
            plain, slots = compile_plain(tree)
        except NotPlain:
            pass
        else:
            return Analysis(source, tree, plain, slots, None)
    return Analysis(source, tree, None, 0, linear_passes(tree, copies=True))


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """Expressions for libjq that read the same text: the parts of the document that any of them reads."""

    sources: tuple[str, ...]
    kept: Shape
    passes: int
    trees: tuple[Node, ...]

    @classmethod
    def of(cls, analyses: Sequence[Analysis]) -> "_Group | None":
        """None for no expressions."""
        if not analyses:
            return None
        trees = tuple(analysis.tree for analysis in analyses)
        passes = sum(analysis.passes or 0 for analysis in analyses)
        return cls(tuple(analysis.source for analysis in analyses), shape(read_parts(trees)), passes, trees)

    def text(self, document: Json) -> bytes:
        """Raises `TooLarge` or `Unwritable`."""
        return written(pruned(document, self.kept))

    def fits(self, text: bytes) -> bool:
        """Whether libjq may evaluate these expressions, all of them linear, on that text in this process."""
        return len(text) <= MAX_TEXT and len(text) * self.passes <= MAX_WORK


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """Checked and compiled expressions, all of which run on the same kind of document."""

    sources: tuple[str, ...]
    _plain: tuple[Plain | None, ...] = field(repr=False)
    _slots: int = field(repr=False)
    _linear: _Group | None = field(repr=False)
    _engine: Engine | None = field(repr=False)
    _others: _Group | None = field(repr=False)
    _all: _Group | None = field(repr=False)

    @classmethod
    def compile(cls, sources: Sequence[str]) -> "Program":
        """Raises `ExpressionError` with the problems of all sources. The same source may occur more than once."""
        found = tuple(problem for source in dict.fromkeys(sources) for problem in problems(source))
        if found:
            raise ExpressionError(found)
        each = [analysed(source) for source in sources]
        for_libjq = list({analysis.source: analysis for analysis in each if analysis.plain is None}.values())
        linear = _Group.of([analysis for analysis in for_libjq if analysis.passes is not None])
        return cls(
            sources=tuple(sources),
            _plain=tuple(analysis.plain for analysis in each),
            _slots=max((analysis.slots for analysis in each), default=0),
            _linear=linear,
            _engine=Engine.compile([render(tree) for tree in linear.trees]) if linear is not None else None,
            _others=_Group.of([analysis for analysis in for_libjq if analysis.passes is None]),
            _all=_Group.of(for_libjq),
        )

    @property
    def is_plain(self) -> bool:
        """Whether everything is evaluated in Python, so that nothing is ever pending."""
        return self._all is None

    def evaluate(self, document: Json, isolated: Mapping[str, Outcome] = _NOTHING) -> tuple[Outcome, ...]:
        """The outcome of each source, in order; one that fails does not affect the others.

        Results may share parts of the document, which is never changed. `isolated` holds what the worker found for
        the sources that `pending` named; without it they are failures.
        """
        known = self._by_libjq(document, isolated) if self._all is not None else isolated
        meter = new_meter(self._slots)
        steps = MAX_STEPS
        outcomes: list[Outcome] = []
        for source, plain in zip(self.sources, self._plain, strict=True):
            if plain is None:
                outcomes.append(known[source])
                continue
            # Half of what is left, so that one that takes too much leaves something for those after it.
            meter[0] = share = steps // 2
            outcomes.append(_evaluated(plain, document, meter))
            steps -= share - max(meter[0], 0)
        return tuple(outcomes)

    def pending(self, document: Json) -> IsolatedRequest | None:
        """What has to be evaluated in the worker for this document before `evaluate`; None when nothing has to.

        That is every expression whose cost isn't linear, and those whose cost is when there is too much to read. None
        also when the document can't be handed on: the outcomes say so.
        """
        wanted = self._others if self._linear is None or self._fitting_text(document) is not None else self._all
        if wanted is None:
            return None
        try:
            text = wanted.text(document)
        except (TooLarge, Unwritable):
            return None
        return IsolatedRequest(wanted.sources, text) if len(text) <= MAX_ISOLATED_TEXT else None

    def _fitting_text(self, document: Json) -> bytes | None:
        """The text for the linear expressions, or None if they can't be evaluated in this process."""
        assert self._linear is not None
        try:
            text = self._linear.text(document)
        except (TooLarge, Unwritable):
            return None
        return text if self._linear.fits(text) else None

    def _by_libjq(self, document: Json, isolated: Mapping[str, Outcome]) -> dict[str, Outcome]:
        """The outcome of every source that isn't evaluated in Python."""
        assert self._all is not None
        known = dict(isolated)
        if self._engine is not None and self._linear is not None and not known.keys() >= set(self._linear.sources):
            text = self._fitting_text(document)
            if text is not None:
                known.update(zip(self._linear.sources, self._engine.run(text.decode()), strict=True))
        missing = [source for source in self._all.sources if source not in known]
        return {**known, **dict.fromkeys(missing, Failure(self._why_missing(document)))} if missing else known

    def _why_missing(self, document: Json) -> str:
        assert self._all is not None
        try:
            too_large = len(self._all.text(document)) > MAX_ISOLATED_TEXT
        except TooLarge:
            too_large = True
        except Unwritable as error:
            return str(error)
        return "the object is too large for it" if too_large else "it was not evaluated: it needs the worker"


def _evaluated(plain: Plain, document: Json, meter: Meter) -> Outcome:
    try:
        return plain(document, meter)
    except Fault as fault:
        return Failure(str(fault))
    except Beyond as reason:
        return Failure(f"not supported: {reason}")
    except (OverflowError, ValueError):
        # An integer of hundreds of digits, or no number at all: YAML can hold both.
        return Failure("not supported: a number that JSON does not hold")
    except Exhausted:
        return Failure("it takes too many steps on an object of this size")
    except RecursionError:
        return Failure("the object or the expression is nested too deeply")
