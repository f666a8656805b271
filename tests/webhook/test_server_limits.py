"""What the sender gets when the admission fails, hangs or is swamped: an answer, in time, that admits."""

import asyncio
import io
import threading
from collections.abc import Callable

import orjson
import pytest

from tests.webhook.polling import until
from tests.webhook.serving import POST, admit, review, serving, settings_with
from webhook.admit import Answer
from webhook.handler import Admission
from webhook.review import BadReview


async def hang(body: bytes, deadline: float) -> Answer:  # noqa: ARG001 - as an admission is called
    """Never answer."""
    await asyncio.Event().wait()
    raise AssertionError


def failing(error: BaseException, *, waits: bool = False) -> Admission:
    """An admission that raises."""

    async def fail(body: bytes, deadline: float) -> Answer:  # noqa: ARG001
        if waits:
            await asyncio.sleep(0)
        raise error

    return fail


def assert_admitted_unpatched(response: dict[str, object], uid: str) -> str:
    """The response admits without a patch, and its one warning is short enough; the warning."""
    assert response["uid"] == uid
    assert response["allowed"] is True
    assert "patch" not in response
    assert "patchType" not in response
    assert isinstance(response["warnings"], list)
    (warning,) = response["warnings"]
    assert len(warning) <= 120
    return str(warning)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda text: text[: len(text) // 2],
    "another kind": lambda text: text.replace(b"AdmissionReview", b"AdmissionReport"),
    "another version": lambda text: text.replace(b"admission.k8s.io/v1", b"admission.k8s.io/v1beta1"),
    "a number for uid": lambda text: text.replace(b'"u-1"', b"17"),
    "no uid": lambda text: text.replace(b'"u-1"', b"null"),
    "a brace too many": lambda text: text + b"}",
    "no UTF-8": lambda text: text.replace(b"team-a", b"team-\xff"),
    "the request alone": lambda text: orjson.dumps(orjson.loads(text)["request"]),
}


class TestFailure:
    """An exception in the admission."""

    @pytest.mark.parametrize("waits", [False, True])
    @pytest.mark.parametrize(
        "error",
        [KeyError("hunter2"), RecursionError(), MemoryError(), TimeoutError(), AssertionError("x" * 500)],
        ids=repr,
    )
    async def test_admits_and_warns(self, error: Exception, *, waits: bool) -> None:
        """The user's request goes on, the warning names the kind of error only, and the failure is counted."""
        async with serving(failing(error, waits=waits)) as served:
            status, response = await served.ask(review("u-1"))

            assert status == 200
            warning = assert_admitted_unpatched(response, "u-1")
            assert warning == (f"workload-stamp: admitted without stamps: internal error ({type(error).__name__})")
            assert served.counted("failures_total", where="admission") == 1
            assert served.counted("admissions_total", kind="Pod", operation="CREATE", outcome="failed") == 1

    async def test_is_logged_with_its_place(self) -> None:
        """The log has what was being admitted, the error's type and where it came from, and not its message."""
        async with serving(failing(KeyError("hunter2"))) as served:
            await served.ask(review("u-1"))
            (line,) = served.logged("admission failed")

            assert (line["level"], line["error"], line["uid"], line["name"]) == ("error", "KeyError", "u-1", "train-0")
            assert line["at"][-1].endswith(" fail")
            assert b"hunter2" not in served.log.getvalue()

    async def test_of_a_body_that_is_no_review_is_the_senders(self) -> None:
        """When no answer can be given either, it is 400 and not 500."""
        async with serving(failing(ZeroDivisionError())) as served:
            for body in (b"", b"[]", b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{}}'):
                assert (await served.ask(body))[0] == 400

    async def test_of_a_review_that_says_little_is_answered_all_the_same(self) -> None:
        """A uid is enough to be admitted; what the review doesn't say isn't logged."""
        async with serving(failing(ZeroDivisionError())) as served:
            assert_admitted_unpatched((await served.ask(review("u-1", kind=None)))[1], "u-1")

            assert "kind" not in served.logged("admission failed")[0]

    async def test_is_told_from_a_bad_review(self) -> None:
        """What the admission calls a bad review is the sender's fault, and its words are passed on."""
        async with serving(failing(BadReview("request.kind is not an object"))) as served:
            status, text = await served.ask(review())

            assert (status, text) == (400, "request.kind is not an object\n")
            assert served.counted("failures_total", where="admission") == 0

    async def test_survives_nesting_that_nobody_can_parse(self) -> None:
        """A body nested 100,000 deep is refused without harm."""
        async with serving(failing(RecursionError())) as served:
            deep = review("u-1")[:-2] + b',"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}}"

            assert (await served.ask(deep))[0] in {200, 400}
            assert (await served.ask(b"[" * 100_000))[0] == 400
            assert (await served.ask(review("u-2")))[0] == 200

    async def test_in_the_record_costs_no_answer(self) -> None:
        """Facts that can't be counted or logged don't lose the answer."""

        async def odd(body: bytes, deadline: float) -> Answer:
            answer = await admit(body, deadline)
            return Answer(body=answer.body, outcome="stamped", facts={"kind": ["unhashable"], "operation": "CREATE"})

        async with serving(odd) as served:
            status, response = await served.ask(review("u-1"))

            assert (status, response["uid"]) == (200, "u-1")
            assert served.counted("failures_total", where="record") == 1


