"""How results are printed: tables and trees for people, JSON and YAML for programs."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import click
import orjson

from catalog import load
from catalog.resources import device_text
from catalog.structure import Unknown

UNKNOWN = "?"


def amount(value: int | Decimal | Unknown) -> str:
    """A number of pods or GPUs for people; a question mark when it is unknown."""
    if isinstance(value, Unknown):
        return UNKNOWN
    return device_text(value) if isinstance(value, Decimal) else str(value)


def plain(value: int | Decimal | Unknown | None) -> Any:
    """A number for programs; null when it is unknown."""
    if value is None or isinstance(value, Unknown):
        return None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(device_text(value))
    return value


def several(count: int | Decimal | Unknown, noun: str) -> str:
    """`1 pod`, `2 pods`, `? pods`."""
    text = amount(count)
    return f"{text} {noun}" if text == "1" else f"{text} {noun}s"


def print_json(documents: Iterable[Any], *, one_a_line: bool = False) -> None:
    """Documents as JSON: a list, or one a line."""
    if one_a_line:
        for document in documents:
            click.echo(orjson.dumps(document).decode())
        return
    click.echo(orjson.dumps(list(documents), option=orjson.OPT_INDENT_2).decode())


def print_yaml(documents: Iterable[Any]) -> None:
    """Documents as YAML, separated by `---`."""
    click.echo(load.as_yaml(list(documents)), nl=False)


def print_document(document: Any, form: str) -> None:
    """One document as `json` or `yaml`."""
    if form == "yaml":
        print_yaml([document])
    else:
        click.echo(orjson.dumps(document, option=orjson.OPT_INDENT_2).decode())
