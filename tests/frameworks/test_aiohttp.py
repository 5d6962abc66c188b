"""aiohttp: what its documentation promises of a server, under the class `aiohttp`."""

from __future__ import annotations

import gzip
import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from socket import SHUT_RDWR
from typing import Any

import pytest

from tests.harness import NO_BOOT, REFERENCE, Server, until
from tests.harness.needs import needs
from tests.harness.wire import chunked, request

needs("aiohttp")
client = pytest.importorskip("websockets.sync.client")
exceptions = pytest.importorskip("websockets.exceptions")

APPS = Path(__file__).parent / "apps"
CLASS = "aiohttp.GunicornWebWorker"
FORM = ("Content-Type", "application/x-www-form-urlencoded")


class Site:
    """A server of the application, the events it noted, and the file it sends."""

    def __init__(self, directory: Path, app: str = "app", *, worker_class: str = CLASS, **options: Any) -> None:
        self.events_file = directory / "events"
        self.file = directory / "file.bin"
        self.file.write_bytes(os.urandom(3_000_000))
        env = {"EVENTS": str(self.events_file), "FILE": str(self.file)}
        self.server = Server(f"aiohttp_app:{app}", chdir=APPS, worker_class=worker_class, env=env, **options)

    def events(self) -> list[str]:
        return self.events_file.read_text().splitlines() if self.events_file.exists() else []

    def has_noted(self, event: str, count: int = 1) -> None:
        until(lambda: self.events().count(event) >= count, f"{count} times {event!r}: {self.events()}")

    def websocket(self, **options: Any) -> Any:
        return client.connect(f"ws://127.0.0.1:{self.server.port}/ws", close_timeout=5, proxy=None, **options)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("aiohttp"))
    with site.server:
        yield site


@pytest.fixture
def server(site: Site) -> Server:
    return site.server


def test_the_request_is_as_it_came(server: Server) -> None:
    with server.connect() as wire:
        reply = wire.get("/facts?a=1&b=%20x", ("X-Name", "value"), ("X-Name", "again"))
        facts = reply.json()
        address = list(wire.sock.getsockname())
    assert facts["remote"] == "127.0.0.1"
    assert facts["peername"] == facts["real_peername"] == address
    assert facts["sockname"] == ["127.0.0.1", server.port]
    assert (facts["scheme"], facts["version"], facts["path"]) == ("http", [1, 1], "/facts")
    assert facts["raw_path"] == "/facts?a=1&b=%20x"
    assert facts["query"] == {"a": "1", "b": " x"}
    assert [value for name, value in facts["headers"] if name == "X-Name"] == ["value", "again"]
    assert facts["closing"] is False
    assert facts["nothing"] == "none"
    assert facts["pool"] == ["opened", "startup"] or facts["pool"] == ["startup", "opened"]
    assert facts["ticks"]


def test_a_connection_serves_many_requests(server: Server) -> None:
    with server.connect() as wire:
        for _ in range(5):
            assert wire.get("/").body == b"Hello, world!\n"
            assert wire.ask("POST", "/echo", (), b"body").body == b"body"
        assert wire.still_open()


def test_requests_that_come_together_are_answered_in_order(server: Server) -> None:
    with server.connect() as wire:
        wire.send(*(request("POST", "/echo", (), b"%d" % number) for number in range(20)))
        assert [wire.reply().body for _ in range(20)] == [b"%d" % number for number in range(20)]


def test_http_1_0(server: Server) -> None:
    with server.connect() as wire:
        reply = wire.get("/", version="1.0")
        assert reply.body == b"Hello, world!\n"
        assert reply.closes
        wire.closed()
    with server.connect() as wire:
        for _ in range(2):
            assert not wire.get("/", ("Connection", "keep-alive"), version="1.0").closes
    with server.connect() as wire:
        reply = wire.get("/stream/3/5", version="1.0")
        assert (reply.framing, reply.body) == ("close", b"x" * 15)


def test_head_and_statuses_without_a_body(server: Server) -> None:
    with server.connect() as wire:
        reply = wire.ask("HEAD", "/")
        assert (reply.status, reply.get("Content-Length"), reply.body) == (200, "14", b"")
        for status in (204, 304):
            assert wire.get(f"/status/{status}").status == status
        assert wire.get("/found").get("Location") == "/"
        assert wire.get("/nowhere").status == 404
        assert wire.ask("PUT", "/").status == 405
        assert wire.get("/").status == 200


