"""The functions, formats and variables an expression may use, and why it may not use others.

A list of what is allowed, never of what is forbidden: a function that jq gains tomorrow is refused until it is added
here with what it costs. Sources: jq 1.8 manual; gojq's list of differences.
"""

from dataclasses import dataclass
from enum import Enum, auto


class Work(Enum):
    """What one call costs, besides its arguments, as the size of its input and of the document grows."""

    CONSTANT = auto()
    """The same for every input; the result has a bounded size."""
    MEASURE = auto()
    """In proportion to the input; the result has a bounded size."""
    PICK = auto()
    """The same for every input; the result is part of the input or of an argument."""
    TRANSFORM = auto()
    """In proportion to the input; so is the result's size."""
    SEPARATE = auto()
    """Like TRANSFORM when the argument is a literal; else the argument's size may count once per element."""
    FILTER = auto()
    """The arguments are evaluated on the input, or on each of its elements: the analysis knows each by name."""
    UNBOUNDED = auto()
    """Can't be bounded by looking at the expression: regular expressions, loops in jq's own definition."""


@dataclass(frozen=True, slots=True)
class Function:
    """One allowed function. `gives` is the type of every result where there is only one.

    `growth` bounds the result's size as a multiple of the input's.
    """

    work: Work
    gives: str = ""
    growth: int = 1


_NUMBER = Function(Work.CONSTANT, "number")
_TEST = Function(Work.CONSTANT, "boolean")
_TRIM = Function(Work.TRANSFORM, "string")
_SORT = Function(Work.TRANSFORM, "array", 2)
_FILTER = Function(Work.FILTER)
_SELECT_BY_TYPE = Function(Work.PICK)
_UNBOUNDED = Function(Work.UNBOUNDED)

FUNCTIONS: dict[str, Function] = {
    # Numbers
    **dict.fromkeys(("floor/0", "ceil/0", "round/0", "trunc/0", "fabs/0", "abs/0", "sqrt/0", "pow/2"), _NUMBER),
    # What a value is
    "type/0": Function(Work.CONSTANT, "string"),
    "not/0": _TEST,
    "length/0": Function(Work.MEASURE, "number"),
    "utf8bytelength/0": Function(Work.MEASURE, "number"),
    **dict.fromkeys(("has/1", "in/1"), _TEST),
    "contains/1": Function(Work.SEPARATE, "boolean"),
    "inside/1": _UNBOUNDED,
    **dict.fromkeys(
        ("values/0", "nulls/0", "booleans/0", "numbers/0", "strings/0", "arrays/0", "objects/0"), _SELECT_BY_TYPE
    ),
    **dict.fromkeys(("scalars/0", "iterables/0"), _SELECT_BY_TYPE),
    # Arrays and objects
    "keys/0": Function(Work.TRANSFORM, "array"),
    "to_entries/0": Function(Work.TRANSFORM, "array", 2),
    "from_entries/0": Function(Work.TRANSFORM, "object"),
    "with_entries/1": _FILTER,
    "map/1": _FILTER,
    "map_values/1": _UNBOUNDED,
    "select/1": _FILTER,
    "add/0": Function(Work.TRANSFORM),
    "add/1": _FILTER,
    **dict.fromkeys(("any/0", "all/0"), Function(Work.MEASURE, "boolean")),
    **dict.fromkeys(("any/1", "any/2", "all/1", "all/2", "isempty/1", "IN/1"), Function(Work.FILTER, "boolean")),
    **dict.fromkeys(("min/0", "max/0"), Function(Work.TRANSFORM)),
    **dict.fromkeys(("min_by/1", "max_by/1", "first/1", "last/1"), _FILTER),
    **dict.fromkeys(("sort_by/1", "group_by/1", "unique_by/1"), Function(Work.FILTER, "array")),
    **dict.fromkeys(("first/0", "last/0", "nth/1"), Function(Work.PICK)),
    **dict.fromkeys(("sort/0", "unique/0", "reverse/0"), _SORT),
    **dict.fromkeys(("flatten/0", "flatten/1", "transpose/0"), _UNBOUNDED),
    **dict.fromkeys(("index/1", "rindex/1"), Function(Work.SEPARATE, "", 1)),
    "indices/1": Function(Work.SEPARATE, "", 8),
    "getpath/1": Function(Work.PICK),
    **dict.fromkeys(("range/1", "range/2", "range/3"), Function(Work.FILTER, "number")),
    # Strings
    **dict.fromkeys(("startswith/1", "endswith/1"), Function(Work.MEASURE, "boolean")),
    **dict.fromkeys(("ltrimstr/1", "rtrimstr/1", "trim/0", "ltrim/0", "rtrim/0"), _TRIM),
    **dict.fromkeys(("ascii_downcase/0", "ascii_upcase/0"), _TRIM),
    "split/1": Function(Work.TRANSFORM, "array", 2),
    "join/1": Function(Work.SEPARATE, "string", 2),
    "explode/0": Function(Work.TRANSFORM, "array", 4),
    "tostring/0": Function(Work.TRANSFORM, "string", 6),
    "tojson/0": Function(Work.TRANSFORM, "string", 6),
    "tonumber/0": Function(Work.MEASURE, "number"),
    "toboolean/0": Function(Work.CONSTANT, "boolean"),
    **dict.fromkeys(("fromjson/0", "implode/0", "ascii/0"), _UNBOUNDED),
    **dict.fromkeys(
        ("test/1", "test/2", "match/1", "match/2", "capture/1", "capture/2", "scan/1", "scan/2"), _UNBOUNDED
    ),
    **dict.fromkeys(("split/2", "splits/1", "splits/2", "sub/2", "sub/3", "gsub/2", "gsub/3"), _UNBOUNDED),
    # Control
    "empty/0": Function(Work.CONSTANT),
    **dict.fromkeys(("error/0", "error/1"), Function(Work.CONSTANT)),
}
"""By name and number of arguments."""

