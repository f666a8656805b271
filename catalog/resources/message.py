"""How a value that was found in an object is shown in a message: short, on one line, printable anywhere."""

import json

from catalog.definition import Json


def shown(value: Json, limit: int = 80) -> str:
    """The value as JSON; of an object or a list only how large it is, of a long text its first `limit` characters."""
    match value:
        case str():
            return _quoted(value, limit)
        case dict():
            return f"an object with {_counted(len(value), 'field', 'fields')}"
        case list():
            return f"a list with {_counted(len(value), 'entry', 'entries')}"
        case int() if abs(value) >= 10**limit:  # Python refuses to print thousands of digits
            return f"a number of more than {limit} digits"
        case None | bool() | int() | float():
            return json.dumps(value)
    return f"a {type(value).__name__}"  # nothing that JSON has


def _quoted(text: str, limit: int) -> str:
    cut = text if len(text) <= limit else text[:limit] + "…"
    # A lone surrogate is legal in JSON and can be written to no terminal.
    return json.dumps(cut, ensure_ascii=False).encode(errors="backslashreplace").decode()


def _counted(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"
