"""How many workers `workers = auto` is: enough to fill the processors, and no more than memory allows.

A worker with an event loop or greenlets fills a processor, and so does one with threads: while some of its requests
wait, another one computes. A `sync` worker runs one request, and its processor idles while that waits; two workers fill
a processor when a request waits for half of its time. The queue is one for all workers, so that none is needed against
an uneven spread.
"""

from __future__ import annotations

import math
import os

from tricorn import cgroup
from tricorn.config.settings.processes import AUTO, WORKER_CLASSES
from tricorn.record import Record, replace

MIB = 1 << 20

EACH = 80 * MIB
"""Bytes for a worker whose `max_worker_memory` is not set (docs/guides/choose-a-class.md has what was measured)."""

ARBITER_MEMORY = 64 * MIB
"""Bytes for the arbiter and shared pages, generously."""

GENERATIONS = 2
"""A reload has two of them for a while."""

PER_PROCESSOR = {"sync": 2}
"""Workers of a class; 1 of each other class."""


class Sizing(Record):
    """Resources to divide among workers, and the class of the workers."""

    processors: float
    by: str = ""
    """Reason why there are fewer than the machine has."""
    memory: cgroup.Limit | None = None
    each: int = EACH
    """Bytes of a worker."""
    kind: str = AUTO
    """The alias of the class; AUTO is one that is not known until the application is loaded."""

    @classmethod
    def here(cls, each: int = 0) -> Sizing:
        """Reads the resources of this process. `each` is `max_worker_memory`."""
        quota, cores = cgroup.cpu_limit(), cgroup.cores()
        if quota is not None and quota.amount < cores:
            processors, by = quota.amount, quota.source
        else:
            processors, by = cores, "sched_getaffinity" if cores < (os.cpu_count() or 1) else ""
        return cls(processors, by, cgroup.memory_limit(), each or EACH)

    def of(self, kind: str) -> Sizing:
        return replace(self, kind=kind)

    @property
    def per_processor(self) -> int:
        return PER_PROCESSOR.get(self.kind, 1)

    @property
    def allowed(self) -> int | None:
        """Workers that memory has room for; None: there is no limit."""
        if self.memory is None:
            return None
        return max(0, int(self.memory.amount) - ARBITER_MEMORY) // (GENERATIONS * self.each)

    @property
    def count(self) -> int:
        wanted = math.ceil(self.per_processor * self.processors)
        return max(1, wanted if self.allowed is None else min(wanted, self.allowed))

    @property
    def most(self) -> int:
        """Largest number of workers of any class."""
        return max(self.of(kind).count for kind in WORKER_CLASSES)

    @property
    def reasons(self) -> str:
        """`auto: asgi, 1 for each of 4 processors by cpu.max 400000/100000; memory allows 11 (memory.max 2048 MiB)`."""
        class_ = "" if self.kind == AUTO else f"{self.kind}, "
        by = f" by {self.by}" if self.by else ""
        noun = "processor" if self.processors == 1 else "processors"
        text = f"auto: {class_}{self.per_processor} for each of {self.processors:g} {noun}{by}"
        if self.memory is None:
            return text
        return f"{text}; memory allows {self.allowed} ({self.memory.source}, {self.each // MIB} MiB each)"

    @property
    def sentence(self) -> str:
        """Explanation for the log."""
        return f"{self.count} worker{'s' if self.count != 1 else ''} ({self.reasons})"


def kind_of(worker_class: object, threads: int) -> str:
    """The alias of a class as far as its name tells it; AUTO for one that is imported, or found by the application."""
    if worker_class == "sync" and threads > 1:
        return "gthread"
    return worker_class if isinstance(worker_class, str) and worker_class in WORKER_CLASSES else AUTO
