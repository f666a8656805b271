"""What the server answers, over real TLS: reviews, health, metrics, and requests that are none."""

import asyncio
import io
import logging
import ssl
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from tests.webhook.polling import until
from tests.webhook.serving import (
    AUTHORITY,
    JSON,
    LOOPBACK,
    NOW,
    POST,
    QUICK,
    Served,
    admit,
    client_tls,
    issue,
    review,
    serving,
    settings_with,
    until_ready,
)
from webhook.admit import Answer
from webhook.options import Address
from webhook.settings import SettingsError
from webhook.tls import ServingCertificate


class TestReview:
    """A review, answered."""

    async def test_gets_the_admissions_answer(self) -> None:
        """Status 200, JSON, the uid of the request and the patch, over a connection that stays open."""
        async with serving() as served:
            async with served.session.post(f"{served.url}/mutate?timeout=10s", data=review("u-1"), headers=JSON) as got:
                answer = await got.json()

                assert got.status == 200
                assert got.content_type == "application/json"
                assert "Connection" not in got.headers
            assert answer["response"]["uid"] == "u-1"
            assert answer["response"]["patchType"] == "JSONPatch"

    async def test_is_logged_in_one_line(self) -> None:
        """The line has what is known of the object's identity and how it went, and nothing of its content."""
        async with serving() as served:
            await served.ask(review("u-1", object={"spec": {"env": "hunter2"}}))
            (line,) = served.logged("admission")

            assert line.pop("milliseconds") >= 0
            assert line.pop("time")
            assert line == {
                "level": "info",
                "event": "admission",
                "outcome": "stamped",
                "kind": "Pod",
                "namespace": "team-a",
                "name": "train-0",
                "uid": "u-1",
                "operation": "CREATE",
            }

    async def test_is_counted(self) -> None:
        """The metrics' page shows it, with its duration."""
        async with serving() as served:
            await served.ask(review())
            status, page = await served.get("/metrics")

            assert status == 200
            assert 'workload_stamp_admissions_total{kind="Pod",operation="CREATE",outcome="stamped"} 1.0' in page
            assert 'workload_stamp_admission_duration_seconds_count{operation="CREATE"} 1.0' in page

    @pytest.mark.parametrize(
        "content_type", ["application/json", "application/json; charset=utf-8", "Application/JSON"]
    )
    async def test_is_json(self, content_type: str) -> None:
        """The content type is JSON however it is spelled."""
        async with serving() as served:
            status, _ = await served.ask(review(), headers={"Content-Type": content_type})

            assert status == 200

    async def test_may_be_large(self) -> None:
        """A review of nearly 7 MiB, far more than aiohttp's default limit, is answered."""
        async with serving() as served:
            status, answer = await served.ask(io.BytesIO(review("u-1", object={"data": "x" * (7 * 2**20 - 1000)})))

            assert (status, answer["uid"]) == (200, "u-1")

    async def test_may_come_in_pieces(self) -> None:
        """A body that comes in small pieces, a while after its headers, is read to its end."""
        body = review("u-1")
        async with serving() as served:
            connection = await served.dial()
            connection.writer.write(POST)
            connection.writer.write(f"Content-Length: {len(body)}\r\n\r\n".encode())
            for at in range(0, len(body), 10):
                connection.writer.write(body[at : at + 10])
                await connection.writer.drain()
                await asyncio.sleep(0)

            assert (await connection.reader.readline()).startswith(b"HTTP/1.1 200 ")
            await connection.close()

    async def test_may_ask_first(self) -> None:
        """A client that waits for `100 Continue` before it sends a large body is told to."""
        async with (
            serving() as served,
            served.session.post(f"{served.url}/mutate", data=review(), headers=JSON, expect100=True) as response,
        ):
            assert response.status == 200

    async def test_may_have_no_length(self) -> None:
        """A body in chunks is read as well."""
        body = review("u-1")

        async def chunks() -> AsyncIterator[bytes]:
            yield body[:20]
            yield body[20:]

        async with (
            serving() as served,
            served.session.post(f"{served.url}/mutate", data=chunks(), headers=JSON) as response,
        ):
            assert (await response.json())["response"]["uid"] == "u-1"


