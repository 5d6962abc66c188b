"""What the server is at, as JSON at the admin listener: true though no Python runs, and nothing of clients in it."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tricorn.control.client import Control

from tests.harness import Site, Wire, until
from tests.harness.core import serving
from tests.harness.server import free_port
from tests.harness.wire import request

FACTORY = """\
def make(password):
    def application(environ, start_response):
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]
    return application
"""

HELD = """\
import os, time

def application(environ, start_response):
    while not os.path.exists(environ["QUERY_STRING"]):
        time.sleep(0.01)
    start_response("200 OK", [("Content-Length", "2")])
    return [b"ok"]
"""


def fetch(port: int) -> Any:
    with Wire(("127.0.0.1", port)) as wire:
        reply = wire.get("/status")
    assert (reply.status, reply.get("Content-Type")) == (200, "application/json")
    return json.loads(reply.body)


def config(port: int, more: str = "") -> str:
    return f"admin_bind = '127.0.0.1:{port}'\nadmin_status = True\n{more}"


def serves(port: int, count: int) -> Any:
    def seen() -> Any:
        status = fetch(port)
        return status if status["status"]["workers"]["serving"] == count else None

    return until(seen, f"{count} serve")


@pytest.mark.parametrize("worker_class", ["sync", "gthread", "gevent", "asgi"])
def test_it_answers_while_every_python_is_stuck_and_the_arbiter_stands_still(worker_class: str, tmp_path: Path) -> None:
    port = free_port()
    more = f"worker_class = {worker_class!r}\ntimeout = 0\nproc_name = 'shop'\ncontrol_socket = '{tmp_path}/ctl'\n"
    with Site(config(port, more), app="stuck:application") as server, server.connect() as wire:
        told = serves(port, 1)
        with Control.connect(tmp_path / "ctl", timeout=60) as control:
            # The same names and facts.
            said = control.ask("status")
            (row,) = control.ask("workers")["workers"]
        status = told["status"]
        assert status.keys() == said.keys() - {"directory"}, "which is told to users of this machine alone"
        same = ("pid", "name", "class", "state", "ready", "generation", "workers", "listeners", "log_level")
        assert {name: status[name] for name in same} == {name: said[name] for name in same}
        (worker,) = told["workers"]
        assert {name: worker[name] for name in ("slot", "pid", "nr", "class", "state", "threads")} == {
            name: row[name] for name in ("slot", "pid", "nr", "class", "state", "threads")
        }
        os.kill(server.pid, signal.SIGSTOP)
        try:
            wire.send(request("GET", "/c?token=secret"))
            until(lambda: fetch(port)["workers"][0]["figures"]["running"] == 1, "it runs")
            (first,) = fetch(port)["workers"]
            for name in ("oldest_request", "age"):
                until(lambda name=name: fetch(port)["workers"][0][name] > first[name] >= 0, f"{name} grows")
            assert "secret" not in json.dumps(fetch(port))
        finally:
            os.kill(server.pid, signal.SIGCONT)
        os.kill(worker["pid"], signal.SIGKILL)
        until(lambda: [each["pid"] for each in serves(port, 1)["workers"]] != [worker["pid"]], "it is replaced")


def test_what_happens_to_workers_is_told() -> None:
    port = free_port()
    with Site(config(port, "workers = 2\n"), workers=2) as server:
        told = serves(port, 2)
        assert [worker["slot"] for worker in told["workers"]] == [1, 2]
        assert told["status"]["workers"]["target"] == 2
        server.signal(signal.SIGTTIN)
        serves(port, 3)
        server.signal(signal.SIGHUP)
        until(lambda: fetch(port)["status"]["generation"] == 2, "the next generation")


def test_a_server_that_stops_says_so(tmp_path: Path) -> None:
    port, gate = free_port(), tmp_path / "gate"
    with Site(config(port, "graceful_timeout = 60\n"), app="held:application", files={"held.py": HELD}) as server:
        before = serves(port, 1)["status"]["listeners"]
        with server.connect() as wire:
            wire.send(request("GET", f"/?{gate}", [("Connection", "close")]))
            until(lambda: fetch(port)["workers"][0]["figures"]["running"] == 1, "it runs")
            server.signal(signal.SIGTERM)
            until(lambda: fetch(port)["status"]["state"] == "stopping", "it stops")
            assert fetch(port)["status"]["listeners"] == before
            gate.touch()
            assert wire.reply().status == 200
        assert server.wait_exit() == 0


def test_arguments_of_a_factory_and_reasons_are_not_told() -> None:
    port = free_port()
    app = "shop:make('geheim')"
    with Site(config(port), app=app, files={"shop.py": FACTORY}):
        told = serves(port, 1)
        assert told["status"]["app"] == "shop:make"
        assert "geheim" not in json.dumps(told)
        assert "note" not in told["workers"][0]


def hello(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [])
    return [b"hello"]


def test_it_is_told_only_where_it_is_asked_for_and_nothing_can_be_changed() -> None:
    with serving(hello, admin=True) as core, Wire(core.admin) as wire:
        assert wire.get("/status").status == 404
    with serving(hello, admin=True, admin_status=True) as core:
        with Wire(core.admin) as wire:
            # No arbiter has said anything here.
            assert json.loads(wire.get("/status").body)["workers"] == []
        with Wire(core.admin) as wire:
            assert wire.ask("POST", "/status").status == 405
    with serving(hello, admin=True, admin_status=True, admin_allow="192.0.2.1") as core, Wire(core.admin) as wire:
        assert wire.get("/status").status == 403
