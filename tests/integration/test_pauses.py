"""A server that is stopped as a whole and goes on later: SIGSTOP, `docker pause`, the freezer, a virtual machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable

import pytest

from tests.harness import KINDS, Server, Site, elapse, proc, until
from tests.harness.wire import request

pytestmark = pytest.mark.beyond_reference("its workers are killed after a pause")

TIMEOUT = 2
PAUSE = 2 * TIMEOUT


def pause(pids: Iterable[int], seconds: float = PAUSE) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    for pid in pids:
        until(lambda pid=pid: proc.is_stopped(pid), "it is stopped")
    elapse(seconds)


def go_on(pids: Iterable[int]) -> None:
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


@KINDS
@pytest.mark.parametrize("first", ["arbiter", "worker"])
def test_a_healthy_worker_survives_a_pause_of_all(worker_class: str, first: str) -> None:
    """Either may go on first: the arbiter finds old heartbeats, the monitor a call from long ago."""
    with (
        Server("stuck:application", worker_class=worker_class, timeout=TIMEOUT) as server,
        server.connect() as wire,
    ):
        worker = server.worker_pid()
        assert server.get("/pid").status == 200
        # It is under way all the time, and still is for a moment when the server goes on.
        wire.send(request("GET", f"/short?s={PAUSE + 0.75 * TIMEOUT}"))
        elapse(0.3)  # the call is under way, and nothing else
        pause([server.pid, worker])
        go_on([server.pid, worker] if first == "arbiter" else [worker, server.pid])
        assert wire.reply().status == 200
        elapse(1.5 * TIMEOUT)  # the arbiter has looked at the worker
        assert server.worker_pids() == [worker]
        assert not server.log.matching("TIMEOUT"), server.log.text


@KINDS
def test_a_request_that_came_in_a_pause_is_served_though_its_connection_seemed_idle(worker_class: str) -> None:
    """The deadline of an idle connection passes while what has come cannot be read."""
    with Server("stuck:application", worker_class=worker_class, keep_alive=1) as server, server.connect() as wire:
        assert wire.get("/pid").status == 200
        worker = server.worker_pid()
        os.kill(worker, signal.SIGSTOP)
        until(lambda: proc.is_stopped(worker), "it is stopped")
        wire.send(request("GET", "/pid"))
        elapse(1.5)  # its time as an idle connection is over
        go_on([worker])
        assert wire.reply().status == 200


def test_a_worker_that_stays_stopped_is_replaced() -> None:
    with (
        Server("stuck:application", timeout=TIMEOUT) as server,
        server.connect() as wire,
    ):
        worker = server.worker_pid()
        wire.send(request("GET", "/short?s=20&tell=1"))
        server.out.wait("begun")
        pause([server.pid, worker])
        go_on([server.pid])
        server.log.wait(rf"WORKER TIMEOUT \(pid:{worker}\)")
        server.log.wait("no sign of life")
        until(lambda: worker not in server.worker_pids(), "it is replaced")


SLOW_BOOT = f"""\
import time
print("begun", flush=True)
until = time.monotonic() + {PAUSE} + 1
while time.monotonic() < until:
    time.sleep(0.01)
from gallery import application
"""


def test_a_boot_is_not_overdue_after_a_pause() -> None:
    """It would have ended the first start."""
    config = "boot_timeout = 3\n"
    with Site(config, app="slow:application", files={"slow.py": SLOW_BOOT}, wait=False) as server:
        server.out.wait("begun")
        (worker,) = until(server.worker_pids, "a worker boots")
        pause([server.pid, worker])
        go_on([server.pid, worker])
        until(lambda: serves(server), "it serves")
        assert server.worker_pids() == [worker]


def test_requests_have_their_graceful_timeout_after_a_pause() -> None:
    """The call ends when the time for it would be over, and long before it is with the pause."""
    graceful, seconds = 5, 6
    with (
        Server("stuck:application", timeout=0, graceful_timeout=graceful) as server,
        server.connect() as wire,
    ):
        worker = server.worker_pid()
        wire.send(request("GET", f"/short?s={seconds + 1}&tell=1", [("Connection", "close")]))
        server.out.wait("begun")
        server.signal(signal.SIGTERM)
        server.log.wait("Handling signal: term")
        pause([server.pid, worker], seconds)
        go_on([server.pid, worker])
        assert wire.reply().status == 200
        assert server.wait_exit() == 0
        assert not server.log.matching("did not finish"), server.log.text


def serves(server: Server) -> bool:
    try:
        return server.get("/hello").status == 200
    except (OSError, AssertionError):
        return False
