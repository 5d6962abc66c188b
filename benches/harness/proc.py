"""Readings from /proc: CPU time to the nanosecond, and memory, of a server with all its processes and threads."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

TICK = os.sysconf("SC_CLK_TCK")


class Cpu(NamedTuple):
    """Seconds. `total` comes from the scheduler, exact; the split into user and system is the kernel's, by ticks."""

    total: float
    user: float
    system: float

    def __sub__(self, earlier: Cpu) -> Cpu:
        user, system = self.user - earlier.user, self.system - earlier.system
        total = self.total - earlier.total
        # The parts are counted in ticks of 10 ms: scale them to the exact sum.
        scale = total / (user + system) if user + system > 0 else 0.0
        return Cpu(total, user * scale, system * scale)


class Memory(NamedTuple):
    """Bytes."""

    pss: int
    rss: int
    private: int


def session_members(session: int) -> list[int]:
    members = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            fields = stat_fields(int(entry))
            # Zombies have given everything back already.
            if fields and int(fields[3]) == session and fields[0] != "Z":
                members.append(int(entry))
    return members


def stat_fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third (state) on; the name before may hold blanks and parentheses."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def cpu(pids: Iterable[int]) -> Cpu:
    nanoseconds = 0
    user = system = 0
    for pid in pids:
        fields = stat_fields(pid)
        if not fields:
            continue
        user += int(fields[11])
        system += int(fields[12])
        for thread in Path(f"/proc/{pid}/task").iterdir():
            try:
                nanoseconds += int((thread / "schedstat").read_text().split()[0])
            except (FileNotFoundError, ProcessLookupError):
                continue
    return Cpu(nanoseconds / 1e9, user / TICK, system / TICK)


def memory(pid: int) -> Memory:
    sizes: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, value, *_ = line.split()
        sizes[name.rstrip(":")] = int(value) * 1024
    return Memory(sizes["Pss"], sizes["Rss"], sizes["Private_Clean"] + sizes["Private_Dirty"])


def machine_busy_seconds() -> float:
    """CPU seconds the whole machine has spent on anything: tells whether somebody else was busy during a round."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    idle = fields[3] + fields[4]
    return (sum(fields[:8]) - idle) / TICK
