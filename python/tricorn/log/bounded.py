"""Writes to stdout, stderr and logs that never wait for a reader: those of the arbiter.

A full pipe, a stopped terminal or a socket whose peer is busy blocks write(2), and with it the process that supervises
all others. O_NONBLOCK belongs to the open file, which the workers and the shell share. So the
arbiter writes

    to a pipe or a terminal   by an open file of its own (/proc/self/fd, open(2)), which has O_NONBLOCK,
                              or with RWF_NOWAIT where it may not open it (another user's pipe)
    to a socket               with MSG_DONTWAIT
    to anything else          as usual: a regular file takes what it is given

What does not go out within `PATIENCE` is lost, and its writer is told (TimeoutError). Workers wait: a request that logs
is slowed down by the reader of its log, and by nothing else.
"""

from __future__ import annotations

import errno
import io
import stat
import sys
from contextlib import suppress
from typing import Any

from tricorn.unpatched import os, select, socket, time

PATIENCE = 0.1
"""Seconds that a write waits for its reader, at most once in a `PERIOD`."""
PERIOD = 1.0
NOWAIT: int | None = getattr(os, "RWF_NOWAIT", None)
"""The flag of pwritev2(2) that pipes know from Linux 6.5 on; terminals do not."""
PIPE_BUF = 4096
"""Bytes that a pipe takes whole, or not at all, once it is writable (pipe(7))."""

_arbiter = 0
"""The process whose writes are bounded; a fork of it is another one."""
_standard: dict[str, Any] = {}
"""`sys.stdout` and `sys.stderr` as they were."""


def begin() -> None:
    """From now on no write of this process to a log, to stdout or to stderr waits for long. Its forks wait again."""
    global _arbiter
    _arbiter = os.getpid()
    for name, number in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if type(stream) is io.TextIOWrapper and _is_of(stream, number):
            stream.flush()
            _standard[name] = stream
            setattr(sys, name, _bounded(stream, Standard(number, f"<{name}>")))


def end() -> None:
    """Gives the program its own `sys.stdout` and `sys.stderr` back: in a worker, and when the server has ended."""
    for name, stream in _standard.items():
        current = getattr(sys, name)
        if isinstance(_raw(current), Standard):
            with suppress(OSError, ValueError):
                current.flush()
            setattr(sys, name, stream)
    _standard.clear()


def is_bounded() -> bool:
    return os.getpid() == _arbiter


class Way:
    """A way of the arbiter to the file behind a descriptor without waiting."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._own = -1
        """An open file of ours on which writes do not wait; -1: there is none."""
        self._socket: socket.socket | None = None
        self._may_wait = False
        self._leads_to: tuple[int, int] | None = None
        """Device and inode: a rotation puts another file under the descriptor."""
        self._waits_from = 0.0
        self._torn = False
        """The beginning of a line was taken, and not its end."""

    def write(self, data: bytes) -> None:
        """Writes all of `data`, or raises OSError."""
        found = os.fstat(self._descriptor)
        if self._leads_to != (found.st_dev, found.st_ino):
            self._look(found)
        rest = memoryview(b"\n" + data if self._torn else data)
        length = len(rest)
        until: float | None = None
        while rest:
            try:
                rest = rest[self._write_some(rest) :]
            except BlockingIOError:
                until = self._until() if until is None else until
                if not self._has_room(until - time.monotonic()):
                    self._torn = self._torn or len(rest) < length
                    raise TimeoutError("its reader takes nothing") from None
        self._torn = False

    def close(self) -> None:
        if self._own >= 0:
            os.close(self._own)
            self._own = -1
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _look(self, found: os.stat_result) -> None:
        self.close()
        self._leads_to, self._torn = (found.st_dev, found.st_ino), False
        if stat.S_ISSOCK(found.st_mode):
            self._socket = socket.socket(fileno=os.dup(self._descriptor))
            self._socket.settimeout(None)  # a default timeout would make the file of all non-blocking
        self._may_wait = not any(kind(found.st_mode) for kind in (stat.S_ISREG, stat.S_ISBLK, stat.S_ISSOCK))
        if self._may_wait:
            flags = os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            with suppress(OSError):  # no /proc, or the file of another user
                self._own = os.open(f"/proc/self/fd/{self._descriptor}", flags)

    def _write_some(self, data: memoryview) -> int:
        if self._socket is not None:
            return self._socket.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        if self._own >= 0 or not self._may_wait:
            return os.write(self._descriptor if self._own < 0 else self._own, data)
        if NOWAIT is not None:
            try:
                return os.pwritev(self._descriptor, [data], -1, NOWAIT)
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL):
                    raise
        if not self._has_room(0):
            raise BlockingIOError
        return os.write(self._descriptor, data[:PIPE_BUF])

    def _until(self) -> float:
        """When a write that has begun gives up."""
        now = time.monotonic()
        if now < self._waits_from:
            return now
        self._waits_from = now + PERIOD
        return now + PATIENCE

    def _has_room(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        return bool(poll.poll(max(0, int(seconds * 1000))))


class Standard(io.RawIOBase):
    """The raw file below `sys.stdout` or `sys.stderr` of the arbiter. Its reader never fails a hook that prints."""

    mode = "wb"

    def __init__(self, number: int, name: str) -> None:
        self.name = name
        self._number = number
        self._way = Way(number)
        self._lost = 0

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._number

    def isatty(self) -> bool:
        return os.isatty(self._number)

    def write(self, data: Any) -> int:
        text = bytes(data)
        if not is_bounded():
            rest = memoryview(text)
            while rest:
                rest = rest[os.write(self._number, rest) :]
            return len(text)
        told = f"tricorn: {self._lost} piece(s) of {self.name} were lost: its reader takes nothing\n".encode()
        try:
            self._way.write(told + text if self._lost else text)
            self._lost = 0
        except TimeoutError:
            self._lost += 1
        return len(text)


def _raw(stream: Any) -> Any:
    """Returns the raw file below a text stream; with PYTHONUNBUFFERED there is no buffer between them."""
    buffer = getattr(stream, "buffer", None)
    return getattr(buffer, "raw", buffer)


def _is_of(stream: io.TextIOWrapper, number: int) -> bool:
    raw = _raw(stream)
    with suppress(OSError, ValueError):
        return isinstance(raw, io.FileIO) and raw.fileno() == number
    return False


def _bounded(stream: io.TextIOWrapper, raw: Standard) -> io.TextIOWrapper:
    """Makes a text stream like this one that writes another way."""
    return io.TextIOWrapper(
        raw if stream.buffer is _raw(stream) else io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
