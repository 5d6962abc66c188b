"""tornado applications over a `Call`, without a network."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("tornado")

from tornado import httputil, web, websocket
from tornado.iostream import StreamClosedError
from tornado.wsgi import WSGIContainer
from tricorn.gateway import tornado_headers
from tricorn.gateway.tornado import Server, delegate_of
from tricorn.gateway.tornado_wsgi import wsgi_of

from tests.harness.call import FakeCall, begin

SEEN: list[Any] = []


class Hello(web.RequestHandler):
    def get(self) -> None:
        self.write("hello")


class Facts(web.RequestHandler):
    def post(self) -> None:
        request = self.request
        self.write(
            {
                "method": request.method,
                "uri": request.uri,
                "ip": request.remote_ip,
                "protocol": request.protocol,
                "two": request.headers.get_list("X-Two"),
                "body": request.body.decode(),
            }
        )


class Stream(web.RequestHandler):
    async def get(self) -> None:
        for number in range(3):
            self.write(f"{number}")
            await self.flush()


class Slow(web.RequestHandler):
    async def get(self) -> None:
        SEEN.append(self)
        self.write("first")
        try:
            await self.flush()
            SEEN.append("flushed")
            await asyncio.Event().wait()
        except StreamClosedError:
            SEEN.append("closed")

    def on_connection_close(self) -> None:
        SEEN.append("on_connection_close")


@web.stream_request_body
class Upload(web.RequestHandler):
    gate: asyncio.Event

    async def prepare(self) -> None:
        SEEN.append("prepare")
        if self.get_argument("refuse", ""):
            raise web.HTTPError(403)
        if limit := self.get_argument("limit", ""):
            self.request.connection.set_max_body_size(int(limit))  # type: ignore[union-attr]

    async def data_received(self, chunk: bytes) -> None:
        SEEN.append(chunk)
        if self.get_argument("wait", ""):
            await Upload.gate.wait()

    def post(self) -> None:
        self.write("done")

    def on_connection_close(self) -> None:
        super().on_connection_close()
        SEEN.append("on_connection_close")


class Echo(websocket.WebSocketHandler):
    async def open(self, *args: str, **kwargs: str) -> None:
        await self.write_message("welcome")

    async def on_message(self, message: str | bytes) -> None:
        await self.write_message(message)

    def on_close(self) -> None:
        SEEN.append(("closed", self.close_code))


class Wrong(web.RequestHandler):
    def get(self) -> None:
        raise ZeroDivisionError

    async def post(self) -> None:
        self.set_header("Content-Length", 3)
        self.write("four")
        await self.flush()


def application() -> web.Application:
    return web.Application(
        [
            ("/", Hello),
            ("/facts", Facts),
            ("/stream", Stream),
            ("/slow", Slow),
            ("/upload", Upload),
            ("/echo", Echo),
            ("/wrong", Wrong),
        ]
    )


def run(test: Callable[[Server], Coroutine[Any, Any, None]], app: Any = None) -> None:
    SEEN.clear()

    async def main() -> None:
        Upload.gate = asyncio.Event()
        server = Server(app or application(), asyncio.get_running_loop())
        await test(server)

    asyncio.run(asyncio.wait_for(main(), 10))


async def until(condition: Callable[[], object]) -> None:
    """Within the time that `run` gives."""
    while not condition():  # noqa: ASYNC110 - of any kind
        await asyncio.sleep(0)


def post(target: str, *chunks: bytes, **options: Any) -> FakeCall:
    body = deque(chunks)
    return FakeCall(method="POST", target=target, has_body=True, body=body, **options)


def test_a_small_answer_is_one_piece() -> None:
    async def test(server: Server) -> None:
        call = FakeCall()
        begin(server, call)
        await until(lambda: call.ended)
        assert (call.status, call.reason, call.sent, call.ended) == (200, "OK", [b"hello"], "end")
        assert call.headers["content-length"] == "5"

    run(test)


def test_what_a_handler_is_told_of_its_request() -> None:
    async def test(server: Server) -> None:
        call = post("/facts?a=b", b"one ", b"two", b"")
        call.named += [("X-Two", "1"), ("X-Two", "2")]
        begin(server, call)
        await until(lambda: call.ended)
        assert httputil.HTTPHeaders(call.headers)["Content-Type"].startswith("application/json")
        import json

        assert json.loads(call.text) == {
            "method": "POST",
            "uri": "/facts?a=b",
            "ip": "192.0.2.7",
            "protocol": "http",
            "two": ["1", "2"],
            "body": "one two",
        }

    run(test)


@pytest.mark.parametrize(
    ("forwarded", "fields", "scheme", "expected"),
    [
        ("203.0.113.9", [], "https", ("203.0.113.9", "https")),
        ("203.0.113.9", [("X-Real-Ip", "1.2.3.4")], "http", ("203.0.113.9", "http")),
        (None, [("X-Real-Ip", "203.0.113.9")], "http", ("203.0.113.9", "http")),
        (None, [("X-Real-Ip", "nonsense")], "http", ("192.0.2.7", "http")),
        (None, [], "https", ("192.0.2.7", "https")),
    ],
)
@pytest.mark.parametrize("trusted", [True, False])
def test_front_ends_speak_for_clients_if_they_may(
    trusted: bool, forwarded: str | None, fields: list[tuple[str, str]], scheme: str, expected: tuple[str, str]
) -> None:
    async def test(server: Server) -> None:
        call = post("/facts", b"", is_trusted=trusted, scheme=scheme, forwarded=forwarded)
        call.named += fields
        begin(server, call)
        await until(lambda: call.ended)
        # What a stranger claims is no scheme: the core has another one only if a balancer has announced it.
        ip, protocol = expected if trusted else ("192.0.2.7", scheme)
        assert b'"ip": "%b", "protocol": "%b"' % (ip.encode(), protocol.encode()) in call.text

    run(test)


def test_a_unix_socket_has_no_address() -> None:
    async def test(server: Server) -> None:
        call = post("/facts", b"", peer=None, is_trusted=True)
        begin(server, call)
        await until(lambda: call.ended)
        assert b'"ip": "0.0.0.0"' in call.text

    run(test)


def test_a_stream_and_its_end() -> None:
    async def test(server: Server) -> None:
        call = FakeCall(target="/stream")
        begin(server, call)
        await until(lambda: call.ended)
        assert [piece for piece in call.sent if piece] == [b"0", b"1", b"2"]
        assert "content-length" not in call.headers

    run(test)


def test_a_writer_waits_for_a_client_that_is_behind() -> None:
    async def test(server: Server) -> None:
        call = FakeCall(target="/slow", is_behind=True)
        begin(server, call)
        await until(lambda: call.sent)
        for _ in range(5):
            await asyncio.sleep(0)
        assert "flushed" not in SEEN
        call.listener.on_writable()  # type: ignore[union-attr]
        await until(lambda: "flushed" in SEEN)

    run(test)


def test_a_handler_is_told_that_its_client_has_left() -> None:
    async def test(server: Server) -> None:
        call = FakeCall(target="/slow", is_behind=True)
        begin(server, call)
        await until(lambda: call.sent)
        call.leave()
        await until(lambda: "closed" in SEEN)
        assert SEEN[1:] == ["on_connection_close", "closed"]

    run(test)


def test_a_client_that_only_stops_sending_gets_its_answer() -> None:
    async def test(server: Server) -> None:
        call = FakeCall(target="/slow", is_behind=True)
        begin(server, call)
        await until(lambda: call.sent)
        call.listener.on_hangup()  # type: ignore[union-attr]
        assert SEEN[1:] == ["on_connection_close"]
        call.listener.on_writable()  # type: ignore[union-attr]
        await until(lambda: "flushed" in SEEN)

    run(test)


def test_what_is_written_to_nobody_raises() -> None:
    async def test(server: Server) -> None:
        call = FakeCall(is_gone=True, target="/stream")
        begin(server, call)
        await until(lambda: call.ended)

    run(test)


def test_an_upload_is_given_on_as_it_comes() -> None:
    async def test(server: Server) -> None:
        call = post("/upload", b"one")
        begin(server, call)
        await until(lambda: b"one" in SEEN)
        assert not call.ended
        call.body += [b"two", b""]
        call.listener.on_readable()  # type: ignore[union-attr]
        await until(lambda: call.ended)
        assert SEEN == ["prepare", b"one", b"two"]
        assert call.sent == [b"done"]

    run(test)


def test_who_takes_his_time_with_a_piece_gets_no_other() -> None:
    async def test(server: Server) -> None:
        call = post("/upload?wait=1", b"one", b"two", b"")
        begin(server, call)
        await until(lambda: b"one" in SEEN)
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(call.body) == 2
        Upload.gate.set()
        await until(lambda: call.ended)
        assert SEEN == ["prepare", b"one", b"two"]

    run(test)


def test_an_answer_before_the_end_of_the_body() -> None:
    async def test(server: Server) -> None:
        call = post("/upload?refuse=1", b"one")
        begin(server, call)
        await until(lambda: "on_connection_close" in SEEN)
        assert (call.status, call.ended) == (403, "end")
        assert SEEN == ["prepare", "on_connection_close"]

    run(test)


def test_a_client_that_leaves_in_the_midst_of_its_body() -> None:
    async def test(server: Server) -> None:
        call = post("/upload", b"one")
        begin(server, call)
        await until(lambda: b"one" in SEEN)
        call.leave()
        await until(lambda: "on_connection_close" in SEEN)

    run(test)


@pytest.mark.parametrize("length", [5, None])
def test_a_body_beyond_the_handlers_limit(length: int | None) -> None:
    async def test(server: Server) -> None:
        call = post("/upload?limit=4", b"12345", length=length)
        begin(server, call)
        await until(lambda: call.ended)
        assert call.ended.startswith("refuse 413")
        await until(lambda: "on_connection_close" in SEEN)

    run(test)


def test_a_handler_that_fails() -> None:
    async def test(server: Server) -> None:
        call = FakeCall(target="/wrong")
        begin(server, call)
        await until(lambda: call.ended)
        assert (call.status, call.ended) == (500, "end")

    run(test)


def test_more_than_was_promised_closes_the_connection() -> None:
    async def test(server: Server) -> None:
        call = FakeCall(target="/wrong", method="POST")
        begin(server, call)
        await until(lambda: call.ended)
        assert call.ended == "abort"

    run(test)


def test_a_request_that_tornado_refuses() -> None:
    async def test(server: Server) -> None:
        call = FakeCall(named=[("Host", "a,b")])
        begin(server, call)
        assert call.ended.startswith("refuse 400")
        await asyncio.sleep(0)

    run(test)


def frame(data: bytes, opcode: int = 1) -> bytes:
    """From a client, masked with zeros."""
    return bytes([0x80 | opcode, 0x80 | len(data), 0, 0, 0, 0]) + data


def handshake(target: str = "/echo", **options: Any) -> FakeCall:
    call = FakeCall(target=target, **options)
    call.named += [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-Websocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("Sec-Websocket-Version", "13"),
    ]
    return call


async def receive(call: FakeCall, count: int) -> bytes:
    assert call.other_end is not None
    call.other_end.setblocking(False)
    data = b""
    while len(data) < count:
        data += await asyncio.get_running_loop().sock_recv(call.other_end, count - len(data))
    return data


async def receive_head(call: FakeCall) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += await receive(call, 1)
    return head


@contextmanager
def closing(call: FakeCall) -> Iterator[None]:
    try:
        yield
    finally:
        if call.other_end is not None:
            call.other_end.close()


def test_a_websocket_takes_the_connection() -> None:
    async def test(server: Server) -> None:
        call = handshake(unread=frame(b"early"))
        begin(server, call)
        await until(lambda: call.other_end)
        with closing(call):
            head = await receive_head(call)
            assert head.startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
            assert b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head
            assert await receive(call, 9) == b"\x81\x07welcome"
            assert await receive(call, 7) == b"\x81\x05early"
            assert not call.ended
            assert len(server.websockets) == 1
            assert server.leave(1001) == 1
            server.dismiss(1)
            assert await receive(call, 4) == b"\x88\x02\x03\xe9"
            call.other_end.send(frame(b"\x03\xe9", 8))  # type: ignore[union-attr]
            await until(lambda: call.ended)
            assert call.ended == "end"
            assert ("closed", 1001) in SEEN

    run(test)


def test_websockets_are_told_the_oldest_first_and_one_that_fails_keeps_the_others_from_nothing() -> None:
    class Handler:
        def __init__(self, name: str) -> None:
            self.name = name

        def close(self, code: int) -> None:
            told.append((self.name, code))
            if self.name == "second":
                raise OSError("the application's close has failed")

    told: list[tuple[str, int]] = []
    handlers = [Handler(name) for name in ("first", "second", "third", "fourth")]

    async def test(server: Server) -> None:
        for handler in handlers:
            server.add_websocket(handler)
        assert server.leave(1012) == 4
        server.dismiss(1)
        assert told == [("first", 1012)]
        assert server.leave(1012) == 3, "asked again it is what is left"
        with pytest.raises(OSError, match="has failed"):
            server.dismiss(2)
        assert [name for name, _ in told] == ["first", "second", "third"]
        server.dismiss(9)
        assert [name for name, _ in told][3:] == ["fourth"]

    run(test)


def test_a_websocket_that_opens_too_late_is_told_as_well() -> None:
    async def test(server: Server) -> None:
        server.leave(1012)
        call = handshake()
        begin(server, call)
        await until(lambda: call.other_end)
        with closing(call):
            await receive_head(call)
            got = await receive(call, 13)
            assert b"\x88\x02\x03\xf4" in got
            call.other_end.send(frame(b"\x03\xf4", 8))  # type: ignore[union-attr]
            await until(lambda: call.ended)

    run(test)


class Header(httputil.HTTPServerConnectionDelegate):
    """Answers at once, with a field of its own; or complains of its request."""

    def start_request(self, server_conn: object, request_conn: httputil.HTTPConnection) -> Any:
        class Message(httputil.HTTPMessageDelegate):
            def headers_received(self, start_line: Any, headers: httputil.HTTPHeaders) -> None:
                self.path = start_line.path

            def finish(self) -> None:
                if self.path == "/complains":
                    raise httputil.HTTPInputError("secret of the parser")
                headers = httputil.HTTPHeaders()
                if self.path == "/parses":
                    headers = httputil.HTTPHeaders.parse("X-Secret: \x01\r\n")
                headers.add("X-Secret", "one\x01two")
                request_conn.write_headers(httputil.ResponseStartLine("", 200, "Fine"), headers, b"")

        return Message()


def test_a_wrong_field_of_an_answer_is_the_applications_mistake() -> None:
    async def test(server: Server) -> None:
        call = FakeCall(target="/answers")
        begin(server, call)
        assert call.ended.startswith("fail HTTPInputError(")
        await asyncio.sleep(0)

    run(test, app=Header())


@pytest.mark.parametrize("path", ["/complains", "/parses"])
def test_what_a_delegate_complains_of_is_not_shown_to_the_client(path: str) -> None:
    async def test(server: Server) -> None:
        call = FakeCall(target=path)
        begin(server, call)
        assert call.ended == "refuse 400 "
        await asyncio.sleep(0)

    run(test, app=Header())


def test_a_failure_that_is_told_later_is_never_the_requests() -> None:
    async def test(server: Server) -> None:
        call = FakeCall(target="/slow")
        connection = begin(server, call)
        connection.failed(httputil.HTTPInputError("in a task of the application"))
        assert call.ended.startswith("fail HTTPInputError(")
        await asyncio.sleep(0)

    run(test)


def test_tornado_wsgi_application_of_a_callable() -> None:
    def app(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        return []

    class Own(WSGIContainer):
        pass

    assert wsgi_of(app) is app
    assert wsgi_of(WSGIContainer(app)) is app
    assert wsgi_of(Own(app)) is None
    assert wsgi_of(application()) is None
    assert wsgi_of(Header()) is None
    if hasattr(WSGIContainer(app), "executor"):  # tornado 6.3
        with ThreadPoolExecutor(1) as executor:
            assert wsgi_of(WSGIContainer(app, executor)) is None
    with pytest.raises(TypeError, match="WSGI"):
        delegate_of(app)


def test_a_container_of_the_applications_own() -> None:
    class Own(WSGIContainer):
        pass

    def wsgi(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        start_response("201 Made", [("X-Path", environ["PATH_INFO"]), ("X-Scheme", environ["wsgi.url_scheme"])])
        return [environ["wsgi.input"].read(), b"!"]

    async def test(server: Server) -> None:
        call = post("/a%20b", b"body", b"")
        begin(server, call)
        await until(lambda: call.ended)
        assert (call.status, call.reason, call.text) == (201, "Made", b"body!")
        assert (call.headers["x-path"], call.headers["x-scheme"]) == ("/a b", "http")

    run(test, app=Own(wsgi))


@pytest.mark.parametrize("value", ["", "one\x01two"])
def test_a_container_of_the_applications_own_that_fails_is_answered(value: str) -> None:
    class Own(WSGIContainer):
        pass

    def wsgi(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        if not value:
            raise ZeroDivisionError
        start_response("200 OK", [("X-Secret", value)])
        return []

    async def test(server: Server) -> None:
        call = FakeCall()
        begin(server, call)
        await until(lambda: call.ended)
        assert call.ended.startswith("fail HTTPInputError(" if value else "fail ZeroDivisionError(")

    run(test, app=Own(wsgi))


def test_a_delegate_of_ones_own_is_told_when_connections_end() -> None:
    class Delegate(httputil.HTTPServerConnectionDelegate):
        def start_request(self, server_conn: object, request_conn: httputil.HTTPConnection) -> Any:
            class Message(httputil.HTTPMessageDelegate):
                def finish(self) -> None:
                    line = httputil.ResponseStartLine("", 200, "Fine")
                    request_conn.write_headers(line, httputil.HTTPHeaders({"Content-Length": "2"}), b"ok")
                    request_conn.finish()

            SEEN.append(id(server_conn))
            return Message()

        def on_close(self, server_conn: object) -> None:
            SEEN.append(id(server_conn))

    async def test(server: Server) -> None:
        call = FakeCall()
        begin(server, call)
        assert (call.text, call.ended) == (b"ok", "end")
        gc.collect()
        assert len(SEEN) == 2
        assert SEEN[0] == SEEN[1]

    run(test, app=Delegate())


def test_nothing_is_left_of_a_request() -> None:
    async def test(server: Server) -> None:
        gc.collect()
        gc.disable()
        try:
            call = FakeCall()
            left = weakref.ref(begin(server, call))
            await until(lambda: call.ended)
            for _ in range(3):
                await asyncio.sleep(0)
            assert left() is None
        finally:
            gc.enable()

    run(test)


def test_headers_are_made_as_tornado_makes_them() -> None:
    quick = tornado_headers._quick_headers({"Host": ["a"], "Set-Cookie": ["a=1", "b=2"]})
    slow = tornado_headers._slow_headers({"Host": ["a"], "Set-Cookie": ["a=1", "b=2"]})
    assert tornado_headers.ARE_AS_KNOWN
    assert dict(quick) == dict(slow)
    assert list(quick.get_all()) == list(slow.get_all())
    quick.add("Set-Cookie", "c=3")
    assert quick["set-cookie"] == "a=1,b=2,c=3"
    assert tornado_headers.fields_of(slow) == {"Host": ["a"], "Set-Cookie": ["a=1", "b=2"]}


def test_tornado_delegate_of_an_application() -> None:
    app = application()
    assert delegate_of(app) is app


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """What tornado logs of failing handlers is not under test."""
    loggers = [logging.getLogger(name) for name in ("tornado.access", "tornado.application", "tornado.general")]
    for logger in loggers:
        logger.disabled = True
    yield
    for logger in loggers:
        logger.disabled = False
