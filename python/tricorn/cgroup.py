"""How much of the processors this process may have: the quota of its cgroup, of version 1 or 2, and those above it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

QuotaOf = Callable[[Path], "float | None"]


def cpu_quota(proc: Path = Path("/proc/self"), root: Path = Path("/")) -> float | None:
    """Processors that the smallest quota on the way to the root is worth; None: there is none."""
    try:
        lines = (proc / "cgroup").read_text().splitlines()
        mounts = _mounts((proc / "mountinfo").read_text())
    except OSError:
        return None
    quotas: list[float] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers and "cgroup2" in mounts:
            quotas += _up(root, *mounts["cgroup2"], path, _quota_of_2)
        elif "cpu" in controllers.split(",") and "cpu" in mounts:
            quotas += _up(root, *mounts["cpu"], path, _quota_of_1)
    return min(quotas, default=None)


def cores() -> int:
    """Processors on which this process may run."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def processors() -> float:
    """As many as it may use at once, by both."""
    quota = cpu_quota()
    return min(cores(), cores() if quota is None else quota)


def _mounts(text: str) -> dict[str, tuple[str, str]]:
    """Where the hierarchies are: the mount point, and which of their folders is mounted there (proc(5))."""
    found: dict[str, tuple[str, str]] = {}
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2":
            found.setdefault("cgroup2", (fields[4], fields[3]))
        elif kind[0] == "cgroup" and "cpu" in kind[2].split(","):
            found.setdefault("cpu", (fields[4], fields[3]))
    return found


def _up(root: Path, mount: str, mounted: str, path: str, quota_of: QuotaOf) -> list[float]:
    """The quotas of a group and of those that it is in, as far as they can be seen from here."""
    inside = path.removeprefix(mounted.rstrip("/")) if path.startswith(mounted.rstrip("/")) else "/"
    top = root / mount.lstrip("/")
    folder = top / inside.lstrip("/")
    found = []
    while True:
        with suppress(OSError, ValueError):
            quota = quota_of(folder)
            if quota is not None:
                found.append(quota)
        if folder == top or top not in folder.parents:
            return found
        folder = folder.parent


def _quota_of_2(folder: Path) -> float | None:
    quota, period = (folder / "cpu.max").read_text().split()
    return None if quota == "max" else int(quota) / int(period)


def _quota_of_1(folder: Path) -> float | None:
    quota = int((folder / "cpu.cfs_quota_us").read_text())
    return None if quota <= 0 else quota / int((folder / "cpu.cfs_period_us").read_text())
