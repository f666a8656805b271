"""Whatever is given to the commands that need no cluster, they end with an exit code and sentences, never a traceback.

`run` fails a test that meets a fault of ours.
"""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.webhook.cli.command import Ended, run
from tests.webhook.cli.definitions import definition
from tests.webhook.cli.manifests import SERVICE, chain, job, jobset, review
from tests.webhook.cli.test_resolve import ray_cluster

COMMANDS = (
    ("resolve", "-"),
    ("resolve", "-", "-o", "table"),
    ("resolve", "-", "-o", "wide"),
    ("resolve", "-", "-o", "json"),
    ("resolve", "-", "-o", "yaml"),
    ("admit", "-"),
    ("admit", "-", "-o", "json"),
    ("admit", "-", "-o", "object"),
    ("admit", "-", "-o", "yaml"),
    ("admit", "-", "--operation", "UPDATE"),
)
VALIDATE = ("definitions", "validate", "-")

ODD_TEXT = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["[/]", "[bold]", "[/red]x", "\x1b[2J", "\u202e", "\x00", "a\nb", "-", "~", "2Gi", "1e9", "x" * 300]
    ),
)
ODD = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=-(2**70), max_value=2**70)
    | st.floats(allow_nan=False)
    | ODD_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ODD_TEXT, inner, max_size=3),
    max_leaves=5,
)
GOOD: list[Any] = [jobset(), job(), ray_cluster(), SERVICE, *chain(), *(review(obj) for obj in chain())]
PARSED = yaml.safe_load(definition())


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every holder in a value, with each of its keys; the value's own kind stays, or there is little to see."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            if key not in ("apiVersion", "kind"):
                yield value, key
            yield from places(value[key])


@st.composite
def broken(draw: st.DrawFn, originals: list[Any]) -> Any:
    """An object of which a few places, at any depth, hold something else, or nothing, or are called otherwise."""
    obj = copy.deepcopy(draw(st.sampled_from(originals)))
    for _ in range(draw(st.integers(1, 4))):
        everywhere = list(places(obj))
        if not everywhere:
            break
        holder, key = everywhere[draw(st.integers(0, len(everywhere) - 1))]
        what = draw(st.sampled_from(["replace", "replace", "remove", "rename"]))
        if what == "replace" or isinstance(holder, list):
            holder[key] = draw(ODD)
        elif what == "remove":
            del holder[key]
        else:
            holder[draw(ODD_TEXT)] = holder.pop(key)
    return obj


def serialised(value: Any, *, as_yaml: bool) -> bytes:
    """As a person's file."""
    text = yaml.safe_dump(value, allow_unicode=True) if as_yaml else json.dumps(value)
    return text.encode(errors="surrogatepass")


def ends_well(ended: Ended) -> None:
    """It is good or bad, never wrong use; what is bad is told, and nothing steers a terminal."""
    assert ended.code in (0, 1)
    assert ended.code == 0 or ended.err
    assert not any(line != line.translate({0x1B: None, 0: None}) for line in (ended.err, ended.out))


@pytest.mark.parametrize("command", [COMMANDS[0], COMMANDS[6], VALIDATE], ids=" ".join)
@given(content=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode(errors="surrogatepass")))
@settings(max_examples=100)
def test_any_bytes_are_told(command: tuple[str, ...], content: bytes) -> None:
    """Files that are no manifests at all."""
    ends_well(run(*command, given=content))


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@given(obj=broken(GOOD), as_yaml=st.booleans())
@settings(max_examples=60)
def test_broken_objects_are_shown_or_told(command: tuple[str, ...], obj: Any, *, as_yaml: bool) -> None:
    """Wrong types, missing parts, odd names, at any depth of a manifest or review."""
    ended = run(*command, given=serialised(obj, as_yaml=as_yaml))
    assert ended.code in (0, 1)
    assert ended.code == 0 or ended.err
    if command[-1] in ("json", "object"):
        documents = (
            [json.loads(line) for line in ended.out.split("\n") if line] if command[0] == "admit" else [ended.out]
        )
        assert ended.code == 1 or documents
    elif command[-1] != "yaml":
        ends_well(ended)


@given(obj=broken([PARSED]), as_yaml=st.booleans())
@settings(max_examples=150)
def test_broken_definitions_are_told(obj: Any, *, as_yaml: bool) -> None:
    """Every problem is a line that names the input."""
    ended = run(*VALIDATE, given=serialised(obj, as_yaml=as_yaml))
    ends_well(ended)
    assert all(line.startswith("standard input") for line in ended.told)


@given(owner=broken(chain()[:2]), pod=broken(chain()[2:]))
@settings(max_examples=60)
def test_broken_owners_stop_nothing(owner: Any, pod: Any) -> None:
    """A pod is answered, whatever its owners look like."""
    ended = run("admit", "-", given=serialised([owner, chain()[1], pod, chain()[2]], as_yaml=False))
    ends_well(ended)


WORDS = ODD_TEXT.filter(lambda text: "\0" not in text)  # no program can be started with such a word


@given(arguments=st.lists(WORDS | st.sampled_from(["resolve", "admit", "-o", "-n", "--prefix", "-d"]), max_size=4))
@settings(max_examples=100)
def test_any_words_are_wrong_use_or_told(arguments: list[str]) -> None:
    """On the command line itself too."""
    assert run(*arguments).code in (0, 1, 2)
