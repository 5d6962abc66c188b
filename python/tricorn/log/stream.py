"""A descriptor under a log: every write is one system call, and none of them ever raises into the server.

Workers wait for the reader of a pipe; the arbiter does not (`bounded`).

Why not a text file of Python's: what its buffers cannot get rid of (a dead pipe, a full disk) stays in them, is
written twice when a fork copies it, and makes the interpreter exit with 120. A line written whole to a descriptor
that was opened for appending is not torn either, however many workers share the file.
"""

from __future__ import annotations

import io
import stat
from contextlib import suppress
from typing import TYPE_CHECKING

from tricorn.log import bounded
from tricorn.record import Record
from tricorn.unpatched import os, select

if TYPE_CHECKING:
    from tricorn.config.config import Config

PATIENCE = 1000
"""Milliseconds a full non-blocking pipe is waited for, before what it did not take counts as lost."""


class LogStream(io.TextIOBase):
    """A text stream for code that finds it in `handler.stream`. It closes its descriptor when it is collected."""

    encoding = "utf-8"
    errors = "backslashreplace"

    def __init__(self, descriptor: int, *, owned: bool) -> None:
        """`owned`: closing the stream closes the descriptor. Those of the process (1, 2) stay open."""
        self._descriptor = descriptor
        self._owned = owned
        self._way = bounded.Way(descriptor)

    def write(self, text: str) -> int:
        """Writes all of `text`, or raises OSError."""
        data = text.encode(self.encoding, self.errors)
        if bounded.is_bounded():
            self._way.write(data)
            return len(text)
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                # A process that shares the terminal or the pipe with us has made it non-blocking.
                poll = select.poll()
                poll.register(self._descriptor, select.POLLOUT)
                if not poll.poll(PATIENCE):
                    raise TimeoutError("its reader takes nothing") from None
        return len(text)

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def close(self) -> None:
        if not self.closed:
            self._way.close()
            if self._owned:
                os.close(self._descriptor)
        super().close()


class Ownership(Record):
    """Owner and permissions of a log file."""

    user: int = -1
    group: int = -1
    umask: int | None = None
    """The setting; None: it is not set, and that of the process counts."""

    @classmethod
    def of(cls, config: Config) -> Ownership:
        return cls(config.user, config.group, None if config.is_default("umask") else config.umask)


def open_file(path: str, wanted: Ownership) -> LogStream:
    """Opens `path` for appending; raises OSError. No program of the application's inherits it.

    The workers' user gets it, to open it anew after a rotation. Only what is a regular file: `/dev/null` given to a
    user by a server that root started would be everybody's problem. What is not ours to give stays as it is.
    A FIFO without a reader is refused (ENXIO): a reload would wait for one, and the arbiter with it.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY | os.O_NONBLOCK
    is_new = True
    try:
        descriptor = os.open(path, flags | os.O_EXCL, 0o666)
    except FileExistsError:
        descriptor, is_new = os.open(path, flags, 0o666), False
    os.set_blocking(descriptor, True)
    with suppress(OSError):
        found = os.fstat(descriptor)
        if is_new and wanted.umask is not None:
            os.fchmod(descriptor, 0o666 & ~wanted.umask)
        if stat.S_ISREG(found.st_mode) and (found.st_uid, found.st_gid) != (wanted.user, wanted.group):
            os.fchown(descriptor, wanted.user, wanted.group)
    return LogStream(descriptor, owned=True)
