"""Many restarts and reloads: the arbiter has as many descriptors, processes and as much memory as before.

LEAK_ROUNDS is how many restarts there are (a tenth of the full size when it is not set), and five times the reloads.
"""

from __future__ import annotations

import os
import signal

import pytest

from tests.harness import NO_BOOT, Server, Site, proc, until
from tests.harness.site import replaced

RESTARTS = int(os.environ.get("LEAK_ROUNDS", "100"))
RELOADS = max(RESTARTS // 5, 10)
KILLED_AT_ONCE = 8

# Allocators keep some of what they were given; a leak of one page per round would be seen all the same.
GROWTH = 2 << 20


def shared_memory() -> set[str]:
    return set(os.listdir("/dev/shm"))


class Held:
    """What the arbiter holds, counted when every worker is up."""

    def __init__(self, server: Server, workers: int) -> None:
        self._server, self._workers = server, workers
        self._processes = until(self._steady, f"{workers} workers")
        self._descriptors = proc.descriptors(server.pid)
        self._targets = self._open()
        self._memory = proc.resident_bytes(server.pid)
        self._shared = shared_memory()
        self._threads = proc.threads(server.pid)

    def _steady(self) -> int:
        """How many processes there are; 0 while a worker is replaced, which is one less for a moment."""
        workers = self._server.worker_pids()
        processes = self._server.leftovers()
        is_whole = len(workers) == self._workers and set(workers) <= set(processes)
        return len(processes) if is_whole and workers == self._server.worker_pids() else 0

    def _open(self) -> list[str]:
        names = []
        directory = f"/proc/{self._server.pid}/fd"
        for fd in os.listdir(directory):
            try:
                names.append(os.readlink(f"{directory}/{fd}"))
            except FileNotFoundError:
                continue
        return sorted(names)

    def same(self, growth: int = GROWTH) -> None:
        server = self._server
        until(lambda: len(server.worker_pids()) == self._workers, "as many workers as before")
        until(lambda: len(server.leftovers()) <= self._processes, "no process more than before")
        until(
            lambda: proc.descriptors(server.pid) <= self._descriptors,
            f"no descriptor more than before: {self._targets} -> {self._open()}",
        )
        assert proc.threads(server.pid) <= self._threads
        assert proc.resident_bytes(server.pid) - self._memory < growth
        mine = {name for name in shared_memory() - self._shared if "tricorn" in name or "wgunicorn" in name}
        assert not mine


def kill_some(server: Server, count: int) -> None:
    """Kills that many workers, and waits for as many others."""
    victims = until(lambda: pids if len(pids := server.worker_pids()) >= count else [], "the workers run")
    for pid in victims[:count]:
        os.kill(pid, signal.SIGKILL)
    until(lambda: not set(victims[:count]) & set(server.worker_pids()), "they are gone")


@pytest.mark.timeout(90 + RESTARTS)
def test_killed_workers_leave_nothing_behind() -> None:
    """Killed when they have served: workers that die in a row without that are held back, which is another test."""
    with Server(worker_class="sync", workers=KILLED_AT_ONCE) as server:
        served(server, KILLED_AT_ONCE)
        kill_some(server, KILLED_AT_ONCE)
        held = Held(server, KILLED_AT_ONCE)
        for _ in range(max(RESTARTS // KILLED_AT_ONCE // 4, 2)):
            kill_some(server, KILLED_AT_ONCE)
            until(lambda: len(server.worker_pids()) == KILLED_AT_ONCE, "they are replaced", within=60)
        held.same()


def served(server: Server, workers: int) -> None:
    server.log.wait("Booting worker", count=workers)
    assert server.get("/hello").status == 200


@pytest.mark.timeout(90 + RESTARTS)
def test_workers_that_have_served_their_number_leave_nothing_behind() -> None:
    with Site("worker_class = 'sync'\nworkers = 4\nmax_requests = 1\n", workers=4) as server:
        served(server, 4)

        def restarts(count: int) -> None:
            booted = len(server.log.matching("Booting worker"))
            while len(server.log.matching("Booting worker")) < booted + count:
                assert server.get("/hello").status == 200

        restarts(8)
        held = Held(server, 4)
        restarts(RESTARTS // 2)
        held.same()


@pytest.mark.timeout(90 + RELOADS)
def test_reloads_leave_nothing_behind() -> None:
    with Site("worker_class = 'gthread'\nthreads = 2\n") as server:
        for _ in range(3):
            server.hup()
        held = Held(server, 1)
        for _ in range(RELOADS):
            replaced(server, lambda: server.signal(signal.SIGHUP))
        assert server.get("/hello").status == 200
        held.same()


@pytest.mark.beyond_reference("a reload that fails ends the service there")
def test_reloads_that_fail_leave_nothing_behind() -> None:
    files = {"mine.py": "from gallery import application\n"}
    with Site(app="mine:application", files=files, expects=NO_BOOT) as server:
        worker = server.worker_pid()
        served(server, 1)

        def fail(text: str, conf: str, pattern: str) -> None:
            server.write("mine.py", text)
            server.configure(conf)
            seen = len(server.log.matching(pattern))
            server.signal(signal.SIGHUP)
            server.log.wait(pattern, count=seen + 1)
            until(lambda: server.worker_pids() == [worker], "only the worker there was")

        attempts = [
            ("def application(:\n", "", "SyntaxError"),
            ("from gallery import application\n", "workers = 'many'\n", "workers"),
            ("from gallery import application\n", "errorlog = '/nonexistent/dir/log'\n", "/nonexistent/dir"),
        ]
        for attempt in attempts:
            fail(*attempt)
        held = Held(server, 1)
        for _ in range(max(RELOADS // 20, 2)):
            for attempt in attempts:
                fail(*attempt)
        held.same()


def test_more_workers_and_fewer_leave_nothing_behind() -> None:
    with Server(workers=1) as server:

        def one_more_and_one_less() -> None:
            server.signal(signal.SIGTTIN)
            until(lambda: len(server.worker_pids()) == 2, "two workers")
            server.signal(signal.SIGTTOU)
            until(lambda: len(server.worker_pids()) == 1, "one worker")

        for _ in range(3):
            one_more_and_one_less()
        held = Held(server, 1)
        for _ in range(max(RELOADS // 4, 4)):
            one_more_and_one_less()
        held.same()
