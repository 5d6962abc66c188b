"""What event loops and hubs spend their time on: waits, work, and calls that hold up all others."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.harness import Site, proc, until
from tests.harness.classes import each
from tests.harness.scrape import scrape, value
from tests.harness.server import free_port

APPLICATIONS = """\
import asyncio, ctypes, time

C = ctypes.CDLL(None)

def blocks():  # gives up the GIL, and not the loop
    C.usleep(20_000)

def computes():
    end = time.thread_time() + 0.02
    while time.thread_time() < end:
        pass

DOES = {"/blocks": blocks, "/computes": computes}

def wsgi(environ, start_response):
    DOES.get(environ["PATH_INFO"], lambda: time.sleep(0.02))()  # which is the hub's
    start_response("200 OK", [("Content-Length", "0")])
    return []

async def work(path):
    if path in DOES:
        DOES[path]()
    else:
        await asyncio.sleep(0.02)

async def asgi(scope, receive, send):
    if scope["type"] == "http":
        await work(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

def tornado():
    from tornado.web import Application, RequestHandler

    class Handler(RequestHandler):
        async def get(self):
            await work(self.request.path)

    return Application([(".*", Handler)])

def aiohttp():
    from aiohttp import web

    async def handle(request):
        await work(request.path)
        return web.Response()

    made = web.Application()
    made.router.add_get("/{any:.*}", handle)
    return made
"""
NAMES = {"gevent": "wsgi", "eventlet": "wsgi", "asgi": "asgi", "tornado": "tornado()", "aiohttp": "aiohttp()"}
REQUESTS, SECONDS = 20, 0.4
"""So many requests are at it for so long in all."""


class Measured:
    def __init__(self, site: Site, admin: tuple[str, int]) -> None:
        self.site, self.admin = site, admin

    def look(self) -> tuple[float, float]:
        """Seconds of work, and of those that were blocked."""
        samples = scrape(self.admin)
        return value(samples, "loop_work_seconds_total"), value(samples, "loop_blocked_seconds_total")

    def spent(self, path: str, clients: int = 1) -> tuple[float, float]:
        """What the requests took of the loop, once the monitor has seen the last of them."""
        before = self.look()

        def ask(count: int) -> None:
            with self.site.connect() as wire:
                for _ in range(count):
                    assert wire.get(path).status == 200

        with ThreadPoolExecutor(clients) as pool:
            list(pool.map(ask, [REQUESTS // clients] * clients))
        pid = self.site.worker_pid()
        for _ in range(2):  # a scrape is work as well, and has the monitor add what came before it
            until(lambda: proc.is_quiet(pid), "the loop rests")
            work, blocked = self.look()
        return work - before[0], blocked - before[1]

    def least(self, path: str, clients: int = 1) -> tuple[float, float]:
        """The least of three times: a loop that gets no processor for a while seems to work."""
        return min(self.spent(path, clients) for _ in range(3))


@pytest.fixture(scope="module", params=each(*NAMES))
def measured(request: pytest.FixtureRequest) -> Iterator[Measured]:
    port = free_port()
    config = f"worker_class = {request.param!r}\nasgi_loop = 'asyncio'\nadmin_bind = '127.0.0.1:{port}'\n"
    with Site(config, app=f"work:{NAMES[request.param]}", files={"work.py": APPLICATIONS}) as site:
        assert site.get("/blocks").status == 200, "hubs of greenlets keep their time from the first such call on"
        yield Measured(site, ("127.0.0.1", port))


def test_a_loop_that_does_not_show_its_waits_is_measured_while_others_wait_for_it() -> None:
    port = free_port()
    config = f"worker_class = 'asgi'\nasgi_loop = 'uvloop'\nadmin_bind = '127.0.0.1:{port}'\n"
    with Site(config, app="work:asgi", files={"work.py": APPLICATIONS}) as site:
        measured = Measured(site, ("127.0.0.1", port))
        work, blocked = measured.spent("/blocks", clients=4)
        assert work >= blocked >= SECONDS / 2
        work, blocked = measured.spent("/computes", clients=4)
        assert work >= SECONDS / 2
        assert blocked < work / 2
        work, _ = measured.least("/waits", clients=4)
        assert work < SECONDS / 4


def test_a_call_that_neither_computes_nor_gives_way_blocks_the_loop(measured: Measured) -> None:
    work, blocked = measured.spent("/blocks")
    assert work >= blocked >= 0.8 * SECONDS


def test_a_loop_that_computes_works_and_is_not_blocked(measured: Measured) -> None:
    work, blocked = measured.spent("/computes")
    assert work >= 0.9 * SECONDS
    assert blocked < work / 2


def test_a_request_that_waits_for_its_turn_leaves_the_loop_alone(measured: Measured) -> None:
    work, blocked = measured.least("/waits")
    assert work < SECONDS / 2
    assert blocked < SECONDS / 4
