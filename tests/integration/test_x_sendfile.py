"""Files that applications name (X-Sendfile, X-Accel-Redirect), and those that they send with validators."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.harness import ALL_CLASSES, REFERENCE, Site, each, until
from tests.harness.http2_client import Http2Client
from tests.harness.wire import Reply, request
from tests.integration.test_disks import mended
from tests.integration.test_static_files import HTTP2, STALLS

pytestmark = pytest.mark.skipif(REFERENCE, reason="of our core")

CONTENT = bytes(range(256)) * 4000

WSGI = """
import json

def application(environ, start_response):
    status, fields, pieces = json.loads(environ["HTTP_SAY"])
    write = start_response(status, [tuple(field) for field in fields])
    return [piece.encode() for piece in pieces]
"""
ASGI = """
import json

async def application(scope, receive, send):
    assert scope["type"] == "http"
    status, fields, pieces = json.loads(dict(scope["headers"])[b"say"])
    fields = [(name.lower().encode(), value.encode()) for name, value in fields]
    await send({"type": "http.response.start", "status": int(status[:3]), "headers": fields})
    for piece in pieces:
        await send({"type": "http.response.body", "body": piece.encode(), "more_body": True})
    await send({"type": "http.response.body", "body": b""})
"""
AIOHTTP = """
import json
from aiohttp import web

async def answer(request):
    status, fields, pieces = json.loads(request.headers["Say"])
    response = web.StreamResponse(status=int(status[:3]), headers=dict(fields))
    await response.prepare(request)
    for piece in pieces:
        await response.write(piece.encode())
    await response.write_eof()
    return response

application = web.Application()
application.router.add_route("*", "/{path:.*}", answer)
"""
TORNADO = """
import json
import tornado.web

class Answer(tornado.web.RequestHandler):
    async def get(self):
        status, fields, pieces = json.loads(self.request.headers["Say"])
        self.set_status(int(status[:3]))
        self.clear_header("Content-Type")
        for name, value in fields:
            self.set_header(name, value)
        for piece in pieces:
            self.write(piece)
            await self.flush()

    head = get

