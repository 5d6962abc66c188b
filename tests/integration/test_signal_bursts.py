"""Signals that come all at once: each handler interrupts the one before it, on the signal stack of the main thread."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterable
from pathlib import Path
from signal import Signals

import pytest

from tests.harness import CLASSES, Server, Site, each, module, proc, until
from tests.harness.classes import EVERY, SERVERS_OF_CLASSES

STACK_SIGNAL = signal.SIGRTMIN + 5
HARMLESS = [Signals.SIGHUP, Signals.SIGUSR2, Signals.SIGWINCH, Signals.SIGUSR1, Signals.SIGTTIN, Signals.SIGTTOU]
LAST = [Signals.SIGTERM, Signals.SIGINT, Signals.SIGQUIT, Signals.SIGABRT]
FATAL = r"SIG(SEGV|ABRT|BUS|ILL|FPE|TRAP)|Fatal Python error|Segmentation"

EACH = pytest.mark.parametrize("worker_class", each(*EVERY, *SERVERS_OF_CLASSES))


def burst(pid: int, numbers: Iterable[int]) -> None:
    """A stopped process keeps what comes, and gets it all together when it goes on."""
    os.kill(pid, signal.SIGSTOP)
    until(lambda: proc.is_stopped(pid), "it is stopped")
    for number in numbers:
        os.kill(pid, number)
    os.kill(pid, signal.SIGCONT)


def left_well(server: Server) -> None:
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 0
    assert not server.log.matching(FATAL), server.log.text


@EACH
def test_a_worker_gets_all_harmless_signals_at_once_and_then_term(worker_class: str) -> None:
    with Server(worker_class=worker_class) as server:
        worker = server.worker_pid()
        assert server.get("/hello").status == 200
        for _ in range(3):
            burst(worker, [*HARMLESS, STACK_SIGNAL])
            assert server.get("/hello").status == 200
        assert server.worker_pids() == [worker]
        left_well(server)


@CLASSES
def test_a_worker_gets_every_signal_it_handles_at_once(worker_class: str) -> None:
    """It ends, by whichever comes first; it does not crash."""
    with Server(worker_class=worker_class) as server:
        worker = server.worker_pid()
        assert server.get("/hello").status == 200
        burst(worker, [*HARMLESS, *LAST])
        until(lambda: worker not in server.worker_pids(), "it leaves")
        assert until(lambda: server.worker_pids() and server.get("/hello").status == 200, "another one serves")
        left_well(server)


TO_THE_ARBITER = [number for number in HARMLESS if number is not Signals.SIGUSR2] + [Signals.SIGCHLD]
"""USR2 would start a successor."""
ENABLES = "import faulthandler\nfaulthandler.enable()\n"
WAYS = {
    "by a variable": {"env": {"PYTHONFAULTHANDLER": "1"}},
    "by the configuration": {"config": ENABLES},
    "by the application": {"extra": ["--preload"], "files": {"mine.py": ENABLES + module("served")}},
}


@pytest.mark.parametrize("way", WAYS)
def test_the_arbiter_gets_all_signals_at_once_though_faulthandler_is_enabled(way: str) -> None:
    files = {"mine.py": module("served")}
    with Site(app="mine:application", **{"files": files, **WAYS[way]}) as server:
        for _ in range(3):
            burst(server.pid, TO_THE_ARBITER)
        server.log.wait("Hang up")
        until(lambda: server.get("/").status == 200, "it serves")
        burst(server.pid, [*TO_THE_ARBITER, Signals.SIGTERM, Signals.SIGINT, Signals.SIGQUIT])
        assert server.wait_exit() == 0
        assert not server.log.matching(FATAL), server.log.text


def monitor_of(pid: int) -> int:
    """The thread of the worker that its core has started; it takes its name when it runs for the first time."""
    tasks = Path(f"/proc/{pid}/task")

    def named() -> int:
        found = (int(task.name) for task in tasks.iterdir() if (task / "comm").read_text() == "tricorn-monitor\n")
        return next(found, 0)

    return until(named, "a thread is called tricorn-monitor")


def test_a_crash_of_the_monitor_is_told_by_faulthandler() -> None:
    """A thread that blocks SIGSEGV dies of it without a word."""
    crash = "Fatal Python error: Segmentation fault|was sent SIGSEGV"
    with Server(env={"PYTHONFAULTHANDLER": "1"}, expects=crash) as server:
        worker = server.worker_pid()
        until(lambda: server.get("/hello").status == 200, "it serves")
        thread = monitor_of(worker)
        system = ctypes.CDLL(None, use_errno=True)
        assert system.tgkill(worker, thread, int(signal.SIGSEGV)) == 0, os.strerror(ctypes.get_errno())
        server.log.wait("Fatal Python error: Segmentation fault")
        server.log.wait(rf"Worker \(pid:{worker}\) was sent SIGSEGV!")
        until(lambda: server.get("/hello").status == 200, "another one serves")
