"""Reads a jq expression into nodes, with the grammar of jq 1.8 (src/parser.y).

Understands more than may be used (assignment, `..`), so that the check can name all it refuses at once; what has no
node (definitions, imports, labels, destructuring) is refused here. Knows nothing of the functions' names.
"""

from collections.abc import Callable

from catalog.expressions.nodes import (
    Array,
    Binary,
    Bind,
    Call,
    Comma,
    Each,
    Field,
    Fold,
    Format,
    Identity,
    If,
    Index,
    Literal,
    Negate,
    Node,
    Object,
    Path,
    Pipe,
    Slice,
    Step,
    Text,
    Try,
    Variable,
    walk,
)
from catalog.expressions.outcome import MAX_NUMBER
from catalog.expressions.tokens import Kind, SyntaxProblem, Token, tokens

MAX_NESTING = 40
"""Brackets, branches and right-hand sides inside one another."""
MAX_DEPTH = 120
"""Levels of the tree, chains of operators included: everything that reads the tree recurses this far."""
MAX_STEPS = 64
"""Steps of one path."""

_ASSIGNMENT = ("=", "|=", "+=", "-=", "*=", "/=", "%=", "//=")
_COMPARISON = ("==", "!=", "<", "<=", ">", ">=")
_PIPE, _COMMA, _ALTERNATIVE, _ASSIGN, _COMPARE, _ADD, _MULTIPLY = 0, 1, 2, 3, 6, 7, 8
_LEVELS = {
    "|": _PIPE,
    ",": _COMMA,
    "//": _ALTERNATIVE,
    **dict.fromkeys(_ASSIGNMENT, _ASSIGN),
    "or": 4,
    "and": 5,
    **dict.fromkeys(_COMPARISON, _COMPARE),
    **dict.fromkeys("+-", _ADD),
    **dict.fromkeys("*/%", _MULTIPLY),
}
_REFUSED_WORDS = {
    "def": "defines a function, which an expression may not; write its body where it is used",
    "import": "reads another file, which an expression may not; remove it",
    "include": "reads another file, which an expression may not; remove it",
    "module": "declares a module, which an expression is not; remove it",
    "label": "makes a loop that can be left early; use `first(…)`, `any` or `all`",
    "break": "leaves a loop early; use `first(…)`, `any` or `all`",
}


def parse(text: str) -> Node:
    """The tree of an expression. Raises `SyntaxProblem` with the first thing that can't be understood."""
    tree = _Parser(tokens(text)).whole()
    if max(depth for _, depth in walk(tree)) > MAX_DEPTH:
        raise SyntaxProblem(f"a chain of operators is too long; keep the expression within {MAX_DEPTH} levels")
    return tree


