"""`warmup`: paths that the application answers once before its workers serve, in the mold or in each worker."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from tests.harness import CLASSES, EVENT_LOOPS, NO_BOOT, Site, configured, until
from tests.harness.molds import Molded
from tests.harness.scrape import scrape, value
from tests.harness.server import free_port

WSGI = """\
import json, os, time

SEEN = []


def application(environ, start_response):
    SEEN.append([os.getpid(), environ["wsgi.url_scheme"], environ["HTTP_HOST"], environ["PATH_INFO"],
                 environ["QUERY_STRING"], environ["REMOTE_ADDR"], environ.get("HTTP_USER_AGENT")])
    if environ["PATH_INFO"] == "/fails":
        raise RuntimeError("marker of a failure")
    time.sleep(0.001)
    body = json.dumps(SEEN).encode()
    status = "503 Service Unavailable" if environ["PATH_INFO"] == "/overloaded" else "200 OK"
    start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    return [body]
"""

ASGI = """\
import asyncio, json, os

SEEN, LIFE = [], []


async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        LIFE.append("up")
        scope["state"]["mark"] = "of the lifespan"
        await send({"type": "lifespan.startup.complete"})
        await receive()
        LIFE.append("down")
        await send({"type": "lifespan.shutdown.complete"})
        return
    assert scope["state"] == {"mark": "of the lifespan"}
    headers = dict(scope["headers"])
    SEEN.append([os.getpid(), scope["scheme"], headers[b"host"].decode(), scope["path"],
                 scope["query_string"].decode(), scope["client"][0], headers.get(b"user-agent", b"").decode()])
    assert await receive() == {"type": "http.request", "body": b"", "more_body": False}
    if scope["path"] == "/fails":
        raise RuntimeError("marker of a failure")
    await asyncio.sleep(0.001)
    await asyncio.to_thread(int)
    body = json.dumps(LIFE if scope["path"] == "/life" else SEEN).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    status = 503 if scope["path"] == "/overloaded" else 200
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
"""

TARGETS = ["/", "/a%20path?x=1", "https://shop.example:8443/login"]

EXPECTED = [
    ["http", "localhost", "/", "", "127.0.0.1"],
    ["http", "localhost", "/a path", "x=1", "127.0.0.1"],
    ["https", "shop.example:8443", "/login", "", "127.0.0.1"],
]


def site(kind: type[Site], worker_class: str, targets: Sequence[str], more: str = "", **options: Any) -> Site:
    files = {"mine.py": ASGI if worker_class in EVENT_LOOPS else WSGI}
    config = f"{configured(worker_class)}warmup = {list(targets)!r}\naccesslog = '-'\nloglevel = 'debug'\n{more}"
    return kind(config, app="mine:application", files=files, **options)


@CLASSES
def test_each_worker_has_the_application_answer_before_it_serves(worker_class: str) -> None:
    with site(Site, worker_class, TARGETS) as server:
        seen = server.get("/seen").json()
        assert [each[1:6] for each in seen[:-1]] == EXPECTED
        assert {each[0] for each in seen} == {server.worker_pid()}
        assert all(re.fullmatch(r"tricorn/\S+ \(warmup\)", each[6]) for each in seen[:-1])
        server.log.wait(r"Warm-up: https://shop\.example:8443/login answered 200 in \d")
        server.log.wait("GET /seen")  # the access log
        assert "/login HTTP" not in server.log.text


@CLASSES
def test_a_mold_has_the_application_answer_and_workers_share_what_that_filled(worker_class: str) -> None:
    with site(Molded, worker_class, TARGETS) as server:
        for _ in range(2):
            mold = server.mold_pid()
            seen = server.get("/seen").json()
            assert [each[1:6] for each in seen[:3]] == EXPECTED
            assert [each[0] for each in seen[:3]] == [mold] * 3
            assert [each[0] for each in seen[3:]] == [server.worker_pid()]
            server.hup_molded(1)
            assert server.mold_pid() != mold


def test_an_asgi_application_is_shut_down_in_the_mold_and_starts_up_in_the_worker() -> None:
    with site(Molded, "asgi", ["/"]) as server:
        assert server.get("/life").json() == ["up", "down", "up"]


@pytest.mark.parametrize("kind", [Site, Molded])
@pytest.mark.parametrize("text", [WSGI, ASGI], ids=["wsgi", "asgi"])
def test_a_class_that_the_application_decides_answers(kind: type[Site], text: str) -> None:
    with kind(f"warmup = {TARGETS!r}\n", app="mine:application", files={"mine.py": text}) as server:
        seen = server.get("/seen").json()
        assert [each[1:6] for each in seen[:-1]] == EXPECTED
        by = server.mold_pid() if isinstance(server, Molded) else server.worker_pid()
        assert {each[0] for each in seen[:-1]} == {by}


@pytest.mark.parametrize("event_loop", ["asyncio", "uvloop"])
def test_a_worker_of_a_mold_that_has_run_a_loop_serves(event_loop: str) -> None:
    files = {"mine.py": ASGI}
    config = f"worker_class = 'asgi'\nwarmup = ['/']\nasgi_loop = {event_loop!r}\nworkers = 2\n"
    with Molded(config, app="mine:application", files=files, workers=2) as server:
        assert {server.get("/").status for _ in range(8)} == {200}


KINDS_OF_SITES = pytest.mark.parametrize("kind", [Site, Molded])


@KINDS_OF_SITES
@CLASSES
def test_what_fails_is_a_warning_and_the_server_serves(kind: type[Site], worker_class: str) -> None:
    targets = ["/fails", "/overloaded", "/"]
    with site(kind, worker_class, targets) as server:
        assert server.get("/seen").status == 200
        server.log.wait("Warm-up: /fails failed: RuntimeError: marker of a failure")
        server.log.wait(r'  File ".*mine\.py", line \d+, in application')
        server.log.wait("Warm-up: /overloaded answered 503")
        assert "Warm-up: / answered 200" in server.log.text


@KINDS_OF_SITES
@pytest.mark.parametrize("worker_class", ["sync", "asgi"])
def test_an_application_that_does_not_answer_is_a_warning(kind: type[Site], worker_class: str) -> None:
    text = (
        "async def application(scope, receive, send): ..."
        if worker_class == "asgi"
        else ("def application(environ, start_response): return []")
    )
    config = f"worker_class = {worker_class!r}\nwarmup = ['/x']\n"
    with kind(config, app="mine:application", files={"mine.py": text}, wait=False) as server:
        server.log.wait("Warm-up: /x failed: The application did not start a response")
        server.log.wait("Ready: ")


LIFESPAN = """\
import os

