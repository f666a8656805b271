"""Reads definitions and manifests from files, folders, streams and the package: the only door to YAML.

Whatever the text is, the answer is values and problems; nothing is raised for what a person may have written.
Only what JSON has is accepted: YAML's tags, dates, binary data and keys that are no strings are problems.
It knows no rule of the language; that is `catalog.parse`.
"""

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import IO, Any, NamedTuple

import yaml

from catalog.definition import Definition, Json
from catalog.parse import KINDS, DefinitionError, parse

LARGEST_DEFINITIONS = 1 << 20
"""Bytes of one file of definitions; etcd keeps no object of more than 1.5 MiB either."""

LARGEST_MANIFESTS = 16 << 20
"""Bytes of one file of manifests or reviews: more than two AdmissionReviews of the largest size."""

_PACKAGED = "catalog/definitions"
_GROUPS = frozenset(version.partition("/")[0] for version, _ in KINDS)
_KIND_NAMES = frozenset(kind for _, kind in KINDS)

SUFFIXES = (".yaml", ".yml", ".json")
"""What the names of files in a folder of definitions end in; other files are not read."""

_DEEPEST = 100  # levels of nesting; the deepest manifests have about thirty
_MOST_NODES = 500_000  # with aliases written out, so that a few of them cannot stand for billions
_SHOWN_NAME = 80
_BLANK = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class LoadProblem:
    """What is wrong with a file, a document in it, or a definition; `line` counts from 1."""

    origin: str
    line: int | None
    text: str

    def __str__(self) -> str:
        return f"{self.origin}: {self.text}" if self.line is None else f"{self.origin}:{self.line}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One object of a file; the entries of a List are documents of their own."""

    value: Json
    origin: str
    node: Any = field(default=None, repr=False, compare=False)

    def line_of(self, path: str) -> int | None:
        """The line of the value at a path such as `spec.items[0].name`, or of what is nearest above it."""
        return None if self.node is None else _line_of(self.node, path)


class Documents(NamedTuple):
    """The objects of a file, and what is wrong with the rest."""

    documents: tuple[Document, ...]
    problems: tuple[LoadProblem, ...]


class Loaded(NamedTuple):
    """Valid definitions, in the order of their sources, and every problem of the others."""

    definitions: tuple[Definition, ...]
    problems: tuple[LoadProblem, ...]


# ---------------------------------------------------------------------------------------------- definitions


def packaged(wanted: Callable[[str], bool] = lambda _: True) -> Loaded:
    """The definitions that are part of the package: those whose file `wanted` names, by default all.

    Files are called `<group with dashes for dots>-<kind in lower case>-<version>.yaml`; the core group is `core`.
    """
    folder = resources.files("catalog").joinpath("definitions")
    named = (each for each in folder.iterdir() if each.name.endswith(SUFFIXES) and wanted(each.name))
    files = sorted(named, key=lambda each: each.name)
    parts = [definitions(each.read_text("utf-8"), f"{_PACKAGED}/{each.name}") for each in files]
    return Loaded(
        tuple(definition for part in parts for definition in part.definitions),
        tuple(problem for part in parts for problem in part.problems),
    )


def directory(path: Path) -> Loaded:
    """The definitions in a folder and in the folders below it, in order of their paths; hidden names are passed over.

    Of a mounted ConfigMap, whose files are links into a hidden folder, each file is read once.
    """
    return _parsed(directory_documents(path))


def directory_documents(path: Path) -> Documents:
    """The objects in a folder of definitions, not yet parsed; for who parses them one by one."""
    if not path.is_dir():
        return Documents((), (LoadProblem(str(path), None, "is no directory"),))
    parts = [without_others(documents_of_file(each, LARGEST_DEFINITIONS)) for each in _files(path, set())]
    return Documents(
        tuple(document for part in parts for document in part.documents),
        tuple(problem for part in parts for problem in part.problems),
    )


def file(path: Path) -> Loaded:
    """The definitions in a file."""
    return _parsed(documents_of_file(path, LARGEST_DEFINITIONS))


def stream(source: IO[bytes], origin: str) -> Loaded:
    """The definitions in a stream."""
    return _parsed(documents_of_stream(source, origin, LARGEST_DEFINITIONS))


def definitions(text: str, origin: str) -> Loaded:
    """The definitions in a text."""
    return _parsed(documents(text, origin))


def text_of(origin: str) -> str:
    """The text of the file that a definition's `origin` names, a packaged one or another. Raises `OSError`."""
    packaged_name = origin.removeprefix(f"{_PACKAGED}/")
    if packaged_name != origin:
        return resources.files("catalog").joinpath("definitions", packaged_name).read_text("utf-8")
    return Path(origin).read_text("utf-8")


def as_yaml(values: Iterable[Json]) -> str:
    """JSON values as YAML documents, for people to read."""
    return yaml.safe_dump_all(values, sort_keys=False, allow_unicode=True, width=120)


def without_others(found: Documents) -> Documents:
    """Without objects of other groups than definitions are of: a file may hold the ClusterRole that goes with one.

    What looks like a definition and is none stays, to be complained about.
    """
    return Documents(tuple(each for each in found.documents if not _is_another_object(each.value)), found.problems)


