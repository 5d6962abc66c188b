"""A panic in the core is a defect of ours, and costs one request: its connection closes, and all else goes on."""

from __future__ import annotations

import signal
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.harness import Server, Wire, each, until
from tests.harness.wire import Silent, request

pytestmark = pytest.mark.beyond_reference("it has no native core")

APPLICATIONS = {
    "sync": "counted:application",
    "gthread": "counted:application",
    "gevent": "counted:application",
    "eventlet": "counted:application",
    "asgi": "counted:application",
    "tornado": "gallery:application",
    "aiohttp": "gallery:application",
}
ALL = pytest.mark.parametrize("worker_class", each(*APPLICATIONS))

FAULT = """
from tricorn.workers import core_options

original = core_options.core_options
core_options.core_options = lambda *args, **keywords: original(*args, **keywords) | {"fault_point": FAULT}
"""
EXPECTED = r"panicked at .*(engine|monitor)/|Exception in worker process|(asked for it|core broke) \(this is a defect"
"""What the log may tell: the panics that were asked for, and the end of a worker whose monitor has panicked."""

NEVER = 60
"""Seconds of grace that no test waits for."""


def faulty(tmp_path: Path, worker_class: str, fault: str, **options: Any) -> Server:
    config = tmp_path / "conf.py"
    config.write_text(FAULT.replace("FAULT", repr(fault)))
    env = {"LEDGER": str(tmp_path / "ledger"), "RUST_BACKTRACE": "1"}
    app = APPLICATIONS[worker_class]
    options |= {"config": config, "graceful_timeout": NEVER, "expects": EXPECTED}
    return Server(app, worker_class=worker_class, env=env, **options)


def lose(server: Server, count: int, target: str) -> None:
    """So many requests that panic: each is answered with 500, or not at all."""
    for _ in range(count):
        with server.connect() as wire, suppress(Silent):
            assert wire.get(target).status == 500
            assert wire.ended() == b""


def leave_at_once(server: Server) -> None:
    server.signal(signal.SIGTERM)
    assert server.wait_exit(within=NEVER / 4) == 0


@ALL
def test_a_panic_costs_its_request_and_nothing_else(worker_class: str, tmp_path: Path) -> None:
    with faulty(tmp_path, worker_class, "panics:5") as server:
        worker = server.worker_pid()
        lose(server, 5, "/hello")
        with server.connect() as wire:
            for _ in range(2):
                assert wire.get("/hello").status == 200
        server.log.wait(r"panicked at .*\.rs:\d+")
        assert server.worker_pid() == worker
        leave_at_once(server)


@pytest.mark.parametrize("worker_class", each("gthread", "gevent", "asgi"))
def test_no_memory_for_an_object_is_told_as_that(worker_class: str, tmp_path: Path) -> None:
    """pyo3 panics then. It costs the request, and is no defect."""
    with faulty(tmp_path, worker_class, "no_object:2") as server:
        lose(server, 2, "/hello")
        server.log.wait("Python could not allocate an object: .* is out of memory, at .*\\.rs:", count=2)
        assert server.get("/hello").status == 200
        assert not server.log.matching("panicked|defect"), server.log.text
        leave_at_once(server)


PLACES = 20


@pytest.mark.parametrize("worker_class", each("gthread", "gevent", "eventlet", "asgi"))
def test_every_place_of_a_lost_request_is_free_again(worker_class: str, tmp_path: Path) -> None:
    """After twice as many panics as there are places, all of them are there for requests that wait side by side."""
    options: dict[str, Any] = {"threads": 4} if worker_class == "gthread" else {"worker_connections": PLACES}
    places = options.get("threads", PLACES)
    gate = tmp_path / "gate"
    lost = 2 * places
    with faulty(tmp_path, worker_class, f"panics:{lost}", **options) as server:
        lose(server, lost, "/?id=lost")
        wires = [server.connect() for _ in range(places)]
        for wire in wires:
            wire.send(request("GET", f"/?id=waits&gate={gate}"))
        ledger = tmp_path / "ledger"
        until(lambda: ledger.read_text().count("waits ") == places, "all of them are in the application")
        gate.touch()
        for wire in wires:
            assert wire.reply().status == 200
            wire.close()
        leave_at_once(server)


@pytest.mark.parametrize("worker_class", each("sync", "gthread", "gevent", "asgi"))
def test_a_worker_whose_monitor_panics_says_so_and_is_replaced(worker_class: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with faulty(tmp_path, worker_class, "monitor_panics") as server:
        worker = server.worker_pid()
        with Wire(server.address) as wire:
            wire.send(request("GET", f"/?gate={gate}"))
            server.log.wait(r"panicked at .*monitor/")
            gate.touch()
            wire.ended()
        server.log.wait("RuntimeError: the core broke")
        server.log.wait(r"Booting worker with pid", count=2)
        until(lambda: worker not in server.worker_pids(), "the worker is gone")


NO_THREAD = """
from pathlib import Path
from tricorn.workers.gthread import ThreadWorker

class Broken:
    def __init__(self, core):
        self.core = core

    def __getattr__(self, name):
        return getattr(self.core, name)

    def serve(self, gateway):
        raise MemoryError

serve = ThreadWorker._work

def work(self, core, gateway):
    serve(self, core if self.is_whole else Broken(core), gateway)

first = Path(FIRST)

def post_worker_init(worker):
    worker.is_whole = first.exists()
    first.touch()

ThreadWorker._work = work
"""


@pytest.mark.parametrize("threads", [1, 3])
def test_a_worker_whose_threads_all_end_is_replaced(threads: int, tmp_path: Path) -> None:
    """A client that has connected meanwhile is not left waiting."""
    config = tmp_path / "conf.py"
    config.write_text(NO_THREAD.replace("FIRST", repr(str(tmp_path / "first"))))
    options = {"threads": threads, "config": config, "graceful_timeout": NEVER, "expects": EXPECTED}
    with Server(
        "counted:application", worker_class="gthread", env={"LEDGER": str(tmp_path / "l")}, **options
    ) as server:
        server.log.wait("MemoryError", count=threads)
        with server.connect() as wire:
            assert wire.get("/hello").status == 200
        leave_at_once(server)
