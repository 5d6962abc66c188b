"""What the kernel says of other processes (/proc): children, descriptors, memory."""

from __future__ import annotations

import os
import re
import time
from contextlib import suppress
from pathlib import Path

PROC = Path("/proc")
TELLS_CHILDREN = (PROC / "thread-self" / "children").exists()
"""CONFIG_PROC_CHILDREN, which the kernels of distributions have."""


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the command name: state, parent, group, session and so on."""
    try:
        text = _read(f"/proc/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text.rpartition(b")")[2].decode().split()


def _read(path: str) -> bytes:
    """Without a buffer and a decoder: there may be hundreds of processes, and tests ask every few milliseconds."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        text = b""
        while piece := os.read(descriptor, 1 << 17):
            text += piece
        return text
    finally:
        os.close(descriptor)


def pids() -> list[int]:
    return [int(name) for name in os.listdir(PROC) if name.isdigit()]


def parent(pid: int) -> int | None:
    """Returns the parent, also of a zombie; None if there is no such process."""
    fields = _stat(pid)
    return None if fields is None else int(fields[1])


def is_running(pid: int) -> bool:
    """Whether the process exists and is more than a zombie that waits for its parent."""
    fields = _stat(pid)
    return fields is not None and fields[0] not in "ZX"


def is_stopped(pid: int) -> bool:
    """Whether SIGSTOP has reached every thread: until then some may go on for as long as they have a processor."""
    return all_threads_are("T", pid)


def all_threads_are(state: str, pid: int) -> bool:
    """Whether every thread is in this state (proc_pid_stat(5)). One that waits for a processor is in state R."""
    for task in (PROC / str(pid) / "task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            if (task / "stat").read_text(errors="replace").rpartition(")")[2].split()[0] != state:
                return False
    return True


def children(pid: int) -> list[int]:
    """Asks the kernel for them, for it would take a hundred times as long to ask every process for its parent.

    While one of them is reaped, its list may lack another one (proc(5)): so it is read until it stays the same.
    """
    listed, before = _listed(pid), None
    while listed != before:
        listed, before = _listed(pid), listed
    return sorted(filter(is_running, listed))


def _listed(pid: int) -> set[int]:
    if not TELLS_CHILDREN:
        return {other for other in pids() if (fields := _stat(other)) and int(fields[1]) == pid}
    found: set[int] = set()
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
                found.update(map(int, _read(f"/proc/{pid}/task/{task}/children").split()))
    except (FileNotFoundError, ProcessLookupError):
        return set()
    return found


def with_mark(mark: str, session: int) -> list[int]:
    """Running processes of one server: those of its session, or started with `mark` in their environment.

    Either alone has a hole: a daemon leaves the session, and setting a process title may overwrite the environment.
    """
    found = []
    needle = mark.encode()
    not_its = {0, os.getsid(0)}
    """Sessions of the kernel and of the tests: a process leaves its session for a new one only (setsid(2))."""
    for candidate in pids():
        try:
            # Asked first, since it costs a fiftieth of what reading a file of /proc does. A zombie has no environment.
            its = os.getsid(candidate)
            is_of_it = its == session or (its not in not_its and needle in _read(f"/proc/{candidate}/environ"))
        except OSError:
            continue
        if is_of_it and is_running(candidate):
            found.append(candidate)
    return sorted(found)


def command_line(pid: int) -> str:
    try:
        return (PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return "(gone)"


def descriptors(pid: int) -> int:
    return len(os.listdir(PROC / str(pid) / "fd"))


def private_bytes(pid: int) -> int:
    """Memory only this process has: what a leak or an unbounded buffer would make grow."""
    text = (PROC / str(pid) / "smaps_rollup").read_text()
    return 1024 * sum(int(kilobytes) for kilobytes in re.findall(r"^Private_\w+:\s+(\d+) kB", text, re.MULTILINE))


def resident_bytes(pid: int) -> int:
    """All memory the process has mapped in: of a process that forks, more telling than what is private just now."""
    return int((PROC / str(pid) / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def mapped_bytes(pid: int) -> int:
    """Address space in use, which RLIMIT_AS bounds."""
    return int((PROC / str(pid) / "statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def cpu_seconds(pid: int) -> float:
    fields = _stat(pid)
    assert fields is not None, f"process {pid} is gone"
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pending_signals(pid: int) -> int:
    """Those that were sent to the process and have not reached it, as a set of bits."""
    text = _read(f"/proc/{pid}/status").decode()
    return sum(int(bits, 16) for bits in re.findall(r"^(?:SigPnd|ShdPnd):\s*(\w+)", text, re.MULTILINE))


def sleeps(pid: int) -> bool:
    """Whether its main thread waits for something: not for a processor, and not for a disk."""
    fields = _stat(pid)
    return fields is not None and fields[0] == "S"


def voluntary_switches(pid: int) -> int:
    """How often the main thread gave its processor up, to wait for something."""
    return _voluntary_switches(f"/proc/{pid}/task/{pid}/status")


def _voluntary_switches(status: str) -> int:
    return int(_read(status).decode().rpartition("\nvoluntary_ctxt_switches:")[2].split()[0])


def wake_ups(pid: int) -> dict[int, int]:
    """How often each thread of a process gave its processor up, to wait for something."""
    found = {}
    for task in os.listdir(PROC / str(pid) / "task"):
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
            found[int(task)] = _voluntary_switches(f"/proc/{pid}/task/{task}/status")
    return found


def is_quiet(pid: int, seconds: float = 0.3) -> bool:
    """Whether no thread wakes in this time. A thread that waits for a processor is not quiet."""
    before = wake_ups(pid)
    time.sleep(seconds)  # the period that is measured
    return wake_ups(pid) == before and all_threads_are("S", pid)


def threads(pid: int) -> int:
    return len(os.listdir(PROC / str(pid) / "task"))
