"""tornado applications: what its documentation says of servers, over real connections."""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.conftest import Pool
from tests.frameworks.test_frameworks import multipart
from tests.harness import REFERENCE, Server, Wire, until
from tests.harness.needs import needs
from tests.harness.wire import Short, chunked, request

needs("tornado")
client = pytest.importorskip("websockets.sync.client")
exceptions = pytest.importorskip("websockets.exceptions")

APPS = Path(__file__).parent / "apps"
FILE = (APPS / "file.bin").read_bytes()


@pytest.fixture(scope="module")
def server(pool: Pool) -> Server:
    return pool.get("tornado_app:application", chdir=APPS, worker_class="tornado")


@pytest.fixture(scope="module")
def wsgi(pool: Pool) -> Server:
    return pool.get("tornado_wsgi_app:application", chdir=APPS, worker_class="tornado")


def left(server: Server, what: str) -> None:
    until(lambda: what in server.get("/left").json()["left"], f"a handler is told: {what}")


class TestRequests:
    def test_tornado_routing(self, server: Server) -> None:
        assert server.get("/hello/world").body == b"Hello, world!"
        assert server.get("/hello/w%C3%B6rld").body == "Hello, w\u00f6rld!".encode()
        assert server.get("/nowhere").status == 404

    def test_tornado_request_attributes(self, server: Server) -> None:
        got = server.get("/facts?a=1&a=%32", ("X-Two", "1"), ("x-two", "2")).json()
        assert got["uri"] == "/facts?a=1&a=%32"
        assert got["path"] == "/facts"
        assert got["version"] == "HTTP/1.1"
        assert got["remote_ip"] == got["context"] == "127.0.0.1"
        assert got["protocol"] == "http"
        assert got["host"] == "t"
        assert got["arguments"] == ["1", "2"]
        assert got["two"] == ["1", "2"]

    def test_tornado_form(self, server: Server) -> None:
        form = ("Content-Type", "application/x-www-form-urlencoded")
        assert server.post("/form", b"a=1&b=two+words", form).json() == {"a": "1", "b": "two words"}

    @pytest.mark.parametrize("size", [10, 100_000, 4_000_000])
    def test_tornado_uploaded_files(self, server: Server, size: int) -> None:
        data = (FILE * (size // len(FILE) + 1))[:size]
        body, kind = multipart("a note", "name.bin", data)
        got = server.post("/files", body, kind).json()
        assert got == {"note": "a note", "name": "name.bin", "size": size, "sha256": hashlib.sha256(data).hexdigest()}

    def test_tornado_cookies(self, server: Server) -> None:
        reply = server.get("/cookies")
        assert reply.body == b"never nothing"
        cookies = "; ".join(value.partition(";")[0] for value in reply.all("set-cookie"))
        assert server.get("/cookies", ("Cookie", cookies)).body == b"yes secret"

    def test_a_host_that_tornado_refuses(self, server: Server) -> None:
        with server.connect() as wire:
            wire.send(b"GET /facts HTTP/1.1\r\nHost: a,b\r\n\r\n")
            assert wire.ended().startswith(b"HTTP/1.1 400 ")

    @pytest.mark.beyond_reference("it closes without saying so")
    def test_http_1_0(self, server: Server) -> None:
        with server.connect() as wire:
            reply = wire.get("/hello/you", version="1.0")
            assert (reply.body, reply.closes) == (b"Hello, you!", True)
            wire.closed()

    def test_one_connection_many_requests(self, server: Server) -> None:
        with server.connect() as wire:
            for number in range(5):
                assert wire.get(f"/hello/{number}").body == b"Hello, %d!" % number

    def test_requests_sent_together(self, server: Server) -> None:
        with server.connect() as wire:
            wire.send(*(b"GET /hello/%d HTTP/1.1\r\nHost: t\r\n\r\n" % number for number in range(5)))
            for number in range(5):
                assert wire.reply().body == b"Hello, %d!" % number


class TestUploads:
    def test_pieces_come_as_they_are_sent(self, server: Server) -> None:
        data = FILE * 40
        got = server.post("/upload", data).json()
        assert (got["size"], got["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())

    def test_a_body_without_a_length(self, server: Server) -> None:
        with server.connect() as wire:
            pieces = [FILE[:1], FILE[1:1000], FILE[1000:]]
            wire.send(b"POST /upload HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n", chunked(pieces))
            got = wire.reply().json()
            assert (got["size"], got["sha256"]) == (len(FILE), hashlib.sha256(FILE).hexdigest())
            assert wire.get("/hello/again").body == b"Hello, again!"

    def test_who_takes_his_time_holds_the_client_back(self, server: Server) -> None:
        data = b"x" * 8_000_000
        got = server.post("/upload?slow=1", data).json()
        assert got["size"] == len(data)
        assert got["pieces"] > 8

    def test_tornado_100_continue(self, server: Server) -> None:
        with server.connect() as wire:
            wire.send(b"POST /upload HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
            assert wire.interim().status == 100
            wire.send(b"abc")
            assert wire.reply().json()["size"] == 3

    def test_a_refusal_before_the_body(self, server: Server) -> None:
        with server.connect() as wire:
            wire.send(b"POST /upload?refuse=1 HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
            assert wire.reply().status == 403

    @pytest.mark.parametrize("framing", ["length", "chunked"])
    def test_more_than_the_handler_takes(self, server: Server, framing: str) -> None:
        with server.connect() as wire:
            head = b"POST /upload?limit=10 HTTP/1.1\r\nHost: t\r\n"
            if framing == "length":
                wire.send(head, b"Content-Length: 11\r\n\r\n", b"x" * 11)
            else:
                wire.send(head, b"Transfer-Encoding: chunked\r\n\r\n", chunked([b"x" * 11]))
            assert wire.ended().startswith(b"HTTP/1.1 400 " if REFERENCE else b"HTTP/1.1 413 ")

    def test_a_client_that_leaves(self, server: Server) -> None:
        with server.connect() as wire:
            wire.send(b"POST /upload HTTP/1.1\r\nHost: t\r\nContent-Length: 100\r\n\r\nsome")
        left(server, "upload")


class TestAnswers:
    def test_tornado_response_stream(self, server: Server) -> None:
        reply = server.get("/stream")
        assert reply.framing == "chunked"
        assert reply.body == b"".join(b"line %d\n" % number for number in range(10))

    def test_a_stream_of_known_length(self, server: Server) -> None:
        with server.connect() as wire:
            reply = wire.get("/stream?length=1")
            assert (reply.framing, len(reply.body)) == ("length", 70)
            assert wire.get("/hello/again").body == b"Hello, again!"

    @pytest.mark.beyond_reference("it closes without saying so")
    def test_a_stream_for_http_1_0(self, server: Server) -> None:
        with server.connect() as wire:
            assert len(wire.get("/stream", version="1.0").body) == 70

    def test_events_until_the_client_leaves(self, server: Server) -> None:
        with server.connect() as wire:
            wire.send(b"GET /events HTTP/1.1\r\nHost: t\r\n\r\n")
            got = b""
            while b"data: 3\n\n" not in got:
                got += wire.sock.recv(65536)
            assert b"data: 0\n\n" in got
        left(server, "events: on_connection_close")
        left(server, "events: StreamClosedError")

    def test_a_flood_waits_for_its_reader(self, server: Server) -> None:
        pieces = 1000
        with Wire(server.address, receive_buffer=4096) as wire:
            wire.send(b"GET /flood?pieces=%d HTTP/1.1\r\nHost: t\r\n\r\n" % pieces)
            written = settled(server)
            assert 0 < written < pieces
            assert len(wire.reply().body) == pieces * 65536

    def test_a_client_that_leaves_while_the_handler_waits(self, server: Server) -> None:
        with server.connect() as wire:
            wire.send(b"GET /wait?seconds=3600 HTTP/1.1\r\nHost: t\r\n\r\n")
            wire.finish_sending()
        left(server, "wait")

    def test_many_wait_at_once(self, server: Server) -> None:
        wires = [server.connect() for _ in range(50)]
        try:
            began = time.monotonic()
            for wire in wires:
                wire.send(b"GET /wait?seconds=0.5 HTTP/1.1\r\nHost: t\r\n\r\n")
            assert [wire.reply().body for wire in wires] == [b"waited"] * 50
            assert time.monotonic() - began < 20
        finally:
            for wire in wires:
                wire.close()

    @pytest.mark.parametrize("code", [204, 304, 404, 418, 500])
    def test_tornado_response_statuses(self, server: Server, code: int) -> None:
        with server.connect() as wire:
            assert wire.get(f"/status/{code}").status == code
            assert wire.get("/hello/again").body == b"Hello, again!"

    def test_tornado_redirect(self, server: Server) -> None:
        reply = server.get("/status/302")
        assert (reply.status, reply.get("location")) == (302, "/hello/there")

    def test_tornado_response_to_head(self, server: Server) -> None:
        with server.connect() as wire:
            reply = wire.ask("HEAD", "/hello/world")
            assert (reply.status, reply.get("content-length"), reply.body) == (200, "13", b"")
            assert wire.get("/hello/again").body == b"Hello, again!"

    def test_tornado_etag(self, server: Server) -> None:
        with server.connect() as wire:
            tag = wire.get("/hello/world").get("etag")
            assert tag
            assert wire.get("/hello/world", ("If-None-Match", tag)).status == 304
            assert wire.get("/hello/again").body == b"Hello, again!"

    def test_a_file_and_a_part_of_it(self, server: Server) -> None:
        assert server.get("/static/file.bin").body == FILE
        reply = server.get("/static/file.bin", ("Range", "bytes=2-5"))
        assert (reply.status, reply.body) == (206, FILE[2:6])
        with server.connect() as wire:
            reply = wire.ask("HEAD", "/static/file.bin")
            assert reply.get("content-length") == str(len(FILE))
            assert wire.get("/hello/again").body == b"Hello, again!"

    def test_tornado_error_response(self, server: Server) -> None:
        with server.connect() as wire:
            reply = wire.get("/wrong")
            assert reply.status == 500
            assert b"framework marker" not in reply.body
            assert wire.get("/hello/again").body == b"Hello, again!"

    def test_an_error_in_the_midst_of_an_answer(self, server: Server) -> None:
        with server.connect() as wire:
            wire.send(b"GET /wrong?late=1 HTTP/1.1\r\nHost: t\r\n\r\n")
            # tornado's handler ends the answer as if it were complete.
            assert wire.reply().body == b"some"

    @pytest.mark.parametrize("target", ["/too_much", "/too_little"])
    def test_a_length_that_is_not_kept_closes_the_connection(self, server: Server, target: str) -> None:
        with server.connect() as wire:
            wire.send(b"GET %b HTTP/1.1\r\nHost: t\r\n\r\n" % target.encode())
            got = b""
            with suppress(Short):
                got = wire.ended()
            assert b"and more" not in got


def settled(server: Server) -> int:
    """How many pieces are written when no more are."""
    last, since = -1, time.monotonic()
    while time.monotonic() - since < 0.5:
        now = int(server.get("/written").body)
        if now != last:
            last, since = now, time.monotonic()
    return last


HANDSHAKE = (
    b"GET /echo HTTP/1.1\r\nHost: t\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


class TestOtherProtocols:
    def uri(self, server: Server, query: str = "") -> str:
        return f"ws://127.0.0.1:{server.port}/echo{query}"

    @pytest.mark.parametrize("query", ["", "?deflate=1"])
    def test_tornado_websocket(self, server: Server, query: str) -> None:
        with client.connect(self.uri(server, query), max_size=None) as ws:
            for message in ("text", b"bytes", "\u00f6" * 100_000, b"x" * 1_000_000):
                ws.send(message)
                assert ws.recv(timeout=30) == message
            assert (ws.protocol.extensions != []) == bool(query)
            ws.ping().wait(10)
        left(server, "websocket: 1000")

    def test_the_server_closes_a_websocket(self, server: Server) -> None:
        with client.connect(self.uri(server)) as ws:
            ws.send("close")
            with pytest.raises(exceptions.ConnectionClosed) as closed:
                ws.recv(timeout=30)
            assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4000, "as you wish")

    def test_tornado_websocket_subprotocol(self, server: Server) -> None:
        with client.connect(self.uri(server), subprotocols=["one", "two"]) as ws:
            assert ws.subprotocol == "two"

    def test_a_message_right_behind_the_handshake(self, server: Server) -> None:
        with server.connect() as wire:
            wire.send(HANDSHAKE, b"\x81\x82\0\0\0\0hi")
            head = wire._head(False)
            assert (head.status, head.get("sec-websocket-accept")) == (101, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
            assert wire._exactly(4, "a frame") == b"\x81\x02hi"

    def test_a_client_that_vanishes(self, server: Server) -> None:
        with server.connect() as wire:
            wire.send(HANDSHAKE)
            assert wire._head(False).status == 101
        left(server, "websocket: None")

    def test_tornado_request_that_is_no_websocket(self, server: Server) -> None:
        assert server.get("/echo").status == 400

    def test_a_handler_that_takes_the_connection(self, server: Server) -> None:
        with server.connect() as wire:
            wire.send(b"GET /raw HTTP/1.1\r\nHost: t\r\n\r\nearly\n")
            assert wire.ended().endswith(b"\r\n\r\nEARLY\n")


@pytest.mark.beyond_reference("its tornado workers do not believe front ends")
def test_front_ends_speak_for_their_clients(server: Server) -> None:
    fields = (("X-Forwarded-For", "198.51.100.1, 203.0.113.9"), ("X-Forwarded-Proto", "https"))
    got = server.get("/facts", *fields).json()
    assert (got["remote_ip"], got["protocol"]) == ("203.0.113.9", "https")
    assert server.get("/facts").json()["protocol"] == "http"


def test_front_ends_that_nobody_believes(pool: Pool) -> None:
    options = {} if REFERENCE else {"forwarded_allow_ips": "192.0.2.1"}
    server = pool.get("tornado_app:application", chdir=APPS, worker_class="tornado", **options)
    fields = (("X-Forwarded-For", "203.0.113.9"), ("X-Forwarded-Proto", "https"))
    got = server.get("/facts", *fields).json()
    assert (got["remote_ip"], got["protocol"]) == ("127.0.0.1", "http")


def test_a_unix_socket(pool: Pool) -> None:
    server = pool.get("tornado_app:application", chdir=APPS, worker_class="tornado", transport="unix")
    assert server.get("/facts").json()["remote_ip"] == "0.0.0.0"


def test_tornado_websocket_compression(pool: Pool) -> None:
    import gzip

    server = pool.get("tornado_app:compressed", chdir=APPS, worker_class="tornado")
    reply = server.get("/stream", ("Accept-Encoding", "gzip"))
    assert reply.get("content-encoding") == "gzip"
    assert len(gzip.decompress(reply.body)) == 70


@pytest.mark.beyond_reference("only applications of tornado.web, and WSGI")
def test_a_delegate_that_is_no_application(pool: Pool) -> None:
    server = pool.get("tornado_app:delegate", chdir=APPS, worker_class="tornado")
    reply = server.post("/path", b"four")
    assert (reply.status, reply.reason, reply.body) == (200, "Fine", b"POST /path 4")


def test_a_loop_that_was_asked_for_while_loading() -> None:
    # Not one of the pool, in which it would tick until the last test has ended.
    with Server("tornado_app:make_ticking()", chdir=APPS, worker_class="tornado") as server:
        until(lambda: int(server.get("/").body) > 2, "the application's own timer runs")


class TestWsgi:
    def test_tornado_wsgi_request(self, wsgi: Server) -> None:
        reply = wsgi.post("/a%20b?c=d", b"four")
        assert reply.body == b"POST /a b c=d http 4"
        assert reply.get("x-thread") == "False"

    @pytest.mark.beyond_reference("the client gets no answer")
    def test_tornado_wsgi_error_response(self, wsgi: Server) -> None:
        assert wsgi.get("/wrong").status == 500
        wsgi.log.wait("Error handling request GET /wrong")
        wsgi.log.wait("ZeroDivisionError: framework marker")
        assert wsgi.get("/").status == 200

    @pytest.mark.beyond_reference("a 400 with the value on its page")
    def test_a_wrong_field_of_the_answer(self, wsgi: Server) -> None:
        reply = wsgi.get("/header")
        assert (reply.status, b"one" in reply.body) == (500, False)
        wsgi.log.wait("Error handling request GET /header")
        wsgi.log.wait("X-Secret")

    @pytest.mark.beyond_reference("a traceback")
    def test_a_host_with_an_empty_port(self, wsgi: Server) -> None:
        assert wsgi.get("/", ("Host", "a:")).status == 200

    @pytest.mark.beyond_reference("it sends what was buffered, when all of it was")
    def test_pieces_are_sent_as_they_come(self, wsgi: Server, tmp_path: Path) -> None:
        with wsgi.connect() as wire:
            wire.send(request("GET", f"/steps?{tmp_path}"))
            assert wire._head(False).status == 200
            for number in range(3):
                assert wire._exactly(6, "a piece") == b"1\r\n%d\r\n" % number
                (tmp_path / str(number)).touch()
            assert wire._exactly(5, "the end") == b"0\r\n\r\n"

    def test_a_body_is_there_before_the_call(self, wsgi: Server) -> None:
        """A client that takes its time holds up no other one."""
        with wsgi.connect() as slow:
            slow.send(b"POST /slow HTTP/1.1\r\nHost: t\r\nContent-Length: 4\r\n\r\nfo")
            assert wsgi.get("/").status == 200
            slow.send(b"ur")
            assert slow.reply().body == b"POST /slow  http 4"

    def test_a_call_has_a_context_of_its_own_on_the_loop(self, pool: Pool) -> None:
        server = pool.get("tornado_wsgi_app:make_ticking()", chdir=APPS, worker_class="tornado")

        def ticks() -> int:
            words = server.get("/seen").text.split()
            assert words[:2] == ["nothing", "True"]
            return int(words[2])

        until(lambda: ticks() > 2, "the application's timer runs between calls")

    @pytest.mark.beyond_reference("it has no such limit")
    def test_a_call_that_takes_too_long_is_ended(self, pool: Pool) -> None:
        server = pool.get("tornado_wsgi_app:application", chdir=APPS, worker_class="tornado", request_timeout=0.5)
        worker = server.worker_pid()
        assert server.get("/busy").status == 504
        server.log.wait(r"Error handling request GET /busy: exceeded request_timeout")
        assert server.get("/").status == 200
        assert server.worker_pid() == worker

    @pytest.mark.beyond_reference("its requests wait for the loop")
    def test_a_worker_that_is_busy_leaves_requests_to_another(self, pool: Pool, tmp_path: Path) -> None:
        server = pool.get("tornado_wsgi_app:application", chdir=APPS, worker_class="tornado", workers=2)
        with server.connect() as wire:
            wire.send(request("GET", f"/steps?{tmp_path}"))
            assert wire._head(False).status == 200
            for _ in range(5):
                assert server.get("/").status == 200
            for number in range(3):
                (tmp_path / str(number)).touch()
            assert wire._exactly(23, "the pieces") == b"1\r\n0\r\n1\r\n1\r\n1\r\n2\r\n0\r\n\r\n"

    @pytest.mark.parametrize("name", ["contained", "threaded", "beside"])
    def test_in_a_container_of_its_own(self, pool: Pool, name: str) -> None:
        server = pool.get(f"tornado_wsgi_app:{name}", chdir=APPS, worker_class="tornado")
        reply = server.post("/a%20b?c=d", b"four")
        assert reply.body == b"POST /a b c=d http 4"
        assert reply.get("x-thread") == str(name == "threaded")

    @pytest.mark.beyond_reference("the client gets no answer")
    @pytest.mark.parametrize("name", ["contained", "threaded"])
    def test_a_container_whose_application_fails(self, pool: Pool, name: str) -> None:
        server = pool.get(f"tornado_wsgi_app:{name}", chdir=APPS, worker_class="tornado")
        for path in ("/wrong", "/header"):
            reply = server.get(path)
            assert (reply.status, b"one" in reply.body) == (500, False)
            server.log.wait(f"Error handling request GET {path}")


@pytest.mark.beyond_reference("its core streams nothing")
def test_a_hook_that_changes_the_kind_of_the_application_is_told_so(tmp_path: Path) -> None:
    hook = "def post_worker_init(worker):\n    worker.wsgi = lambda environ, start_response: []\n"
    (tmp_path / "hooks.py").write_text(hook)
    extra = ["-c", str(tmp_path / "hooks.py")]
    with Server("tornado_app:application", chdir=APPS, worker_class="tornado", extra=extra, wait=False) as server:
        assert server.wait_exit() == 3
        server.log.wait("post_worker_init replaced a WSGI application by a tornado application")


def test_cookies_of_several_lines(server: Server) -> None:
    """RFC 9113 section 8.2.3; by commas tornado would find one cookie."""
    got = server.get("/facts", ("Cookie", "a=1"), ("X-Two", "1"), ("cookie", "b=2; c=3"), ("X-Two", "2")).json()
    assert got["cookies"] == {"a": "1", "b": "2", "c": "3"}
    assert got["two"] == ["1", "2"]


def test_a_host_with_an_empty_port() -> None:
    with Server("tornado_app:application", chdir=APPS, worker_class="tornado") as server:
        assert server.get("/hello/you", ("Host", "a:")).status == 200
    assert not server.log.matching("Traceback")


@pytest.mark.beyond_reference("it has no such limit")
@pytest.mark.parametrize("path", ["/wait", "/busy"])
def test_a_request_that_takes_too_long_is_ended(pool: Pool, path: str) -> None:
    server = pool.get("tornado_app:application", chdir=APPS, worker_class="tornado", request_timeout=0.5)
    assert server.get(f"{path}?seconds=30").status == 504
    server.log.wait(rf"Error handling request GET {path}: exceeded request_timeout")
    assert server.get("/hello/again").body == b"Hello, again!"


@pytest.mark.beyond_reference("no hook is called, and no line written")
def test_hooks_and_the_access_log(tmp_path: Path) -> None:
    hooks = """
def pre_request(worker, req):
    worker.log.info("before %s %s", req.method, req.path)

def post_request(worker, req, environ, resp):
    worker.log.info("after %s %s %s %s", req.uri, resp.status, resp.sent, environ["REMOTE_ADDR"])
"""
    (tmp_path / "hooks.py").write_text(hooks)
    extra = ["-c", str(tmp_path / "hooks.py"), "--access-logfile", "-"]
    with Server("tornado_app:application", chdir=APPS, worker_class="tornado", extra=extra) as server:
        assert server.get("/hello/you?a=b").status == 200
        server.log.wait(r"before GET /hello/you$")
        server.log.wait(r"after /hello/you\?a=b 200 OK 11 127\.0\.0\.1")
        server.out.wait(r'"GET /hello/you\?a=b HTTP/1\.1" 200 11')
        with client.connect(f"ws://127.0.0.1:{server.port}/echo"):
            pass
        server.out.wait(r'"GET /echo HTTP/1\.1" 101 ')


def test_stopping_finishes_what_was_begun() -> None:
    with Server("tornado_app:application", chdir=APPS, worker_class="tornado") as server, server.connect() as wire:
        wire.send(b"GET /wait?seconds=1 HTTP/1.1\r\nHost: t\r\n\r\n")
        began(server)
        server.stop()
        assert wire.reply().body == b"waited"


@pytest.mark.beyond_reference("its WebSockets just end")
def test_stopping_tells_websockets() -> None:
    with Server("tornado_app:application", chdir=APPS, worker_class="tornado") as server:
        with client.connect(f"ws://127.0.0.1:{server.port}/echo") as ws:
            ws.send("here")
            assert ws.recv(timeout=30) == "here"
            server.signal(15)
            with pytest.raises(exceptions.ConnectionClosed) as closed:
                ws.recv(timeout=30)
            assert closed.value.rcvd.code == 1001
        assert server.wait_exit() == 0


@pytest.mark.beyond_reference("its WebSockets just end")
def test_websockets_are_told_one_after_another_the_oldest_first() -> None:
    with (
        Server("tornado_app:application", chdir=APPS, worker_class="tornado", stream_drain=2) as server,
        ExitStack() as stack,
    ):
        address = f"ws://127.0.0.1:{server.port}/echo"
        sockets = [stack.enter_context(client.connect(address)) for _ in range(120)]
        for ws in sockets:
            ws.send("here")
            assert ws.recv(timeout=30) == "here"
        server.signal(15)
        told = []
        for ws in sockets:
            with pytest.raises(exceptions.ConnectionClosed):
                ws.recv(timeout=30)
            told.append(time.monotonic())
        assert told[-1] - told[0] > 0.9, "evenly would be 1.2 s: 100 a second"
        assert server.wait_exit() == 0


def began(server: Server) -> None:
    """A request sent before has begun when one sent later was answered."""
    json.loads(server.get("/left").body)
