"""HTTP requests to responses: a review is read, admitted and answered in time, whatever happens; health and metrics.

The admission is any callable from a body and a deadline to an answer; a function will do in tests.
The handlers are for aiohttp's low-level server: for three paths, routing, middlewares and signals would only cost time.
This module must not know listeners, signals, what a review says, or which definitions there are.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from aiohttp import hdrs, web

from webhook.admit import Answer
from webhook.deadline import DeadlineExceeded, time_allowed, within
from webhook.health import Health
from webhook.log import AdmissionLog, Logger
from webhook.metrics import Metrics
from webhook.options import seconds
from webhook.review import BadReview, admitted_unpatched, decode
from webhook.settings import Settings

MAX_TARGETS = 64
"""Different request targets whose time is remembered; the API server sends one."""

JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
REVIEW_PATH = "/mutate"


class Admission(Protocol):
    """Decides about one review."""

    async def __call__(self, body: bytes, deadline: float) -> Answer:
        """The answer to the review in `body`, before `deadline` (event-loop time, seconds). Raises BadReview."""
        ...


class Refusal(Exception):
    """A request that gets an HTTP error: the sender's fault. 499 is counted, but nobody is there to get it."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class ReviewHandler:
    """Answers what comes to the TLS port: `POST /mutate`, and health."""

    def __init__(
        self,
        settings: Settings,
        admission: Admission,
        *,
        health: Health,
        metrics: Metrics,
        logger: Logger,
        admissions: AdmissionLog,
    ) -> None:
        self.in_flight = 0
        self.leaving = False
        self._settings = settings
        self._admission = admission
        self._health = health
        self._metrics = metrics
        self._logger = logger
        self._admissions = admissions
        self._until_close = settings.requests_per_connection
        self._time = asyncio.get_running_loop().time
        self._allowed: dict[str, float] = {}
        self._overload_told = 0.0

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        """The response to one request."""
        allowed = self._allowed.get(request.raw_path)
        if allowed is None and request.path != REVIEW_PATH:
            response = health_response(request, self._health)
        else:
            self.in_flight += 1
            try:
                response = await self._review(request, allowed or self._time_allowed(request))
            finally:
                self.in_flight -= 1
        self._until_close -= 1
        if self.leaving or self._until_close == 0:
            self._until_close = self._settings.requests_per_connection
            response.force_close()
        return response

    async def _review(self, request: web.BaseRequest, allowed: float) -> web.Response:
        arrived = self._time()
        try:
            body = await self._body(request, arrived + allowed)
            answer = await self._answer(body, arrived + allowed)
        except Refusal as refusal:
            return self._refused(refusal.status, str(refusal))
        except BadReview as bad:
            return self._refused(400, str(bad))
        self._record(answer, self._time() - arrived)
        return web.Response(body=answer.body, content_type=JSON)

    async def _body(self, request: web.BaseRequest, deadline: float) -> bytes:
        """The whole body; raises Refusal."""
        if request.method != hdrs.METH_POST:
            raise Refusal(405, f"{REVIEW_PATH} takes POST only")
        content_type = request.headers.get(hdrs.CONTENT_TYPE, "")
        if content_type != JSON and content_type.partition(";")[0].strip().lower() != JSON:
            raise Refusal(415, f"the content type is {content_type[:80]!r}, expected {JSON}")
        content = request.content
        if not content.is_eof():
            return await self._arriving_body(request, deadline)
        body = content.read_nowait()
        if len(body) > self._settings.max_body:
            raise Refusal(413, self._too_large(len(body)))
        return body

    async def _arriving_body(self, request: web.BaseRequest, deadline: float) -> bytes:
        limit = self._settings.max_body
        if (request.content_length or 0) > limit:
            raise Refusal(413, self._too_large(request.content_length))
        if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and request.transport is not None:
            request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = bytearray()
        try:
            async with asyncio.timeout_at(deadline):
                while chunk := await request.content.readany():
                    body += chunk
                    if len(body) > limit:
                        raise Refusal(413, self._too_large(len(body)))
        except TimeoutError:
            raise Refusal(408, f"only {len(body)} bytes of the body came in time") from None
        except web.RequestPayloadError as error:
            raise Refusal(400, f"the body can't be read: {error}") from None
        except ConnectionError:
            self._metrics.disconnects.inc()
            raise Refusal(499, "the client went away before the whole body came") from None
        return bytes(body)

    def _too_large(self, found: int | None) -> str:
        return f"the body has {found} bytes or more, at most {self._settings.max_body} are read"

    async def _answer(self, body: bytes, deadline: float) -> Answer:
        """An answer, whatever happens; raises BadReview only."""
        if self.in_flight > self._settings.max_in_flight:
            self._tell_overload()
            return unpatched(body, "overloaded", "too many reviews at a time")
        try:
            return await within(self._admission(body, deadline), deadline)
        except BadReview:
            raise
        except DeadlineExceeded:
            answer = unpatched(body, "deadline", "it was not worked out in time")
            self._logger.warning("admission overran its deadline", **answer.facts)
        except Exception as error:
            answer = unpatched(body, "failed", f"internal error ({type(error).__name__})")
            self._metrics.failed("admission")
            self._logger.exception("admission failed", **answer.facts)
        return answer

    def _record(self, answer: Answer, took: float) -> None:
        """Log and count; a fault in that must not cost the answer."""
        try:
            self._metrics.admitted(answer.outcome, took, answer.facts)
            self._admissions.line(answer.outcome, took, answer.facts)
        except Exception:
            self._metrics.failed("record")
            self._logger.exception("admission could not be recorded")

    def _refused(self, status: int, reason: str) -> web.Response:
        self._metrics.refused(status)
        self._logger.warning("request refused", status=status, reason=reason)
        response = web.Response(status=status, text=f"{reason}\n")
        if status != 400:
            response.force_close()
        return response

    def _time_allowed(self, request: web.BaseRequest) -> float:
        """Seconds that a review may take, by what the request says in `?timeout=` and by the settings."""
        asked = None
        with suppress(ValueError):
            asked = seconds(request.query.get("timeout", ""))
        allowed = time_allowed(asked, self._settings.deadline, self._settings.deadline_margin)
        if len(self._allowed) < MAX_TARGETS:
            self._allowed[request.raw_path] = allowed
        return allowed

    def _tell_overload(self) -> None:
        now = self._time()
        if now >= self._overload_told + 1:
            self._overload_told = now
            self._logger.warning("overloaded", in_flight=self.in_flight, limit=self._settings.max_in_flight)


