"""A site whose workers are forked by a mold (`preload_app = mold`)."""

from __future__ import annotations

import os
import signal
from typing import Any

from tests.harness import proc
from tests.harness.deadline import PATIENCE, until
from tests.harness.site import Site

READY = r"Mold \(pid:(\d+)\) has loaded the application"
RENEWED = r"Worker \(pid:(\d+)\) has drained and is the mold now"

FAULTY_FORKS = """\
import os, pathlib
from tricorn.unpatched import os as server_os

MOLD, DONE, fork = os.getpid(), pathlib.Path(os.environ["FAULT_DONE"]), server_os.fork


def faulty():
    fault = pathlib.Path(os.environ["FAULT"]).read_text()
    first = os.getpid() == MOLD
    if fault and not DONE.exists():
        if fault == "refused" and first or fault == "refused again" and not first:
            DONE.touch()
            raise BlockingIOError(11, "Resource temporarily unavailable")
        if fault == "intermediate before" and not first:
            DONE.touch()
            os.kill(os.getpid(), 9)
    pid = fork()
    if fault and not DONE.exists():
        if fault == "intermediate after" and not first and pid:
            DONE.touch()
            os.kill(os.getpid(), 9)
        if fault == "worker at once" and not first and not pid:
            DONE.touch()
            os.kill(os.getpid(), 9)
        if fault == "mold meanwhile" and first and pid:
            DONE.touch()
            os.kill(os.getpid(), 9)
    return pid


server_os.fork = faulty
"""
"""The beginning of an application in whose mold one fork fails, as the file $FAULT says: once, then $DONE is there."""


class Molded(Site):
    """Its workers are the children of the arbiter that are no molds."""

    def __init__(self, config: str = "", **options: Any) -> None:
        super().__init__(f"preload_app = 'mold'\n{config}", **options)

    def wait_ready(self) -> None:
        super().wait_ready()
        self.log.wait("Ready: ")  # all workers serve

    def mold_pids(self) -> list[int]:
        """The molds that run, and have loaded the application, or were workers."""
        found = (*self.log.matching(READY), *self.log.matching(RENEWED))
        return [pid for pid in map(int, (each[1] for each in found)) if proc.is_running(pid)]

    def mold_pid(self) -> int:
        until(lambda: len(self.mold_pids()) == 1, "one mold is there")
        (pid,) = self.mold_pids()
        return pid

    def worker_pids(self) -> list[int]:
        """Without molds, also those that load the application."""
        booting = set(map(int, (found[1] for found in self.log.matching(r"Booting worker with pid: (\d+)"))))
        return [pid for pid in proc.children(self.pid) if pid in booting and pid not in self.mold_pids()]

    def imported(self) -> bool:
        pids = self.mold_pids()
        names = [path.name for path in self.directory.glob("*.imported")]
        return bool(pids) and all(any(f".{pid}." in name for name in names) for pid in pids)

    def steady(self, workers: int, within: float = PATIENCE) -> None:
        """Waits until there are a mold and as many workers, and no other child: no zombie, too."""

        def is_steady() -> bool:
            here = [pid for pid in proc.pids() if proc.parent(pid) == self.pid]
            return len(self.mold_pids()) == 1 and sorted(here) == sorted(self.worker_pids() + self.mold_pids())

        until(
            lambda: len(self.worker_pids()) == workers and is_steady(), f"{workers} workers and a mold", within=within
        )

    def hup_molded(self, workers: int) -> None:
        """A reload, waited for until the mold and all workers are others."""
        before = {*self.worker_pids(), *self.mold_pids()}
        self.signal(signal.SIGHUP)
        until(lambda: not before & set(proc.children(self.pid)), "all are replaced")
        self.steady(workers)


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
