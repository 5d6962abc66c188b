"""A descriptor under a log: every write is one system call, and none of them ever raises into the server.

Why not a text file of Python's: what its buffers cannot get rid of (a dead pipe, a full disk) stays in them, is
written twice when a fork copies it, and makes the interpreter exit with 120. A line written whole to a descriptor
that was opened for appending is not torn either, however many workers share the file.
"""

from __future__ import annotations

import stat

from tricorn.unpatched import os, select

ENCODING = "utf-8"
PATIENCE = 1000
"""Milliseconds a full non-blocking pipe is waited for, before what it did not take counts as lost."""


class LogStream:
    """Looks like a text stream, to those who find it in `handler.stream`."""

    encoding = ENCODING
    errors = "backslashreplace"

    def __init__(self, descriptor: int, *, owned: bool) -> None:
        """`owned`: closing the stream closes the descriptor. Those of the process (1, 2) stay open."""
        self._descriptor = descriptor
        self._owned = owned
        self.closed = False

    def write(self, text: str) -> int:
        """Writes all of `text`, or raises OSError."""
        rest = memoryview(text.encode(ENCODING, self.errors))
        while rest:
            try:
                rest = rest[os.write(self._descriptor, rest) :]
            except BlockingIOError:
                # Whoever shares the terminal or the pipe with us has made it non-blocking.
                self._wait()
        return len(text)

    def _wait(self) -> None:
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        if not poll.poll(PATIENCE):
            raise TimeoutError("nobody reads from it")

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """There is nothing to flush."""

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        if self._owned and not self.closed:
            os.close(self._descriptor)
        self.closed = self.closed or self._owned

    def __del__(self) -> None:
        """The log of an earlier configuration goes when nobody has it any more."""
        self.close()


def open_file(path: str) -> LogStream:
    """Opens `path` for appending; raises OSError."""
    return LogStream(open_descriptor(path), owned=True)


def open_descriptor(path: str) -> int:
    """A descriptor that no program of the application's inherits."""
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY, 0o666)


def give_away(descriptor: int, user: int, group: int) -> None:
    """Lets the workers' user open the file anew after a rotation.

    Only what is a regular file: `/dev/null` given to a user by a server that root started would be everybody's
    problem. What is not ours to give stays as it is, as with gunicorn.
    """
    try:
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and (found.st_uid, found.st_gid) != (user, group):
            os.fchown(descriptor, user, group)
    except OSError:
        pass
