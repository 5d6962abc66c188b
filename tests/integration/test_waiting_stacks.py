"""Where greenlets and tasks are that wait, as `ctl stacks` tells it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tricorn.control.client import Control
from tricorn.workers import watch

from tests.harness import Site, each, until
from tests.harness.classes import GREEN, configured
from tests.harness.wire import request

pytestmark = pytest.mark.skipif(watch.WAITING_SIGNAL is None, reason="no memfd here")

WAITING = pytest.mark.parametrize("worker_class", each(*GREEN, "asgi", "tornado", "aiohttp"))


HANDLERS = """\
import asyncio
from tornado import web

class Sleep(web.RequestHandler):
    async def get(self):
        await asyncio.sleep(60)

application = web.Application([("/sleep", Sleep)])
"""


@contextmanager
def asked(worker_class: str, directory: Path, more: str = "", app: str = "gallery:application") -> Iterator[Any]:
    config = f"{configured(worker_class)}control_socket = '{directory}/ctl'\n{more}"
    if worker_class == "tornado":
        app = "handlers:application"
    with (
        Site(config, app=app, files={"handlers.py": HANDLERS}) as server,
        Control.connect(directory / "ctl", timeout=60) as control,
    ):
        until(lambda: control.ask("status")["workers"]["serving"] == 1, "it serves")
        yield server, control


def of_requests(control: Control) -> list[dict[str, Any]]:
    (worker,) = control.ask("stacks")["workers"]
    assert worker["note"] is None
    return [
        each for each in worker["waiting"] if any(line.endswith((" in sleep", " in get")) for line in each["stack"])
    ]


@WAITING
def test_each_that_waits_is_told_by_the_name_of_its_request(worker_class: str, tmp_path: Path) -> None:
    with asked(worker_class, tmp_path) as (server, control), server.connect() as one, server.connect() as other:
        one.send(request("GET", "/sleep?s=60"))
        other.send(request("GET", "/sleep?s=61"))
        until(lambda: control.ask("requests")["count"] == 2, "they run")
        rows = {(row["place"], row["start"]): row["text"] for row in control.ask("requests")["requests"]}
        found = until(lambda: seen if len(seen := of_requests(control)) == 2 else None, "both are told")
        assert {(each["place"], each["start"]): each["text"] for each in found} == rows
        for each in found:
            assert each["of"] == ("greenlet" if worker_class in GREEN else "task")
            assert "sleep" in " ".join(each["stack"])
            assert not any("tricorn/workers" in line for line in each["stack"])
        text = control.ask("stacks")
        assert len(text["workers"][0]["requests"]) == 2


def test_two_that_look_alike_are_told_apart_where_greenlets_are_noted(tmp_path: Path) -> None:
    with (
        asked("gevent", tmp_path, "request_timeout = 600\n") as (server, control),
        server.connect() as one,
        server.connect() as other,
    ):
        for wire in (one, other):
            wire.send(request("GET", "/sleep?s=60"))
        until(lambda: control.ask("requests")["count"] == 2, "they run")
        rows = {(row["place"], row["start"]) for row in control.ask("requests")["requests"]}
        until(lambda: {(each["place"], each["start"]) for each in of_requests(control)} == rows, "both are told")


@pytest.mark.parametrize("worker_class", ["gevent", "asgi"])
def test_python_that_does_not_come_leaves_the_main_thread(worker_class: str, tmp_path: Path) -> None:
    with (
        asked(worker_class, tmp_path, "timeout = 0\n", app="stuck:application") as (server, control),
        server.connect() as wire,
    ):
        wire.send(request("GET", "/c"))
        until(lambda: control.ask("requests")["count"] == 1, "it runs")
        (worker,) = control.ask("stacks")["workers"]
        assert worker["waiting"] is None
        assert "has not run within 300 ms" in worker["note"]
        assert any("stuck.py" in line for thread in worker["threads"] for line in thread["stack"])
        os.kill(server.worker_pids()[0], signal.SIGKILL)
