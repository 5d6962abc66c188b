"""Stopping, and workers that come and go: no request is lost that was promised an answer."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from tests.harness import CLASSES, KINDS, REFERENCE, Load, Server, at_once, proc, room, until
from tests.harness.deadline import AT_ONCE
from tests.harness.wire import Silent, Wire, request


def settle(load: Load, answers: int) -> None:
    """Waits until the load has had that many answers more: it is in full swing."""
    target = load.tally.answered + answers
    until(lambda: load.tally.answered >= target, f"{answers} requests are answered")


@pytest.mark.beyond_reference("connections that are not accepted yet are reset")
@CLASSES
@pytest.mark.parametrize("workers", [1, 3])
def test_term_under_load_loses_nothing(worker_class: str, workers: int) -> None:
    with (
        Server(worker_class=worker_class, workers=workers, keep_alive=5) as server,
        Load(server.address, "/sleep?s=0.01", clients=8) as load,
    ):
        settle(load, 200)
        load.leaving()
        server.signal(signal.SIGTERM)
        assert server.wait_exit() == 0
        tally = load.join()
    assert tally.failures == []
    assert tally.answered > 200


@CLASSES
def test_term_lets_a_request_finish(worker_class: str) -> None:
    with Server(worker_class=worker_class) as server, server.connect() as wire:
        send_when_booted(server, wire, "/sleep?s=1")
        server.signal(signal.SIGTERM)
        reply = wire.reply()
        assert reply.status == 200
        assert reply.closes or REFERENCE
        assert server.wait_exit(AT_ONCE) == 0


def send_when_booted(server: Server, wire: Wire, target: str) -> None:
    """Sends a request and waits until the worker is inside the application.

    A request that was sent is in the kernel's queue at once, and the worker is idle: a tenth of a second is an
    eternity for it. There is nothing to be asked from outside while a sync worker is busy.
    """
    assert server.get("/hello").status == 200
    wire.send(request("GET", target))
    time.sleep(0.2)


@KINDS
def test_the_graceful_timeout_ends_what_does_not_finish(worker_class: str) -> None:
    with Server(worker_class=worker_class, graceful_timeout=1) as server, server.connect() as wire:
        send_when_booted(server, wire, "/sleep?s=30")
        began = time.monotonic()
        server.signal(signal.SIGTERM)
        assert server.wait_exit(AT_ONCE) == 0
        assert time.monotonic() - began > 0.8
        if worker_class != "gthread":  # a thread that sleeps in C cannot be ended
            assert wire.reply().status >= 500
        else:
            with pytest.raises((Silent, ConnectionError)):
                wire.reply()


@pytest.mark.beyond_reference("threads inside the application hold up the end")
@KINDS
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT], ids=["INT", "QUIT"])
def test_int_and_quit_are_quick(worker_class: str, number: int) -> None:
    with Server(worker_class=worker_class, workers=2) as server, server.connect() as wire:
        send_when_booted(server, wire, "/sleep?s=30")
        server.signal(number)
        assert server.wait_exit(AT_ONCE) == 0


@pytest.mark.beyond_reference("they do, for some seconds")
@KINDS
def test_idle_connections_do_not_hold_up_the_end(worker_class: str) -> None:
    with Server(worker_class=worker_class, keep_alive=60) as server:
        wires = [server.connect() for _ in range(5)]
        for wire in wires[:3]:
            wire.get("/hello")
        server.signal(signal.SIGTERM)
        assert server.wait_exit(AT_ONCE) == 0
        for wire in wires[:3]:
            wire.ended()
        # The others were perhaps never accepted: a server that is gone cannot tell them.
        for wire in wires:
            wire.close()


@KINDS
def test_a_killed_worker_costs_at_most_what_it_was_running(worker_class: str) -> None:
    clients = 8
    with Server(worker_class=worker_class, workers=4, keep_alive=5, **room(worker_class)) as server:
        with Load(server.address, "/sleep?s=0.02", clients=clients) as load:
            settle(load, 100)
            victim = server.worker_pids()[0]
            os.kill(victim, signal.SIGKILL)
            server.log.wait(rf"Worker \(pid:{victim}\) was sent SIGKILL! Perhaps out of memory\?")
            settle(load, 200)
            tally = load.stop()
        until(lambda: len(server.worker_pids()) == 4, "the worker is replaced")
        assert victim not in server.worker_pids()
    assert len(tally.failures) <= at_once(worker_class) + clients // 4, tally.failures
    assert tally.answered > 300


@KINDS
def test_a_worker_that_leaves_is_replaced(worker_class: str) -> None:
    with Server(worker_class=worker_class, workers=2) as server:
        before = server.worker_pids()
        os.kill(before[0], signal.SIGTERM)
        server.log.wait("Booting worker with pid", count=3)
        until(lambda: len(server.worker_pids()) == 2, "there are two workers again")
        assert before[1] in server.worker_pids()
        assert server.get("/hello").status == 200


def test_one_worker_more_and_one_less() -> None:
    with Server(workers=1) as server:
        server.signal(signal.SIGTTIN)
        until(lambda: len(server.worker_pids()) == 2, "a second worker")
        server.signal(signal.SIGTTOU)
        until(lambda: len(server.worker_pids()) == 1, "one worker again")
        assert server.get("/hello").status == 200


@KINDS
def test_max_requests(worker_class: str) -> None:
    with Server(worker_class=worker_class, workers=1, extra=["--max-requests", "50"]) as server:
        with Load(server.address, clients=2) as load:
            server.log.wait("Autorestarting worker after current request")
            server.log.wait("Booting worker", count=2)
            settle(load, 60)
            tally = load.stop()
        assert tally.failures == []


@KINDS
def test_the_access_log_loses_nothing_at_a_graceful_stop(worker_class: str, tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    with (
        Server(worker_class=worker_class, workers=2, access_logfile=log) as server,
        Load(server.address, "/hello", clients=4) as load,
    ):
        settle(load, 300)
        load.leaving()
        server.signal(signal.SIGTERM)
        server.wait_exit()
        tally = load.join()
    assert log.read_text().count('"GET /hello HTTP/1.1" 200') >= tally.answered


def test_reopening_the_access_log(tmp_path: Path) -> None:
    log, rotated = tmp_path / "access.log", tmp_path / "access.log.1"
    with Server(access_logfile=log) as server:
        server.get("/hello?n=1")
        until(lambda: log.exists() and "n=1" in log.read_text(), "the line is written")
        log.rename(rotated)
        server.signal(signal.SIGUSR1)
        until(log.exists, "the log is opened anew")
        asked = 0

        def is_in_use() -> bool:
            # The arbiter makes the file; the worker takes it when its main thread gets round to the signal.
            nonlocal asked
            asked += 1
            server.get("/hello?n=2")
            return "n=2" in log.read_text()

        until(is_in_use, "a line is in the new file")
        before = rotated.read_text().count("n=2")
        server.get("/hello?n=3")
        until(lambda: "n=3" in log.read_text(), "so is the next one")
        assert rotated.read_text().count("n=2") == before
        assert before + log.read_text().count("n=2") == asked


def test_the_processes_have_no_more_descriptors_after_a_while() -> None:
    with Server(workers=1) as server:
        server.get("/hello")
        worker = server.worker_pid()
        before = proc.descriptors(worker)
        for _ in range(200):
            server.get("/hello")
        until(lambda: proc.descriptors(worker) <= before + 1, "descriptors are given back")
