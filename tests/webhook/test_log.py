"""What is written to the log, in which form, and what is kept out of it."""

import io
import json
import logging
import subprocess
import sys
from typing import Any

import pytest

from tests.webhook.polling import until
from webhook.log import MAX_WAITING, adopt_standard_logging, build

FACTS = {"kind": "Pod", "namespace": "team-a", "name": "train-0", "uid": "c0ffee", "operation": "CREATE"}


def fail(secret: str) -> None:
    """Raise an exception whose message quotes a secret."""
    raise KeyError(secret)


def logged_failure(level: str) -> dict[str, Any]:
    """What is logged of that exception."""
    stream = io.BytesIO()
    logger, _ = build(level, "json", stream)
    try:
        fail("hunter2")
    except KeyError:
        logger.exception("admission failed")
    line: dict[str, Any] = json.loads(stream.getvalue())
    return line


class TestJson:
    """Lines for machines."""

    def test_has_time_and_level_first(self) -> None:
        """A line is one JSON object with a UTC time."""
        stream = io.BytesIO()
        logger, _ = build("info", "json", stream)
        logger.info("serving", address=":10250")
        line = json.loads(stream.getvalue())

        assert list(line)[:2] == ["time", "level"]
        assert line["time"].endswith("Z")
        assert (line["level"], line["event"], line["address"]) == ("info", "serving", ":10250")

    def test_takes_any_value(self) -> None:
        """A value that is not JSON is written as text rather than losing the line."""
        stream = io.BytesIO()
        logger, _ = build("info", "json", stream)
        logger.info("odd", value={1: {"a"}})

        assert json.loads(stream.getvalue())["value"] == {"1": "{'a'}"}

    def test_loses_no_line_that_is_no_json(self) -> None:
        """Text that no encoding can hold is escaped."""
        stream = io.BytesIO()
        logger, admissions = build("info", "json", stream)
        logger.info("odd", name="\ud800")
        admissions.line("stamped", 0.001, {**FACTS, "name": "\ud800"})

        assert [json.loads(line)["name"] for line in stream.getvalue().splitlines()] == ["'\\ud800'"] * 2

    def test_leaves_out_what_is_below_the_level(self) -> None:
        """At warning, information isn't logged."""
        stream = io.BytesIO()
        logger, _ = build("warning", "json", stream)
        logger.info("no")
        logger.warning("yes")

        assert [json.loads(line)["event"] for line in stream.getvalue().splitlines()] == ["yes"]


class TestFailure:
    """An exception of ours."""

    def test_is_told_by_type_and_place(self) -> None:
        """The line says what was raised and where, innermost last."""
        line = logged_failure("info")

        assert (line["event"], line["error"]) == ("admission failed", "KeyError")
        assert line["at"][-1].endswith(" fail")
        assert "test_log.py:" in line["at"][-1]

    def test_does_not_quote_the_object(self) -> None:
        """The message may hold what a user wrote, so it isn't logged."""
        assert "hunter2" not in json.dumps(logged_failure("info"))

    def test_is_quoted_for_who_debugs(self) -> None:
        """At level debug the message is there as well."""
        assert logged_failure("debug")["message"] == "'hunter2'"

    def test_that_is_none_changes_nothing(self) -> None:
        """Outside an exception handler there is nothing to tell."""
        stream = io.BytesIO()
        logger, _ = build("debug", "json", stream)
        logger.error("odd", exc_info=True)  # noqa: LOG014 - that is the point

        assert set(json.loads(stream.getvalue())) == {"time", "level", "event"}


class TestAdmissionLog:
    """The line of an admission."""

    def test_is_the_same_as_any_other_line(self) -> None:
        """The short way around structlog gives the form that structlog gives."""
        short, usual = io.BytesIO(), io.BytesIO()
        build("info", "json", short)[1].line("stamped", 0.0012345, FACTS)
        build("info", "json", usual)[0].info("admission", outcome="stamped", milliseconds=1.234, **FACTS)
        lines = [json.loads(stream.getvalue()) for stream in (short, usual)]
        for line in lines:
            line.pop("time")

        assert lines[0] == lines[1]
        assert lines[0] == {"level": "info", "event": "admission", "outcome": "stamped", "milliseconds": 1.234, **FACTS}
        assert short.getvalue().endswith(b"}\n")

    def test_is_written_for_people_too(self) -> None:
        """In console form it is a line of text with the facts, without colours where there is no terminal."""
        stream = io.BytesIO()
        build("info", "console", stream)[1].line("stamped", 0.001, FACTS)
        text = stream.getvalue().decode()

        assert "admission" in text
        assert "namespace=team-a" in text
        assert "\x1b" not in text

    async def test_is_written_with_others_in_a_moment(self) -> None:
        """In a running loop lines are written together, a tenth of a second later, in order, each with its own time."""
        stream = io.BytesIO()
        _, admissions = build("info", "json", stream)
        for name in ("a", "b", "c"):
            admissions.line("stamped", 0.001, {**FACTS, "name": name})

        assert stream.getvalue() == b""
        await until(stream.getvalue)
        lines = [json.loads(line) for line in stream.getvalue().splitlines()]
        assert [line["name"] for line in lines] == ["a", "b", "c"]
        assert lines[0]["time"] < lines[2]["time"]

    async def test_waits_for_a_bounded_number_of_others(self) -> None:
        """Many lines in one turn of the loop are written before they take long to make."""
        stream = io.BytesIO()
        _, admissions = build("info", "json", stream)
        for _ in range(MAX_WAITING + 1):
            admissions.line("stamped", 0.001, FACTS)

        assert stream.getvalue().count(b"\n") == MAX_WAITING
        admissions.flush()
        assert stream.getvalue().count(b"\n") == MAX_WAITING + 1
        admissions.flush()
        assert stream.getvalue().count(b"\n") == MAX_WAITING + 1

    def test_is_silent_above_info(self) -> None:
        """At level warning nothing is written, and the caller can see that beforehand."""
        stream = io.BytesIO()
        _, admissions = build("warning", "json", stream)
        admissions.line("stamped", 0.001, FACTS)

        assert not admissions.enabled
        assert stream.getvalue() == b""


class TestStandardLogging:
    """Records of libraries."""

    @pytest.fixture(autouse=True)
    def _leave_logging_as_it_was(self) -> Any:
        root = logging.getLogger()
        handlers, level = root.handlers[:], root.level
        yield
        logging.captureWarnings(capture=False)
        root.handlers[:] = handlers
        root.setLevel(level)

    def test_comes_out_in_our_form(self) -> None:
        """A library's warning is a JSON line with the logger's name, its exception told like ours."""
        stream = io.BytesIO()
        adopt_standard_logging(build("info", "json", stream)[0])
        logging.getLogger("asyncio").info("no")
        try:
            fail("hunter2")
        except KeyError:
            logging.getLogger("asyncio").exception("task %s", "failed")
        line = json.loads(stream.getvalue())

        assert (line["level"], line["event"], line["logger"]) == ("error", "task failed", "asyncio")
        assert line["error"] == "KeyError"
        assert "hunter2" not in json.dumps(line)


def test_goes_to_standard_error() -> None:
    """Nothing but the log is on standard error, and nothing of it on standard output."""
    code = "from webhook.log import build; build('info', 'json')[0].info('hello')"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)

    assert ran.stdout == b""
    assert json.loads(ran.stderr)["event"] == "hello"
