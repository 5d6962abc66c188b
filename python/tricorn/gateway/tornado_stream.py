"""A connection that a tornado handler has taken for itself (`detach`), as tornado's IOStream."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tornado.iostream import IOStream

from tricorn.gateway import taken_socket

if TYPE_CHECKING:
    from tricorn.gateway.call import Call


class TakenStream(IOStream):
    """Stream over a taken socket. Bytes read after the head come first; the call ends when the stream is closed."""

    def __init__(self, call: Call) -> None:
        fd, self._unread, self.told = call.take_socket()
        self._call = call
        super().__init__(taken_socket.take(fd, b"", blocks=False, told=self.told))

    def read_from_fd(self, buf: bytearray | memoryview) -> int | None:
        if not self._unread:
            return super().read_from_fd(buf)
        count = min(len(buf), len(self._unread))
        buf[:count] = self._unread[:count]
        self._unread = self._unread[count:]
        return count

    def close_fd(self) -> None:
        super().close_fd()
        self._call.end()
