"""A service under a load that it bears: all that the doctor says of it is false.

The load is drawn from a seed: fast answers, waits, short computations, bodies, streams, WebSockets, connections that
are kept and new ones, short collections of garbage, pools that are full for moments, reloads. What the machine does to
a worker, that it wants a processor and has none, is counted apart: it is true, and the doctor's to say.
"""

from __future__ import annotations

import random
import re
import signal
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field

from tests.harness import Site
from tests.harness.frames import Frames

WSGI = """\
import contextlib, gc, sqlite3, threading, time
from sqlalchemy.pool import QueuePool

POOL = QueuePool(lambda: sqlite3.connect(":memory:", check_same_thread=False), pool_size=2, max_overflow=0)
HOPPER = []


def fast(environ): return [b"fast"]


def waits(environ):
    time.sleep(0.08)
    return [b"waited"]


def waits_long(environ):
    time.sleep(1.4)
    return [b"waited"]


def computes(environ):
    end = time.thread_time() + 0.015
    while time.thread_time() < end: pass
    return [b"computed"]


def collects(environ):
    HOPPER.append([[] for _ in range(20_000)])
    del HOPPER[:-3]
    gc.collect()
    return [b"collected"]


def pooled(environ):
    with contextlib.closing(POOL.connect()):
        time.sleep(0.03)
    return [b"pooled"]


def body(environ): return [b"%d" % len(environ["wsgi.input"].read())]


def streams(environ):
    for _ in range(12):
        time.sleep(0.05)
        yield b"piece"


def application(environ, start_response):
    start_response("200 OK", [])
    return globals()[environ["PATH_INFO"][1:]](environ)
"""
ASGI = """\
import asyncio, gc, time
from sqlalchemy.pool import AsyncAdaptedQueuePool
from sqlalchemy.util import greenlet_spawn

HOPPER = []


class Connection:
    def close(self): pass
    rollback = close


POOL = AsyncAdaptedQueuePool(Connection, pool_size=2, max_overflow=0)


async def fast(receive, send): return b"fast"


async def waits(receive, send):
    await asyncio.sleep(0.08)
    return b"waited"


async def waits_long(receive, send):
    await asyncio.sleep(1.4)
    return b"waited"


async def computes(receive, send):
    end = time.thread_time() + 0.015
    while time.thread_time() < end: pass
    return b"computed"


async def collects(receive, send):
    HOPPER.append([[] for _ in range(20_000)])
    del HOPPER[:-3]
    gc.collect()
    return b"collected"


async def pooled(receive, send):
    connection = await greenlet_spawn(POOL.connect)
    await asyncio.sleep(0.03)
    await greenlet_spawn(connection.close)
    return b"pooled"


async def body(receive, send):
    count, more = 0, True
    while more:
        message = await receive()
        count, more = count + len(message["body"]), message["more_body"]
    return b"%d" % count


async def streams(receive, send):
    for _ in range(12):
        await asyncio.sleep(0.05)
        await send({"type": "http.response.body", "body": b"piece", "more_body": True})
    return b""


async def socket(receive, send):
    assert (await receive())["type"] == "websocket.connect"
    await send({"type": "websocket.accept"})
    while (message := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "text": message["text"]})


async def application(scope, receive, send):
    if scope["type"] == "websocket":
        return await socket(receive, send)
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": await globals()[scope["path"][1:]](receive, send)})


def tornado():
    from tornado.web import Application, RequestHandler

    class Handler(RequestHandler):
        async def get(self):
            self.write(await globals()[self.request.path[1:]](None, None))

    return Application([(".*", Handler)])


def aiohttp():
    from aiohttp import web

    async def handle(request):
        return web.Response(body=await globals()[request.path[1:]](None, None))

    application = web.Application()
    application.router.add_get("/{path:.*}", handle)
    return application
"""
CLASSES = ("sync", "gthread", "gevent", "eventlet", "asgi-asyncio", "asgi-uvloop", "tornado", "aiohttp")
WSGI_CLASSES = ("sync", "gthread", "gevent", "eventlet")
SAID = re.compile(r"blocked for|room in a pool|saturated for| has run for | took [\d.]+ s in worker")
STARVED = re.compile(r" STARVED: |waiting for CPU ([3-9]\d|100) %")
FAST = ("fast", "fast", "fast", "computes", "pooled")
SLOW = ("waits", "streams", "waits_long", "collects", "body")