class TestDeadline:
    """An admission that takes too long."""

    @pytest.mark.parametrize(
        "target, limit", [("/mutate?timeout=900ms", 0.9), ("/mutate?x=1&timeout=0.9s", 0.9), ("/mutate", 1.5)]
    )
    async def test_admits_before_the_sender_gives_up(self, target: str, limit: float) -> None:
        """The answer comes within what the request or the settings allow, unpatched, with a warning."""
        async with serving(hang, settings=settings_with(deadline=1.5)) as served:
            began = asyncio.get_running_loop().time()
            status, response = await served.ask(review("u-1"), target=target)
            took = asyncio.get_running_loop().time() - began

            assert status == 200
            warning = assert_admitted_unpatched(response, "u-1")
            assert warning == "workload-stamp: admitted without stamps: it was not worked out in time"
            assert limit / 2 <= took < limit
            assert served.counted("admissions_total", kind="Pod", operation="CREATE", outcome="deadline") == 1
            assert served.logged("admission overran its deadline")[0]["uid"] == "u-1"
            assert served.counted("failures_total", where="admission") == 0

    async def test_is_told_to_the_admission(self) -> None:
        """The admission knows until when it may read owners."""
        given: list[float] = []

        async def note(body: bytes, deadline: float) -> Answer:
            given.append(deadline - asyncio.get_running_loop().time())
            return await admit(body, deadline)

        async with serving(note, settings=settings_with(deadline=2.0)) as served:
            for timeout in ("10s", "1s", "nonsense", ""):
                await served.ask(review(), target=f"/mutate?timeout={timeout}")

        assert given == pytest.approx([1.6, 0.8, 1.6, 1.6], abs=0.3)

    async def test_cancels_the_admission(self) -> None:
        """Nothing goes on working on an answer that nobody waits for."""
        ended = asyncio.Event()

        async def notices(body: bytes, deadline: float) -> Answer:
            try:
                return await hang(body, deadline)
            finally:
                ended.set()

        async with serving(notices) as served:
            await served.ask(review(), target="/mutate?timeout=100ms")

            assert ended.is_set()
            assert served.counted("admissions_in_flight") == 0

    async def test_holds_for_the_body_too(self) -> None:
        """A client that never sends the rest of its body gets 408, and its connection is closed."""
        async with serving(settings=settings_with(deadline=0.2)) as served:
            connection = await served.dial()
            connection.writer.write(POST + b"Content-Length: 500\r\n\r\n{")
            head = await connection.reader.readuntil(b"\r\n\r\n")

            assert head.startswith(b"HTTP/1.1 408 ")
            assert b"Connection: close" in head
            assert b"only 1 bytes of the body came in time" in await connection.reader.read()
            await connection.close()

    async def test_is_remembered_for_few_targets_only(self) -> None:
        """A client that sends ever new targets makes nothing grow, and is answered."""
        async with serving() as served:
            for number in range(200):
                assert (await served.ask(review(), target=f"/mutate?timeout=1s&n={number}"))[0] == 200

    async def test_leaves_others_alone(self) -> None:
        """While one review hangs, others on other connections are answered."""

        async def one_hangs(body: bytes, deadline: float) -> Answer:
            return await (hang if b"u-slow" in body else admit)(body, deadline)

        async with serving(one_hangs) as served:
            slow = asyncio.create_task(served.ask(review("u-slow"), target="/mutate?timeout=2s"))
            await until(lambda: served.counted("admissions_in_flight") == 1)
            for number in range(20):
                assert (await served.ask(review(f"u-{number}")))[1]["patchType"] == "JSONPatch"

            assert not slow.done()
            assert_admitted_unpatched((await slow)[1], "u-slow")


