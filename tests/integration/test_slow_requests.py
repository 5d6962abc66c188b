"""Of a route of which some requests are slow, the line is told at which those are, and nothing else."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Site, until
from tests.harness.classes import each
from tests.harness.server import run

APPLICATIONS = """\
import asyncio, time

def rare():
    time.sleep(0.3)

def usual():
    time.sleep(0.001)

def computing():
    end = time.perf_counter() + 0.3
    while time.perf_counter() < end: pass

async def rare_task():
    await asyncio.sleep(0.3)

async def usual_task():
    await asyncio.sleep(0.001)

def wsgi(environ, start_response):
    if environ["QUERY_STRING"] == "rare":
        rare()
    elif environ["QUERY_STRING"] == "computing":
        computing()
    else:
        usual()
    start_response("200 OK", [("Content-Length", "0")])
    return []

async def work(query):
    if query == "rare":
        await rare_task()
    elif query == "computing":
        await asyncio.sleep(0)
        computing()
    else:
        await usual_task()

async def asgi(scope, receive, send):
    if scope["type"] == "http":
        await work(scope["query_string"].decode())
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

def tornado():
    from tornado.web import Application, RequestHandler

    class Orders(RequestHandler):
        async def get(self):
            await work(self.request.query)

    class Reports(Orders):
        pass

    return Application([("/orders/.*", Orders), ("/reports/.*", Reports)])

def aiohttp():
    from aiohttp import web

    async def handle(request):
        await work(request.query_string)
        return web.Response()

    made = web.Application()
    made.router.add_get("/orders/{number}", handle)
    made.router.add_get("/reports/{number}", handle)
    return made
"""
NAMES = {
    "sync": "wsgi",
    "gthread": "wsgi",
    "gevent": "wsgi",
    "eventlet": "wsgi",
    "asgi": "asgi",
    "tornado": "tornado()",
    "aiohttp": "aiohttp()",
}
RARE = {"wsgi": "rare", "tasks": "rare_task"}


def line_of(function: str) -> int:
    """The last line of a function of the application."""
    lines = APPLICATIONS.splitlines()
    first = next(number for number, line in enumerate(lines) if line.split("(")[0].endswith(f"def {function}"))
    return next(number for number in range(first, len(lines)) if not lines[number + 1].strip()) + 1


def doctor(socket: Path, *words: str) -> str:
    done = run("doctor", "slow", "-s", str(socket), *words)
    assert done.returncode == 0, done.stderr
    return str(done.stdout)


def slow(socket: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(doctor(socket, "--json"))
    return told


def load(server: Site, path: str, branch: str) -> None:
    """100 requests, of which two are slow; three at a time."""
    paths = [f"{path}/{number}{f'?{branch}' if number % 50 == 25 else ''}" for number in range(100)]
    with ThreadPoolExecutor(3) as pool:
        assert {reply.status for reply in pool.map(server.get, paths)} == {200}


def name(worker_class: str, path: str) -> str:
    """Of a route, as the framework tells it: tornado by the handler, aiohttp by its pattern."""
    told = {"tornado": f"work.tornado.<locals>.{path.title()}", "aiohttp": f"/{path}/{{number}}"}
    return f"GET {told.get(worker_class, f'/{path}/{{}}')}"


def noted(socket: Path, route: str) -> dict[str, Any]:
    """What is told of a route, when its slow requests are noted."""

    def told() -> dict[str, Any]:
        routes = (each for each in slow(socket)["routes"] if each["route"] == route)
        return next((each for each in routes if each["slow"] >= 2), {})

    until(told, f"both of {route} are noted", every=1)  # each look is a process
    return told()


def own_lines(route: dict[str, Any]) -> set[tuple[int, str]]:
    """The innermost lines of the application."""
    frames = (told["frames"] for told in route["lines"])
    return {
        next((each["line"], each["function"]) for each in stack if each["file"].endswith("work.py")) for stack in frames
    }


@pytest.mark.parametrize("worker_class", each(*NAMES))
def test_the_line_is_told_at_which_the_slow_requests_are(worker_class: str, tmp_path: Path) -> None:
    socket = tmp_path / "ctl"
    config = f"worker_class = {worker_class!r}\ncontrol_socket = {str(socket)!r}\n"
    files = {"work.py": APPLICATIONS}
    with Site(config, app=f"work:{NAMES[worker_class]}", files=files) as server:
        load(server, "/orders", "rare")
        route = noted(socket, name(worker_class, "orders"))
        assert 50 <= route["requests"] <= 150, "about a hundred"
        assert (route["slow"], route["boundary"]) == (2, 0.25)
        function = RARE["wsgi" if NAMES[worker_class] == "wsgi" else "tasks"]
        assert own_lines(route) == {(line_of(function), function)}, route["lines"]
        assert 0.05 <= sum(told["slow"] for told in route["lines"]) <= 0.6, "from the first look at each"
        if worker_class in ("sync", "gthread"):
            assert {told["native"] for told in route["lines"]} == {"[libc] clock_nanosleep"}
        if worker_class == "sync":
            outermost = {told["frames"][-1]["function"] for told in route["lines"]}
            assert outermost == {"wsgi"}, "what started the server is no part of the request"
        # A branch that computes has the thread, also that of an event loop: others that were slow have waited for it.
        load(server, "/reports", "computing")
        route = noted(socket, name(worker_class, "reports"))
        assert own_lines(route) == {(line_of("computing"), "computing")}, route["lines"]
        assert sum(told["slow"] for told in route["lines"]) >= 0.15
        assert f"work.py:{line_of('computing')} in computing: while" in doctor(socket)
