"""Every signal to the master and to a worker, by what it does to processes, sockets and files."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.harness import KINDS, REFERENCE, Server, Site, Wire, module, proc, until
from tests.harness.deadline import AT_ONCE
from tests.harness.site import replaced, rests
from tests.harness.wire import request


def held(server: Server, gate: Path, wire: Wire) -> None:
    """Sends a request that stays inside the application until the file `gate` is there."""
    wire.send(request("GET", f"/gate?open={gate}"))
    until(lambda: list(gate.parent.glob(f"{gate.name}.in.*")), "the request is in the application")


def refused(server: Server) -> bool:
    try:
        Wire(server.address, timeout=1).close()
    except OSError:
        return True
    return False


@KINDS
def test_term_finishes_what_runs_and_takes_nothing_new(worker_class: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with Server(worker_class=worker_class) as server, server.connect() as wire:
        held(server, gate, wire)
        server.signal(signal.SIGTERM)
        server.log.wait("Handling signal: term")
        if not REFERENCE:  # a busy sync worker goes on listening there
            until(lambda: refused(server), "the address refuses connections")
        gate.touch()
        assert wire.reply().status == 200
        assert server.wait_exit() == 0
        assert server.log.matching(r"Worker exiting \(pid: \d+\)")
        assert server.log.matching("Shutting down: Master")


@pytest.mark.parametrize(("number", "name"), [(signal.SIGINT, "int"), (signal.SIGQUIT, "quit")], ids=["INT", "QUIT"])
def test_int_and_quit_wait_for_nobody(number: int, name: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with Server(worker_class="sync", graceful_timeout=30) as server, server.connect() as wire:
        held(server, gate, wire)
        server.signal(number)
        assert server.wait_exit(AT_ONCE) == 0
        assert b" 200 OK" not in wire.ended()
        assert server.log.matching(f"Handling signal: {name}")


def test_a_second_signal_makes_a_graceful_stop_quick(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with Server(worker_class="sync", graceful_timeout=30) as server, server.connect() as wire:
        held(server, gate, wire)
        server.signal(signal.SIGTERM)
        server.log.wait("Handling signal: term")
        server.signal(signal.SIGINT)
        assert server.wait_exit() == 0
        assert "Quick shutdown" in server.log.text or "Handling signal: int" in server.log.text


def test_hup_takes_a_new_configuration_and_new_code() -> None:
    with Site("workers = 1\n", app="mine:application", files={"mine.py": module("first")}) as server:
        assert server.get("/").body == b"first"
        master = server.pid
        server.write("mine.py", module("second"))
        server.configure("workers = 2\n")
        server.hup(workers=2)
        server.log.wait("Handling signal: hup")
        server.log.wait("Hang up: Master")
        assert server.pid == master
        assert {server.get("/").body for _ in range(10)} == {b"second"}


def test_hup_moves_to_another_address(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    with Site(f"bind = 'unix:{first}'\n", transport="unix", wait=False) as server:
        server.address = str(first)
        server.wait_ready()
        assert server.get("/hello").status == 200
        server.configure(f"bind = 'unix:{second}'\n")
        server.hup()
        server.address = str(second)
        until(second.is_socket, "the new address is bound")
        assert server.get("/hello").status == 200
        if not REFERENCE:  # the file stays there
            until(lambda: not first.exists(), "the old address is gone")
    assert not second.exists()


def test_hup_lets_the_old_workers_finish(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with Server(worker_class="gthread", graceful_timeout=20) as server, server.connect() as wire:
        (old,) = server.worker_pids()
        held(server, gate, wire)
        server.signal(signal.SIGHUP)
        until(lambda: len(server.worker_pids()) == 2, "a new worker beside the old one")
        until(lambda: int(server.get("/pid").body) != old, "the new one serves")
        gate.touch()
        assert wire.reply().text.split()[0] == str(old)
        until(lambda: old not in server.worker_pids(), "the old one leaves")


def test_ttin_and_ttou() -> None:
    with Server(workers=1) as server:
        (first,) = server.worker_pids()
        for count in (2, 3):
            server.signal(signal.SIGTTIN)
            until(lambda count=count: len(server.worker_pids()) == count, f"{count} workers")
        until(lambda: all(map(rests, server.worker_pids())), "all of them serve")
        for count in (2, 1):
            server.signal(signal.SIGTTOU)
            until(lambda count=count: len(server.worker_pids()) == count, f"{count} workers")
        assert first not in server.worker_pids(), "the oldest leave first"
        server.signal(signal.SIGTTOU)
        server.log.wait("Handling signal: ttou", count=3)
        assert server.get("/hello").status == 200
        assert len(server.worker_pids()) == 1, "the last one stays"


@pytest.mark.parametrize("whom", ["master", "worker"])
def test_usr1_reopens_the_logs(whom: str, tmp_path: Path) -> None:
    access, error = tmp_path / "access", tmp_path / "error"
    with Site(f"accesslog = '{access}'\nerrorlog = '{error}'\n", wait=False) as server:
        until(lambda: error.exists() and "Booting worker" in error.read_text(), "the server starts")
        until(lambda: not refused(server), "the server accepts")
        server.get("/hello?n=1")
        until(lambda: "n=1" in access.read_text(), "the line is written")
        access.rename(tmp_path / "access.1")
        error.rename(tmp_path / "error.1")
        worker = server.worker_pid()
        os.kill(server.pid if whom == "master" else worker, signal.SIGUSR1)
        until(access.exists, "the access log is opened anew")
        server.get("/hello?n=2")
        until(lambda: "n=2" in access.read_text(), "the line is in the new file")
        assert "n=2" not in (tmp_path / "access.1").read_text()
        assert server.worker_pid() == worker
        if whom == "master":
            until(error.exists, "the error log is opened anew")


def test_usr2_and_a_handover(tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    with Site(f"pidfile = '{pidfile}'\n") as server:
        old = server.pid
        server.signal(signal.SIGUSR2)
        second = Path(f"{pidfile}.2")
        until(second.exists, "the successor's pidfile")
        new = int(second.read_text())
        until(lambda: proc.children(new), "the successor has a worker")
        server.log.wait("Booting worker", count=2)
        server.signal(signal.SIGUSR2)
        server.log.wait("Handling signal: usr2", count=2)
        assert int(pidfile.read_text()) == old
        served = {int(server.get("/pid").body) for _ in range(5)}
        assert served <= set(proc.children(old)) | set(proc.children(new))
        server.signal(signal.SIGTERM)
        assert server.process.wait(60) == 0
        until(lambda: pidfile.exists() and int(pidfile.read_text()) == new, "the successor takes the pidfile over")
        server.log.wait("Master has been promoted")
        assert not second.exists()
        assert int(server.get("/pid").body) in proc.children(new)
        os.kill(new, signal.SIGTERM)
        until(lambda: not proc.is_running(new), "the successor stops")
        assert not pidfile.exists()


def test_usr2_and_a_way_back(tmp_path: Path) -> None:
    pidfile = tmp_path / "pid"
    with Site(f"pidfile = '{pidfile}'\n") as server:
        server.signal(signal.SIGUSR2)
        second = Path(f"{pidfile}.2")
        until(second.exists, "the successor's pidfile")
        new = int(second.read_text())
        server.log.wait("Booting worker", count=2)
        os.kill(new, signal.SIGTERM)
        until(lambda: not second.exists(), "the successor leaves")
        until(lambda: not proc.is_running(new), "the successor is gone")
        assert server.get("/hello").status == 200
        assert int(pidfile.read_text()) == server.pid


def test_a_second_usr2_in_the_same_moment_starts_no_second_successor(tmp_path: Path) -> None:
    begun, gate = tmp_path / "begun", tmp_path / "gate"
    hook = f"""
