"""CPU time, memory, threads and connections of a server: its first process with all others."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import psutil

ESTABLISHED = "01"
"""A state of /proc/net/tcp (include/net/tcp_states.h)."""

LONGEST_TITLE = 60

GONE = (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError)
"""The exceptions for a process that has ended."""


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
    """Bytes. PSS counts a page that n processes share as 1/n, `private` (USS) not at all."""

    pss: int
    rss: int
    private: int


def session_members(session: int) -> list[int]:
    """Returns the processes of a session without zombies, which have given everything back already."""
    return [pid for pid in psutil.pids() if _session(pid) == session and runs(pid)]


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:  # it has ended, or it is another user's and the kernel does not say
        return None


def descendants(pid: int) -> list[int]:
    """Returns children, and children's children, without zombies."""
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True) if runs(child.pid)]
    except GONE:
        return []


def runs(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except GONE:
        return False


def cpu(pids: Iterable[int]) -> Cpu:
    nanoseconds, user, system = 0, 0.0, 0.0
    for pid in pids:
        try:
            times = psutil.Process(pid).cpu_times()
        except GONE:
            continue
        user += times.user + times.children_user
        system += times.system + times.children_system
        for thread in _threads(pid):
            try:
                nanoseconds += int((thread / "schedstat").read_text().split()[0])
            except GONE:
                continue
    return Cpu(nanoseconds / 1e9, user, system)


def _threads(pid: int) -> list[Path]:
    try:
        return list(Path(f"/proc/{pid}/task").iterdir())
    except GONE:
        return []


def threads(pid: int) -> int:
    """Returns the number of threads; 0 for a process that has ended."""
    try:
        return int(psutil.Process(pid).num_threads())
    except GONE:
        return 0


def name(pid: int) -> str:
    """Returns the title that the process gave itself, or what the kernel calls it."""
    try:
        process = psutil.Process(pid)
        short, title = str(process.name()), " ".join(process.cmdline()).strip()
    except GONE:
        return ""
    return title if title.startswith(short) and len(title) <= LONGEST_TITLE else short


def memory(pid: int) -> Memory:
    """Raises one of GONE."""
    sizes = psutil.Process(pid).memory_full_info()
    return Memory(sizes.pss, sizes.rss, sizes.uss)


def connections(port: int) -> int:
    """Returns how many connections are established at a local port: the server's ends of them.

    Each counts once: a table that changes while it is read may list one twice. psutil would look at the descriptors of
    every process, too, which disturbs what is measured.
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
    """Returns the CPU seconds that the whole machine has spent on anything: tells whether other programs were busy."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system + times.irq + times.softirq + times.steal)
