"""What takes whole requests, under tornado: a WSGI application in tornado's container."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from tornado.httputil import (
    HTTPConnection,
    HTTPHeaders,
    HTTPMessageDelegate,
    HTTPServerConnectionDelegate,
    HTTPServerRequest,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.wsgi import WSGIContainer

if TYPE_CHECKING:
    from tricorn.gateway.tornado import Connection


class RequestDelegate(HTTPServerConnectionDelegate):
    """For what takes whole requests, as a WSGIContainer does."""

    def __init__(self, callback: Callable[[HTTPServerRequest], object]) -> None:
        self.callback = callback

    def start_request(self, server_conn: object, request_conn: HTTPConnection) -> HTTPMessageDelegate:
        return _WholeRequest(self.callback, request_conn)


class _WholeRequest(HTTPMessageDelegate):
    def __init__(self, callback: Callable[[HTTPServerRequest], object], connection: HTTPConnection) -> None:
        self.callback = callback
        self.connection = connection
        self.chunks: list[bytes] = []

    def headers_received(self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders) -> None:
        assert isinstance(start_line, RequestStartLine)
        self.request = HTTPServerRequest(connection=self.connection, start_line=start_line, headers=headers)

    def data_received(self, chunk: bytes) -> None:
        self.chunks.append(chunk)

    def finish(self) -> None:
        self.request.body = b"".join(self.chunks)
        self.callback(self.request)

    def on_connection_close(self) -> None:
        self.chunks.clear()


class Container(WSGIContainer):
    """tornado's, which leaves the client of an application that fails without an answer."""

    async def handle_request(self, request: HTTPServerRequest) -> None:
        try:
            await super().handle_request(request)
        except Exception as error:
            cast("Connection", request.connection).failed(error)