MOLD = os.getpid()


async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        await receive()
        if os.getpid() == MOLD:
            await send({"type": "lifespan.startup.failed", "message": "marker of a lifespan"})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body"})
"""


def test_a_lifespan_that_fails_in_the_mold_alone_is_a_warning() -> None:
    config = "worker_class = 'asgi'\nwarmup = ['/']\n"
    with Molded(config, app="mine:application", files={"mine.py": LIFESPAN}) as server:
        server.log.wait("Warm-up: the application cannot be started up in the mold: .*: marker of a lifespan")
        assert server.get("/").status == 200


OPENING = """\
import socket

listener = socket.create_server(("127.0.0.1", 0))
ADDRESS = listener.getsockname()
OPENED = []


def application(environ, start_response):
    OPENED.append(socket.create_connection(ADDRESS))
    start_response("200 OK", [])
    return []
"""

CLOSING = """\
def mold_ready(server, mold):
    import mine

    mine.listener.close()
    for connection in mine.OPENED:
        connection.close()
"""


def test_what_it_has_opened_in_the_mold_is_to_be_closed_in_mold_ready() -> None:
    files = {"mine.py": OPENING}
    config = "warmup = ['/']\n"
    with Molded(config + CLOSING, app="mine:application", files=files) as server:
        server.steady(1)
    with Molded(config, app="mine:application", files=files, wait=False, expects=NO_BOOT) as server:
        assert server.wait_exit() == 3
        server.log.join()
        assert server.log.matching(r"it has .*a connection to 127\.0\.0\.1:\d+")


def test_workers_warn_once_of_what_fails_alike() -> None:
    with site(Site, "sync", ["/fails"], more="workers = 4\n", workers=4) as server:
        server.log.wait("Ready: ")
        assert len(server.log.matching("Warm-up: /fails failed")) == 1


@KINDS_OF_SITES
@pytest.mark.parametrize("worker_class", ["sync", "asgi"])
def test_a_process_in_which_it_takes_too_long_is_killed_by_boot_timeout(kind: type[Site], worker_class: str) -> None:
    text = {
        "sync": "import threading\ndef application(environ, start_response): threading.Event().wait()",
        "asgi": "import asyncio\nasync def application(scope, receive, send):\n"
        "    if scope['type'] == 'http': await asyncio.Event().wait()",
    }[worker_class]
    config = f"worker_class = {worker_class!r}\nwarmup = ['/endless']\nboot_timeout = 1\n"
    with kind(config, app="mine:application", files={"mine.py": text}, wait=False, expects="boot_timeout") as server:
        assert server.wait_exit() == 3
        assert "boot_timeout" in server.log.text


def test_metrics_do_not_count_it_as_a_request() -> None:
    port = free_port()
    with Site(f"admin_bind = '127.0.0.1:{port}'\nwarmup = ['/a', '/b']\n") as server:
        server.log.wait("Ready: ")
        assert server.get("/hello").status == 200
        samples = until(lambda: now if value(now := scrape(("127.0.0.1", port)), "requests_total") else None, "a count")
        assert value(samples, "requests_total") == 1


WSGI_SHAPES = """\
import json

