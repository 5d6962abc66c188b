"""Finds the process that listens on a TCP port: proc(5), as far as this user may look."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from tricorn.record import Record
from tricorn.unpatched import os

LISTENS = "0A"
"""TCP_LISTEN in hexadecimal digits, as /proc/net/tcp has it."""


class Holder(Record):
    """A process, shown as `pid 4711 (nginx)`."""

    pid: int
    name: str
    title: str
    """Its command line, or what it calls itself."""

    def __str__(self) -> str:
        return f"pid {self.pid} ({self.name})"


def find(port: int) -> Holder | None:
    """The parent, where a server's workers have the socket as well. None if it is not known."""
    sockets = {f"socket:[{inode}]" for inode in _inodes(port)}
    holders = {pid for pid in _pids() if sockets and not sockets.isdisjoint(_open_files(pid))}
    for pid in sorted(holders):
        with suppress(OSError, ValueError):
            name, _, rest = _read(f"/proc/{pid}/stat").partition(" (")[2].rpartition(") ")
            if int(rest.split()[1]) not in holders:
                return Holder(pid, name, _read(f"/proc/{pid}/cmdline").replace("\0", " "))
    return None


def _inodes(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in _read(f"/proc/self/net/{table}").splitlines()[1:]:
                fields = line.split()
                if fields[3] == LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                    yield fields[9]


def _pids() -> list[int]:
    with suppress(OSError):
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return []


def _open_files(pid: int) -> Iterator[str]:
    with suppress(OSError):  # another user's, or gone
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                yield os.readlink(f"/proc/{pid}/fd/{descriptor}")


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as stream:
        return stream.read()
