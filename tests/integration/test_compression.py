"""Compressed responses with real clients and frameworks, and what they cost a worker."""

from __future__ import annotations

import asyncio
import gzip
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.rfc9110.coded import CODINGS, Coming, content, target
from tests.harness import Server, Site, until, with_each
from tests.harness.chromium import Chromium
from tests.harness.http2_client import Http2Client
from tests.harness.needs import needs

pytestmark = pytest.mark.beyond_reference("gunicorn compresses nothing")

HTML = ("Content-Type", "text/html")
EVENTS = ("Content-Type", "text/event-stream")
GZIP = ("Accept-Encoding", "gzip")
LINE = "a line of some text\n"
STREAMS = 64
"""Compressed streams of a worker."""

FRAMEWORKS = """
import asyncio

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, StreamingResponse
from flask import Flask, Response
from starlette.middleware.base import BaseHTTPMiddleware

asgi = FastAPI()
wsgi = Flask(__name__)
LINE = "a line of some text\\n"


@asgi.get("/whole")
def whole() -> HTMLResponse:
    return HTMLResponse(LINE * 400)


@asgi.get("/stream")
def stream() -> StreamingResponse:
    async def lines():
        for _ in range(400):
            yield LINE
            await asyncio.sleep(0)

    return StreamingResponse(lines(), media_type="text/event-stream")


@asgi.middleware("http")
async def passing(request, call_next):
    return await call_next(request)


@wsgi.get("/whole")
def flask_whole():
    return LINE * 400


@wsgi.get("/stream")
def flask_stream():
    return Response((LINE for _ in range(400)), mimetype="text/event-stream")
"""

ENCODED = """
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route


def whole(request):
    return PlainTextResponse("a line of some text\\n" * 400)


application = Starlette(routes=[Route("/", whole)], middleware=[Middleware(GZipMiddleware)])
"""

TRAILERS = """
async def application(scope, receive, send):
    fields = [(b"content-type", b"text/plain"), (b"trailer", b"x-sum")]
    await send({"type": "http.response.start", "status": 200, "headers": fields, "trailers": True})
    await send({"type": "http.response.body", "body": b"a line of some text\\n" * 400, "more_body": True})
    await send({"type": "http.response.body", "body": b"the end"})
    await send({"type": "http.response.trailers", "headers": [(b"x-sum", b"7")]})
"""

BUSY = """
import os


def application(environ, start_response):
    start_response("200 OK", [("Content-Type", "text/plain")])
    if environ["PATH_INFO"] == "/large":
        body = b"".join(b"line %d of a large body\\n" % number for number in range(1_500_000))
        open("begun", "w").close()
        return [body]
    return [b"small"]
"""


FILES = """
import asyncio
import os

from aiohttp import web
from flask import Flask, send_file
from starlette.applications import Starlette
from starlette.responses import FileResponse
from starlette.routing import Route

PATH = os.path.join(os.path.dirname(os.path.realpath(__file__)), "page.txt")
wsgi = Flask(__name__)


@wsgi.get("/file")
def send():
    return send_file(PATH)


async def aiohttp_file(request):
    return web.FileResponse(PATH)


asgi = Starlette(routes=[Route("/file", lambda request: FileResponse(PATH))])
aiohttp = web.Application()
aiohttp.router.add_get("/file", aiohttp_file)


async def pathsend(scope, receive, send):
    fields = [(b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 200, "headers": fields})
    if scope["path"] == "/late":
        await asyncio.sleep(0.3)  # the head is sent meanwhile, and with it that the body is compressed
    await send({"type": "http.response.pathsend", "path": PATH})


def write_before(environ, start_response):
    write = start_response("200 OK", [("Content-Type", "text/plain")])
    write(b"before the file\\n")
    return environ["wsgi.file_wrapper"](open(PATH, "rb"))
"""


@pytest.mark.parametrize("coding", CODINGS)
def test_a_browser_has_each_event_when_it_was_sent(coding: str) -> None:
    """The next one is sent when the page has acknowledged the last one."""
    with Server("acknowledged:application", worker_class="asgi", compress=coding) as server, Chromium() as browser:
        page = browser.open(f"http://127.0.0.1:{server.port}/")
        until(lambda: page.run("window.ids.length >= 50"), "fifty events were seen")
        ids = page.run("window.ids")
        assert ids == list(range(1, len(ids) + 1))
        assert page.run("coding()") == coding


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server("compressed:application", worker_class="gthread", threads=4, compress="on") as server:
        yield server


def urls(server: Server) -> list[str]:
    whole = target(fields=[HTML], pieces=[(LINE, 400)], whole=True)
    stream = target(fields=[EVENTS], pieces=[(LINE, 100)] * 4)
    return [f"http://127.0.0.1:{server.port}{path}" for path in (whole, stream)]


