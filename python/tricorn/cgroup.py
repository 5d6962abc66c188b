"""Limits of this process: those of its cgroup, version 1 or 2, and of the cgroups above it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tricorn.record import Record


class Limit(Record):
    amount: float
    """Processors, or bytes."""
    source: str
    """The file and what it says: `cpu.max 150000/100000`."""


LimitOf = Callable[[Path], "Limit | None"]


def cpu_limit(proc: Path = Path("/proc/self"), root: Path = Path("/")) -> Limit | None:
    """The smallest quota on the way to the root, in processors; None: there is none."""
    return _smallest(proc, root, "cpu", _cpu_of_1, _cpu_of_2)


def memory_limit(proc: Path = Path("/proc/self"), root: Path = Path("/")) -> Limit | None:
    """The smallest limit of memory on the way to the root, in bytes; None: there is none."""
    return _smallest(proc, root, "memory", _memory_of_1, _memory_of_2)


def cpu_quota(proc: Path = Path("/proc/self"), root: Path = Path("/")) -> float | None:
    """Processors that the smallest quota on the way to the root is worth; None: there is none."""
    limit = cpu_limit(proc, root)
    return None if limit is None else limit.amount


def cores() -> int:
    """Processors on which this process may run."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def processors() -> float:
    """Number of processors that the process may use at once, by affinity and cgroup."""
    quota = cpu_quota()
    return min(cores(), cores() if quota is None else quota)


def _smallest(proc: Path, root: Path, controller: str, limit_of_1: LimitOf, limit_of_2: LimitOf) -> Limit | None:
    try:
        lines = (proc / "cgroup").read_text().splitlines()
        mounts = _mounts((proc / "mountinfo").read_text(), controller)
    except OSError:
        return None
    limits: list[Limit] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers and "cgroup2" in mounts:
            limits += _up(root, *mounts["cgroup2"], path, limit_of_2)
        elif controller in controllers.split(",") and controller in mounts:
            limits += _up(root, *mounts[controller], path, limit_of_1)
    return min(limits, key=lambda limit: limit.amount, default=None)


def _mounts(text: str, controller: str) -> dict[str, tuple[str, str]]:
    """Returns the hierarchies: mount point, and the folder that is mounted there (proc(5))."""
    found: dict[str, tuple[str, str]] = {}
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2":
            found.setdefault("cgroup2", (fields[4], fields[3]))
        elif kind[0] == "cgroup" and controller in kind[2].split(","):
            found.setdefault(controller, (fields[4], fields[3]))
    return found


def _up(root: Path, mount: str, mounted: str, path: str, limit_of: LimitOf) -> list[Limit]:
    """The limits of a group and of those that it is in, as far as they can be seen from here."""
    inside = path.removeprefix(mounted.rstrip("/")) if path.startswith(mounted.rstrip("/")) else "/"
    top = root / mount.lstrip("/")
    folder = top / inside.lstrip("/")
    found = []
    while True:
        with suppress(OSError, ValueError):
            limit = limit_of(folder)
            if limit is not None:
                found.append(limit)
        if folder == top or top not in folder.parents:
            return found
        folder = folder.parent


def _cpu_of_2(folder: Path) -> Limit | None:
    quota, period = (folder / "cpu.max").read_text().split()
    return None if quota == "max" else Limit(int(quota) / int(period), f"cpu.max {quota}/{period}")


def _cpu_of_1(folder: Path) -> Limit | None:
    quota = int((folder / "cpu.cfs_quota_us").read_text())
    period = int((folder / "cpu.cfs_period_us").read_text())
    return None if quota <= 0 else Limit(quota / period, f"cpu.cfs_quota_us {quota}/{period}")


def _memory_of_2(folder: Path) -> Limit | None:
    text = (folder / "memory.max").read_text().strip()
    return None if text == "max" else Limit(int(text), f"memory.max {_mebibytes(int(text))}")


def _memory_of_1(folder: Path) -> Limit | None:
    count = int((folder / "memory.limit_in_bytes").read_text())
    return None if count >= NO_LIMIT else Limit(count, f"memory.limit_in_bytes {_mebibytes(count)}")


def _mebibytes(count: int) -> str:
    return f"{count / (1 << 20):.0f} MiB"


NO_LIMIT = 1 << 62
"""Version 1 has no word for none: it says the greatest number of whole pages that a signed 64-bit number holds."""
