"""Workers whose arbiter has died without a word."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

from tests.harness import KINDS, Server, until
from tests.harness.wire import request


def kill_arbiter(server: Server) -> None:
    server.signal(signal.SIGKILL)
    server.process.wait(60)


def is_refused(server: Server) -> bool:
    try:
        socket.create_connection(("127.0.0.1", server.port), timeout=5).close()
    except ConnectionRefusedError:
        return True
    return False


@KINDS
def test_idle_workers_leave_and_say_why(worker_class: str) -> None:
    with Server(worker_class=worker_class, workers=2) as server:
        workers = server.worker_pids()
        kill_arbiter(server)
        until(lambda: not server.leftovers(), "the workers notice")
        server.log.join()
        for pid in workers:
            assert len(server.log.matching(rf"Parent changed, shutting down: worker \(pid: {pid}\)")) == 1
            assert server.log.matching(rf"Worker exiting \(pid: {pid}\)")


@KINDS
def test_what_runs_and_what_waits_is_finished(worker_class: str, tmp_path: Path) -> None:
    gate, ledger = tmp_path / "gate", tmp_path / "ledger"
    extra = ["--threads", "2"] if worker_class == "gthread" else []
    with Server("counted:application", worker_class=worker_class, env={"LEDGER": str(ledger)}, extra=extra) as server:
        wires = [server.connect().send(request("GET", f"/?id=it&gate={gate}")) for _ in range(4)]
        until(ledger.exists, "a call has begun")
        kill_arbiter(server)
        until(lambda: is_refused(server), "no client can come any more")
        gate.touch()
        for wire in wires:
            with wire:
                assert wire.reply().status == 200
        until(lambda: not server.leftovers(), "the worker leaves")


@KINDS
def test_one_whose_python_never_runs_again_takes_nobody_and_is_killed(worker_class: str, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    with Server("counted:application", worker_class=worker_class, env={"LEDGER": str(ledger)}) as server:
        with server.connect() as wire:
            wire.send(request("GET", "/locked?id=locked"))
            until(ledger.exists, "the call has begun")
            kill_arbiter(server)
            until(lambda: is_refused(server), "no client can come any more")
            assert server.leftovers(), "its time is not over"
        until(lambda: not server.leftovers(), "it is killed")


def test_a_hook_that_hangs_when_the_worker_has_drained_is_not_waited_for(tmp_path: Path) -> None:
    config = tmp_path / "conf.py"
    config.write_text("import time\n\n\ndef worker_exit(server, worker):\n    time.sleep(600)\n")
    with Server(worker_class="sync", graceful_timeout=1, extra=["-c", os.fspath(config)]) as server:
        kill_arbiter(server)
        until(lambda: not server.leftovers(), "it is killed")
