"""The other end of the worker: evaluates requests that come in on a stream, each expression by itself.

Runs in a process of its own, with limits set from outside, and may be killed at any time: it answers each expression as
soon as it is done. Checks every expression again, so that nothing gets to libjq unchecked whoever asks. Also says how
requests and outcomes are written, for both ends. Takes its streams as arguments; opens nothing.
"""

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import BinaryIO

import orjson

from catalog.definition import Json
from catalog.expressions.engine import Engine
from catalog.expressions.outcome import ExpressionError, Failure, IsolatedRequest, Outcome
from catalog.expressions.program import analysed
from catalog.expressions.render import render

READY = b"ready"
MAX_RESULTS = 1024 * 1024
"""Bytes of JSON text of one expression's results."""
LENGTH_BYTES = 4
"""Before each message: its length, most significant byte first."""


def framed(message: bytes) -> bytes:
    """A message with its length before it."""
    return len(message).to_bytes(LENGTH_BYTES, "big") + message


def request_messages(request: IsolatedRequest) -> bytes:
    """A request as it goes over the stream: the expressions, then the document."""
    return framed(orjson.dumps(request.sources)) + framed(request.document)


def outcome_message(outcome: Outcome) -> bytes:
    """An outcome as it goes over the stream, without its length."""
    if isinstance(outcome, Failure):
        return orjson.dumps({"failure": outcome.reason, "overran": outcome.overran})
    try:
        texts = _result_texts(outcome)
    except (ValueError, RecursionError):
        return outcome_message(Failure("a result is nested too deeply or is not JSON"))
    except MemoryError:
        return outcome_message(Failure("its results take too much memory", overran=True))
    if texts is None:
        return outcome_message(Failure(f"its results are larger than {MAX_RESULTS >> 20} MiB", overran=True))
    return b'{"results":[' + b",".join(texts) + b"]}"


def _result_texts(results: tuple[Json, ...]) -> list[bytes] | None:
    """Each result as JSON text, or None when they are too large.

    Not by orjson, which does not survive want of memory.
    """
    left = MAX_RESULTS
    texts = []
    for result in results:
        texts.append(json.dumps(result, ensure_ascii=False, separators=(",", ":")).encode())
        left -= len(texts[-1]) + 1
        if left < 0:
            return None
    return texts


def outcome_read(message: bytes) -> Outcome:
    """The outcome that a message of the worker holds."""
    content: Json = orjson.loads(message)
    if "failure" in content:
        return Failure(content["failure"], content["overran"])
    return tuple(content["results"])


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until the stream ends: for each expression, in order, one outcome."""
    _reply(replies, READY)
    while (sources := _message(requests)) is not None and (document := _message(requests)) is not None:
        for outcome in outcomes(orjson.loads(sources), document):
            _reply(replies, outcome_message(outcome))


def outcomes(sources: list[str], document: bytes) -> Iterator[Outcome]:
    """The outcome of each expression on a JSON text, one after the other."""
    for source in sources:
        try:
            (outcome,) = _engine(source).run(document.decode())
        except ExpressionError as error:
            outcome = Failure(str(error)[:120])
        except MemoryError:
            outcome = Failure("it takes too much memory", overran=True)
        except (ValueError, RecursionError):
            outcome = Failure("the object is nested too deeply for jq, or is not JSON")
        yield outcome


@lru_cache(maxsize=256)
def _engine(source: str) -> Engine:
    return Engine.compile([render(analysed(source).tree)])


def _message(stream: BinaryIO) -> bytes | None:
    """The next message, or None when the stream ends, be it inside one."""
    length = stream.read(LENGTH_BYTES)
    message = stream.read(int.from_bytes(length, "big"))
    return message if len(length) == LENGTH_BYTES and len(message) == int.from_bytes(length, "big") else None


def _reply(stream: BinaryIO, message: bytes) -> None:
    stream.write(framed(message))
    stream.flush()
