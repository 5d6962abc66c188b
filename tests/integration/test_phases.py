"""What a request is at, as `ctl requests` tells it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tricorn.control.client import Control

from tests.harness import Site, until
from tests.harness.classes import ALL_CLASSES, configured
from tests.harness.frames import Frames
from tests.harness.wire import request

SOCKETS = """\
async def application(scope, receive, send):
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await receive()
"""


@contextmanager
def asked(worker_class: str, directory: Path, app: str = "gallery:application", **files: str) -> Iterator[Any]:
    # Without buffering a request is with the application before its body is there.
    config = f"{configured(worker_class)}control_socket = '{directory}/ctl'\nrequest_buffering = False\n"
    with (
        Site(config, app=app, files={f"{name}.py": text for name, text in files.items()}) as server,
        Control.connect(directory / "ctl", timeout=60) as control,
    ):

        def phases() -> list[str]:
            return [row["phase"] for row in control.ask("requests")["requests"]]

        yield server, phases


@ALL_CLASSES
def test_a_call_a_response_that_is_sent_and_a_body_that_is_waited_for(worker_class: str, tmp_path: Path) -> None:
    with asked(worker_class, tmp_path) as (server, phases):
        for target, phase in (("/sleep?s=1", "call"), ("/stream?count=2&pause=1", "sending")):
            with server.connect() as wire:
                wire.send(request("GET", target))
                until(lambda phase=phase: phases() == [phase], f"{target} is at {phase}")
                assert wire.reply().status == 200
                until(lambda: phases() == [], f"{target} has ended")
        with server.connect() as wire:
            wire.send(request("POST", "/body?how=read_n", (("Content-Length", "4"),)), b"ab")
            until(lambda: phases() == ["body"], "the rest of the body is waited for")
            wire.send(b"cd")
            assert wire.reply().status == 200
        until(lambda: phases() == [], "it has ended")


def test_phases_of_a_websocket(tmp_path: Path) -> None:
    with asked("asgi", tmp_path, app="chatty:application", chatty=SOCKETS) as (server, phases):
        with Frames(server.address, "/chat"):
            until(lambda: phases() == ["websocket"], "it is open")
        until(lambda: phases() == [], "it has ended")


def test_a_socket_that_the_application_has_taken(tmp_path: Path) -> None:
    app = """\
def application(environ, start_response):
    environ["gunicorn.socket"].recv(1)
    raise StopIteration
"""
    with asked("gthread", tmp_path, app="taker:application", taker=app) as (server, phases):
        with server.connect() as wire:
            wire.send(request("GET", "/"))
            until(lambda: phases() == ["upgraded"], "it has the socket")
        until(lambda: phases() == [], "it has ended")
