"""Streams of tornado's requests: `connection.stream`, and the one that a handler takes for itself (`detach`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tornado.iostream import IOStream

from tricorn.gateway import taken_socket
from tricorn.gateway.tls_session import Session

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


class StreamView:
    """View of the stream for handlers that ask for the client's address or whether it is connected."""

    def __init__(
        self,
        session: Callable[[], Mapping[str, Any] | None],
        is_over: Callable[[], bool],
        close: Callable[[], object],
    ) -> None:
        """`session`: its facts, if the client speaks TLS."""
        self._session = session
        self._is_over = is_over
        self._close = close

    def closed(self) -> bool:
        """Whether the connection is closed, or another request's."""
        return self._is_over()

    def close(self) -> None:
        self._close()

    def set_nodelay(self, value: bool) -> None:
        """The core sends at once anyway."""

    @property
    def socket(self) -> Session:
        """Socket for `request.get_ssl_certificate`. None without TLS."""
        facts = self._session()
        if facts is None:
            raise AttributeError("The connection is in the clear: it has no certificates.")
        return Session(facts)