def plain_handler(health: Health, metrics: Metrics) -> Callable[[web.BaseRequest], Any]:
    """Answers what comes to the plain port: metrics and health."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if request.path != "/metrics" or request.method not in ("GET", "HEAD"):
            return health_response(request, health)
        body, content_type = metrics.exposition(request.headers.get(hdrs.ACCEPT, ""))
        return web.Response(body=body, headers={hdrs.CONTENT_TYPE: content_type})

    return handle


def health_response(request: web.BaseRequest, health: Health) -> web.Response:
    """`/livez`: this process turns its loop. `/readyz`: every condition holds; `?verbose` lists them."""
    if request.path not in ("/livez", "/readyz"):
        return web.Response(status=404, text="there is nothing here\n")
    if request.method not in ("GET", "HEAD"):
        return web.Response(status=405, text="GET only\n", headers={hdrs.ALLOW: "GET, HEAD"})
    asked = health if request.path == "/readyz" else Health()
    good, text = asked.report(request.path.lstrip("/"), verbose="verbose" in request.query)
    return web.Response(status=200 if good else 503, text=text)


def unpatched(body: bytes, outcome: str, why: str) -> Answer:
    """An answer that admits without stamps, and says so to the sender. Raises BadReview when none can be given."""
    try:
        admitted = admitted_unpatched(body, f"workload-stamp: admitted without stamps: {why}")
    except BadReview:
        raise
    except Exception as error:  # noqa: BLE001 - what broke the admission may break this too
        raise BadReview(f"the body can't be answered ({type(error).__name__})") from None
    return Answer(body=admitted, outcome=outcome, facts=_facts(body))


def _facts(body: bytes) -> dict[str, str]:
    """What can be said about a review that was not admitted as it should have been."""
    try:
        review = decode(body)
    except Exception:  # noqa: BLE001 - it may be what failed in the first place
        return {}
    return {
        "kind": review.kind.kind,
        "namespace": review.namespace,
        "name": review.name,
        "uid": review.uid,
        "operation": review.operation,
    }
