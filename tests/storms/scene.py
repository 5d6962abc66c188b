"""What a storm happens to: a server, the load that keeps count, and what has been done to it."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tricorn.workers.registry import REFORKED

from tests.apps.counted import MEET
from tests.harness import GREEN, Site, Wire, proc, until
from tests.harness.molds import Molded
from tests.harness.server import free_port
from tests.harness.transports import CLEAR, Transport

THREADS = 4
TIMEOUT = 4
"""Seconds that a call may take, or a worker may be silent."""

CONFIG = """
timeout = {timeout}
graceful_timeout = 10
keepalive = 20
header_timeout = 10
worker_class = {worker_class!r}
workers = {workers}
threads = {threads}
worker_connections = {connections}
admin_bind = "127.0.0.1:{admin}"
control_socket = {control!r}
"""


def capacity(worker_class: str) -> int:
    """How many calls a worker of a scene runs at once; hubs and loops are asked for as many as threads."""
    return 1 if worker_class == "sync" else THREADS


@dataclass
class Bill:
    """What the weather has cost, so that what is missing afterwards can be told from what was taken."""

    lost: int = 0
    """Requests that may have ended without an answer."""
    deaths: int = 0
    """Workers that the weather has killed."""
    may_not_begin: bool = False
    """Requests may end without an answer that the application was not called for."""
    excused: set[int] = field(default_factory=set)
    """Statuses that are no complaint."""
    complaints: list[str] = field(default_factory=list)
    """What the weather itself saw and should not have seen."""


class Scene:
    """A server with `workers` workers of a class, and a ledger; a context manager."""

    def __init__(
        self, worker_class: str, workers: int, directory: Path, transport: Transport = CLEAR, *, molds: bool = False
    ) -> None:
        self.worker_class = worker_class
        self.transport = transport
        self.workers = workers
        self.ledger = directory / "ledger"
        self.directory = directory
        self.admin = ("127.0.0.1", free_port())
        self.control = directory / "control"
        self.bill = Bill()
        self.over = threading.Event()
        self.paused = threading.Event()
        """Set while processes are stopped: nothing can be expected to be answered soon."""
        self._lock = threading.Lock()
        config = CONFIG.format(
            worker_class=worker_class,
            workers=workers,
            threads=capacity(worker_class),
            connections=capacity(worker_class) if worker_class in GREEN else 1000,
            timeout=TIMEOUT,
            admin=self.admin[1],
            control=str(self.control),
        )
        config += MEET + transport.lines
        if molds and worker_class in REFORKED:
            config += "refork = [20, 60]\n"
        site = Molded if molds else Site
        self.server = site(config, app="stormy:application", workers=workers, env={"LEDGER": str(self.ledger)})
        self.server.wire_type = transport.connect

    def __enter__(self) -> Scene:  # noqa: PYI034 (typing.Self is younger than Python 3.10)
        self.server.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.over.set()
        self.resume()
        self.server.stop(check=kind is None)

    def wait(self, seconds: float) -> bool:
        """Whether the storm goes on after so many seconds."""
        return not self.over.wait(seconds)

    def connect(self, timeout: float = 20.0, **options: Any) -> Wire:
        return self.server.connect(timeout=timeout, **options)

    def serving(self) -> list[int]:
        """The workers whose application has been called, so that they have booted."""
        called = {int(line.split()[1]) for line in self.ledger.read_text().splitlines()}
        return [pid for pid in self.server.worker_pids() if pid in called]

    def charge(self, *, lost: int = 0, deaths: int = 0) -> None:
        with self._lock:
            self.bill.lost += lost
            self.bill.deaths += deaths

    def complain(self, what: str) -> None:
        with self._lock:
            self.bill.complaints.append(what)

    def processes(self) -> list[int]:
        return [self.server.pid, *proc.children(self.server.pid)]

    def resume(self) -> None:
        for pid in self.processes() if self.server.process.poll() is None else []:
            send(pid, signal.SIGCONT)
        self.paused.clear()


def send(pid: int, number: int) -> None:
    """A signal to a process that may have gone meanwhile."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def settled(scene: Scene) -> list[int]:
    """The workers, once there are as many as configured, and the arbiter does nothing more about them."""

    def stable() -> list[int]:
        pids = scene.server.worker_pids()
        return pids if len(pids) == scene.workers and all(map(proc.is_running, pids)) else []

    return until(stable, f"{scene.workers} workers run")