class TestRefusal:
    """A request that is the sender's fault."""

    @pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"{}", review()[:-20], b"\xff\xfe", b'{"kind":1}'])
    async def test_of_what_is_no_review(self, body: bytes) -> None:
        """Anything that is no review is told so with 400, and the connection can be used on."""
        async with serving() as served:
            status, text = await served.ask(body)

            assert status == 400
            assert text.strip()
            assert served.counted("requests_refused_total", code="400") == 1
            assert (await served.ask(review()))[0] == 200

    @pytest.mark.parametrize(
        "content_type", ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"]
    )
    async def test_of_another_content_type(self, content_type: str) -> None:
        """Only JSON is read."""
        async with serving() as served:
            status, text = await served.ask(review(), headers={"Content-Type": content_type})

            assert (status, served.counted("requests_refused_total", code="415")) == (415, 1)
            assert text == f"the content type is {content_type!r}, expected application/json\n"

    async def test_of_a_compressed_body(self) -> None:
        """Compressed bodies are not unpacked: a small one could become a huge one."""
        async with serving() as served:
            status, _ = await served.ask(zlib.compress(review()), headers={**JSON, "Content-Encoding": "deflate"})

            assert status == 400

    @pytest.mark.parametrize("chunked", [False, True])
    async def test_of_a_huge_body(self, *, chunked: bool) -> None:
        """A body over the limit is told so with 413 before it is read, whether or not it states its length."""
        body = b"x" * (2 * 2**20)

        async def chunks() -> AsyncIterator[bytes]:
            for at in range(0, len(body), 2**16):
                yield body[at : at + 2**16]

        async with serving(settings=settings_with(max_body=2**20)) as served:
            async with served.session.post(
                f"{served.url}/mutate", data=chunks() if chunked else io.BytesIO(body), headers=JSON
            ) as response:
                text = await response.text()

            assert response.status == 413
            assert "at most 1048576 are read" in text
            assert (await served.ask(review()))[0] == 200

    @pytest.mark.parametrize(
        "method, path, status",
        [
            ("GET", "/mutate", 405),
            ("PUT", "/mutate", 405),
            ("POST", "/", 404),
            ("POST", "/mutate/x", 404),
            ("POST", "/livez", 405),
            ("GET", "/metrics", 404),
            ("GET", "/%00", 404),
        ],
    )
    async def test_of_another_path_or_method(self, method: str, path: str, status: int) -> None:
        """The TLS port takes reviews and health, nothing else."""
        async with serving() as served, served.session.request(method, f"{served.url}{path}") as response:
            assert response.status == status

    @pytest.mark.parametrize(
        "head",
        [
            b"GET / HTTP/9.9\r\n\r\n",
            b"rubbish\r\n\r\n",
            POST + b"Content-Length: -1\r\n\r\n",
            b"POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            POST + b"Transfer-Encoding: chunked\r\n\r\nnonsense\r\n",
            b"GET /" + b"a" * 10_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",
        ],
    )
    async def test_of_what_is_no_http(self, head: bytes, caplog: pytest.LogCaptureFixture) -> None:
        """What can't be parsed gets 400, never a 5xx, harms nobody else, and is no error in the log."""
        async with serving() as served:
            connection = await served.dial()
            connection.writer.write(head)

            assert b" 400 " in await connection.reader.readline()
            await connection.close()
            assert (await served.ask(review()))[0] == 200
            assert [record for record in caplog.records if record.levelno > logging.DEBUG] == []

    async def test_of_plaintext(self) -> None:
        """A client without TLS is dropped, and harms nobody else."""
        async with serving() as served:
            reader, writer = await asyncio.open_connection("127.0.0.1", served.addresses.reviews.port)
            writer.write(b"POST /mutate HTTP/1.1\r\nHost: a\r\n\r\n")

            assert await reader.read() in {b"", b"\x15\x03\x03\x00\x02\x02F", b"\x15\x03\x01\x00\x02\x02F"}
            writer.close()
            assert (await served.ask(review()))[0] == 200


