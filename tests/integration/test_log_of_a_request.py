"""What the log has of one request, in JSON: lines of both logs can be ordered, and joined by `request_id`."""

from __future__ import annotations

import json
import re
import signal
from datetime import datetime
from typing import Any

import pytest

from tests.harness import Site, until
from tests.harness.classes import EVERY, each
from tests.harness.frames import Frames

pytestmark = pytest.mark.beyond_reference("it has neither JSON nor ids of requests")

WSGI = """\
import logging

logging.getLogger().addHandler(logging.StreamHandler())


def application(environ, start_response):
    if environ["PATH_INFO"] == "/fails":
        raise ValueError("of the application")
    logging.getLogger("gunicorn.error").warning("by the server's logger %s", environ["PATH_INFO"])
    environ["wsgi.errors"].write(f"by wsgi.errors {environ['PATH_INFO']}\\n")
    start_response("200 OK", [("Content-Length", "2")])
    yield b"ok"
    logging.getLogger("gunicorn.error").warning("after the response %s", environ["PATH_INFO"])
"""

ASGI = """\
import asyncio
import logging


async def application(scope, receive, send):
    if scope["type"] == "lifespan":
        return
    log, path = logging.getLogger("gunicorn.error"), scope["path"]
    if path.startswith("/waits"):
        await asyncio.sleep(0)
    if path.endswith("fails"):
        raise ValueError("of the application")
    log.warning("by the server's logger %s", path)
    if scope["type"] == "websocket":
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close"})
        return
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})
    await asyncio.sleep(0)
    log.warning("after the response %s", path)
    if path.endswith("late"):
        raise ValueError("after the response")
"""


def site(worker_class: str, **more: str) -> Site:
    source = ASGI if worker_class == "asgi" else WSGI
    return Site(
        f"worker_class = {worker_class!r}\nlog_format = 'json'\nrequest_id = True\naccesslog = '-'\n",
        app="app:application",
        files={"app.py": source},
        **more,
    )


def lines(server: Site) -> list[dict[str, Any]]:
    """Those of both logs."""
    whole = (line for text in (server.log.text, server.out.text) for line in text.splitlines() if line.endswith("}"))
    return [json.loads(line) for line in whole if line.startswith("{")]


def having(server: Site, request_id: str, count: int) -> list[dict[str, Any]]:
    def found() -> list[dict[str, Any]] | None:
        some = [line for line in lines(server) if line.get("request_id") == request_id]
        return some if len(some) >= count else None

    return until(found, f"{count} lines with the id {request_id}")


@pytest.mark.parametrize("worker_class", each(*EVERY))
def test_every_line_of_a_request_has_its_id(worker_class: str) -> None:
    expected = {"/": 3, "/fails": 2}
    expected |= {"/waits": 3, "/waits/fails": 2, "/late": 4} if worker_class == "asgi" else {"/wsgi": 4}
    with site(worker_class) as server:
        expected["/"] += worker_class != "asgi"  # wsgi.errors
        for number, (path, count) in enumerate(expected.items()):
            assert server.get(path, ("X-Request-ID", f"id-{number}")).get("X-Request-ID") == f"id-{number}"
            found = having(server, f"id-{number}", count)
            assert len(found) == count, found
            assert sum(line["logger"] == "gunicorn.access" for line in found) == 1
            if "fails" in path:
                (failed,) = (line for line in found if line["level"] == "ERROR")
                assert failed["message"] == f"Error handling request GET {path}"
                assert "ValueError: of the application" in failed["exception"]
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        outside = [line for line in lines(server) if line["message" if "message" in line else "path"] in OUTSIDE]
        assert outside
        assert not any("request_id" in line for line in outside), "what no request has to do with has none"


OUTSIDE = ("Handling signal: term", "Shutting down: Master")


def test_a_websocket_has_a_log_of_its_request() -> None:
    with site("asgi") as server, Frames(server.address, "/waits/ws", ("X-Request-ID", "of-the-socket")) as socket:
        socket.frame()
        (line,) = (each for each in having(server, "of-the-socket", 1) if "message" in each)
        assert line["message"] == "by the server's logger /waits/ws"


def test_a_worker_that_leaves_after_a_request_says_so_for_itself() -> None:
    """Under `sync` a call has the context of its thread: the id is taken back when the call has ended."""
    with site("sync") as server:
        server.get("/fails", ("X-Request-ID", "the-last"))
        having(server, "the-last", 2)
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        (exiting,) = (line for line in lines(server) if line.get("message", "").startswith("Worker exiting"))
        assert "request_id" not in exiting


def test_lines_of_both_logs_have_the_same_members_for_what_both_know() -> None:
    with site("gthread") as server:
        server.get("/", ("X-Request-ID", "one"))
        found = having(server, "one", 4)
    for line in found:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", line["time"]), line
        assert line["level"] in ("INFO", "WARNING", "ERROR")
        assert isinstance(line["pid"], int)
    assert {line["logger"] for line in found} == {"gunicorn.access", "gunicorn.error", "wsgi.errors"}
    began = next(datetime.fromisoformat(line["time"]) for line in found if line["logger"] == "gunicorn.access")
    said = [datetime.fromisoformat(line["time"]) for line in found if line["logger"] != "gunicorn.access"]
    assert all(abs((each - began).total_seconds()) < 30 for each in said)
    assert min(said) >= began, "the access line has the time at which the request began"
