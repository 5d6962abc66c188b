"""What people run on event loops: the same sample application in five frameworks, with all that meets the server.

What a framework does not have (Django: WebSockets, lifespan, background tasks) its tests skip.
"""

from __future__ import annotations

import hashlib
import uuid
from pathlib import Path
from socket import SHUT_RDWR
from typing import Any

import pytest

from tests.conftest import Pool
from tests.frameworks.test_frameworks import FILE, multipart
from tests.harness import Server, until
from tests.harness.cases import with_each
from tests.harness.needs import needs
from tests.harness.wire import chunked, request

APPS = Path(__file__).parent / "apps"
FRAMEWORKS = ["starlette", "fastapi", "django", "quart", "litestar"]
MODULES = {"django": "django_asgi_app"}

pytestmark = pytest.mark.beyond_reference("of the reference server's class only its defects are noted")


@pytest.fixture(scope="module", params=FRAMEWORKS)
def framework(request: pytest.FixtureRequest) -> str:
    needs(request.param)
    return str(request.param)


@pytest.fixture(scope="module")
def server(pool: Pool, framework: str) -> Server:
    app = f"{MODULES.get(framework, f'{framework}_app')}:application"
    return pool.get(app, chdir=APPS, worker_class="asgi", asgi_disconnect_grace_period=1)


@pytest.fixture
def tag() -> str:
    return uuid.uuid4().hex


def without(framework: str, *those: str) -> None:
    if framework in those:
        pytest.skip(f"{framework} has no such thing")


def noted(server: Server, tag: str, *what: str) -> None:
    def all_there() -> bool:
        notes = server.get(f"/notes?tag={tag}").json()
        return set(what) <= set(notes)

    until(all_there, f"it notes {what}")


def test_asgi_framework_routing(server: Server) -> None:
    reply = server.get("/hello/world")
    assert (reply.body, reply.get("x-middleware")) == (b"Hello, world!", "yes")
    assert server.get("/hello/w%C3%B6rld").body == "Hello, w\u00f6rld!".encode()
    assert server.get("/nowhere").status == 404


def test_asgi_framework_redirect(server: Server) -> None:
    reply = server.get("/redirect")
    assert reply.status in (302, 307)
    assert str(reply.get("location")).endswith("/hello/again")


def test_asgi_framework_form(server: Server) -> None:
    form = ("Content-Type", "application/x-www-form-urlencoded")
    assert server.post("/form", b"a=1&b=two+words", form).json() == {"a": "1", "b": "two words"}


