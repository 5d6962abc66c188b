"""Routes: what each costs, under every class, and whatever becomes of the workers."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from tricorn.control.client import Control

from tests.harness import Site, until
from tests.harness.cases import with_each
from tests.harness.proc import children
from tests.harness.scrape import Samples, scrape, value
from tests.harness.server import free_port

ORDERS = """\
def application(environ, start_response):
    path = environ["PATH_INFO"]
    status = "200 OK"
    if path.startswith("/orders/"):
        environ["tricorn.route"] = "/orders/{id}"
    if path == "/broken":
        environ["tricorn.route"], status = "/broken", "500 Oh"
    if path.startswith("/many/"):
        environ["tricorn.route"] = path
    if path == "/odd":
        environ["tricorn.route"] = 5
    start_response(status, [("Content-Length", "2")])
    return [b"ok"]
"""

FASTAPI = """\
from fastapi import FastAPI

application = FastAPI()

@application.get("/orders/{number}")
async def order(number: int):
    return "ok"
"""

TORNADO = """\
from tornado.web import Application, RequestHandler

class Order(RequestHandler):
    def get(self, number):
        self.finish("ok")

application = Application([("/orders/([0-9]+)", Order)])
"""

AIOHTTP = """\
from aiohttp import web

async def order(request):
    return web.Response(text="ok")

application = web.Application()
application.router.add_get("/orders/{number}", order)
"""

NAMED = [
    ("gevent", ORDERS, "/orders/{id}"),
    ("asgi", FASTAPI, "/orders/{number}"),
    ("tornado", TORNADO, "app.Order"),
    ("aiohttp", AIOHTTP, "/orders/{number}"),
]


def site(app: str, config: str = "", **options: Any) -> tuple[Site, tuple[str, int]]:
    port = free_port()
    text = f"admin_bind = '127.0.0.1:{port}'\n{config}"
    return Site(text, app="app:application", files={"app.py": app}, **options), ("127.0.0.1", port)


def counted(samples: Samples) -> dict[str, int]:
    return {
        dict(labels)["route"]: int(count)
        for (name, labels), count in samples.items()
        if name == "route_duration_seconds_count"
    }


@with_each(("kind", "app", "route"), NAMED)
def test_a_framework_tells_the_route_and_no_path_becomes_one(kind: str, app: str, route: str) -> None:
    server, admin = site(app, f"worker_class = '{kind}'\n")
    with server:
        for path in ("/orders/4711", "/orders/4712", "/nowhere/4713"):
            server.get(path)
        until(lambda: counted(scrape(admin)) == {route: 2, "other": 1}, "the route, and the request without one")


def test_routes_are_counted_whatever_becomes_of_the_workers(tmp_path: Path) -> None:
    config = (
        f"workers = 2\nworker_class = 'gthread'\nthreads = 2\nroute_metrics = 3\ncontrol_socket = '{tmp_path}/ctl'\n"
    )
    server, admin = site(ORDERS, config, workers=2)
    expected: dict[str, int] = {}

    def ask(path: str, route: str, times: int) -> None:
        for _ in range(times):
            server.get(path)
        expected[route] = expected.get(route, 0) + times

    with server:
        ask("/orders/1", "/orders/{id}", 5)
        ask("/broken", "/broken", 2)
        ask("/odd", "other", 1)
        until(lambda: counted(scrape(admin)) == expected, "the routes of the first workers")
        old = set(children(server.pid))
        server.signal(signal.SIGHUP)
        until(lambda: len(children(server.pid)) == 2 and not old & set(children(server.pid)), "new workers")
        ask("/orders/2", "/orders/{id}", 4)
        ask("/many/1", "/many/1", 1)
        ask("/many/2", "other", 1)
        until(lambda: counted(scrape(admin)) == expected, "a route more than has a name")
        old = set(children(server.pid))
        for pid in old:
            os.kill(pid, signal.SIGKILL)
        until(lambda: len(children(server.pid)) == 2 and not old & set(children(server.pid)), "new workers")
        ask("/orders/3", "/orders/{id}", 3)
        until(lambda: counted(scrape(admin)) == expected, "the routes of workers that were killed")
        samples = scrape(admin)
        errors = {
            dict(labels)["route"]: count for (name, labels), count in samples.items() if name == "route_errors_total"
        }
        assert errors == {"/orders/{id}": 0, "/broken": 2, "/many/1": 0, "other": 0}
        with Control.connect(tmp_path / "ctl") as control:
            told = control.ask("routes")
        assert {row["route"]: row["requests"] for row in told["routes"]} == expected
        assert told["counted"]


@with_each("kind", ["gthread", "asgi"])
def test_routes_that_are_not_counted_are_not_told(kind: str, tmp_path: Path) -> None:
    config = f"worker_class = '{kind}'\nroute_metrics = 0\ncontrol_socket = '{tmp_path}/{kind}'\n"
    server, admin = site(FASTAPI if kind == "asgi" else ORDERS, config)
    with server:
        server.get("/orders/1")
        until(lambda: value(scrape(admin), "requests_total") == 1, "the request")
        assert counted(scrape(admin)) == {}
        with Control.connect(tmp_path / kind) as control:
            assert control.ask("routes") == {"counted": False, "routes": []}