class _Parser:
    """Recursive descent; binary operators by precedence. Each method reads one rule and leaves `_at` behind it."""

    def __init__(self, read: tuple[Token, ...]) -> None:
        self._tokens = read
        self._at = 0
        self._nesting = 0

    def whole(self) -> Node:
        if self._at_end():
            raise SyntaxProblem("column 1: the expression is empty; write a path such as `.spec.replicas`")
        tree = self._expression(_PIPE)
        if not self._at_end():
            raise self._unexpected("an operator or the end")
        return tree

    # Tokens

    def _at_end(self) -> bool:
        return self._next.kind is Kind.END

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _sees(self, *written: str) -> bool:
        return self._next.kind in (Kind.OPERATOR, Kind.KEYWORD) and self._next.text in written

    def _accept(self, *written: str) -> bool:
        if self._sees(*written):
            self._at += 1
            return True
        return False

    def _expect(self, written: str) -> None:
        if not self._accept(written):
            raise self._unexpected(f"`{written}`")

    def _unexpected(self, wanted: str) -> SyntaxProblem:
        token = self._next
        if token.kind is Kind.END:
            return SyntaxProblem(f"column {token.column}: the expression ends where {wanted} is due; complete it")
        if token.text in ("?//", "?//="):
            return SyntaxProblem(
                f"column {token.column}: `?//` is jq's destructuring operator; "
                "put a space between `?` and `//` for an optional path with an alternative"
            )
        shown = {Kind.FIELD: ".", Kind.VARIABLE: "$", Kind.FORMAT: "@"}.get(token.kind, "") + token.text
        return SyntaxProblem(f"column {token.column}: found `{shown}` where {wanted} is due; correct the syntax")

    # Operators

    def _expression(self, minimum: int, *, binds: bool = True) -> Node:
        self._enter()
        left = self._operand(binds=binds)
        while (level := self._level()) >= minimum:
            left = self._operation(left, level, binds=binds)
        self._nesting -= 1
        return left

    def _enter(self) -> None:
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            raise SyntaxProblem(
                f"column {self._next.column}: nested deeper than {MAX_NESTING} levels; simplify the expression"
            )

    def _level(self) -> int:
        token = self._next
        return _LEVELS.get(token.text, -1) if token.kind in (Kind.OPERATOR, Kind.KEYWORD) else -1

    def _operation(self, left: Node, level: int, *, binds: bool) -> Node:
        if level == _PIPE:
            return Pipe((left, *self._rest("|", _COMMA, binds=binds)))
        if level == _COMMA:
            return Comma((left, *self._rest(",", _ALTERNATIVE, binds=binds)))
        operator = self._take()
        # `//` groups to the right; assignments and comparisons don't group; all others group to the left.
        right = self._expression(level if level == _ALTERNATIVE else level + 1, binds=binds)
        if level in (_ASSIGN, _COMPARE) and self._level() == level:
            raise self._unexpected("a parenthesis around one of two comparisons")
        return Binary(operator.text, left, right, operator.column)

    def _rest(self, separator: str, minimum: int, *, binds: bool) -> list[Node]:
        parts = []
        while self._accept(separator):
            parts.append(self._expression(minimum, binds=binds))
        return parts

    def _operand(self, *, binds: bool) -> Node:
        if self._accept("-"):
            body = self._expression(_MULTIPLY, binds=binds)
            return _negated(body)
        term = self._postfix()
        if binds and self._accept("as"):
            return self._binding(term)
        return term

    def _binding(self, source: Node) -> Node:
        name = self._variable_name()
        self._expect("|")
        return Bind(source, name, self._expression(_PIPE))

    def _variable_name(self) -> str:
        if self._sees("[", "{"):
            raise SyntaxProblem(
                f"column {self._next.column}: takes a value apart while naming it; name the whole (`as $x`) "
                "and read its parts (`$x.a`)"
            )
        if self._next.kind is not Kind.VARIABLE:
            raise self._unexpected("a variable such as `$x`")
        return self._take().text

    # Terms and what may follow them

    def _postfix(self) -> Node:
        node = self._term()
        while True:
            if (step := self._step()) is not None:
                node = self._lengthened(node, step)
            elif self._accept("?"):
                node = Try(node)
            else:
                return node

    def _lengthened(self, node: Node, step: Step) -> Path:
        if not isinstance(node, Path):
            return Path(node, (step,))
        if len(node.steps) == MAX_STEPS:
            raise SyntaxProblem(f"column {self._next.column}: a path of more than {MAX_STEPS} steps; shorten it")
        return Path(node.start, (*node.steps, step))

    def _step(self) -> Step | None:
        """One step of a path; a `?` right behind it belongs to it."""
        if self._next.kind is Kind.FIELD:
            return Field(self._take().text, self._accept("?"))
        dotted = False
        if self._sees(".") and (self._string_at(self._at + 1) or self._tokens[self._at + 1].text == "["):
            self._at += 1
            dotted = True
        if self._sees("["):
            return self._bracket(sliceable=not dotted)
        if self._at and self._tokens[self._at - 1].text == "." and self._string_at(self._at):
            return _step_to(self._string(), optional=self._accept("?"))
        return None

    def _string_at(self, at: int) -> bool:
        """Whether a string starts there, with or without a format before it."""
        if self._tokens[at].kind is Kind.FORMAT:
            at += 1
        return self._tokens[at].kind is Kind.QUOTE

    def _bracket(self, *, sliceable: bool) -> Step:
        self._expect("[")
        if self._accept("]"):
            return Each(self._accept("?"))
        start = None if sliceable and self._sees(":") else self._expression(_PIPE)
        if not (sliceable and self._accept(":")):
            self._expect("]")
            assert start is not None
            return _step_to(start, optional=self._accept("?"))
        end = None if start is not None and self._sees("]") else self._expression(_PIPE)
        self._expect("]")
        return Slice(start, end, self._accept("?"))

    def _term(self) -> Node:
        token = self._next
        if token.kind is Kind.KEYWORD:
            return self._keyword()
        if token.kind is Kind.FIELD:
            return Identity()  # the field itself is the first step
        if token.kind is Kind.QUOTE:
            return self._string()
        if token.kind is Kind.OPERATOR:
            return self._bracketed_term()
        return self._simple_term()

    def _simple_term(self) -> Node:
        match self._next:
            case Token(Kind.NUMBER, text, column):
                self._at += 1
                return Literal(_number(text, column))
            case Token(Kind.VARIABLE, name, column):
                self._at += 1
                return Variable(name, column)
            case Token(Kind.NAME, "null" | "true" | "false" as word) if not self._calls():
                self._at += 1
                return Literal({"null": None, "true": True, "false": False}[word])
            case Token(Kind.NAME, name, column):
                self._at += 1
                return Call(name, self._arguments(), column)
            case Token(Kind.FORMAT, name, column):
                if self._string_at(self._at):
                    return self._string()
                self._at += 1
                return Format(name, column)
        raise self._unexpected("a value")

    def _calls(self) -> bool:
        following = self._tokens[self._at + 1]
        return following.kind is Kind.OPERATOR and following.text == "("

    def _arguments(self) -> tuple[Node, ...]:
        if not self._accept("("):
            return ()
        arguments = [self._expression(_PIPE)]
        while self._accept(";"):
            arguments.append(self._expression(_PIPE))
        self._expect(")")
        return tuple(arguments)

    def _bracketed_term(self) -> Node:
        column = self._next.column
        if self._sees("."):
            # Before a string or a bracket the dot belongs to that step.
            self._at += 1
            return Identity()
        if self._accept(".."):
            return Call("..", (), column)
        if self._accept("("):
            inner = self._expression(_PIPE)
            self._expect(")")
            # A path in parentheses is closed: a step behind it is evaluated on its results.
            return Pipe((inner,)) if isinstance(inner, Path) else inner
        if self._accept("["):
            body = None if self._sees("]") else self._expression(_PIPE)
            self._expect("]")
            return Array(body)
        if self._accept("{"):
            return self._object()
        raise self._unexpected("a value")

    # Strings

    def _string(self) -> Node:
        format_name = self._take().text if self._next.kind is Kind.FORMAT else "text"
        opening = self._take()
        parts: list[str | Node] = []
        while (token := self._take()).kind is not Kind.QUOTE:
            if token.kind is Kind.TEXT:
                parts.append(token.text)
                continue
            parts.append(self._expression(_PIPE))
            if self._take().kind is not Kind.CLOSE:
                self._at -= 1
                raise self._unexpected("the `)` that ends an interpolation")
        if all(isinstance(part, str) for part in parts):
            # Formats apply to what is interpolated, never to the text around it.
            return Literal("".join(part for part in parts if isinstance(part, str)))
        return Text(format_name, tuple(parts), opening.column)

    # Objects

    def _object(self) -> Node:
        entries: list[tuple[Node, Node]] = []
        while not self._accept("}"):
            entries.append(self._entry())
            if not self._accept(",") and not self._sees("}"):
                raise self._unexpected("`,` or `}`")
        return Object(tuple(entries))

    def _entry(self) -> tuple[Node, Node]:
        token = self._next
        if self._accept("("):
            key = self._expression(_PIPE)
            self._expect(")")
            if not self._sees(":"):
                raise self._unexpected("`:` and a value")
            self._refuse_key(key, token)
        else:
            key = self._key()
        if self._accept(":"):
            return key, self._entry_value()
        return _shorthand(key, token)

    def _refuse_key(self, key: Node, token: Token) -> None:
        if isinstance(key, Literal) and not isinstance(key.value, str):
            raise SyntaxProblem(f"column {token.column}: an object's key is a string; put the key in quotes")

    def _key(self) -> Node:
        match self._next:
            case Token(Kind.NAME | Kind.KEYWORD, word):
                self._at += 1
                return Literal(word)
            case Token(Kind.VARIABLE, name, column):
                self._at += 1
                return Variable(name, column)
            case Token(Kind.QUOTE | Kind.FORMAT) if self._string_at(self._at):
                return self._string()
        raise self._unexpected("an object's key")

    def _entry_value(self) -> Node:
        stages = [self._expression(_ALTERNATIVE, binds=False)]
        while self._accept("|"):
            stages.append(self._expression(_ALTERNATIVE, binds=False))
        return stages[0] if len(stages) == 1 else Pipe(tuple(stages))

    # Words

    def _keyword(self) -> Node:
        readers: dict[str, Callable[[], Node]] = {
            "if": self._if,
            "try": self._try,
            "reduce": self._reduce,
            "foreach": self._foreach,
        }
        word = self._next
        if word.text in _REFUSED_WORDS:
            raise SyntaxProblem(f"column {word.column}: `{word.text}` {_REFUSED_WORDS[word.text]}")
        if word.text not in readers:
            raise self._unexpected("a value")
        self._at += 1
        self._enter()
        node = readers[word.text]()
        self._nesting -= 1
        return node

    def _if(self) -> Node:
        branches = []
        while True:
            condition = self._expression(_PIPE)
            self._expect("then")
            branches.append((condition, self._expression(_PIPE)))
            if not self._accept("elif"):
                break
        otherwise = self._expression(_PIPE) if self._accept("else") else Identity()
        self._expect("end")
        return If(tuple(branches), otherwise)

    def _try(self) -> Node:
        body = self._attempted()
        return Try(body, self._attempted() if self._accept("catch") else None)

    def _attempted(self) -> Node:
        if self._accept("-"):
            return Negate(self._postfix())
        return self._postfix()

    def _reduce(self) -> Node:
        source, name, parts = self._fold()
        if len(parts) != 2:
            raise SyntaxProblem(f"column {self._next.column}: `reduce` has 2 parts (start; update), not {len(parts)}")
        return Fold("reduce", source, name, *parts)

    def _foreach(self) -> Node:
        source, name, parts = self._fold()
        if len(parts) not in (2, 3):
            raise SyntaxProblem(f"column {self._next.column}: `foreach` has 2 or 3 parts, not {len(parts)}")
        return Fold("foreach", source, name, *parts)

    def _fold(self) -> tuple[Node, str, list[Node]]:
        source = self._postfix()
        self._expect("as")
        name = self._variable_name()
        self._expect("(")
        parts = [self._expression(_PIPE)]
        while self._accept(";"):
            parts.append(self._expression(_PIPE))
        self._expect(")")
        return source, name, parts


def _negated(body: Node) -> Node:
    if isinstance(body, Literal) and isinstance(body.value, int | float) and not isinstance(body.value, bool):
        return Literal(-body.value)
    return Negate(body)


def _number(text: str, column: int) -> int | float:
    value = int(text) if text.isdigit() else float(text)
    if value > MAX_NUMBER:
        raise SyntaxProblem(f"column {column}: the number {text[:30]} is beyond 2^53, where numbers are not exact")
    return int(value) if value == int(value) else value


def _step_to(key: Node, *, optional: bool) -> Step:
    if isinstance(key, Literal) and isinstance(key.value, str):
        return Field(key.value, optional)
    return Index(key, optional)


def _shorthand(key: Node, token: Token) -> tuple[Node, Node]:
    match key:
        case Literal(str(name)):
            return key, Path(Identity(), (Field(name),))
        case Variable(name):
            return Literal(name), key
        case _:
            raise SyntaxProblem(f"column {token.column}: a key with interpolation has no value; write `key: value`")