def nworkers_changed(server, new, old):
    import pathlib, time
    if old is None:
        return
    pathlib.Path({str(begun)!r}).touch()
    while not pathlib.Path({str(gate)!r}).exists():
        time.sleep(0.01)
"""
    with Site(hook) as server:
        server.signal(signal.SIGTTIN)
        until(begun.exists, "the arbiter is in the hook")
        for _ in range(2):
            server.signal(signal.SIGUSR2)
            until(lambda: not proc.pending_signals(server.pid), "it has been noted")
        gate.touch()
        (started,) = server.log.wait("Started a successor with pid: ([0-9]+)")
        server.log.wait("USR2 signal ignored. Child exists.")
        os.kill(int(started[1]), signal.SIGTERM)
        server.log.wait("The successor has exited")


def test_winch_without_daemon_is_ignored() -> None:
    with Site("loglevel = 'debug'\n") as server:
        before = server.worker_pids()
        server.signal(signal.SIGWINCH)
        server.log.wait("SIGWINCH ignored. Not daemonized")
        assert server.worker_pids() == before


def test_winch_of_a_daemon_stops_its_workers(tmp_path: Path) -> None:
    pidfile, log = tmp_path / "pid", tmp_path / "log"
    with Site(f"daemon = True\npidfile = '{pidfile}'\nerrorlog = '{log}'\n", wait=False) as server:
        assert server.process.wait(60) == 0
        until(lambda: pidfile.exists() and pidfile.read_text().strip(), "the daemon's pidfile")
        master = int(pidfile.read_text())
        try:
            until(lambda: proc.children(master), "a worker")
            until(lambda: "Booting worker" in log.read_text(), "its line")
            os.kill(master, signal.SIGWINCH)
            until(lambda: not proc.children(master), "no worker is left")
            os.kill(master, signal.SIGHUP)
            until(lambda: proc.children(master), "HUP brings them back")
        finally:
            os.kill(master, signal.SIGTERM)
            until(lambda: not proc.is_running(master), "the daemon stops")


def test_a_worker_that_gets_term_is_replaced(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with Server(worker_class="gthread", workers=1, graceful_timeout=20) as server, server.connect() as wire:
        (worker,) = server.worker_pids()
        held(server, gate, wire)
        os.kill(worker, signal.SIGTERM)
        gate.touch()
        assert wire.reply().status == 200
        until(lambda: server.worker_pids() and worker not in server.worker_pids(), "another worker")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGABRT], ids=["INT", "QUIT", "ABRT"])
@KINDS
def test_a_worker_that_gets_int_quit_or_abrt_is_replaced(worker_class: str, number: int) -> None:
    if REFERENCE and worker_class == "gthread":
        pytest.skip("the reference server: it sometimes hangs in the shutdown of its pool")
    with Server(worker_class=worker_class) as server:
        worker = int(server.get("/pid").body)
        os.kill(worker, number)
        until(lambda: server.worker_pids() and worker not in server.worker_pids(), "another worker")
        assert server.get("/hello").status == 200


def test_a_worker_that_is_killed_is_named() -> None:
    with Server(workers=1) as server:
        worker = int(server.get("/pid").body)
        os.kill(worker, signal.SIGKILL)
        server.log.wait(rf"\[ERROR\] Worker \(pid:{worker}\) was sent SIGKILL! Perhaps out of memory\?")
        until(lambda: server.worker_pids() and worker not in server.worker_pids(), "another worker")
        assert server.get("/hello").status == 200


def test_different_signals_at_once_are_all_handled() -> None:
    with Server(workers=1) as server:
        assert server.get("/hello").status == 200
        for number in (signal.SIGTTIN, signal.SIGHUP, signal.SIGUSR1):
            server.signal(number)
        for name in ("ttin", "hup", "usr1"):
            server.log.wait(f"Handling signal: {name}")
        until(lambda: server.get("/hello").status == 200, "it serves")


def test_workers_go_when_their_master_is_killed() -> None:
    with Server(workers=2) as server:
        server.signal(signal.SIGKILL)
        server.process.wait(60)
        until(lambda: not server.leftovers(), "the workers notice")


def test_the_reload_helper_sees_every_worker_replaced() -> None:
    with Server(workers=3) as server:
        before = server.worker_pids()
        replaced(server, lambda: server.signal(signal.SIGHUP))
        assert len(server.worker_pids()) == 3
        assert not set(before) & set(server.worker_pids())