def paths(worker_class: str, dice: random.Random) -> list[str]:
    """What a client asks for, one after another."""
    slow = ("waits",) if worker_class == "sync" else SLOW
    if worker_class in ("tornado", "aiohttp"):  # whose twins have no bodies and no streams
        slow = ("waits", "waits_long", "collects")
    return [dice.choice(FAST if dice.random() < 0.7 else slow) for _ in range(dice.randint(3, 30))]


def client(server: Site, worker_class: str, seed: int, over: threading.Event) -> int:
    """Asks until it is over; how many requests it has made."""
    dice, count = random.Random(seed), 0
    while not over.is_set():
        if worker_class.startswith("asgi") and dice.random() < 0.2:
            count += talk(server, dice, over)
            continue
        with server.connect() as wire:
            for path in paths(worker_class, dice):
                if over.is_set():
                    break
                if path == "body":
                    body = b"x" * dice.choice((10, 100_000, 2_000_000))
                    reply = wire.ask("POST", "/body", body=body)
                    assert reply.body == b"%d" % len(body)
                else:
                    reply = wire.get(f"/{path}")
                assert reply.status == 200, (path, reply)
                count += 1
                if reply.closes:  # a reload
                    break
                over.wait(dice.choice((0.001, 0.01, 0.05, 0.2)))
    return count


def talk(server: Site, dice: random.Random, over: threading.Event) -> int:
    count = dice.randint(1, 30)
    with Frames(server.address, "/socket") as wire:
        for number in range(count):
            wire.put(TEXT, b"%d" % number)
            frame = wire.frame()
            if frame.first != TEXT:  # a reload
                break
            over.wait(dice.choice((0.01, 0.1)))
    return count


TEXT = 0x81


@dataclass
class Tally:
    """What was said of healthy servers."""

    requests: int = 0
    seconds: float = 0.0
    """Of all servers together."""
    false: list[str] = field(default_factory=list)
    """Lines, each of which is wrong."""
    starved: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.requests += other.requests
        self.seconds += other.seconds
        self.false += other.false
        self.starved += other.starved


def config_of(worker_class: str, more: str = "") -> str:
    name, _, loop = worker_class.partition("-")
    return f"worker_class = {name!r}\nthreads = 6\nasgi_loop = {loop or 'asyncio'!r}\n{more}"


def app_of(worker_class: str) -> str:
    name = worker_class.partition("-")[0]
    application = {"tornado": "tornado()", "aiohttp": "aiohttp()"}.get(name, "application")
    return f"healthy_app:{application}"


def watch(worker_class: str, seed: int, seconds: float, *, clients: int = 3, more: str = "") -> Tally:
    """One server for so long; its load is that of the seed."""
    dice, over = random.Random(seed), threading.Event()
    source = WSGI if worker_class in WSGI_CLASSES else ASGI
    config, app = config_of(worker_class, more), app_of(worker_class)
    with (
        Site(config, app=app, files={"healthy_app.py": source}, fresh=True) as server,
        ThreadPoolExecutor(clients) as pool,
    ):
        begin = time.monotonic()  # a start may take most of a short watch
        asking: list[Future[int]] = [
            pool.submit(client, server, worker_class, dice.randrange(1 << 32), over) for _ in range(clients)
        ]
        try:
            while (left := begin + seconds - time.monotonic()) > 0 and not any(each.done() for each in asking):
                over.wait(min(left, dice.uniform(5, 40)))
                if time.monotonic() < begin + seconds and dice.random() < 0.3:
                    server.signal(signal.SIGHUP)
        finally:
            over.set()
        requests = sum(each.result() for each in asking)
        said = [line for line in server.log.text.splitlines() if SAID.search(line)]
    starved = [line for line in said if STARVED.search(line)]
    false = [line for line in said if line not in starved]
    return Tally(requests, time.monotonic() - begin, false, starved)