class TestDisconnect:
    """A client that goes away."""

    async def test_in_the_middle_of_a_body_is_counted_only(self) -> None:
        """A truncated body is no failure of ours: nothing is in flight afterwards, nothing is logged as an error."""
        async with serving() as served:
            connection = await served.dial()
            connection.writer.write(POST + b"Content-Length: 500\r\n\r\n{")
            await connection.writer.drain()
            await until(lambda: served.counted("admissions_in_flight") == 1)
            connection.writer.transport.abort()
            await until(lambda: served.counted("disconnects_total") == 1)
            await until(lambda: served.counted("requests_refused_total", code="499") == 1)

            assert served.counted("admissions_in_flight") == 0
            assert served.counted("failures_total", where="admission") == 0
            assert b'"level":"error"' not in served.log.getvalue()

    async def test_before_the_answer_leaves_nothing_behind(self) -> None:
        """The admission ends, its answer goes nowhere, and no error is logged."""
        going = asyncio.Event()

        async def slow(body: bytes, deadline: float) -> Answer:
            await going.wait()
            return await admit(body, deadline)

        async with serving(slow) as served:
            connection = await served.dial()
            body = review()
            connection.writer.write(POST)
            connection.writer.write(f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
            await until(lambda: served.counted("admissions_in_flight") == 1)
            connection.writer.transport.abort()
            going.set()
            await until(lambda: served.counted("admissions_in_flight") == 0)
            await until(lambda: served.logged("admission"))

            assert b'"level":"error"' not in served.log.getvalue()


class TestHealth:
    """Liveness and readiness, on both ports."""

    @pytest.mark.parametrize("plain", [True, False])
    async def test_is_good_when_everything_is(self, *, plain: bool) -> None:
        """A server that has proved its listener says ok to both questions."""
        async with serving() as served:
            await until_ready(served)

            assert await served.get("/livez", plain=plain) == (200, "ok")
            assert await served.get("/readyz", plain=plain) == (200, "ok")

    async def test_names_the_condition_that_fails(self) -> None:
        """Readiness tells which condition doesn't hold and why, liveness doesn't care."""
        fault: list[str | None] = ["42 definitions are being read"]
        async with serving(ready_checks={"definitions": lambda: fault[0]}) as served:
            await until(lambda: not served.server.unproven())
            status, text = await served.get("/readyz")

            assert status == 503
            assert text == (
                "[+]certificate ok\n[+]listener ok\n[-]definitions failed: 42 definitions are being read\n"
                "[+]leaving ok\nreadyz check failed\n"
            )
            assert (await served.get("/livez"))[0] == 200
            fault[0] = None
            assert await served.get("/readyz") == (200, "ok")

    async def test_lists_the_conditions_when_asked(self) -> None:
        """`?verbose` shows them though all is well."""
        async with serving() as served:
            await until_ready(served)

            assert await served.get("/readyz?verbose") == (
                200,
                "[+]certificate ok\n[+]listener ok\n[+]leaving ok\nreadyz check passed\n",
            )

    async def test_needs_a_certificate(self) -> None:
        """Without one the server is alive and not ready; the first one makes it ready, listener proved."""
        certificate = ServingCertificate()
        async with serving(certificate=certificate) as served:
            status, text = await served.get("/readyz")

            assert status == 503
            assert "[-]certificate failed: there is no certificate yet" in text
            assert "[-]listener failed: no TLS connection to our own port has succeeded yet" in text
            certificate.replace(issue())
            await until_ready(served)
            assert (await served.ask(review()))[0] == 200

    async def test_is_found_with_client_certificates_required(self) -> None:
        """The server proves its listener though it has no client certificate itself."""
        certificate = ServingCertificate.from_pair(issue(), client_ca=AUTHORITY.certificate)
        async with serving(certificate=certificate) as served:
            await until_ready(served)

    async def test_may_be_asked_by_head(self) -> None:
        """HEAD is GET without the text."""
        async with serving() as served, served.session.head(f"{served.plain_url}/livez") as response:
            assert response.status == 200


class TestTls:
    """Who may connect, and with which certificate."""

    async def test_asks_for_a_client_certificate_when_told(self, tmp_path: Path) -> None:
        """With a client authority a review without a certificate of it gets no answer, one with it does."""
        pair = AUTHORITY.issue_client("api-server", NOW)
        (tmp_path / "pair.pem").write_bytes(pair.key + pair.certificate)
        certificate = ServingCertificate.from_pair(issue(), client_ca=AUTHORITY.certificate)
        async with serving(certificate=certificate, tls=client_tls(str(tmp_path / "pair.pem"))) as served:
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=client_tls())) as nobody:
                with pytest.raises(aiohttp.ClientError):
                    await nobody.post(f"{served.url}/mutate", data=review(), headers=JSON)

            assert (await served.ask(review()))[0] == 200

    async def test_swaps_the_certificate_under_load(self) -> None:
        """While the certificate is replaced fifty times, no review on new and old connections is lost."""
        certificate = ServingCertificate.from_pair(issue())
        pairs = [issue() for _ in range(50)]
        seen: set[bytes] = set()

        async def stream(served: Served, answers: list[int]) -> None:
            for number in range(40):
                connection = await served.dial()
                seen.add(connection.certificate)
                answers += [(await connection.ask(review(f"u-{number}")))[0] for _ in range(3)]
                await connection.close()

        async with serving(certificate=certificate) as served:
            answers: list[int] = []
            streams = [asyncio.create_task(stream(served, answers)) for _ in range(4)]
            for number, pair in enumerate(pairs):
                await until(lambda least=number * 8: len(answers) >= least, seconds=30)  # type: ignore[misc]
                certificate.replace(pair)
            await asyncio.gather(*streams)

        assert answers == [200] * (4 * 40 * 3)
        assert len(seen & {ssl.PEM_cert_to_DER_cert(pair.certificate.decode()) for pair in pairs}) > 5


