"""The tokens of a jq expression: names, fields, numbers, strings with interpolation, operators; comments are dropped.

Follows the lexer of jq 1.8 (src/lexer.l). Knows nothing of grammar, nor of what is allowed.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto

KEYWORDS = frozenset(
    {"and", "as", "break", "catch", "def", "elif", "else", "end", "foreach", "if", "import", "include", "label"}
    | {"module", "or", "reduce", "then", "try", "__loc__"}
)

_UNUSABLE = re.compile("[\0\ud800-\udfff]")
_SKIPPED = re.compile(r"[ \t\r\n]+|#[^\n]*")
_TOKEN = re.compile(
    r"""(?P<field>\.[a-zA-Z_][a-zA-Z_0-9]*)
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<variable>\$(?:[a-zA-Z_][a-zA-Z_0-9]*::)*[a-zA-Z_][a-zA-Z_0-9]*)
      | (?P<format>@[a-zA-Z0-9_]+)
      | (?P<name>(?:[a-zA-Z_][a-zA-Z_0-9]*::)*[a-zA-Z_][a-zA-Z_0-9]*)
      | (?P<operator>\?//=?|//=|\|=|\+=|-=|\*=|/=|%=|!=|==|<=|>=|//|\.\.|[.?=;,:|+\-*/%<>()\[\]{}])
      | (?P<quote>")""",
    re.VERBOSE,
)
_TEXT = re.compile(r'(?:[^"\\]|\\(?!\().)+', re.DOTALL)


class Kind(Enum):
    """What a token is. A string is QUOTE, TEXT and OPEN…CLOSE (an interpolated expression) in any order, QUOTE."""

    FIELD = auto()
    NUMBER = auto()
    VARIABLE = auto()
    FORMAT = auto()
    NAME = auto()
    KEYWORD = auto()
    OPERATOR = auto()
    QUOTE = auto()
    TEXT = auto()
    OPEN = auto()
    CLOSE = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """`text` is a field's, variable's or format's bare name, a string's unescaped text, else what is written.

    `column` counts characters of the whole expression from 1.
    """

    kind: Kind
    text: str
    column: int


class SyntaxProblem(Exception):
    """The expression can't be understood; the message is a sentence for a person."""


def tokens(text: str) -> tuple[Token, ...]:
    """All tokens, the last one of kind END. Raises `SyntaxProblem`."""
    return tuple(_scan(text))


def _scan(text: str) -> Iterator[Token]:
    if found := _UNUSABLE.search(text):
        raise SyntaxProblem(f"column {found.start() + 1}: the expression holds a NUL or half a character; remove it")
    at = 0
    enclosing: list[str] = []  # what has to be closed: "(" in code, "\\(" an interpolation, '"' a string
    while at < len(text):
        if enclosing and enclosing[-1] == '"':
            token, at = _inside_string(text, at)
        elif skipped := _SKIPPED.match(text, at):
            at = _after_skipped(skipped)
            continue
        else:
            token, at = _in_code(text, at)
        yield _bracketed(token, enclosing)
    if enclosing:
        what = "string" if '"' in enclosing or "\\(" in enclosing else "bracket"
        raise SyntaxProblem(f"column {len(text) + 1}: the expression ends inside a {what}; close it")
    yield Token(Kind.END, "", len(text) + 1)


def _after_skipped(skipped: re.Match[str]) -> int:
    """jq versions disagree on comments that a backslash or a bare carriage return would continue or end."""
    comment = skipped.group().removesuffix("\r")
    if comment.startswith("#") and (comment.endswith("\\") or "\r" in comment):
        raise SyntaxProblem(
            f"column {skipped.start() + 1}: a comment ends in a backslash or holds a carriage return; "
            "end comments with plain text and a newline"
        )
    return skipped.end()


def _in_code(text: str, at: int) -> tuple[Token, int]:
    found = _TOKEN.match(text, at)
    if found is None:
        raise SyntaxProblem(f"column {at + 1}: the character {text[at]!r} has no meaning in jq; remove it")
    kind = found.lastgroup or ""
    return Token(*_named(kind, found.group()), at + 1), found.end()


def _named(kind: str, written: str) -> tuple[Kind, str]:
    match kind:
        case "field" | "variable" | "format":
            return Kind[kind.upper()], written[1:]
        case "name":
            return (Kind.KEYWORD if written in KEYWORDS else Kind.NAME), written
        case _:
            return Kind[kind.upper()], written


def _inside_string(text: str, at: int) -> tuple[Token, int]:
    if text[at] == '"':
        return Token(Kind.QUOTE, '"', at + 1), at + 1
    if text.startswith("\\(", at):
        return Token(Kind.OPEN, "\\(", at + 1), at + 2
    found = _TEXT.match(text, at)
    if found is None:
        raise SyntaxProblem(f"column {at + 1}: the expression ends inside a string; close it")
    return Token(Kind.TEXT, _unescaped(found.group(), at + 1), at + 1), found.end()


def _unescaped(written: str, column: int) -> str:
    if "\\" not in written:
        return written
    try:
        # JSON's escapes are jq's. Only what stands outside escapes may hold raw control characters: strict=False.
        text: str = json.loads(f'"{written}"', strict=False)
        text.encode()
    except ValueError:
        raise SyntaxProblem(
            f"column {column}: a string holds an escape that is not JSON's; "
            r"write \" \\ \/ \b \f \n \r \t, \u and four hexadecimal digits (pairs for surrogates), or \( … )"
        ) from None
    return text


def _bracketed(token: Token, enclosing: list[str]) -> Token:
    """Keeps track of brackets, so that the one which ends an interpolation is told from the others."""
    match token:
        case Token(Kind.QUOTE):
            if enclosing and enclosing[-1] == '"':
                enclosing.pop()
            else:
                enclosing.append('"')
        case Token(Kind.OPEN, opening) | Token(Kind.OPERATOR, "(" | "[" | "{" as opening):
            enclosing.append(opening)
        case Token(Kind.OPERATOR, ")" | "]" | "}" as closing):
            opened = enclosing.pop() if enclosing else ""
            if opened == "\\(" and closing == ")":
                return Token(Kind.CLOSE, ")", token.column)
            if opened + closing not in ("()", "[]", "{}"):
                raise SyntaxProblem(f"column {token.column}: `{closing}` closes nothing that is open; remove it")
    return token