def _is_another_object(value: Json) -> bool:
    version, kind = (value.get("apiVersion"), value.get("kind")) if isinstance(value, dict) else (None, None)
    if not isinstance(version, str) or not isinstance(kind, str) or not version or not kind:
        return False
    return version.partition("/")[0] not in _GROUPS and kind not in _KIND_NAMES


def definition_in(document: Document) -> tuple[Definition | None, tuple[LoadProblem, ...]]:
    """The definition that a document is, or else its problems, as a person goes through the file."""
    try:
        return parse(document.value, document.origin), ()
    except DefinitionError as error:
        placed = [(document.line_of(problem.path), str(problem)) for problem in error.problems]
        placed.sort(key=lambda each: each[0] or 0)
        return None, tuple(LoadProblem(document.origin, line, text) for line, text in placed)


def _parsed(found: Documents) -> Loaded:
    parts = [definition_in(document) for document in without_others(found).documents]
    return Loaded(
        tuple(definition for definition, _ in parts if definition is not None),
        (*found.problems, *(problem for _, problems in parts for problem in problems)),
    )


def _files(folder: Path, seen: set[Path]) -> Iterator[Path]:
    """What to read below a folder. `seen` holds what links have led to, so that no way is gone twice.

    What cannot be looked at is among it, so that reading it tells why.
    """
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        yield folder
        return
    for entry in entries:
        real = Path(os.path.realpath(entry))
        if entry.name.startswith(".") or real in seen:
            continue
        seen.add(real)
        if entry.is_dir():
            yield from _files(entry, seen)
        elif entry.name.endswith(SUFFIXES) and (entry.is_file() or entry.is_symlink()):
            yield entry


# ------------------------------------------------------------------------------------------------ documents


def documents_of_file(path: Path, limit: int = LARGEST_MANIFESTS) -> Documents:
    """The objects in a file of at most `limit` bytes."""
    try:
        with path.open("rb") as source:
            return documents_of_stream(source, str(path), limit)
    except OSError as error:
        return Documents((), (LoadProblem(str(path), None, f"cannot be read: {error.strerror or error}"),))


def documents_of_stream(source: IO[bytes], origin: str, limit: int = LARGEST_MANIFESTS) -> Documents:
    """The objects in a stream of at most `limit` bytes. Raises `OSError` when it cannot be read."""
    content = source.read(limit + 1)
    if len(content) > limit:
        return Documents((), (LoadProblem(origin, None, f"has more than {limit} bytes"),))
    try:
        return documents(content.decode("utf-8-sig"), origin)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return Documents((), (LoadProblem(origin, line, f"is no UTF-8 text: {error.reason}"),))


def documents(text: str, origin: str) -> Documents:
    """The objects in a text: JSON values one after the other, or YAML documents; Lists and arrays are taken apart."""
    try:
        values = _json_values(text) if text.lstrip()[:1] in ("{", "[") else None
    except (_Unusable, RecursionError) as error:
        what = "is nested too deeply" if isinstance(error, RecursionError) else str(error)
        return Documents((), (LoadProblem(origin, None, what),))
    if values is not None:
        whole = tuple(Document(value=value, origin=origin) for value in values)
        return Documents(tuple(part for document in whole for part in _parts(document)), ())
    return _yaml_documents(text, origin)


