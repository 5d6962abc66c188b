"""`environ["gunicorn.socket"]` as an object: the client's connection, looked at or taken over.

`socket.socket` is looked up when a socket is made: under the greenlet classes it is the cooperative one by then.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Mapping
from typing import Any

from tricorn.gateway.tls_session import Session

Names = tuple[Any, Any]
"""Addresses of the client's end and of ours, in Python's form."""


def show(fd: int) -> socket.socket:
    """A socket over `fd`, which it owns, to be asked what it is connected to."""
    return socket.socket(fileno=fd)


def names(fd: int) -> Names:
    """Returns the addresses of both ends of the connection, and closes `fd`."""
    with socket.socket(fileno=fd) as shown:
        try:
            return shown.getpeername(), shown.getsockname()
        except OSError:  # the client has left
            return None, shown.getsockname()


def take(fd: int, unread: bytes, blocks: bool, told: Mapping[str, Any] | None = None) -> socket.socket:
    """A socket over `fd`, which it owns, for an application that speaks another protocol on it.

    `unread` is what the client sent behind its request: the first that is received. `blocks`: the descriptor is made a
    blocking one, for callers that have a thread. `told`: what is known of a client that speaks TLS; then `fd` is one
    end of a pair, and the server has the other one.
    """
    if told is not None:
        taken = _of_session(fd, told)
    else:
        taken = _with_unread(fd, unread) if unread else socket.socket(fileno=fd)
    if blocks:
        taken.setblocking(True)
    return taken


def _of_session(fd: int, told: Mapping[str, Any]) -> socket.socket:
    class OfSession(socket.socket):
        """Knows what the client's connection is called, and its session."""

    taken, session, (peer, own) = OfSession(fileno=fd), Session(told), told["names"]

    def getpeername() -> Any:
        if peer is None:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return peer

    # Of the object: eventlet's sockets have what they take from Python's there, and would hide methods of a class.
    for answer in (session.getpeercert, session.cipher, session.version, session.selected_alpn_protocol, getpeername):
        setattr(taken, answer.__name__, answer)
    setattr(taken, "getsockname", lambda: own)  # noqa: B010 (mypy knows it as a method)
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