class TestConnections:
    """How long connections live."""

    def test_outlive_the_api_servers(self) -> None:
        """The API server gives up an idle connection after 90 s: it must be the first to do so."""
        assert QUICK.keep_alive > 90

    async def test_are_kept_as_long_as_the_settings_say(self) -> None:
        """The setting reaches every connection."""
        async with serving(settings=settings_with(keep_alive=100.0)) as served:
            await served.ask(review())

            assert {connection.keepalive_timeout for connection in served.server.connections()} == {100.0}

    async def test_are_closed_once_idle_for_longer(self) -> None:
        """An idle connection is closed by us in the end, so that dead ones don't pile up."""
        async with serving(settings=settings_with(keep_alive=0.1)) as served:
            connection = await served.dial()

            async with asyncio.timeout(5):
                assert await connection.reader.read() == b""
            await connection.close()

    async def test_are_closed_once_in_so_many_answers(self) -> None:
        """Every third answer says that its connection closes, so that a new replica gets its share."""
        async with serving(settings=settings_with(requests_per_connection=3)) as served:
            closes = []
            for _ in range(7):
                async with served.session.post(f"{served.url}/mutate", data=review(), headers=JSON) as response:
                    closes.append(response.headers.get("Connection"))

            assert closes == [None, None, "close", None, None, "close", None]

    async def test_are_never_closed_for_number_when_told_so(self) -> None:
        """Zero switches that off."""
        async with serving(settings=settings_with(requests_per_connection=0)) as served:
            for _ in range(5):
                async with served.session.post(f"{served.url}/mutate", data=review(), headers=JSON) as response:
                    assert "Connection" not in response.headers


class TestStart:
    """How the server comes up."""

    async def test_reports_every_address_that_is_taken(self) -> None:
        """Both ports taken: both are told at once, by their flags."""
        async with serving() as served:
            taken = settings_with(bind_address=served.addresses.reviews, metrics_bind_address=served.addresses.plain)
            with pytest.raises(SettingsError) as caught:
                async with serving(settings=taken):
                    pass

            assert caught.value.problems == (
                f"--bind-address: can't listen on {served.addresses.reviews}: Address already in use",
                f"--metrics-bind-address: can't listen on {served.addresses.plain}: Address already in use",
            )

    async def test_reports_a_host_that_is_none(self) -> None:
        """A host that can't be resolved is told like a port that is taken."""
        with pytest.raises(SettingsError, match=r"--bind-address: can't listen on no\.such\.host\.invalid:0: "):
            async with serving(settings=settings_with(bind_address=Address("no.such.host.invalid", 0))):
                pass

    async def test_listens_everywhere_by_default(self) -> None:
        """An empty host is every interface: loopback reaches it, and readiness proves it."""
        async with serving(settings=settings_with(bind_address=Address("", 0))) as served:
            await until_ready(served)
            served.addresses = type(served.addresses)(
                reviews=Address("127.0.0.1", served.addresses.reviews.port), plain=LOOPBACK
            )

            assert (await served.ask(review()))[0] == 200