def test_aiohttp_methods(server: Server) -> None:
    for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"):
        assert server.connect().ask(method, "/echo", (), b"x").get("X-Method") == method


@pytest.mark.parametrize("size", [0, 1, 1000, 70_000, 5_000_000])
def test_bodies_of_any_length(server: Server, size: int) -> None:
    body = os.urandom(size)
    with server.connect() as wire:
        assert wire.ask("POST", "/echo", (), body).body == body
        wire.send(request("POST", "/echo", (("Transfer-Encoding", "chunked"),)), chunked([body] if body else []))
        assert wire.reply("POST").body == body
        assert wire.get("/").status == 200


def test_a_body_streams_in_as_it_comes(server: Server) -> None:
    with server.connect() as wire:
        wire.send(request("POST", "/shout", (("Transfer-Encoding", "chunked"),)))
        heard = b""
        for piece in (b"one", b"two", b"three"):
            wire.send(b"%x\r\n%b\r\n" % (len(piece), piece))
            while piece.upper() not in heard:
                heard += wire.sock.recv(65536)
        wire.unread = heard
        wire.send(b"0\r\n\r\n")
        assert wire.reply("POST").body == b"ONETWOTHREE"
        assert wire.get("/").status == 200


def test_a_slow_handler_slows_its_client(server: Server) -> None:
    """Not all of a body is held in memory: aiohttp pauses, and so does the server's reading."""
    body = bytes(20_000_000)
    with server.connect(timeout=60) as wire:
        reply = wire.ask("POST", "/count?slow", (), body)
    assert reply.json()["length"] == len(body)
    assert reply.json()["most"] < 2_000_000


def test_100_continue(server: Server) -> None:
    expects = ("Expect", "100-continue")
    with server.connect() as wire:
        wire.send(request("POST", "/echo", (expects, ("Content-Length", "5"))))
        assert wire.interim().status == 100
        wire.send(b"hello")
        assert wire.reply("POST").body == b"hello"
        assert wire.get("/").status == 200
    with server.connect() as wire:
        wire.send(request("POST", "/picky", (expects, ("Content-Length", "5"), ("X-Length", "too much"))))
        assert wire.reply("POST").status == 417
    with server.connect() as wire:
        wire.send(request("POST", "/picky", (expects, ("Transfer-Encoding", "chunked"))))
        assert wire.interim().status == 100
        wire.send(chunked([b"hello"]))
        assert wire.reply("POST").body == b"hello"


def test_a_body_that_nobody_reads(server: Server) -> None:
    for size in (10, 100_000):
        with server.connect() as wire:
            assert wire.ask("POST", "/unread", (), bytes(size)).body == b"not read\n"
            assert wire.get("/").status == 200
    with server.connect() as wire:
        wire.send(request("POST", "/unread", (("Content-Length", "1000000"),)))
        assert wire.reply("POST").body == b"not read\n"


def test_compressed_bodies_are_read(server: Server) -> None:
    body = gzip.compress(b"text" * 10_000)
    reply = server.post("/echo", body, ("Content-Encoding", "gzip"))
    assert reply.body == b"text" * 10_000


def test_forms_and_uploads(server: Server) -> None:
    assert server.post("/form", b"a=1&b=two+words", FORM).json() == {"a": ["1"], "b": ["two words"]}
    boundary = "----edge"
    content = os.urandom(2_000_000)
    parts = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="title"\r\n\r\nA file\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="upload"; filename="a.bin"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    ).encode()
    body = parts + content + f"\r\n--{boundary}--\r\n".encode()
    field = ("Content-Type", f"multipart/form-data; boundary={boundary}")
    assert server.post("/form", body, field).json() == {
        "title": ["A file"],
        "upload": ["a.bin", "application/octet-stream", len(content)],
    }
    assert server.post("/multipart", body, field).json() == [["title", None, 6], ["upload", "a.bin", len(content)]]


