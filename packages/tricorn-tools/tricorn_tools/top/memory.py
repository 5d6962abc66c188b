"""Memory of processes from /proc: RSS at each look, PSS and USS of one process a look.

Only of processes that /proc shows as the arbiter's children: in another namespace of pids a number is another process.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tricorn import process_memory
from tricorn.process_memory import ProcessMemory
from tricorn_tools.top.look import Memory

PAGE = os.sysconf("SC_PAGE_SIZE")
ELSEWHERE = "No PSS, and RSS only as reported by workers: their processes are not in this /proc (another container?)"
FORBIDDEN = "No PSS: only the user of the workers and root may read /proc/PID/smaps_rollup"


class Memories:
    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._measured: dict[int, ProcessMemory] = {}
        self._is_forbidden = False

    def look(self, arbiter: int, pids: Iterable[int]) -> tuple[dict[int, Memory], tuple[str, ...]]:
        """Returns memory by pid, and a sentence for what cannot be read."""
        asked = list(pids)
        resident = {pid: rss for pid in asked if (rss := self._resident(arbiter, pid)) is not None}
        self._measured = {pid: memory for pid, memory in self._measured.items() if pid in resident}
        self._measure_one(list(resident))
        found = {pid: self._memory(pid, rss) for pid, rss in resident.items()}
        if asked and not resident:
            return found, (ELSEWHERE,)
        return found, (FORBIDDEN,) if self._is_forbidden else ()

    def _resident(self, arbiter: int, pid: int) -> int | None:
        try:
            stat = (self._proc / str(pid) / "stat").read_bytes()
            statm = (self._proc / str(pid) / "statm").read_bytes()
            # proc_pid_stat(5): the name is in parentheses and may have others in it; state and ppid follow.
            parent = int(stat[stat.rindex(b")") + 1 :].split()[1])
            return int(statm.split()[1]) * PAGE if parent == arbiter else None
        except (OSError, ValueError, IndexError):  # it has ended, or hidepid is on
            return None

    def _memory(self, pid: int, rss: int) -> Memory:
        measured = self._measured.get(pid)
        return Memory(rss) if measured is None else Memory(rss, measured.pss, measured.uss)

    def _measure_one(self, pids: list[int]) -> None:
        """Measures the process measured longest ago: the kernel walks all its page tables for that."""
        if not pids or self._is_forbidden:
            return
        known = list(self._measured)
        pid = min(pids, key=lambda pid: known.index(pid) if pid in self._measured else -1)
        try:
            found = process_memory.read(pid, self._proc)
        except PermissionError:
            self._is_forbidden = True
            return
        except OSError:  # it has just ended
            return
        self._measured.pop(pid, None)
        if found is not None:
            self._measured[pid] = found
