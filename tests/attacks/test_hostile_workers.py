"""Workers that were taken over: nothing that they write ends the arbiter, stops it or makes it grow."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from tricorn.control.client import Control, Refused

from tests.apps.hostile import LINES, WAYS
from tests.harness import Server, Site, proc, until
from tests.harness.wire import Silent, request

pytestmark = pytest.mark.beyond_reference("its workers have no such pipe")

MEGABYTE = 1 << 20


def test_lines_that_no_worker_writes_are_passed_over() -> None:
    with Server("hostile:application", workers=1) as server:
        worker = server.worker_pid()
        for path in LINES:
            assert server.get(path).status == 200
        until(lambda: server.get("/").status == 200, "it serves on")
        assert server.worker_pid() == worker
        assert server.stop() == 0


def test_a_worker_that_writes_without_end_is_killed_and_replaced() -> None:
    with Server("hostile:application", workers=1, timeout=0) as server:
        worker = server.worker_pid()
        before = proc.private_bytes(server.pid)
        with server.connect() as wire, suppress(Silent, OSError):
            wire.send(request("GET", "/flood"))
            wire.reply()
        server.log.wait(rf"Killing worker \(pid:{worker}\): it sends more messages than the arbiter can read")
        until(lambda: server.worker_pids() not in ([], [worker]), "another one serves")
        assert server.get("/").status == 200
        assert proc.private_bytes(server.pid) - before < 20 * MEGABYTE
        assert server.stop() == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize("way", sorted(WAYS))
def test_an_arbiter_that_is_root_outlives_each_way_of_a_worker_without_privileges(way: str, tmp_path: Path) -> None:
    socket = tmp_path / "ctl"
    options = {"user": 65534, "group": 65534, "control_socket": str(socket), "graceful_timeout": 3}
    options["preload"] = True  # that user may not read this Python's modules
    # What the worker does to itself and to its siblings is theirs: they may die of it, and are replaced.
    with Server("hostile:application", workers=2, expects="SIG|panicked|defect|rubbish", **options) as server:
        before = proc.private_bytes(server.pid)
        for _ in range(3):
            with suppress(Silent, OSError), server.connect(timeout=5) as wire:
                wire.send(request("GET", way))
                wire.reply()
        with Control.connect(socket, timeout=60) as control:
            for word in ("status", "workers", "stacks", "stats", "requests", "slow"):
                with suppress(Refused):
                    control.ask(word)
        os.kill(server.pid, signal.SIGHUP)
        server.log.wait("Hang up: Master")
        with Control.connect(socket, timeout=60) as control:
            assert control.ask("status")["pid"] == server.pid
        assert proc.private_bytes(server.pid) - before < 20 * MEGABYTE
        assert server.stop() == 0


def test_a_worker_class_that_fails_when_it_is_made_ends_no_running_server() -> None:
    """It is made in the arbiter, as gunicorn's are. The first two work."""
    config = """
from tricorn.workers.sync import SyncWorker


class Failing(SyncWorker):
    made = 0

    def __init__(self, *arguments):
        Failing.made += 1
        if Failing.made in (3, 4):
            raise RuntimeError("no more of me")
        super().__init__(*arguments)


worker_class = Failing
workers = 2
"""
    with Site(config, app="hostile:application", workers=2) as server:
        first, _ = server.worker_pids()
        os.kill(first, signal.SIGKILL)
        server.log.wait("RuntimeError: no more of me")
        server.log.wait("Could not fork a worker: the worker class failed")
        assert server.get("/").status == 200
        server.log.wait("Booting worker with pid", count=3)
        assert server.stop() == 0
