"""Scene: the loaded application and its configuration, which the checks examine."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from tricorn.record import Record

if TYPE_CHECKING:
    from tricorn.config.config import Config
    from tricorn.workers.base import Worker


class Scene(Record):
    config: Config
    worker_class: type[Worker]
    said: tuple[str, ...]
    """Warnings while the standard library was patched and the application imported: whole sentences."""
    threads: tuple[str, ...]
    """Names of threads that were started meanwhile, and are still there."""

    @property
    def alias(self) -> str:
        return self.worker_class.alias

    @property
    def is_green(self) -> bool:
        return self.alias in ("gevent", "eventlet")

    @property
    def is_loop(self) -> bool:
        return self.alias in ("asgi", "tornado", "aiohttp")

    @property
    def at_once(self) -> int:
        """Requests that a worker runs at the same time."""
        return self.worker_class.at_once(self.config)

    @property
    def concurrency(self) -> str:
        """Formats the concurrency in terms of settings: `4 workers x 100 worker_connections`."""
        workers = self.config.workers
        each = {"sync": "", "gthread": f" x {self.at_once} threads"}.get(
            self.alias, f" x {self.at_once} worker_connections"
        )
        return f"{workers} worker{'s' if workers != 1 else ''}{each}"


class Threads:
    """The threads that come to be between two moments, as the kernel sees them: C libraries have some, too."""

    def __init__(self, names: Callable[[], Mapping[int, str]] | None = None) -> None:
        self._names = names or names_of_threads
        self._before = self._names()

    def new(self) -> tuple[str, ...]:
        return tuple(sorted(name for number, name in self._names().items() if number not in self._before))


def names_of_threads() -> Mapping[int, str]:
    found = {}
    with suppress(OSError):  # a system without /proc
        for number in os.listdir("/proc/self/task"):
            with suppress(OSError), open(f"/proc/self/task/{number}/comm") as file:
                found[int(number)] = file.read().strip()
    for thread in threading.enumerate():
        native = thread.native_id or 0
        if native in found or not found:
            found[native] = thread.name
    return found