FORMATS: dict[str, int] = {
    "text": 6,
    "json": 6,
    "html": 6,
    "uri": 3,
    "csv": 2,
    "tsv": 2,
    "sh": 4,
    "base64": 2,
    "base64d": 1,
}
"""How much longer than its input each format's text may be."""

MAX_RANGE = 1000
"""Numbers that `range` may give."""

_ENVIRONMENT = "reads the environment of the process; an expression sees only its input"
_INPUTS = "reads other inputs; an expression sees only its input"
_PRINTS = "prints; an expression only gives results"
_CLOCK = "depends on the clock or the time zone; an expression depends only on its input"
_LOOPS = "can loop for ever; name the path, or iterate with `[]` and `select(…)`"
_PATHS = "works on paths instead of values; name the path, or iterate with `[]`"
ASSIGNS = "changes its input; build the wanted value with `{…}` or `[…]` instead"
_READS_FILES = "reads files; an expression sees only its input"

REFUSED: dict[str, str] = {
    **dict.fromkeys(("env", "$ENV"), _ENVIRONMENT),
    **dict.fromkeys(("input", "inputs", "input_filename", "input_line_number"), _INPUTS),
    **dict.fromkeys(("debug", "stderr"), _PRINTS),
    **dict.fromkeys(("halt", "halt_error"), "stops the process; use `empty` or `error(…)`"),
    **dict.fromkeys(("now", "localtime", "gmtime", "mktime", "strftime", "strflocaltime", "strptime"), _CLOCK),
    **dict.fromkeys(("todate", "fromdate", "date", "dateadd", "datesub", "todateiso8601"), _CLOCK),
    "fromdateiso8601": _CLOCK,
    **dict.fromkeys(("modulemeta", "get_search_list"), _READS_FILES),
    **dict.fromkeys(("..", "recurse", "recurse_down", "repeat", "while", "until", "walk", "combinations"), _LOOPS),
    "limit": "leaves a loop early; use `first(…)`, or a slice such as `[…][:3]`",
    "nth": "leaves a loop early; use `[…][n]`",
    **dict.fromkeys(("path", "paths", "leaf_paths", "pick", "tostream", "fromstream", "truncate_stream"), _PATHS),
    **dict.fromkeys(("del", "delpaths", "setpath"), ASSIGNS),
    "keys_unsorted": "gives keys in no defined order; use `keys`",
    "$__loc__": "tells where in the program it stands; write the value itself",
    "$__prog_args": "reads the program's arguments; an expression sees only its input",
    "builtins": "lists the engine's functions; an expression sees only its input",
    **dict.fromkeys(
        ("infinite", "nan", "isnan", "isinfinite", "isnormal"), "is not a number that JSON has; test a bound"
    ),
}
"""What an expression must not use, though jq has it, and what to do instead."""