def test_client_curl(server: Server) -> None:
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    for url in urls(server):
        done = subprocess.run(
            ["curl", "--silent", "--show-error", "--compressed", "--include", url],
            capture_output=True,
            timeout=60,
            check=True,
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        assert b"content-encoding: " in head.lower()
        assert body == LINE.encode() * 400


def test_client_requests(server: Server) -> None:
    import requests

    for url in urls(server):
        reply = requests.get(url, timeout=60)
        assert reply.headers["Content-Encoding"] in CODINGS
        assert reply.content == LINE.encode() * 400


def test_client_httpx(server: Server) -> None:
    needs("httpx")
    import httpx

    for url in urls(server):
        reply = httpx.get(url, timeout=60, trust_env=False)
        assert reply.headers["content-encoding"] in CODINGS
        assert reply.content == LINE.encode() * 400


def test_client_aiohttp(server: Server) -> None:
    needs("aiohttp")
    import aiohttp

    async def fetch(url: str) -> None:
        async with aiohttp.ClientSession() as session, session.get(url) as reply:
            assert reply.headers["Content-Encoding"] in CODINGS
            assert await reply.read() == LINE.encode() * 400

    for url in urls(server):
        asyncio.run(fetch(url))


@pytest.mark.parametrize(("worker_class", "app"), [("asgi", "app:asgi"), ("gthread", "app:wsgi")])
def test_frameworks(worker_class: str, app: str) -> None:
    """FastAPI's whole response passes a middleware, which makes a stream of it: its length is known all the same."""
    needs("fastapi", "flask")
    config = f"worker_class = {worker_class!r}\ncompress = 'br,gzip'\n"
    with Site(config, app=app, files={"app.py": FRAMEWORKS}) as server, server.connect() as wire:
        for path in ("/whole", "/stream"):
            for coding in ("br", "gzip"):
                reply = wire.get(path, ("Accept-Encoding", coding))
                assert (reply.get("content-encoding"), reply.framing) == (
                    coding,
                    "length" if path == "/whole" else "chunked",
                )
                assert content(reply) == LINE.encode() * 400


def test_a_middleware_that_compresses_is_left_alone() -> None:
    needs("starlette")
    config = "worker_class = 'asgi'\ncompress = 'zstd,gzip'\n"
    with Site(config, app="app:application", files={"app.py": ENCODED}) as server, server.connect() as wire:
        reply = wire.get("/", ("Accept-Encoding", "gzip, zstd"))
        assert (reply.get("content-encoding"), reply.all("vary")) == ("gzip", ["Accept-Encoding"])
        assert content(reply) == LINE.encode() * 400


@pytest.mark.parametrize(
    ("worker_class", "app", "path", "coding"),
    [
        ("gthread", "app:wsgi", "/file", None),
        ("gthread", "app:write_before", "/", "gzip"),
        ("asgi", "app:asgi", "/file", None),
        ("asgi", "app:pathsend", "/at-once", None),
        ("asgi", "app:pathsend", "/late", "gzip"),
        ("aiohttp", "app:aiohttp", "/file", "gzip"),
    ],
)
def test_files(worker_class: str, app: str, path: str, coding: str | None) -> None:
    """The kernel sends them as they are. A body that has begun compressed goes on so, and aiohttp reads its files."""
    needs("aiohttp", "flask", "starlette")
    config = f"worker_class = {worker_class!r}\ncompress = 'gzip'\nasgi_pathsend = True\n"
    text = "".join(f"line {number} of a file\n" for number in range(20_000))
    with (
        Site(config, app=app, files={"app.py": FILES, "page.txt": text}) as server,
        server.connect() as wire,
    ):
        for _ in range(2):
            reply = wire.get(path, GZIP)
            before = b"before the file\n" if "before" in app else b""
            assert reply.get("content-encoding") == coding
            assert content(reply) == before + text.encode()


def test_static_files_have_copies_of_their_own(tmp_path: Path) -> None:
    """They are not compressed for each request; nor is a copy compressed again."""
    copy = gzip.compress(LINE.encode() * 400)
    (tmp_path / "page.txt").write_text(LINE * 400)
    (tmp_path / "page.txt.gz").write_bytes(copy)
    (tmp_path / "alone.txt").write_text(LINE * 400)
    with Site(f"compress = True\nstatic_map = ['/static={tmp_path}']\n") as server, server.connect() as wire:
        page = wire.get("/static/page.txt", GZIP)
        assert (page.get("content-encoding"), page.body) == ("gzip", copy)
        alone = wire.get("/static/alone.txt", GZIP)
        assert (alone.get("content-encoding"), alone.body) == (None, LINE.encode() * 400)


def test_trailers_follow_a_compressed_body() -> None:
    config = "worker_class = 'asgi'\ncompress = 'gzip'\nhttp_protocols = 'h2,h1'\nhttp2_cleartext = 'prior-knowledge'\n"
    with Site(config, app="app:application", files={"app.py": TRAILERS}) as server:
        with server.connect() as wire:
            coming = Coming(wire, "/", GZIP, ("TE", "trailers"))
            coming.read_until(b"the end")
            while b"0\r\nx-sum: 7\r\n\r\n" not in wire.unread:
                wire.unread += wire.sock.recv(65536)
            assert (coming.fields["content-encoding"], coming.fields["trailer"]) == ("gzip", "x-sum")
        with Http2Client(server.address) as client:
            coming = Coming(client, "/", GZIP, ("TE", "trailers"))
            assert coming.read_to_end() == LINE.encode() * 400 + b"the end"
            (answer,) = client.session.answers.values()
            assert (coming.fields["content-encoding"], coming.is_complete) == ("gzip", True)
            assert (answer.trailers, answer.ended) == ({"x-sum": "7"}, True)


@pytest.mark.parametrize("worker_class", ["asgi", "gevent"])
def test_a_worker_compresses_so_many_streams(worker_class: str, tmp_path: Path) -> None:
    """The next one is sent as it is; whole bodies need no place, and a client that leaves gives its place back."""
    options: dict[str, Any] = {"worker_connections": 200}
    with Server("compressed:application", worker_class=worker_class, compress="on", **options) as server:

        def listen(stack: ExitStack, coding: str) -> Coming:
            path = target(fields=[EVENTS], pieces=[("data: x\n\n", 1)], gate=str(tmp_path / "gate"))
            coming = Coming(stack.enter_context(server.connect()), path, ("Accept-Encoding", coding))
            coming.read_until(b"data: x\n\n")
            return coming

        with ExitStack() as stack:
            streams = [listen(stack, CODINGS[number % 3]) for number in range(STREAMS)]
            assert all("content-encoding" in stream.fields for stream in streams)
            one_more = listen(stack, "gzip")
            assert "content-encoding" not in one_more.fields
            assert one_more.fields["vary"] == "Accept-Encoding"
            with server.connect() as wire:
                whole = wire.get(target(fields=[HTML], pieces=[(LINE, 400)], whole=True), GZIP)
                assert content(whole) == LINE.encode() * 400
                assert whole.get("content-encoding") == "gzip"
            # Clients leave, and the application hears of that at the latest when it has something to send.
            for stream in streams[:8]:
                stream.wire.reset()
            (tmp_path / "gate0").touch()
            for stream in streams[8:]:
                assert (stream.read_to_end(), stream.is_complete) == (b"data: x\n\n", True)

        def is_free() -> bool:
            with ExitStack() as stack:
                return all("content-encoding" in listen(stack, "br").fields for _ in range(STREAMS))

        until(is_free, "every place is free again")


def test_the_access_log_tells_the_bytes_that_were_sent() -> None:
    options: dict[str, Any] = {"access_logfile": "-", "access_logformat": "sent=%(B)s"}
    with Server("compressed:application", worker_class="gthread", compress="on", **options) as server:
        for whole in (True, False):
            with server.connect() as wire:
                reply = wire.get(target(fields=[HTML], pieces=[(LINE, 400)], whole=whole), GZIP)
            assert reply.get("content-encoding") == "gzip"
            server.out.wait(rf"sent={len(reply.body)}$")


def test_a_large_body_is_compressed_without_the_gil() -> None:
    """Another thread answers meanwhile."""
    config = "worker_class = 'gthread'\nthreads = 2\ncompress = 'br'\n"
    with (
        Site(config, app="app:application", files={"app.py": BUSY}) as server,
        server.connect() as large,
        server.connect() as small,
    ):
        large.send(b"GET /large HTTP/1.1\r\nHost: t\r\nAccept-Encoding: br\r\n\r\n")
        until(lambda: (server.directory / "begun").exists(), "the body is there")
        assert small.get("/small").body == b"small"
        large.sock.setblocking(False)
        with pytest.raises(BlockingIOError):
            large.sock.recv(1)
        large.sock.setblocking(True)
        large.sock.settimeout(60)
        reply = large.reply()
        assert reply.get("content-encoding") == "br"
        assert len(content(reply)) > 30_000_000


@with_each("coding", CODINGS)
def test_a_stream_that_outlives_its_worker_ends_properly(coding: str) -> None:
    """It ends between two events, with a `retry` field, as one that is not compressed."""
    options: dict[str, Any] = {"compress": coding, "sse_retry": "10-20", "stream_drain": 0}
    with Server("streams:application", worker_class="asgi", **options) as server, server.connect() as wire:
        coming = Coming(wire, "/ticks", ("Accept-Encoding", coding))
        coming.read_until(b"data: tick\n\n")
        assert coming.fields["content-encoding"] == coding
        server.signal(signal.SIGTERM)
        text = coming.read_to_end()
        assert coming.is_complete
        assert b"\nretry: " in text


def test_a_silent_stream_gets_comments() -> None:
    options: dict[str, Any] = {"compress": "gzip", "sse_ping": 0.1}
    with Server("streams:application", worker_class="asgi", **options) as server, server.connect() as wire:
        coming = Coming(wire, "/silent", GZIP)
        coming.read_until(b": ping\n\n")
        assert coming.fields["content-encoding"] == "gzip"
