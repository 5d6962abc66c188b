"""tornado's container of WSGI applications, where an application is one: what calls the rest is `wsgi`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol, cast

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


class Connection(Protocol):
    """The part of `tornado.Connection` that is not tornado's own."""

    def failed(self, error: Exception) -> object: ...


def wsgi_of(application: Any) -> Callable[..., Any] | None:
    """The WSGI application that the core is to call on the loop's thread; None for what tornado's interfaces call.

    A container that does no more than this is unpacked. One that runs its application in threads of its own, or was
    changed, is left as it is.
    """
    if isinstance(application, HTTPServerConnectionDelegate):
        return None
    if not isinstance(application, WSGIContainer):
        return cast("Callable[..., Any]", application)
    is_plain = type(application) is WSGIContainer and _runs_on_the_loop(application)
    return application.wsgi_application if is_plain else None


def _runs_on_the_loop(container: WSGIContainer) -> bool:
    """Whether it was given no executor; before tornado 6.3 there was none."""
    return getattr(container, "executor", None) is getattr(WSGIContainer(container.wsgi_application), "executor", None)


class RequestDelegate(HTTPServerConnectionDelegate):
    """Delegate for a WSGI container, which takes whole requests."""

    def __init__(self, container: WSGIContainer) -> None:
        self.container = container

    def start_request(self, server_conn: object, request_conn: HTTPConnection) -> HTTPMessageDelegate:
        return _WholeRequest(self.container, request_conn)


class _WholeRequest(HTTPMessageDelegate):
    def __init__(self, container: WSGIContainer, connection: HTTPConnection) -> None:
        self.container = container
        self.connection = connection
        self.chunks: list[bytes] = []

    def headers_received(self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders) -> None:
        assert isinstance(start_line, RequestStartLine)
        self.request = HTTPServerRequest(connection=self.connection, start_line=start_line, headers=headers)

    def data_received(self, chunk: bytes) -> None:
        self.chunks.append(chunk)

    def finish(self) -> None:
        self.request.body = b"".join(self.chunks)
        if type(self.container).__call__ is WSGIContainer.__call__ and hasattr(self.container, "handle_request"):
            # As the container does it, which leaves the client of an application that fails without an answer.
            self.task = asyncio.ensure_future(self._handle())
        else:
            self.container(self.request)

    async def _handle(self) -> None:
        try:
            await self.container.handle_request(self.request)
        except Exception as error:
            cast("Connection", self.connection).failed(error)

    def on_connection_close(self) -> None:
        self.chunks.clear()
