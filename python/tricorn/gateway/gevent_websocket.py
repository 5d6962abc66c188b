"""`environ["wsgi.websocket"]`, the interface of gevent-websocket, over a connection that is taken.

simple-websocket speaks the protocol. Its socket and its thread are gevent's, since the worker class has patched both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

Application = Callable[..., Iterable[bytes]]


class WebSocketError(OSError):
    """gevent-websocket's: the connection is over."""


class WebSocket:
    """WebSocket with the interface of gevent-websocket."""

    def __init__(self, connection: Any, environ: dict[str, Any], error: type[Exception]) -> None:
        from simple_websocket import ConnectionClosed

        self._connection = connection
        self._over = ConnectionClosed
        self._error = error
        self._is_told = False
        """The application knows that it is closed."""
        self.environ = environ
        self.path = environ.get("PATH_INFO", "")
        self.origin = environ.get("HTTP_ORIGIN")
        self.protocol = connection.subprotocol
        self.version = environ.get("HTTP_SEC_WEBSOCKET_VERSION")

    @property
    def closed(self) -> bool:
        return not self._connection.connected

    def receive(self) -> str | bytes | None:
        """A message; None when the client has closed, and an error when it is asked again."""
        if self._is_told:
            raise self._error(DEAD)
        try:
            message: str | bytes = self._connection.receive()
        except self._over:
            self._is_told = True
            return None
        return message

    def send(self, message: Any, binary: bool | None = None) -> None:
        """Text is sent as text, bytes as bytes, if `binary` does not say otherwise."""
        if binary is None:
            binary = isinstance(message, (bytes, bytearray, memoryview))
        if binary:
            message = message.encode() if isinstance(message, str) else bytes(message)
        elif not isinstance(message, str):
            message = bytes(message).decode()
        try:
            self._connection.send(message)
        except (self._over, OSError):
            self._is_told = True
            raise self._error(DEAD) from None

    def close(self, code: int = 1000, message: str | bytes = "") -> None:
        text = message.decode(errors="replace") if isinstance(message, bytes) else message
        with suppress(self._over, OSError):
            self._connection.close(code, text or None)


def with_websockets(
    application: Application, error: type[Exception], *, max_message_size: int, ping_interval: float
) -> Application:
    """The same for requests; for a handshake it is called with the open connection, and answers through that only."""
    from simple_websocket import Server
    from simple_websocket.errors import ConnectionError as Refused
    from wsproto.utilities import ProtocolError

    def call(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ.get("HTTP_UPGRADE", "").lower() != "websocket":
            return application(environ, start_response)
        try:
            connection = Server(environ, max_message_size=max_message_size or None, ping_interval=ping_interval or None)
        except (ProtocolError, Refused) as reason:
            body = f"No WebSocket: {reason}".encode()
            start_response("400 Bad Request", [("Content-Type", "text/plain"), ("Content-Length", str(len(body)))])
            return [body]
        websocket = environ["wsgi.websocket"] = WebSocket(connection, environ, error)
        try:
            _exhaust(application(environ, _no_response))
        except error:
            pass  # the client has left
        finally:
            websocket.close()
        return []

    return call


def _no_response(*_: object) -> Callable[[bytes], object]:
    return lambda data: None


def _exhaust(result: Iterable[bytes]) -> None:
    try:
        for _ in result:
            pass
    finally:
        close = getattr(result, "close", None)
        if close is not None:
            close()


DEAD = "Socket is dead"