@pytest.mark.parametrize("coding", ["length", "chunked"])
@with_each("size", [10, 100_000, 4_000_000])
def test_asgi_framework_upload(server: Server, framework: str, size: int, coding: str) -> None:
    if coding == "chunked":
        without(framework, "django")  # it reads no body that has no length
    data = (FILE * (size // len(FILE) + 1))[:size]
    body, kind = multipart("a note", "name.bin", data)
    with server.connect() as wire:
        if coding == "chunked":
            wire.send(request("POST", "/upload", [kind, ("Transfer-Encoding", "chunked")]), chunked([body]))
        else:
            wire.send(request("POST", "/upload", [kind], body))
        got = wire.reply().json()
    assert got == {"name": "name.bin", "size": size, "sha256": hashlib.sha256(data).hexdigest(), "note": "a note"}


def test_a_body_streams(server: Server, framework: str, tag: str) -> None:
    data = FILE * 8
    with server.connect() as wire:
        wire.send(request("POST", f"/raw?tag={tag}", [("Content-Length", str(len(data)))]), data[:1000])
        if framework != "django":  # which reads bodies to their end before the view is called
            noted(server, tag, "the first piece")
        wire.send(data[1000:])
        got = wire.reply().json()
    assert (got["size"], got["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())


def test_both_directions_stream_at_once(server: Server, framework: str) -> None:
    """Starlette listens for the disconnect while it streams, and takes the body's pieces: under uvicorn, too."""
    without(framework, "django", "litestar", "starlette", "fastapi")
    with server.connect() as wire:
        wire.send(request("POST", "/echo", [("Transfer-Encoding", "chunked")]))
        for number in range(3):
            wire.send(b"6\r\npiece%d\r\n" % number)
            until(lambda number=number: heard(wire, b"piece%d" % number), "it comes back")
        wire.send(b"0\r\n\r\n")
        assert wire.reply().body == b"piece0piece1piece2"


def heard(wire: Any, what: bytes) -> bool:
    if what not in wire.unread:
        more = wire.sock.recv(65536)
        assert more, f"the connection ended before {what!r}: {wire.unread!r}"
        wire.unread += more
    return what in wire.unread


def test_asgi_framework_stream(server: Server) -> None:
    reply = server.get("/stream")
    assert reply.framing == "chunked"
    assert reply.body == b"".join(b"line %d\n" % number for number in range(100))


def test_server_sent_events(server: Server, tag: str) -> None:
    with server.connect() as wire:
        wire.send(request("GET", f"/events?tag={tag}"))
        until(lambda: heard(wire, b"data: first"), "the first event")
        assert b"second" not in wire.unread
        server.get(f"/go?tag={tag}")
        assert wire.reply().body == b"data: first\n\ndata: second\n\n"
    noted(server, tag, "the stream is closed")


def test_a_reader_of_events_who_leaves(server: Server, tag: str) -> None:
    tag += "endless"
    with server.connect() as wire:
        wire.send(request("GET", f"/events?tag={tag}"))
        until(lambda: heard(wire, b"data: first"), "the first event")
        server.get(f"/go?tag={tag}")
        until(lambda: heard(wire, b"data: second"), "the second event")
    noted(server, tag, "the stream is closed")


def test_a_client_that_leaves(server: Server, framework: str, tag: str) -> None:
    with server.connect() as wire:
        wire.send(request("GET", f"/waits?tag={tag}"))
        noted(server, tag, "waits")
    noted(server, tag, "released", *(["given back"] if framework == "fastapi" else []))
    assert not server.log.matching("Traceback.*released")


def test_who_asks_whether_the_client_is_there(server: Server, framework: str, tag: str) -> None:
    without(framework, "django", "quart", "litestar", "fastapi")
    with server.connect() as wire:
        wire.send(request("GET", f"/asks?tag={tag}"))
        noted(server, tag, "asks")
        server.get(f"/go?tag={tag}")
        assert wire.reply().body == b"still there"
    tag += "2"
    with server.connect() as wire:
        wire.send(request("GET", f"/asks?tag={tag}"))
        noted(server, tag, "asks")
    noted(server, tag, "disconnected")


def test_asgi_framework_cookies(server: Server) -> None:
    reply = server.get("/cookies")
    assert reply.body == b"never"
    assert sorted(cookie.partition(";")[0] for cookie in reply.all("set-cookie")) == ["other=b", "seen=yes"]
    assert server.get("/cookies", ("Cookie", "seen=yes; other=b")).body == b"yes"


def test_asgi_framework_file_response(server: Server) -> None:
    reply = server.get("/file")
    assert reply.body == FILE
    assert reply.get("content-length") == str(len(FILE))


def test_a_static_file(server: Server, framework: str) -> None:
    without(framework, "django")
    reply = server.get("/static/file.bin")
    assert reply.body == FILE
    etag = reply.get("etag")
    if etag:
        with server.connect() as wire:
            assert wire.get("/static/file.bin", ("If-None-Match", etag)).status in (200, 304)
            assert wire.get("/hello/again").status == 200


def test_a_part_of_a_file(server: Server, framework: str) -> None:
    without(framework, "django", "quart", "litestar")
    reply = server.get("/file", ("Range", "bytes=10-19"))
    assert (reply.status, reply.body) == (206, FILE[10:20])


def test_asgi_framework_response_to_head(server: Server) -> None:
    with server.connect() as wire:
        reply = wire.ask("HEAD", "/file")
        assert (reply.status, reply.body) in ((200, b""), (405, b""))
        assert wire.get("/hello/again").status == 200


def test_what_runs_in_a_thread(server: Server) -> None:
    assert server.get("/thread").body == b"True"


def test_an_error_page(server: Server) -> None:
    reply = server.get("/error")
    assert reply.status == 500
    assert b"framework marker" not in reply.body
    assert server.get("/hello/again").body == b"Hello, again!"


def test_the_state_of_the_lifespan(server: Server, framework: str) -> None:
    without(framework, "django")
    assert server.get("/state").json() == ["a connection"]
    assert server.out.matching("lifespan: startup")


def test_the_lifespan_ends_with_the_server(framework: str) -> None:
    without(framework, "django")
    with Server(f"{framework}_app:application", chdir=APPS, worker_class="asgi") as own:
        own.out.wait("lifespan: startup")
        assert own.get("/hello/world").status == 200
        assert not own.out.matching("lifespan: shutdown")
    assert len(own.out.matching("lifespan: shutdown")) == 1
    assert not own.log.matching("Traceback")


def test_background_tasks(server: Server, framework: str, tag: str) -> None:
    """The response is complete, and the connection free for the next request, before they are done."""
    without(framework, "django")
    with server.connect() as wire:
        assert wire.get(f"/background?tag={tag}").body == b"accepted"
        assert wire.get("/hello/again").body == b"Hello, again!"
        assert server.get(f"/notes?tag={tag}").json() == []
        server.get(f"/go?tag={tag}")
    noted(server, tag, "worked")


class TestWebSockets:
    @pytest.fixture(autouse=True)
    def only_where_there_are_some(self, framework: str) -> None:
        without(framework, "django")
        needs("websockets")

    def connect(self, server: Server, target: str, **options: Any) -> Any:
        from websockets.sync.client import connect

        return connect(f"ws://127.0.0.1:{server.port}{target}", proxy=None, **options)

    @pytest.mark.parametrize("compression", [None, "deflate"])
    def test_asgi_framework_websocket_echo(self, server: Server, framework: str, compression: str | None) -> None:
        empty = () if framework == "quart" else ("", b"")  # for Quart nothing is no message
        with self.connect(server, "/ws/echo", compression=compression) as socket:
            assert socket.response.headers["x-accepted"] == "yes"
            for data in ("text \u20ac", b"\0\xff", *empty, "x" * 200_000, b"y" * 200_000):
                socket.send(data)
                assert socket.recv(timeout=30) == data

    def test_json_subprotocols_state_and_a_close_with_a_reason(self, server: Server) -> None:
        from websockets.exceptions import ConnectionClosed

        with self.connect(server, "/ws/json", subprotocols=["one", "two"]) as socket:
            assert socket.subprotocol == "two"
            socket.send('{"a": 1}')
            assert '"seen"' in socket.recv(timeout=30)
            with pytest.raises(ConnectionClosed) as closed:
                socket.recv(timeout=30)
        assert closed.value.rcvd is not None
        assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4001, "enough")

    def test_a_client_that_closes(self, server: Server, framework: str, tag: str) -> None:
        with self.connect(server, f"/ws/echo?tag={tag}") as socket:
            socket.send("one")
            assert socket.recv(timeout=30) == "one"
            socket.close(4002, "seen enough")
        noted(server, tag, "cancelled" if framework == "quart" else "4002 seen enough")

    def test_a_client_that_vanishes(self, server: Server, framework: str, tag: str) -> None:
        with self.connect(server, f"/ws/echo?tag={tag}") as socket:
            socket.send("one")
            assert socket.recv(timeout=30) == "one"
            socket.socket.shutdown(SHUT_RDWR)
        noted(server, tag, "cancelled" if framework == "quart" else "1006 ")

    def test_asgi_framework_websocket_refused(self, server: Server) -> None:
        assert self.refused(server, "/ws/refused")[0] == 403

    def test_one_that_is_denied_with_a_response(self, server: Server, framework: str) -> None:
        without(framework, "litestar")
        status, body = self.refused(server, "/ws/denied")
        assert status == 401
        assert b"not you" in body

    def test_one_that_nobody_serves(self, server: Server) -> None:
        assert self.refused(server, "/ws/nowhere")[0] in (403, 404)

    def refused(self, server: Server, target: str) -> tuple[int, bytes]:
        from websockets.exceptions import InvalidStatus

        with pytest.raises(InvalidStatus) as refusal:
            self.connect(server, target)
        response = refusal.value.response
        return response.status_code, bytes(response.body or b"")
