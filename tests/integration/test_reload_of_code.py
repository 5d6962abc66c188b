"""`--reload`: once the log says that the new code is ready, no client is answered by the old."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.harness import ALL_CLASSES, Site, Wire, each, until
from tests.harness.certificates import Authority
from tests.harness.tls import SecureWire, client
from tests.harness.wire import request

pytestmark = pytest.mark.beyond_reference("its workers serve kept connections for as long as they like")

WSGI = """
import os, time

def application(environ, start_response):
    while environ["PATH_INFO"] == "/held" and not os.path.exists("opened"):
        time.sleep(0.01)
    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "3")])
    return [b"{text}"]
"""

ASGI = """
import asyncio, os

async def application(scope, receive, send):
    assert scope["type"] == "http"
    while scope["path"] == "/held" and not os.path.exists("opened"):
        await asyncio.sleep(0.01)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]})
    await send({"type": "http.response.body", "body": b"{text}"})
"""

TORNADO = """
import asyncio, os
from tornado.web import Application, RequestHandler

class Answer(RequestHandler):
    async def get(self):
        while self.request.path == "/held" and not os.path.exists("opened"):
            await asyncio.sleep(0.01)
        self.write("{text}")

    post = get

application = Application([("/.*", Answer)])
"""

AIOHTTP = """
import asyncio, os
from aiohttp import web

async def answer(request):
    while request.path == "/held" and not os.path.exists("opened"):
        await asyncio.sleep(0.01)
    return web.Response(text="{text}")

application = web.Application()
application.router.add_route("*", "/{tail:.*}", answer)
"""

SOURCES = {"asgi": ASGI, "tornado": TORNADO, "aiohttp": AIOHTTP}


def source(worker_class: str, text: str) -> str:
    return SOURCES.get(worker_class, WSGI).replace("{text}", text)


def site(worker_class: str, config: str = "", workers: int = 1) -> Site:
    config = (
        f"worker_class = {worker_class!r}\nworkers = {workers}\nreload = True\nkeepalive = 75\n"
        f"worker_connections = 9\n{config}"
    )
    files = {"mine.py": source(worker_class, "old")}
    return Site(config, app="mine:application", workers=workers, files=files)


def answers(wire: Wire, asked: bytes) -> bytes:
    """What the client of a kept connection gets, as one does that connects anew when it is closed: nothing then."""
    try:
        wire.send(asked)
        return wire.reply().body
    except (OSError, AssertionError):
        return b""


PLAIN = request("GET", "/")
FORM = request("POST", "/", [("Content-Type", "application/x-www-form-urlencoded")], b"a=1")


@ALL_CLASSES
def test_no_kept_connection_leads_to_the_old_code(worker_class: str) -> None:
    with site(worker_class) as server, ExitStack() as stack:
        server.log.wait("Ready: ")
        kept = [stack.enter_context(server.connect()) for _ in range(6)]
        assert {wire.get("/").body for wire in kept} == {b"old"}
        kept += [stack.enter_context(server.connect()) for _ in range(2)]  # which browsers have ready
        server.write("mine.py", source(worker_class, "new"))
        server.log.wait("Ready: ", count=2)
        got = [answers(wire, asked) for wire, asked in zip(kept, [PLAIN, FORM] * 4, strict=True)]
        assert not {b"old"} & set(got), got
        assert server.get("/").body == b"new"


@ALL_CLASSES
def test_a_request_that_has_begun_is_answered_and_its_connection_closed(worker_class: str) -> None:
    with site(worker_class) as server, server.connect() as wire:
        server.log.wait("Ready: ")
        assert wire.get("/").body == b"old"
        wire.send(request("GET", "/held"))
        until(wire.is_all_read, "it is under way")
        server.write("mine.py", source(worker_class, "new"))
        server.log.wait("Ready: ", count=2)  # which does not wait for it
        assert server.get("/").body == b"new"
        (server.directory / "opened").touch()
        reply = wire.reply()
        assert (reply.body, reply.closes) == (b"old", True)
        wire.closed()


@pytest.mark.parametrize("worker_class", each("gthread", "asgi"))
def test_reload_of_code_over_tls(worker_class: str, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    issued, context = authority.issue("localhost"), client(authority)
    config = f"certfile = {str(issued.certificate)!r}\nkeyfile = {str(issued.key)!r}\n"
    with site(worker_class, config) as server, ExitStack() as stack:
        server.log.wait("Ready: ")
        kept = [stack.enter_context(SecureWire(server.address, context)) for _ in range(4)]
        assert {wire.get("/").body for wire in kept[:3]} == {b"old"}
        server.write("mine.py", source(worker_class, "new"))
        server.log.wait("Ready: ", count=2)
        assert not {b"old"} & {answers(wire, PLAIN) for wire in kept}
        with SecureWire(server.address, context) as fresh:
            assert fresh.get("/").body == b"new"


def test_each_of_several_workers_has_closed_its_idle_connections() -> None:
    with site("sync", workers=3) as server, ExitStack() as stack:
        server.log.wait("Ready: ")
        kept = [stack.enter_context(server.connect()) for _ in range(12)]
        held = [stack.enter_context(server.connect()).send(request("GET", "/held")) for _ in range(2)]
        assert {wire.get("/").body for wire in kept} == {b"old"}
        server.write("mine.py", source("sync", "new"))
        server.log.wait("Ready: ", count=2)
        assert not {b"old"} & {answers(wire, PLAIN) for wire in kept}
        (server.directory / "opened").touch()
        assert [wire.reply().body for wire in held] == [b"old"] * 2
