"""Memory of a process, from /proc/PID/smaps_rollup (proc_pid_smaps(5)).

The kernel walks all page tables of the process for it, and holds the lock of its address space meanwhile.
"""

from __future__ import annotations

import re
from os import PathLike

from tricorn.record import Record

_FIELD = rb"(?m)^(Rss|Pss|Shared_Clean|Shared_Dirty|Private_Clean|Private_Dirty):\s+(\d+) kB$"


class ProcessMemory(Record):
    """Sizes in bytes."""

    pss: int
    """Memory of the process; pages that processes share are divided among them."""
    uss: int
    """Pages that no other process has."""
    shared: int
    rss: int


def read(pid: int, proc: str | PathLike[str] = "/proc") -> ProcessMemory | None:
    """Returns None for a process that has ended. Raises OSError, also where the kernel does not tell."""
    with open(f"{proc}/{pid}/smaps_rollup", "rb") as stream:
        found = {name: int(kilobytes) << 10 for name, kilobytes in re.findall(_FIELD, stream.read())}
    if b"Pss" not in found:
        return None

    def both(kind: bytes) -> int:
        return found.get(kind + b"_Clean", 0) + found.get(kind + b"_Dirty", 0)

    return ProcessMemory(found[b"Pss"], both(b"Private"), both(b"Shared"), found.get(b"Rss", 0))
