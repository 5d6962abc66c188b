"""What a thread's call is used for: on the access log and in the metrics of classes that run calls on threads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Site, until
from tests.harness.classes import each
from tests.harness.scrape import scrape, value
from tests.harness.server import free_port

APPLICATION = """\
import time

SECONDS = 0.08

def computes():
    end = time.thread_time() + SECONDS
    while time.thread_time() < end:
        pass

DOES = {"/waits": lambda: time.sleep(SECONDS), "/computes": computes}

def app(environ, start_response):
    DOES.get(environ["PATH_INFO"], lambda: None)()
    start_response("200 OK", [("Content-Length", "0")])
    return []
"""
MICROS = 80_000
UNSEEN = 10_000
"""A monitor that gets a processor in time has looked at a call twice by then."""


class Logged:
    def __init__(self, site: Site, log: Path, admin: tuple[str, int] = ("", 0)) -> None:
        self.site, self.log, self.admin = site, log, admin

    def line(self, path: str) -> dict[str, Any]:
        """The line of the access log that a request leaves."""
        before = len(self.lines())
        assert self.site.get(path).status == 200
        until(lambda: len(self.lines()) > before, "the line is written")
        line: dict[str, Any] = json.loads(self.lines()[before])
        assert line["path"] == path
        return line

    def lines(self) -> list[str]:
        text = self.log.read_text() if self.log.exists() else ""
        return text.splitlines()[: text.count("\n")]

    def blocked(self) -> float:
        samples = scrape(self.admin)
        return value(samples, "call_blocked_seconds_total")


@pytest.fixture(scope="module", params=each("sync", "gthread"))
def logged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Logged]:
    port, log = free_port(), tmp_path_factory.mktemp("logs") / "access.log"
    config = f"worker_class = {request.param!r}\nadmin_bind = '127.0.0.1:{port}'\n"
    config += f"accesslog = {str(log)!r}\nlog_format = 'json'\nthreads = {3 if request.param == 'gthread' else 1}\n"
    with Site(config, app="work:app", files={"work.py": APPLICATION}) as site:
        yield Logged(site, log, ("127.0.0.1", port))


def test_a_call_that_sleeps_is_blocked_and_hardly_computes(logged: Logged) -> None:
    line = logged.line("/waits")
    parts = [line["cpu_us"], line["blocked_us"], line["delayed_us"]]
    assert line["blocked_us"] >= MICROS - 4 * UNSEEN, "what a busy machine keeps from the monitor counts as computed"
    assert line["blocked_us"] > line["cpu_us"]
    assert sum(parts) <= line["duration_us"]
    assert logged.blocked() >= line["blocked_us"] / 1e6


def test_a_call_that_computes_is_not_blocked(logged: Logged) -> None:
    line = logged.line("/computes")
    assert line["cpu_us"] >= MICROS - UNSEEN
    assert line["blocked_us"] < MICROS / 2


def test_of_a_short_call_nothing_is_told(logged: Logged) -> None:
    """On a machine that is busy any call may last, but not each of them."""
    assert any("cpu_us" not in logged.line("/short") for _ in range(20))


SHARING = """\
import asyncio, ctypes, time

C = ctypes.CDLL(None)

def blocks():  # gives up the GIL, and not the loop
    C.usleep(80_000)

def wsgi(environ, start_response):
    path = environ["PATH_INFO"]
    environ["tricorn.route"] = path
    if path != "/first":
        time.sleep(0.02)  # which is the hub's
    if path != "/waits":
        blocks()
    start_response("200 OK", [("Content-Length", "0")])
    return []

async def asgi(scope, receive, send):
    if scope["type"] == "http":
        path = scope["tricorn.route"] = scope["path"]
        if path != "/first":
            await asyncio.sleep(0.02)
        if path != "/waits":
            blocks()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

async def served(path):
    if path != "/first":
        await asyncio.sleep(0.02)
    if path != "/waits":
        blocks()

def tornado_app():
    from tornado.web import Application, RequestHandler
    class Handler(RequestHandler):
        async def get(self):
            await served(self.request.path)
    return Application([(path, Handler) for path in ("/first", "/later", "/waits")])

def aiohttp_app():
    from aiohttp import web
    async def handler(request):
        await served(request.path)
        return web.Response()
    app = web.Application()
    for path in ("/first", "/later", "/waits"):
        app.router.add_get(path, handler)
    return app
"""
TOLD = {
    "gevent": "wsgi",
    "eventlet": "wsgi",
    "asgi-asyncio": "asgi",
    "tornado": "tornado_app()",
    "aiohttp": "aiohttp_app()",
}


@pytest.mark.parametrize("worker_class", each(*TOLD))
def test_a_call_that_shares_its_thread_is_told_what_it_held_up_the_others_for(
    worker_class: str, tmp_path: Path
) -> None:
    name, _, loop = worker_class.partition("-")
    log, port = tmp_path / "access.log", free_port()
    config = f"worker_class = {name!r}\nasgi_loop = {loop or 'asyncio'!r}\n"
    config += f"accesslog = {str(log)!r}\nlog_format = 'json'\nadmin_bind = '127.0.0.1:{port}'\n"
    with Site(config, app=f"work:{TOLD[worker_class]}", files={"work.py": SHARING}) as site:
        logged = Logged(site, log)
        for path in ("/first", "/later"):
            line = until(lambda path=path: told if "blocked_us" in (told := logged.line(path)) else None, path)
            parts = [line[f"{part}_us"] for part in ("cpu", "blocked", "delayed", "yielded")]
            assert sum(parts) <= line["duration_us"]
            until(lambda path=path: logged.line(path).get("blocked_us", 0) >= MICROS / 2, "most of it is seen")
        assert logged.line("/waits").get("blocked_us", 0) < MICROS / 4, "it has only waited"
        first, later = ("work.tornado_app.<locals>.Handler",) * 2 if name == "tornado" else ("/first", "/later")
        until(lambda: value(scrape(("127.0.0.1", port)), "route_blocked_seconds_total", route=first), "the route's")
        samples = scrape(("127.0.0.1", port))
        assert value(samples, "route_blocked_seconds_total", route=first) >= 0.04
        assert value(samples, "route_duration_seconds_count", route=later) >= 1
