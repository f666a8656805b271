"""The worker's own end: what it answers, and how requests and outcomes are written."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.expressions import Failure, IsolatedRequest, Outcome
from catalog.expressions.isolated import (
    MAX_RESULTS,
    READY,
    framed,
    outcome_message,
    outcome_read,
    outcomes,
    request_messages,
    serve,
)
from tests.catalog.expressions.random_expressions import values

pytestmark = pytest.mark.slow


def served(*requests: IsolatedRequest) -> list[bytes]:
    """The messages with which these requests are answered."""
    replies = io.BytesIO()
    serve(io.BytesIO(b"".join(request_messages(request) for request in requests)), replies)
    replies.seek(0)
    messages = []
    while length := replies.read(4):
        messages.append(replies.read(int.from_bytes(length, "big")))
    return messages


def test_it_says_that_it_is_ready_and_answers_in_order() -> None:
    """One message for each expression, as soon as it is evaluated."""
    ready, *answers = served(
        IsolatedRequest(('.a | test("x")', ".a.b"), b'{"a":"x"}'), IsolatedRequest((".[] , 2",), b"[1]")
    )
    assert ready == READY
    assert [outcome_read(answer) for answer in answers] == [
        (True,),
        Failure("cannot index string with string"),
        (1, 2),
    ]


def test_a_stream_that_ends_in_a_message_ends_the_service() -> None:
    """As when the other process is killed while it writes."""
    whole = request_messages(IsolatedRequest((".a",), b"{}"))
    for length in range(len(whole)):
        replies = io.BytesIO()
        serve(io.BytesIO(whole[:length]), replies)
        assert replies.getvalue() == framed(READY)


def test_what_may_not_be_used_is_not_evaluated_whoever_asks() -> None:
    """The check is made again at this end."""
    (outcome,) = outcomes(["env"], b"null")
    assert isinstance(outcome, Failure)
    assert "reads the environment" in outcome.reason


def test_too_many_results_are_a_failure_that_overran() -> None:
    """They would have to be read by the serving process."""
    (outcome,) = outcomes(["[range(600)] as $x | $x[] | $x[]"], b"null")
    assert outcome_read(outcome_message(outcome)) == Failure("its results are larger than 1 MiB", overran=True)
    assert MAX_RESULTS == 1024 * 1024


@pytest.mark.parametrize("document", [b"{", b"", b"\xff", b"nan", b"[" * 20_000])
def test_a_document_that_is_no_json_is_a_failure(document: bytes) -> None:
    """Nothing that is sent makes it end."""
    (outcome,) = outcomes([".a"], document)
    assert isinstance(outcome, Failure)


@given(st.one_of(st.lists(values).map(tuple), st.builds(Failure, st.text(max_size=20), st.booleans())))
def test_outcomes_arrive_as_they_were_sent(outcome: Outcome) -> None:
    """Results and failures alike."""
    assert outcome_read(outcome_message(outcome)) == outcome


def test_messages_have_their_length_before_them() -> None:
    """Four bytes, most significant first."""
    assert framed(b"abc") == b"\0\0\0\3abc"
