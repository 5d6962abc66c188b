"""Workers of tricorn: what waits for requests is idle, and a request that hangs is told with its line."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import pytest

from tests.harness import until
from tests.harness.classes import each
from tests.harness.site import Site
from tests.integration.doctor.patient import doctor

# Opening a FIFO waits for its writer, and is nothing that a library of greenlets patches.
HANGING = """
import os
from pathlib import Path

GATE = str(Path(__file__).with_name("gate"))

def hang():
    os.close(os.open(GATE, os.O_RDONLY))

def application(environ, start_response):
    if environ["PATH_INFO"] == "/hang":
        hang()
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]

async def asgi(scope, receive, send):
    if scope["type"] == "http" and scope["path"] == "/hang":
        hang()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})
"""

CLASSES = each("sync", "gthread", "gevent", "eventlet", "asgi")


@pytest.mark.parametrize("worker_class", CLASSES)
def test_a_worker_that_waits_and_one_that_hangs(worker_class: str) -> None:
    name = "asgi" if worker_class == "asgi" else "application"
    config = f"workers = 1\nthreads = 2\nworker_class = {worker_class!r}\ntimeout = 0\nwsgi_app = 'hanging:{name}'"
    if worker_class == "sync":
        config = config.replace("threads = 2\n", "")
    with Site(config, app="", files={"hanging.py": HANGING}) as server:
        os.mkfifo(gate := server.directory / "gate")
        (pid,) = server.worker_pids()
        # One look may come upon a thread between two waits.
        until(lambda: {thread["verdict"] for thread in look(pid)} == {"IDLE"}, "all is idle")
        with server.connect() as client:
            client.send(b"GET /hang HTTP/1.1\r\nHost: a\r\n\r\n")
            (hanging,) = until(lambda: [each for each in look(pid) if each["verdict"] == "BLOCKED_SYSCALL"], "it hangs")
            assert hanging["application"]["file"].endswith("/hanging.py")
            assert hanging["application"]["function"] == "hang"
            assert (hanging["call"]["name"], hanging["call"]["detail"]) == ("openat", f"of {gate}")
            os.close(os.open(gate, os.O_WRONLY))
            assert client.reply().status == 200


def look(pid: int) -> list[Mapping[str, Any]]:
    """The threads of Python; those of the core are its own affair."""
    done = doctor("--pid", str(pid), "--json")
    assert done.returncode == 0, done.stderr
    return [thread for thread in json.loads(done.stdout)["threads"] if thread["verdict"] != "NATIVE"]