class TestOverload:
    """More reviews at a time than the settings allow."""

    async def test_admits_what_is_too_much_at_once(self) -> None:
        """Those beyond the limit are answered without delay, unpatched; those within are worked out."""
        going = asyncio.Event()

        async def waits(body: bytes, deadline: float) -> Answer:
            await going.wait()
            return await admit(body, deadline)

        async with serving(waits, settings=settings_with(max_in_flight=3)) as served:
            within = [asyncio.create_task(served.ask(review(f"u-{number}"))) for number in range(3)]
            await until(lambda: served.counted("admissions_in_flight") == 3)
            for number in range(5):
                warning = assert_admitted_unpatched((await served.ask(review(f"more-{number}")))[1], f"more-{number}")
                assert warning == "workload-stamp: admitted without stamps: too many reviews at a time"
            going.set()

            assert [response["patchType"] for _, response in await asyncio.gather(*within)] == ["JSONPatch"] * 3
            assert served.counted("admissions_total", kind="Pod", operation="CREATE", outcome="overloaded") == 5

    async def test_is_logged_once_a_second_at_most(self) -> None:
        """Telling of overload must not add to it."""
        going = asyncio.Event()

        async def waits(body: bytes, deadline: float) -> Answer:
            await going.wait()
            return await admit(body, deadline)

        async with serving(waits, settings=settings_with(max_in_flight=1, deadline=30.0)) as served:
            busy = asyncio.create_task(served.ask(review("u-1"), target="/mutate?timeout=30s"))
            await until(lambda: served.counted("admissions_in_flight") == 1)
            began = asyncio.get_running_loop().time()
            for number in range(20):
                await served.ask(review(f"u-{number}"))
            took = asyncio.get_running_loop().time() - began
            going.set()
            await busy

            assert 1 <= len(served.logged("overloaded")) <= 1 + took


class TestBrokenReviews:
    """Reviews that are broken in some way, against the real wire."""

    @pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
    async def test_get_400_in_words(self, damage: Callable[[bytes], bytes]) -> None:
        """Whatever is wrong, it is told in one line, and nothing is thought to be a failure of ours."""
        async with serving() as served:
            status, text = await served.ask(damage(review("u-1")))

            assert status == 400
            assert 10 < len(text) < 300
            assert text.count("\n") == 1
            assert b'"level":"error"' not in served.log.getvalue()


async def test_a_loop_that_was_held_up_still_answers() -> None:
    """An admission that holds the loop past its deadline is answered as it comes: late beats never."""

    async def blocks(body: bytes, deadline: float) -> Answer:
        threading.Event().wait(0.3)
        return await admit(body, deadline)

    async with serving(blocks) as served:
        status, response = await served.ask(io.BytesIO(review("u-1")), target="/mutate?timeout=200ms")

        assert (status, response["patchType"]) == (200, "JSONPatch")