application = tornado.web.Application([("/.*", Answer)])
"""
APPLICATIONS = {"asgi": ASGI, "aiohttp": AIOHTTP, "tornado": TORNADO}
OK = "200 OK"


@pytest.fixture
def top(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    (tmp_path / "files/a.bin").write_bytes(CONTENT)
    (tmp_path / "files/.hidden.txt").write_text("hidden")
    (tmp_path / "files/out").symlink_to("../secret.txt")
    (tmp_path / "secret.txt").write_text("secret")
    return tmp_path


@contextmanager
def serving(top: Path, worker_class: str = "sync", config: str = "") -> Iterator[Site]:
    settings = f"worker_class = {worker_class!r}\nx_sendfile = [{f'{top}/files'!r}, {f'/protected={top}/files'!r}]\n"
    app = APPLICATIONS.get(worker_class, WSGI)
    with Site(settings + config, app="stored:application", files={"stored.py": app}) as server:
        yield server


def say(fields: dict[str, str], pieces: tuple[str, ...] = (), status: str = OK) -> tuple[str, str]:
    return "Say", json.dumps([status, list(fields.items()), pieces])


def ask(server: Site, what: tuple[str, str], *fields: tuple[str, str], method: str = "GET") -> Reply:
    with server.connect() as wire:
        return wire.ask(method, "/", [what, *fields])


@ALL_CLASSES
@pytest.mark.parametrize("transport", ["tcp", "h2"])
def test_a_file_takes_the_place_of_the_body(worker_class: str, transport: str, top: Path) -> None:
    named = {"X-Sendfile": f"{top}/files/a.bin", "Content-Type": "a/b", "Content-Disposition": "attachment"}
    with serving(top, worker_class, HTTP2) as server:
        if transport == "h2":
            server.wire_type = Http2Client
        for pieces in ((), ("dropped",), ("dropped", "x" * 4000, "too")):
            reply = ask(server, say(named, pieces))
            assert (reply.status, reply.body == CONTENT) == (200, True), pieces
            assert [reply.get(name) for name in ("content-type", "content-disposition")] == ["a/b", "attachment"]
            assert reply.get("x-sendfile") is None
            assert reply.get("accept-ranges") == "bytes"
        reply = ask(server, say({"X-Accel-Redirect": "/protected/a%2Ebin?b=c"}), ("Range", "bytes=1-3"))
        assert (reply.status, reply.body) == (206, CONTENT[1:4])
        tag = reply.get("etag") or ""
        assert ask(server, say(named), ("If-None-Match", tag)).status == 304
        assert ask(server, say(named), ("If-Match", '"other"')).status == 412
        assert ask(server, say(named), ("Range", "bytes=9999999-")).status == 416
        head = ask(server, say(named), method="HEAD")
        assert (head.status, head.get("content-length"), head.body) == (200, str(len(CONTENT)), b"")
        # The application's length is that of a body that is not sent.
        assert ask(server, say(named | {"Content-Length": "3"}, ("abc",))).body == CONTENT
        assert ask(server, say({"Content-Type": "a/b"}, ("not dropped",))).text == "not dropped"


def test_requests_follow_on_the_connection(top: Path) -> None:
    named = say({"X-Sendfile": f"{top}/files/a.bin"})
    with serving(top) as server, server.connect() as wire:
        plain = say({}, ("plain",))
        wire.send(request("GET", "/", [named]), request("GET", "/", [plain]), request("GET", "/", [named]))
        assert [wire.reply().body for _ in range(3)] == [CONTENT, b"plain", CONTENT]
        wire.send(request("GET", "/", [say({"X-Sendfile": f"{top}/files/a.bin", "Connection": "close"})]))
        assert wire.reply().closes
        wire.closed()


def test_validators_and_status_are_the_applications(top: Path) -> None:
    named = {"X-Sendfile": f"{top}/files/a.bin", "ETag": '"mine"'}
    with serving(top) as server:
        reply = ask(server, say(named))
        assert (reply.get("etag"), reply.get("last-modified")) == ('"mine"', None)
        assert ask(server, say(named), ("If-None-Match", '"mine"')).status == 304
        reply = ask(server, say(named, status="404 Not Found"), ("Range", "bytes=0-1"), ("If-None-Match", '"mine"'))
        assert (reply.status, reply.body) == (404, CONTENT)
        # The application has chosen it.
        assert ask(server, say({"X-Sendfile": f"{top}/files/.hidden.txt"})).text == "hidden"
        reply = ask(server, say({"X-Sendfile": f"{top}/files/.hidden.txt"}))
        assert reply.get("content-type") == "text/plain; charset=utf-8"


OUTSIDE = {
    "X-Sendfile": ("/etc/passwd", "{}/files/../secret.txt", "{}/files/out", "{}/files", "", "a.bin", "{}/filesystem/a"),
    "X-Accel-Redirect": ("/etc/passwd", "/protected/../../secret.txt", "/protected/%2e%2e/secret.txt", "/files/a.bin"),
}


def test_what_may_not_be_named(top: Path) -> None:
    others = {"Content-Type": "a/b", "Cache-Control": "max-age=60"}
    with serving(top) as server:
        for field, values in OUTSIDE.items():
            for value in values:
                reply = ask(server, say({field: value.format(top), **others}, ("body",)))
                assert (reply.status, reply.get("cache-control")) == (500, None), value
                assert "secret" not in reply.text
        server.log.wait(r"Cannot send the file of the application's X-Sendfile, /etc/passwd: it is not below x_send")
        assert ask(server, say({"X-Sendfile": f"{top}/files/none"})).status == 404


def test_without_the_setting_the_fields_pass(top: Path) -> None:
    with Site(app="stored:application", files={"stored.py": WSGI}) as server:
        reply = ask(server, say({"X-Sendfile": "/etc/passwd", "X-Accel-Redirect": "/protected/a"}, ("body",)))
        assert (reply.text, reply.get("x-sendfile"), reply.get("x-accel-redirect")) == (
            "body",
            "/etc/passwd",
            "/protected/a",
        )
    roots = f"x_sendfile = [{str(top / 'files')!r}]\n"
    with Site(roots, app="stored:application", files={"stored.py": WSGI}) as server:
        reply = ask(server, say({"X-Accel-Redirect": "/protected/a"}, ("body",)))
        assert (reply.text, reply.get("x-accel-redirect")) == ("body", "/protected/a"), "nginx may have such a location"


FAILS = """
    def body():
        yield b"x" * 10
        raise ValueError("here")

    return body() if pieces else []
"""


def test_an_application_that_fails_behind_its_head(top: Path) -> None:
    app = WSGI.rpartition("    return [")[0] + FAILS
    roots = f"x_sendfile = [{str(top / 'files')!r}]\n"
    with Site(roots, app="stored:application", files={"stored.py": app}) as server:
        assert ask(server, say({"X-Sendfile": f"{top}/files/a.bin"}, ("body",))).status == 500
        assert ask(server, say({"X-Sendfile": f"{top}/files/a.bin"})).body == CONTENT


@pytest.mark.parametrize("worker_class", each("sync", "gevent", "asgi", "tornado", "aiohttp"))
def test_a_disk_that_hangs_holds_no_call(worker_class: str, top: Path) -> None:
    """The one thread of `sync` goes on; what happens to the connection meanwhile is no other call's affair."""
    fifo = top / "stall"
    os.mkfifo(fifo)
    config = f"{STALLS}\ntmp_upload_dir = {str(top)!r}\n"
    with serving(top, worker_class, config) as server, server.connect() as wire, server.connect() as leaves:
        for client in (wire, leaves):
            client.send(request("GET", "/", [say({"X-Sendfile": f"{top}/files/a.bin"})]))
        plain = say({}, ("plain",))
        for _ in range(10):
            assert ask(server, plain).text == "plain"
        leaves.close()
        wire.send(request("GET", "/", [plain]))
        assert ask(server, plain).text == "plain"
        with mended(fifo):
            assert wire.reply().body == CONTENT
            assert wire.reply().text == "plain"


