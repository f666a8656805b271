"""Kubernetes objects in files and on standard input, each with where it stands; what is no object is a problem.

Knows nothing of definitions, nor of what is done with the objects.
"""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click
import orjson

from catalog import load
from catalog.definition import Json, JsonObject

LARGEST = 64 << 20
"""Bytes of one file: some thousand workloads, as `kubectl get -A -o json` prints them."""

STDIN = "-"
STDIN_NAME = "standard input"

files_argument = click.argument(
    "files", nargs=-1, required=True, metavar="FILE…", type=click.Path(allow_dash=True, readable=False)
)


class FoundObject(NamedTuple):
    """An object with `apiVersion` and `kind`, and its place: file and line, or file and position."""

    where: str
    value: JsonObject


class Found(NamedTuple):
    """The objects in their order, and a sentence for whatever is none."""

    objects: tuple[FoundObject, ...]
    problems: tuple[str, ...]


def read_once(paths: Sequence[str]) -> None:
    """Refuse to read standard input twice: the second time there is nothing in it. Raises `click.UsageError`."""
    if list(paths).count(STDIN) > 1:
        raise click.UsageError("`-`, standard input, is given twice; it can be read only once.")


def objects_in(paths: Sequence[str]) -> Found:
    """The objects in the files (`-` is standard input), in order; Lists, arrays and several documents taken apart."""
    objects: list[FoundObject] = []
    problems: list[str] = []
    for path in paths:
        documents, faults = read(path)
        problems.extend(str(fault) for fault in faults)
        if not documents and not faults:
            problems.append(f"{named(path)}: there is no object in it")
        for where, value in _placed(path, documents):
            fault = _fault(value)
            if fault is None:
                objects.append(FoundObject(where, value))
            else:
                problems.append(f"{where}: {fault}")
    return Found(tuple(objects), tuple(problems))


def read(path: str, limit: int = LARGEST) -> load.Documents:
    """The documents of a file, or of standard input for `-`, of at most `limit` bytes; what can't be is a problem."""
    if path != STDIN:
        if Path(path).is_dir():
            return _unread(path, "is a folder, name the files in it")
        return load.documents_of_file(Path(path), limit)
    if sys.stdin is None:
        return _unread(STDIN_NAME, "is closed")
    try:
        return load.documents_of_stream(sys.stdin.buffer, STDIN_NAME, limit)
    except OSError as error:
        return _unread(STDIN_NAME, f"cannot be read: {error.strerror}")


def _unread(origin: str, why: str) -> load.Documents:
    return load.Documents((), (load.LoadProblem(origin, None, why),))


def is_review(obj: JsonObject) -> bool:
    """Whether an object is an AdmissionReview."""
    return bool(obj["kind"] == "AdmissionReview")


def reviewed(obj: JsonObject) -> Json:
    """The object that an AdmissionReview is about, null where it is about none; any other object is meant itself."""
    if not is_review(obj):
        return obj
    request = obj.get("request")
    return request.get("object") if isinstance(request, dict) else None


def named(path: str) -> str:
    """A path for messages."""
    return STDIN_NAME if path == STDIN else path


def _placed(path: str, documents: Sequence[load.Document]) -> Iterator[tuple[str, Json]]:
    """Each value with its place: the line, where the text has told it, else the position when there are several."""
    for position, document in enumerate(documents):
        line = document.line_of("")
        if len(documents) == 1:
            yield named(path), document.value
        else:
            yield f"{named(path)}:{line}" if line is not None else f"{named(path)}[{position}]", document.value


def _fault(value: Json) -> str | None:
    """Why a value is no Kubernetes object; None when it is one."""
    if not isinstance(value, dict):
        return f"is {_shown(value)}, expected an object with apiVersion and kind"
    missing = [name for name in ("apiVersion", "kind") if not isinstance(value.get(name), str) or not value[name]]
    if missing:
        return f"has no {' and no '.join(missing)}, so it is no Kubernetes object"
    try:
        orjson.dumps(value)
    except orjson.JSONEncodeError as error:
        return f"can't be sent to an API server: {error}"
    return None


def _shown(value: Json) -> str:
    if isinstance(value, list):
        return "a list"
    return f"the text {value[:40]!r}" if isinstance(value, str) else json.dumps(value)[:40]
