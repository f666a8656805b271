"""Logging: structlog's JSON lines, or lines for people, on one stream; the standard library's records go there too.

One line an admission, and nothing of an object in it beyond kind, namespace, name and uid. For the same reason a
failure of ours is logged by its type and where it happened, while its message, which may quote the object, is seen
at level debug only.
This module must not know what is logged by whom, nor settings: level and format are arguments.
"""

import asyncio
import logging
import sys
import time
import traceback
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, BinaryIO, TypeAlias

import orjson
import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

Logger: TypeAlias = FilteringBoundLogger
"""What everything else logs with: `logger.info("event", key=value)`."""

_JSON_OPTIONS = orjson.OPT_UTC_Z | orjson.OPT_NON_STR_KEYS
_MAX_FRAMES = 20

FLUSH_SECONDS = 0.1
"""How long the line of an admission may wait for others."""

MAX_WAITING = 256
"""Lines that wait at most: to make them takes less than a millisecond, in which nobody is answered."""


class AdmissionLog:
    """Writes the line of each admission, cheaply: at a level above info it costs a comparison.

    In a running event loop JSON lines are made and written together, up to a tenth of a second later: that takes a
    third of the time, and one write. `flush` writes what is waiting; whoever ends the process calls it.
    """

    __slots__ = ("_logger", "_stream", "_waiting", "enabled")

    def __init__(self, logger: Logger, stream: BinaryIO | None) -> None:
        self.enabled = logger.is_enabled_for(logging.INFO)
        self._logger = logger
        self._stream = stream
        self._waiting: list[tuple[float, str, float, Mapping[str, Any]]] = []

    def line(self, outcome: str, seconds: float, facts: Mapping[str, Any]) -> None:
        """Log one admission; `facts` are the core's (kind, namespace, name, uid, operation …)."""
        if not self.enabled:
            return
        if self._stream is None:
            self._logger.info("admission", outcome=outcome, milliseconds=round(seconds * 1000, 3), **facts)
            return
        self._waiting.append((time.time(), outcome, seconds, facts))
        if len(self._waiting) == 1:
            self._flush_soon()
        elif len(self._waiting) >= MAX_WAITING:
            self.flush()

    def flush(self) -> None:
        """Write the lines that are waiting."""
        waiting, self._waiting = self._waiting, []
        if self._stream is not None and waiting:
            self._stream.write(b"".join(_admission_line(*entry) for entry in waiting))
            self._stream.flush()

    def _flush_soon(self) -> None:
        try:
            asyncio.get_running_loop().call_later(FLUSH_SECONDS, self.flush)
        except RuntimeError:  # no loop is running
            self.flush()


def _admission_line(moment: float, outcome: str, seconds: float, facts: Mapping[str, Any]) -> bytes:
    line = {
        "time": datetime.fromtimestamp(moment, UTC),
        "level": "info",
        "event": "admission",
        "outcome": outcome,
        "milliseconds": round(seconds * 1000, 3),
        **facts,
    }
    return _dumped(line) + b"\n"


def _dumped(line: Mapping[str, Any]) -> bytes:
    """The line as JSON; one that can't be JSON is written in Python's spelling, so that it isn't lost."""
    try:
        return orjson.dumps(line, default=str, option=_JSON_OPTIONS)
    except TypeError:
        return orjson.dumps({key: ascii(value) for key, value in line.items()})


def build(level: str, form: str, stream: BinaryIO | None = None) -> tuple[Logger, AdmissionLog]:
    """The logger of the process and its log of admissions, on `stream` (standard error unless given).

    `level` is debug, info, warning or error, `form` json or console. Changes nothing global.
    """
    numeric = logging.getLevelNamesMapping()[level.upper()]
    out = stream if stream is not None else sys.stderr.buffer
    failure = _failure if numeric > logging.DEBUG else _failure_in_full
    rendering = [_json_line] if form == "json" else _for_people(out)
    logger: Logger = structlog.wrap_logger(
        structlog.BytesLogger(out),
        processors=[failure, *rendering],
        wrapper_class=structlog.make_filtering_bound_logger(numeric),
    ).bind()
    return logger, AdmissionLog(logger, out if form == "json" else None)


def adopt_standard_logging(logger: Logger) -> None:
    """Send what the standard library's loggers say (asyncio, aiohttp, the Kubernetes client) to `logger`.

    Warnings and above. Process-wide: called once, by the command line.
    """
    logging.basicConfig(handlers=[_Forward(logger)], level=logging.WARNING, force=True)
    logging.captureWarnings(capture=True)


def _json_line(_logger: WrappedLogger, level: str, event: EventDict) -> bytes:
    """One line of JSON: time and level first."""
    return _dumped({"time": datetime.now(UTC), "level": level, **event})


def _for_people(stream: BinaryIO) -> list[Processor]:
    return [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False),
        structlog.dev.ConsoleRenderer(colors=stream.isatty(), pad_event_to=0),
        _encoded,
    ]


def _encoded(_logger: WrappedLogger, _level: str, line: str | EventDict) -> bytes:
    return str(line).encode()


def _failure(_logger: WrappedLogger, _level: str, event: EventDict) -> EventDict:
    """Tell an exception by its type and the places it came through, without its message."""
    error = event.pop("exc_info", None)
    if error is True:
        error = sys.exc_info()[1]
    if isinstance(error, BaseException):
        event["error"] = type(error).__name__
        event["at"] = [
            f"{frame.filename}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_tb(error.__traceback__)[-_MAX_FRAMES:]
        ]
    return event


def _failure_in_full(logger: WrappedLogger, level: str, event: EventDict) -> EventDict:
    """The same with the message, for who debugs."""
    error = sys.exc_info()[1] if event.get("exc_info") is True else event.get("exc_info")
    event = _failure(logger, level, event)
    return {**event, "message": str(error)} if isinstance(error, BaseException) else event


class _Forward(logging.Handler):
    """Hands the standard library's records to our logger."""

    def __init__(self, logger: Logger) -> None:
        super().__init__()
        self._logger = logger

    def emit(self, record: logging.LogRecord) -> None:
        """Log one record under its logger's name."""
        error = record.exc_info[1] if record.exc_info else None
        self._logger.log(record.levelno, record.getMessage(), logger=record.name, exc_info=error)