def test_a_disk_that_hangs_too_long(top: Path) -> None:
    fifo = top / "stall"
    os.mkfifo(fifo)
    config = f"{STALLS}\ntmp_upload_dir = {str(top)!r}\nrequest_timeout = 1\n"
    named = say({"X-Sendfile": f"{top}/files/a.bin"})
    with serving(top, config=config) as server, server.connect() as wire:
        assert wire.ask("GET", "/", [named]).status == 504
        with mended(fifo):
            assert wire.ask("GET", "/", [named]).body == CONTENT


def test_it_is_logged_when_it_is_sent(top: Path) -> None:
    config = f"accesslog = {str(top / 'access')!r}\nrequest_id = True\n"
    with serving(top, config=config) as server:
        reply = ask(server, say({"X-Sendfile": f"{top}/files/a.bin"}, ("body",)), ("Range", "bytes=0-9"))
        assert len(reply.get("x-request-id") or "") == 32
        until(lambda: (top / "access").read_text().count("\n") == 1, "it is logged")
        assert '"GET / HTTP/1.1" 206 10 ' in (top / "access").read_text()


GIVES_FILES = """
import os

def application(environ, start_response):
    fields = [tuple(field.split(": ")) for field in environ.get("HTTP_SAY", "").split("; ") if field]
    file = open(environ["PATH_INFO"], "rb")
    file.seek(int(environ["QUERY_STRING"] or 0))
    start_response(environ.get("HTTP_STATUS", "200 OK"), fields)
    return environ["wsgi.file_wrapper"](file)
"""
SENDS_PATHS = """
async def application(scope, receive, send):
    assert scope["type"] == "http"
    headers = dict(scope["headers"])
    say = headers.get(b"say", b"").split(b"; ")
    fields = [tuple(field.lower().split(b": ")) for field in say if field]
    status = int(headers.get(b"status", b"200")[:3])
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.pathsend", "path": scope["path"]})
"""


@pytest.mark.parametrize("worker_class", each("sync", "gevent", "asgi"))
def test_files_of_an_application_have_ranges_where_it_sets_validators(worker_class: str, top: Path) -> None:
    app = SENDS_PATHS if worker_class == "asgi" else GIVES_FILES
    config = f"worker_class = {worker_class!r}\n" + ("asgi_pathsend = True\n" if worker_class == "asgi" else "")
    part = ("Range", "bytes=1-3")
    with Site(config, app="stored:application", files={"stored.py": app}) as server:

        def get(told: str, *fields: tuple[str, str], path: str = "") -> Reply:
            with server.connect() as wire:
                return wire.ask("GET", f"{top}/files/a.bin{path}", [("Say", told), *fields])

        reply = get('etag: "a"', part)
        assert (reply.status, reply.body) == (206, CONTENT[1:4])
        assert (reply.get("content-range"), reply.get("etag")) == (f"bytes 1-3/{len(CONTENT)}", '"a"')
        assert get('etag: "a"', ("If-None-Match", '"a"')).status == 304
        assert get("last-modified: Sun, 06 Nov 1994 08:49:37 GMT", part).status == 206
        assert get(f'etag: "a"; content-length: {len(CONTENT)}', part).status == 206
        whole = get('etag: "a"')
        assert (whole.status, whole.body, whole.get("accept-ranges")) == (200, CONTENT, "bytes")
        for told, more in {
            "x-a: b": (),
            'etag: "a"; accept-ranges: none': (),
            'etag: "b"': (("Status", "201 Created"),),
        }.items():
            reply = get(told, part, *more)
            assert reply.status in (200, 201), told
            assert reply.body == CONTENT
        reply = get('etag: "a"; content-length: 10', part)
        assert (reply.status, reply.get("content-range")) == (206, "bytes 1-3/10"), "of what it has promised"
        if worker_class != "asgi":
            reply = get('etag: "a"', part, path="?100")
            assert (reply.status, reply.body) == (206, CONTENT[101:104]), "of what it gives, which begins there"
