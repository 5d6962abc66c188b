"""Readings from /proc (proc(5)): CPU time, memory, threads and connections of a server with all its processes."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

TICK = os.sysconf("SC_CLK_TCK")

STATE, PARENT, SESSION, USER, SYSTEM, DEAD_USER, DEAD_SYSTEM, THREADS = 0, 1, 3, 11, 12, 13, 14, 17
"""Places in what `stat_fields` returns."""

ESTABLISHED = "01"
"""A state of /proc/net/tcp (include/net/tcp_states.h)."""

LONGEST_TITLE = 60

GONE = (FileNotFoundError, ProcessLookupError)


class Cpu(NamedTuple):
    """Seconds.

    `exact` is the scheduler's sum over the threads that live. `user` and `system` are counted in ticks, and hold
    threads and children that have ended as well.
    """

    exact: float
    user: float
    system: float

    @property
    def total(self) -> float:
        """The exact sum, unless a good part was spent by threads that have ended (a thread for each request)."""
        ticks = self.user + self.system
        return ticks if ticks - self.exact > 0.05 + 0.05 * ticks else self.exact

    def __sub__(self, earlier: Cpu) -> Cpu:
        exact, user, system = (now - then for now, then in zip(self, earlier, strict=True))
        total = Cpu(exact, user, system).total
        # Ticks of 10 ms say which part is which; they are scaled to the sum.
        scale = total / (user + system) if user + system > 0 else 0.0
        return Cpu(total, user * scale, system * scale)


class Memory(NamedTuple):
    """Bytes. PSS counts a page that n processes share as 1/n, `private` (smem's USS) not at all."""

    pss: int
    rss: int
    private: int


class Process(NamedTuple):
    pid: int
    parent: int
    session: int
    zombie: bool


def processes() -> list[Process]:
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and (fields := stat_fields(int(entry))):
            found.append(Process(int(entry), int(fields[PARENT]), int(fields[SESSION]), fields[STATE] == "Z"))
    return found


def session_members(session: int) -> list[int]:
    """Without zombies, which have given everything back already."""
    return [one.pid for one in processes() if one.session == session and not one.zombie]


def descendants(pid: int) -> list[int]:
    """Children, and children's children; zombies are left out."""
    children: dict[int, list[Process]] = defaultdict(list)
    for one in processes():
        children[one.parent].append(one)
    found: list[int] = []
    waiting = [pid]
    while waiting:
        for child in children[waiting.pop()]:
            waiting.append(child.pid)
            if not child.zombie:
                found.append(child.pid)
    return found


def stat_fields(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the third (state) on; the name before may hold blanks and parentheses."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except GONE:
        return []


def cpu(pids: Iterable[int]) -> Cpu:
    nanoseconds = user = system = 0
    for pid in pids:
        fields = stat_fields(pid)
        if not fields:
            continue
        user += int(fields[USER]) + int(fields[DEAD_USER])
        system += int(fields[SYSTEM]) + int(fields[DEAD_SYSTEM])
        for thread in _threads(pid):
            try:
                nanoseconds += int((thread / "schedstat").read_text().split()[0])
            except GONE:
                continue
    return Cpu(nanoseconds / 1e9, user / TICK, system / TICK)


def _threads(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except GONE:
        return []


def threads(pid: int) -> int:
    fields = stat_fields(pid)
    return int(fields[THREADS]) if fields else 0


def name(pid: int) -> str:
    """The title that the process gave itself, or what the kernel calls it (cut at 15 bytes)."""
    try:
        short = Path(f"/proc/{pid}/comm").read_text().strip()
        title = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except GONE:
        return ""
    return title if title.startswith(short) and len(title) <= LONGEST_TITLE else short


def memory(pid: int) -> Memory:
    sizes: dict[str, int] = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        field, value, *_ = line.split()
        sizes[field.rstrip(":")] = int(value) * 1024
    return Memory(sizes["Pss"], sizes["Rss"], sizes["Private_Clean"] + sizes["Private_Dirty"])


def connections(port: int) -> int:
    """Connections that are established at a local port, the server's ends of them.

    Each counts once: a table that changes while it is read may list one twice.
    """
    local = f":{port:04X}"
    found: set[tuple[str, str]] = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            lines = Path(table).read_text().splitlines()[1:]
        except FileNotFoundError:  # a kernel without IPv6
            continue
        for line in lines:
            _, address, peer, state, *_ = line.split(maxsplit=4)
            if state == ESTABLISHED and address.endswith(local):
                found.add((address, peer))
    return len(found)


def machine_busy_seconds() -> float:
    """CPU seconds the whole machine has spent on anything: tells whether other programs were busy."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:]]
    idle = fields[3] + fields[4]
    return (sum(fields[:8]) - idle) / TICK
