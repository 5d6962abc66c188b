"""WSGI applications under the class `tornado`."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tornado import ioloop, web, wsgi

TICKS: list[int] = []
SEEN: contextvars.ContextVar[str] = contextvars.ContextVar("SEEN", default="nothing")


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    path, query = environ["PATH_INFO"], environ["QUERY_STRING"]
    if path == "/wrong":
        raise ZeroDivisionError("framework marker")
    if path == "/header":
        start_response("200 OK", [("X-Secret", "one\r\ntwo")])
        return []
    if path == "/steps":
        start_response("200 OK", [("Content-Type", "text/plain")])
        return steps(Path(query))
    if path == "/busy":
        while True:
            pass
    if path == "/seen":
        before = SEEN.get()
        SEEN.set("a request before")
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [f"{before} {asyncio.get_running_loop() is not None} {len(TICKS)}".encode()]
    body = environ["wsgi.input"].read()
    facts = f"{environ['REQUEST_METHOD']} {path} {query} {environ['wsgi.url_scheme']} {len(body)}"
    start_response("200 OK", [("Content-Type", "text/plain"), ("X-Thread", str(environ["wsgi.multithread"]))])
    return [facts.encode()]


def steps(directory: Path) -> Iterator[bytes]:
    """A piece, and the next one when the test has seen it: a file says so."""
    for number in range(3):
        yield b"%d" % number
        while not (directory / str(number)).exists():
            time.sleep(0.005)


def make_ticking() -> Callable[..., Iterable[bytes]]:
    ioloop.PeriodicCallback(lambda: TICKS.append(1), 10).start()
    return application


contained = wsgi.WSGIContainer(application)
threaded = wsgi.WSGIContainer(application, ThreadPoolExecutor(2))
beside = web.Application(
    [("/own", web.RedirectHandler, {"url": "/"}), (".*", web.FallbackHandler, {"fallback": contained})]
)
