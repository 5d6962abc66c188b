"""Memory of processes from /proc: RSS at each look, PSS of one process a look.

Only of processes that /proc shows as the arbiter's children: in another namespace of pids a number is another process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from tricorn_tools.top.look import Memory

PAGE = os.sysconf("SC_PAGE_SIZE")
ELSEWHERE = "No PSS, and RSS only as reported by workers: their processes are not in this /proc (another container?)"
FORBIDDEN = "No PSS: only the user of the workers and root may read /proc/PID/smaps_rollup"
_PSS = re.compile(rb"^Pss:\s+(\d+) kB$", re.MULTILINE)


class Memories:
    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._pss: dict[int, int] = {}
        self._is_forbidden = False

    def look(self, arbiter: int, pids: Iterable[int]) -> tuple[dict[int, Memory], tuple[str, ...]]:
        """Returns memory by pid, and a sentence for what cannot be read."""
        asked = list(pids)
        resident = {pid: rss for pid in asked if (rss := self._resident(arbiter, pid)) is not None}
        self._pss = {pid: pss for pid, pss in self._pss.items() if pid in resident}
        self._measure_one(list(resident))
        found = {pid: Memory(rss, self._pss.get(pid)) for pid, rss in resident.items()}
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

    def _measure_one(self, pids: list[int]) -> None:
        """Measures the PSS of the process measured longest ago: the kernel walks all its page tables for that."""
        if not pids or self._is_forbidden:
            return
        known = list(self._pss)
        pid = min(pids, key=lambda pid: known.index(pid) if pid in self._pss else -1)
        try:
            found = _PSS.search((self._proc / str(pid) / "smaps_rollup").read_bytes())
        except PermissionError:
            self._is_forbidden = True
            return
        except OSError:  # it has just ended
            return
        self._pss.pop(pid, None)
        if found is not None:
            self._pss[pid] = int(found[1]) * 1024