SHAPES = []


def application(environ, start_response):
    SHAPES.append({key: type(value).__name__ for key, value in environ.items()})
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps(SHAPES).encode()]
"""

ASGI_SHAPES = """\
import json

SHAPES = []


async def application(scope, receive, send):
    assert scope["type"] == "http"
    SHAPES.append({key: type(value).__name__ for key, value in scope.items()})
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": json.dumps(SHAPES).encode()})
"""

OF_CONNECTIONS = {"gunicorn.socket"}
OF_THE_CORE = {"wsgi.input", "wsgi.early_hints"}
"""Objects of the core's own classes."""


@pytest.mark.parametrize(("worker_class", "text"), [("sync", WSGI_SHAPES), ("asgi", ASGI_SHAPES)])
def test_the_application_gets_what_it_gets_with_a_connection(worker_class: str, text: str) -> None:
    config = f"worker_class = {worker_class!r}\nwarmup = ['/a?b=c']\n"
    with Site(config, app="mine:application", files={"mine.py": text}) as server:
        warm, real = server.get("/a?b=c", ("User-Agent", "test"), ("Accept", "*/*")).json()
        assert real.keys() - warm.keys() <= OF_CONNECTIONS
        assert warm.keys() <= real.keys()
        assert {key for key in warm if warm[key] != real[key]} <= OF_THE_CORE


@KINDS_OF_SITES
@pytest.mark.parametrize("worker_class", ["tornado", "aiohttp"])
def test_classes_of_other_interfaces_say_that_it_has_no_effect(kind: type[Site], worker_class: str) -> None:
    pytest.importorskip(worker_class)
    with kind(f"{configured(worker_class)}warmup = ['/']\n") as server:
        server.log.wait(rf"warmup \(from .*\) has no effect with {worker_class}: ")
        assert server.get("/hello").status == 200


def test_a_wsgi_application_on_tornados_loop_answers() -> None:
    pytest.importorskip("tornado")
    with site(Site, "tornado", TARGETS) as server:
        assert [each[1:6] for each in server.get("/").json()[:-1]] == EXPECTED