def _parts(document: Document) -> Iterator[Document]:
    """The entries of a List or of an array, each with the kind that the list gives it; else the document itself."""
    value, node = document.value, document.node
    kind = value.get("kind") if isinstance(value, dict) else None
    if isinstance(value, list):
        items, item_nodes, common = value, node, {}
    elif isinstance(kind, str) and kind.endswith("List") and isinstance(value.get("items"), list):
        items, item_nodes = value["items"], _child(node, "items")
        own = {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")}
        common = own if own["kind"] else {}
    else:
        if value is not None:
            yield document
        return
    for index, item in enumerate(items):
        whole = {**common, **item} if isinstance(item, dict) else item
        yield Document(value=whole, origin=document.origin, node=_child(item_nodes, index))


# ----------------------------------------------------------------------------------------------------- JSON


class _Unusable(Exception):
    """A text that is read to its end by nobody; the message says why."""


def _json_values(text: str) -> tuple[Json, ...] | None:
    """The JSON values in the text, None when it is no JSON (YAML may begin with a bracket too)."""
    decoder = json.JSONDecoder(object_pairs_hook=_without_repetition, parse_constant=_no_number)
    values: list[Json] = []
    position = _next(text, 0)
    try:
        while position < len(text):
            value, end = decoder.raw_decode(text, position)
            values.append(value)
            position = _next(text, end)
    except ValueError:
        return None
    return tuple(values)


def _next(text: str, position: int) -> int:
    """Where the next character that is no blank stands, or the end."""
    blank = _BLANK.match(text, position)
    return position if blank is None else blank.end()


def _without_repetition(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    result = dict(pairs)
    if len(result) != len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for position, name in enumerate(names) if name in names[:position])
        raise _Unusable(f"{_quoted(repeated)} is there twice in one object, keep one of them")
    return result


def _no_number(text: str) -> Json:
    raise ValueError(text)


def _quoted(name: str) -> str:
    return json.dumps(name[:_SHOWN_NAME], ensure_ascii=False).encode(errors="backslashreplace").decode()


# ----------------------------------------------------------------------------------------------------- YAML


_JSON_TAGS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq"))
_MERGE = "tag:yaml.org,2002:merge"
_STRING = "tag:yaml.org,2002:str"


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # the parser in C where it is built
    """YAML 1.1 as kubectl reads it: with its booleans, without its dates and base-60 numbers."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own interface


for _tag, _form, _first in (
    ("bool", r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", "yYnNtTfFoO"),
    ("int", r"[-+]?(?:0b[01_]+|0[0-7_]+|0|[1-9][0-9_]{0,40}|0x[0-9a-fA-F_]{1,40})", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*|[0-9][0-9_]*(?=[eE]))(?:[eE][-+]?[0-9]+)?",
        "-+.0123456789",
    ),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"(?:{_form})$"), list(_first))
_Loader.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""])


def _yaml_documents(text: str, origin: str) -> Documents:
    found: list[Document] = []
    problems: list[LoadProblem] = []
    try:
        loader = _Loader(text)
        while loader.check_node():
            node = loader.get_node()
            faults = tuple(LoadProblem(origin, line, what) for line, what in _Nodes().faults(node))
            problems += faults
            if not faults:
                value = loader.construct_document(node)
                found += _parts(Document(value=value, origin=origin, node=node))
    except yaml.MarkedYAMLError as error:
        line = None if error.problem_mark is None else error.problem_mark.line + 1
        what = ", ".join(filter(None, (error.context, error.problem)))
        problems.append(LoadProblem(origin, line, f"is no YAML: {what}"))
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        what = "it is nested too deeply" if isinstance(error, RecursionError) else str(error).splitlines()[0]
        problems.append(LoadProblem(origin, None, f"is no YAML: {what}"))
    return Documents(tuple(found), tuple(problems))


class _Nodes:
    """Looks at a document before it is made: for what JSON has not, and for how large aliases make it."""

    def __init__(self) -> None:
        self._sizes: dict[int, int] = {}
        self._open: set[int] = set()
        self._found: list[tuple[int, str]] = []

    def faults(self, root: Any) -> tuple[tuple[int, str], ...]:
        """Line and description of each fault."""
        if self._size(root, 0) > max(_MOST_NODES, len(self._sizes)):
            self._note(root, "is too large with its aliases written out")
        return tuple(self._found)

    def _note(self, node: Any, what: str) -> None:
        self._found.append((node.start_mark.line + 1, what))

    def _size(self, node: Any, depth: int) -> int:
        """Values in the node, aliases written out."""
        if id(node) in self._open:
            self._note(node, "contains itself, through an alias")
            return 1
        if id(node) not in self._sizes:
            self._sizes[id(node)] = 1
            if depth > _DEEPEST:
                self._note(node, f"is nested in more than {_DEEPEST} levels")
                return 1
            if node.tag not in _JSON_TAGS:
                self._note(node, f"has the tag {_quoted(node.tag)}, which JSON has not")
            self._open.add(id(node))
            self._sizes[id(node)] = 1 + sum(self._size(child, depth + 1) for child in self._children(node))
            self._open.discard(id(node))
        return self._sizes[id(node)]

    def _children(self, node: Any) -> Iterator[Any]:
        if isinstance(node, yaml.SequenceNode):
            yield from node.value
        elif isinstance(node, yaml.MappingNode):
            names: set[str] = set()
            for key, value in node.value:
                self._look_at_key(key, names)
                yield value

    def _look_at_key(self, key: Any, names: set[str]) -> None:
        if key.tag == _MERGE:
            return
        if key.tag != _STRING or not isinstance(key.value, str):
            shown = _quoted(key.value) if isinstance(key.value, str) else "what is there"
            self._note(key, f"{shown} is no string but the name of a field, quote it")
        elif key.value in names:
            self._note(key, f"{_quoted(key.value)} is there twice in one object, keep one of them")
        else:
            names.add(key.value)


_STEP = re.compile(r'\["((?:[^"\\]|\\.)*)"\]|\[(\d+)\]|([^.\[\]]+)')


def _line_of(node: Any, path: str) -> int:
    line: int = node.start_mark.line + 1
    for match in _STEP.finditer(path):
        name, index, word = match.groups()
        if isinstance(node, yaml.MappingNode):
            for key, _ in node.value:
                if key.value == (word or name):
                    line = key.start_mark.line + 1
        node = _child(node, int(index) if index else word or name)
        if node is None:
            return line
        if index:
            line = node.start_mark.line + 1
    return line


def _child(node: Any, step: str | int) -> Any:
    """The node below a node, None where there is none."""
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step]
    if isinstance(node, yaml.MappingNode):
        return next((value for key, value in node.value if key.value == step), None)
    return None
