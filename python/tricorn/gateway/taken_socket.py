"""`environ["gunicorn.socket"]` as an object: the client's connection, looked at or taken over.

`socket.socket` is looked up when a socket is made: under the greenlet classes it is the cooperative one by then.
"""

from __future__ import annotations

import socket
from typing import Any


def show(fd: int) -> socket.socket:
    """A socket over `fd`, which it owns, to be asked what it is connected to."""
    return socket.socket(fileno=fd)


def take(fd: int, unread: bytes, blocks: bool) -> socket.socket:
    """A socket over `fd`, which it owns, for an application that speaks another protocol on it.

    `unread` is what the client sent behind its request: the first that is received. `blocks`: the descriptor is made a
    blocking one, for callers that have a thread.
    """
    taken = _with_unread(fd, unread) if unread else socket.socket(fileno=fd)
    if blocks:
        taken.setblocking(True)
    return taken


def _with_unread(fd: int, unread: bytes) -> socket.socket:
    class WithUnread(socket.socket):
        """Gives out first what had been read before it was made."""

        _unread = unread

        def _pop(self, size: int, flags: int) -> bytes:
            data = self._unread[:size]
            if not flags & socket.MSG_PEEK:
                self._unread = self._unread[size:]
            return data

        def recv(self, size: int, flags: int = 0, *rest: Any) -> bytes:
            return self._pop(size, flags) if self._unread else super().recv(size, flags, *rest)

        def recv_into(self, buffer: Any, size: int = 0, flags: int = 0, *rest: Any) -> int:
            if not self._unread:
                return super().recv_into(buffer, size, flags, *rest)
            view = memoryview(buffer).cast("B")
            data = self._pop(size or len(view), flags)[: len(view)]
            view[: len(data)] = data
            return len(data)

    return WithUnread(fileno=fd)