def test_aiohttp_response_streams(server: Server) -> None:
    with server.connect() as wire:
        for target in ("/stream/3/7", "/stream/3/7?chunked", "/stream/3/7?length=21", "/stream/100/40000"):
            reply = wire.get(target)
            assert len(reply.body) == (21 if "/3/" in target else 4_000_000), target
        assert wire.get("/stream/2/3").framing == "chunked"
        assert wire.get("/stream/2/3?length=6").framing == "length"
        reply = wire.get("/stream/50/1000?gzip", ("Accept-Encoding", "gzip"))
        assert gzip.decompress(reply.body) == b"x" * 50_000
        assert wire.get("/stream/0/0").body == b""
        assert wire.ask("HEAD", "/stream/3/7").status == 200


def test_events_come_one_by_one(site: Site) -> None:
    with site.server.connect() as wire:
        wire.send(request("GET", "/events"))
        seen = b""
        for number in range(5):
            while b"data: %d\n\n" % number not in seen:
                seen += wire.sock.recv(65536)
        assert b"data: 500" not in seen


def test_a_client_that_does_not_read_holds_its_handler(site: Site) -> None:
    before = site.events().count("stream is over")
    with site.server.connect(receive_buffer=4096) as wire:
        wire.send(request("GET", "/stream/2000/65536"))
        assert site.server.get("/").status == 200
        assert site.events().count("stream is over") == before
        reply = wire.reply()
    assert len(reply.body) == 2000 * 65536
    site.has_noted("stream is over", before + 1)


def test_aiohttp_file_responses(site: Site) -> None:
    content = site.file.read_bytes()
    with site.server.connect() as wire:
        reply = wire.get("/file")
        assert (reply.status, reply.body == content, reply.get("X-File")) == (200, True, "yes")
        reply = wire.get("/file", ("Range", "bytes=1000-1999"))
        assert (reply.status, reply.body) == (206, content[1000:2000])
        assert reply.get("Content-Range") == f"bytes 1000-1999/{len(content)}"
        assert wire.get("/file", ("Range", "bytes=-10")).body == content[-10:]
        assert wire.get("/file", ("Range", f"bytes={len(content)}-")).status == 416
        modified = reply.get("Last-Modified")
        assert modified is not None
        assert wire.get("/file", ("If-Modified-Since", modified)).status == 304
        assert wire.ask("HEAD", "/file").get("Content-Length") == str(len(content))
        assert wire.get("/").status == 200


def test_aiohttp_error_responses(server: Server) -> None:
    with server.connect() as wire:
        assert wire.get("/fail").status == 500
    server.log.wait("as asked for")
    with server.connect() as wire:
        wire.send(request("GET", "/torn"))
        assert wire.ended().endswith(b"part")
    for target in ("/drop", "/splits"):
        with server.connect() as wire:
            wire.send(request("GET", target))
            assert wire.ended() == b""
    with server.connect() as wire:
        assert wire.get("/close").closes
        wire.closed()
    assert server.get("/").status == 200


@pytest.mark.beyond_reference("aiohttp's own parser has rules of its own")
def test_what_the_reactor_refuses_aiohttp_never_sees(server: Server) -> None:
    for bad in (
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nBad Name: x\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
    ):
        with server.connect() as wire:
            reply = wire.send(bad).reply()
            assert (reply.status, reply.closes) == (400, True)
    with server.connect() as wire:
        wire.send(request("POST", "/echo", (("Transfer-Encoding", "chunked"),)), b"5\r\nhello\r\nxyz\r\n")
        assert wire.reply("POST").status == 400
        wire.ended()


def test_work_goes_on_after_the_response(site: Site) -> None:
    assert site.server.get("/background").body == b"later\n"
    site.has_noted("background")


def test_a_handler_goes_on_when_its_client_leaves(site: Site) -> None:
    before = site.events().count("waits")
    with site.server.connect() as wire:
        wire.send(request("GET", "/wait/0.3"))
        site.has_noted("waits", before + 1)
    site.has_noted("has waited")
    assert "cancelled" not in site.events()


