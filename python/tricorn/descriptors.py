"""Descriptors that come with a message over a unix socket (SCM_RIGHTS, unix(7))."""

from __future__ import annotations

from array import array

from tricorn.unpatched import socket


def receive(sock: socket.socket, size: int, most: int, flags: int) -> tuple[bytes, list[int]]:
    """Receives up to `size` bytes and the descriptors of a message, which the caller then owns.

    In place of `socket.recv_fds`, which forgets its flags: it would wait for a socket whose other owners have made it
    blocking, and its descriptors would be inherited by programs.
    """
    descriptors = array("i")
    data, parts, _, _ = sock.recvmsg(size, socket.CMSG_SPACE(most * descriptors.itemsize), flags)
    for level, kind, content in parts:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(content[: len(content) - len(content) % descriptors.itemsize])
    return data, list(descriptors)
