"""Workers against processors, connections against descriptors."""

from __future__ import annotations

import math
import os
import resource
from collections.abc import Iterator

from tricorn import cgroup
from tricorn.arbiter.environment import MOST_FILES
from tricorn.record import Record
from tricorn_tools.doctor.check.finding import Finding, Severity
from tricorn_tools.doctor.check.scene import Scene

RESERVE = 64
"""Descriptors that a worker has besides its connections: libraries, logs, pipes."""


class Machine(Record):
    counted: int
    """Result of os.cpu_count(), which libraries rely on."""
    cores: int
    """Cores that the process may run on."""
    quota: float | None
    """CPU quota of the cgroup."""
    files: int
    """Descriptors that a process may have, once the server has raised the soft limit."""

    @classmethod
    def here(cls) -> Machine:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        files = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
        return cls(os.cpu_count() or 1, cgroup.cores(), cgroup.cpu_quota(), files)

    @property
    def processors(self) -> float:
        return min(self.cores, self.quota or math.inf)


def examine(scene: Scene, machine: Machine | None = None) -> Iterator[Finding]:
    machine = machine or Machine.here()
    yield from _processors(scene, machine)
    yield from _files(scene, machine)


def _processors(scene: Scene, machine: Machine) -> Iterator[Finding]:
    processors, workers = machine.processors, scene.config.workers
    why = ""
    if processors < machine.counted:
        why = f" (of {machine.counted}{', limited by the cgroup' if machine.quota == processors else ''})"
    if processors < machine.counted:
        yield Finding(
            "processors",
            Severity.NOTE,
            f"The server may use {processors:g} CPUs{why}, but os.cpu_count() returns {machine.counted}: libraries "
            "that start one thread per CPU, and formulas in configuration files, start too many.",
            "Set workers = auto and OMP_NUM_THREADS; from Python 3.13 on, PYTHON_CPU_COUNT.",
        )
    most = 2 * math.ceil(processors) + 1
    if workers > most:
        yield Finding(
            "processors",
            Severity.WARNING,
            f"{workers} workers (from {scene.config.origin('workers')}) share {processors:g} CPUs{why}: workers that "
            "cannot run at the same time cost memory, database connections and context switches.",
            _fewer(scene, math.ceil(processors)),
        )


def _fewer(scene: Scene, processors: int) -> str:
    if scene.is_green or scene.is_loop:
        return f"Start {processors} workers: each runs many requests at once. Measure with tricorn bench."
    most = 2 * processors + 1
    return (
        f"Start up to {most} workers, and use threads for waiting (-k gthread --threads). Measure with tricorn bench."
    )


def _files(scene: Scene, machine: Machine) -> Iterator[Finding]:
    if not (scene.is_green or scene.is_loop or scene.alias == "gthread"):
        return
    clients = max(scene.at_once, scene.config.max_connections)
    if clients + RESERVE > machine.files:
        severity, what = Severity.ERROR, "cannot hold them all"
    elif clients + scene.at_once + RESERVE > machine.files:
        severity, what = Severity.WARNING, "runs out of descriptors if each of them opens a connection, too"
    else:
        return
    yield Finding(
        "descriptors",
        severity,
        f"A worker may have {machine.files} open files (ulimit -Hn) and {clients} clients at once "
        f"({'max_connections' if clients > scene.at_once else 'worker_connections'}): it {what}.",
        f"Raise the limit to {2 * clients + RESERVE} (systemd: LimitNOFILE=, Docker: --ulimit nofile=), or lower the "
        "setting.",
    )
