"""Tail profiles: of a route of which some requests are slow, the line is told at which those are, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Site, until
from tests.harness.classes import each

APPLICATIONS = """\
import asyncio, time

def rare():
    time.sleep(0.3)

def usual():
    time.sleep(0.001)

async def rare_task():
    await asyncio.sleep(0.3)

async def usual_task():
    await asyncio.sleep(0.001)

def wsgi(environ, start_response):
    if environ["QUERY_STRING"] == "rare":
        rare()
    else:
        usual()
    start_response("200 OK", [("Content-Length", "0")])
    return []

async def work(query):
    if query == "rare":
        await rare_task()
    else:
        await usual_task()

async def asgi(scope, receive, send):
    if scope["type"] == "http":
        await work(scope["query_string"].decode())
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

def tornado():
    from tornado.web import Application, RequestHandler

    class Handler(RequestHandler):
        async def get(self):
            await work(self.request.query)

    return Application([(".*", Handler)])

def aiohttp():
    from aiohttp import web

    async def handle(request):
        await work(request.query_string)
        return web.Response()

    made = web.Application()
    made.router.add_get("/{any:.*}", handle)
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
RARE = {"wsgi": (4, "rare"), "tasks": (10, "rare_task")}
ROUTE = "GET /orders/{}"
TOLD = {"tornado": "GET work.tornado.<locals>.Handler", "aiohttp": "GET /{any}"}
"""Where the application says what its route is called."""


def doctor(socket: Path, *words: str) -> str:
    command = [sys.executable, "-m", "tricorn", "doctor", "slow", "-s", str(socket), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


def slow(socket: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(doctor(socket, "--json"))
    return told


def load(server: Site) -> None:
    """100 requests, of which two are slow; three at a time."""
    paths = [f"/orders/{number}{'?rare' if number % 50 == 25 else ''}" for number in range(100)]
    with ThreadPoolExecutor(3) as pool:
        assert {reply.status for reply in pool.map(server.get, paths)} == {200}


@pytest.mark.parametrize("worker_class", each(*NAMES))
def test_the_line_is_told_at_which_the_slow_requests_are(worker_class: str, tmp_path: Path) -> None:
    socket = tmp_path / "ctl"
    config = f"worker_class = {worker_class!r}\ncontrol_socket = {str(socket)!r}\n"
    files = {"work.py": APPLICATIONS}
    with Site(config, app=f"work:{NAMES[worker_class]}", files=files) as server:
        load(server)
        until(lambda: slow(socket)["routes"] and slow(socket)["routes"][0]["slow"] == 2, "both are noted", every=0.2)
        told = slow(socket)
        [route] = told["routes"]
        assert route["route"] == TOLD.get(worker_class, ROUTE)
        assert 50 <= route["requests"] <= 150, "about a hundred"
        assert route["boundary"] == 0.25
        line, function = RARE["wsgi" if NAMES[worker_class] == "wsgi" else "tasks"]
        own = {
            next((each["line"], each["function"]) for each in told["frames"] if each["file"].endswith("work.py"))
            for told in route["lines"]
        }
        assert own == {(line, function)}, route["lines"]
        assert 0.15 <= sum(told["slow"] for told in route["lines"]) <= 0.6
        assert f"work.py:{line} in {function}" in doctor(socket)