def test_aiohttp_websocket(site: Site) -> None:
    with site.websocket(subprotocols=["superchat"]) as socket:
        assert socket.subprotocol == "superchat"
        for message in ("text", "ünïcode", b"\x00bytes", "x" * 100_000, b"y" * 1_000_000, ""):
            socket.send(message)
            assert socket.recv(5) == message
        socket.ping().wait(5)
    site.has_noted("websocket closed 1000")
    with site.websocket(compression=None) as socket:
        socket.send("close")
        with pytest.raises(exceptions.ConnectionClosed) as ended:
            socket.recv(5)
        assert (ended.value.rcvd.code, ended.value.rcvd.reason) == (4001, "as you wish")
    with site.websocket() as socket:
        socket.send("x" * (1 << 21))
        with pytest.raises(exceptions.ConnectionClosed) as ended:
            socket.recv(5)
        assert ended.value.rcvd.code == 1009


def test_a_websocket_whose_client_vanishes(site: Site) -> None:
    before = site.events().count("websocket closed 1006")
    with site.websocket() as websocket:
        websocket.send("here")
        assert websocket.recv(5) == "here"
        websocket.socket.shutdown(SHUT_RDWR)
    site.has_noted("websocket closed 1006", before + 1)


def test_frames_behind_the_handshake_are_not_lost(site: Site) -> None:
    handshake = request(
        "GET",
        "/ws",
        (
            ("Upgrade", "websocket"),
            ("Connection", "Upgrade"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ),
    )
    with site.server.connect() as wire:
        wire.send(handshake + b"\x81\x82\0\0\0\0hi")
        seen = b""
        while not seen.endswith(b"\r\n\r\n\x81\x02hi"):
            piece = wire.sock.recv(65536)
            assert piece
            seen += piece
        assert seen.startswith(b"HTTP/1.1 101 ")
        assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in seen


def test_aiohttp_websocket_handshake_that_is_none(server: Server) -> None:
    assert server.get("/ws").status == 400


def test_aiohttp_many_requests_at_once(server: Server) -> None:
    wires = [server.connect() for _ in range(100)]
    for wire in wires:
        wire.send(request("GET", "/wait/0.2"))
    assert {wire.reply().body for wire in wires} == {b"waited\n"}
    for wire in wires:
        wire.close()


# Applications, runners and their ends.


@pytest.mark.parametrize("app", ["app", "factory", "runner", "make()"])
def test_startup_shutdown_and_cleanup(tmp_path: Path, app: str) -> None:
    site = Site(tmp_path, app)
    with site.server as server:
        assert server.get("/").status == 200
    events = site.events()
    assert events.count("made") == (app == "factory")
    for event in ("startup", "shutdown", "cleanup", "pool closed", "ticker ended"):
        assert events.count(event) == 1, events
    assert events.index("shutdown") < events.index("cleanup")
    assert events.index("ticker ended") < events.index("pool closed")


def test_a_start_that_fails(tmp_path: Path) -> None:
    site = Site(tmp_path, "broken()", wait=False, expects=NO_BOOT)
    with site.server as server:
        assert server.wait_exit() == 3
        server.log.wait("no database")
    if not REFERENCE:  # where what was begun is not ended
        assert {"pool closed", "ticker ended"} <= set(site.events())


def test_aiohttp_object_that_is_no_application(tmp_path: Path) -> None:
    for app in ("nothing", "SOCKETS", "note"):
        with Site(tmp_path, app, wait=False).server as server:
            assert server.wait_exit() in (3, 4)


def test_requests_end_before_the_application_does(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with site.server as server, server.connect() as wire:
        wire.send(request("GET", "/wait/0.7"))
        site.has_noted("waits")
        server.signal(signal.SIGTERM)
        assert wire.reply().body == b"waited\n"
        assert server.wait_exit() == 0
    events = site.events()
    assert events.index("has waited") < events.index("cleanup")


def test_websockets_are_closed_when_the_server_stops(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with site.server as server, site.websocket() as socket:
        socket.send("here")
        assert socket.recv(5) == "here"
        server.signal(signal.SIGTERM)
        with pytest.raises(exceptions.ConnectionClosed) as ended:
            socket.recv(10)
        assert ended.value.rcvd.code == 1001
        assert server.wait_exit() == 0
    events = site.events()
    closed = next(event for event in events if event.startswith("websocket closed"))
    assert events.index("shutdown") < events.index(closed) < events.index("cleanup"), events


@pytest.mark.beyond_reference("it kills them")
def test_a_handler_that_does_not_end_is_cancelled(tmp_path: Path) -> None:
    site = Site(tmp_path, graceful_timeout=2)
    with site.server as server, server.connect() as wire:
        wire.send(request("GET", "/wait/60"))
        site.has_noted("waits")
        server.signal(signal.SIGTERM)
        server.wait_exit()
    assert {"cancelled", "cleanup"} <= set(site.events())


def test_handlers_are_cancelled_if_the_application_wants_it(tmp_path: Path) -> None:
    site = Site(tmp_path, "runner")
    with site.server as server:
        with server.connect() as wire:
            wire.send(request("GET", "/wait/60"))
            site.has_noted("waits")
        site.has_noted("cancelled")
        assert server.get("/").status == 200


def test_a_handler_that_has_answered_is_not_cancelled_by_the_end_of_its_connection(tmp_path: Path) -> None:
    site = Site(tmp_path, "runner")
    with site.server as server:
        assert server.get("/goes-on").body == b"the last"
        until(lambda: {"went on", "cancelled after its response"} & set(site.events()), "the handler tells its end")
        assert "went on" in site.events()


def test_a_reload_loses_no_request(tmp_path: Path) -> None:
    site = Site(tmp_path)
    with site.server as server:
        first = server.worker_pid()
        with server.connect() as busy, server.connect() as idle:
            assert idle.get("/").status == 200
            busy.send(request("GET", "/wait/0.5"))
            site.has_noted("waits")
            server.signal(signal.SIGHUP)
            assert busy.reply().body == b"waited\n"
        until(lambda: server.worker_pids() not in ([first], []) and first not in server.worker_pids(), "a new worker")
        assert server.get("/").status == 200
    assert site.events().count("startup") == 2
    assert site.events().count("cleanup") == 2


def test_aiohttp_on_uvloop(tmp_path: Path) -> None:
    needs("uvloop")
    site = Site(tmp_path, worker_class="aiohttp.GunicornUVLoopWebWorker")
    with site.server as server, server.connect() as wire:
        assert wire.get("/facts").json()["loop"].startswith("uvloop")
        assert wire.get("/file").body == site.file.read_bytes()
        assert len(wire.ask("POST", "/echo", (), bytes(3_000_000)).body) == 3_000_000
        with site.websocket() as socket:
            socket.send("x" * 200_000)
            assert socket.recv(5) == "x" * 200_000


def test_a_unix_socket(tmp_path: Path) -> None:
    with Site(tmp_path, transport="unix").server as server:
        assert server.get("/").body == b"Hello, world!\n"
        assert server.get("/facts").status in (200, 500)


@pytest.mark.beyond_reference("its log has a format of aiohttp's own")
def test_the_access_log_is_that_of_every_class(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    site = Site(tmp_path, access_logfile=str(log), access_logformat="%(m)s %(U)s %(s)s %(B)s")
    with site.server as server:
        server.get("/")
        server.post("/echo", b"12345")
        server.get("/stream/2/3")
        until(lambda: log.read_text().count("\n") >= 3 if log.exists() else False, "three lines")
    assert log.read_text().splitlines()[-3:] == ["GET / 200 14", "POST /echo 200 5", "GET /stream/2/3 200 6"]


@pytest.mark.beyond_reference("it has no such limits")
def test_limits_of_the_reactor_hold(tmp_path: Path) -> None:
    with Site(tmp_path, header_timeout=1, limit_request_line=100).server as server:
        with server.connect() as slow:
            slow.send(b"GET / HTTP/1.1\r\nHost:")
            assert slow.reply().status == 408
        assert server.get("/" + "x" * 200).status == 414


@pytest.mark.beyond_reference("it looks on differently")
def test_hooks_see_requests(tmp_path: Path) -> None:
    config = tmp_path / "conf.py"
    config.write_text(
        "def pre_request(worker, req):\n    worker.log.info('before %s %s', req.method, req.path)\n"
        "def post_request(worker, req, environ, resp):\n    worker.log.info('after %s', resp.status)\n"
    )
    with Site(tmp_path, extra=("-c", str(config))).server as server:
        server.post("/echo?x=1", b"body")
        server.log.wait("before POST /echo")
        server.log.wait("after 200 OK")


def test_aiohttp_request_json(server: Server) -> None:
    """The body of the facts is what `json` reads, whatever the client's headers were."""
    assert json.loads(server.get("/facts").body)["host"] == "t"
