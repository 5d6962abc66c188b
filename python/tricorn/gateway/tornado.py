"""tornado applications on our reactor, through tornado's own interfaces (`tornado.httputil`).

    Call ──▶ Server.begin ──▶ start_request, headers_received, data_received …, finish    of the application's delegate
    Call ◀── Connection   ◀── write_headers, write, finish, detach                        of the application

What arrives was parsed and checked by the core; what is sent is framed and kept honest by it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from traceback import walk_tb
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from tornado.gen import convert_yielded
from tornado.httputil import (
    HTTPConnection,
    HTTPHeaders,
    HTTPInputError,
    HTTPMessageDelegate,
    HTTPOutputError,
    HTTPServerConnectionDelegate,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.iostream import IOStream, StreamClosedError
from tornado.netutil import is_valid_ip

from tricorn.gateway.call import ACCEPTED, BEHIND, EXCESS
from tricorn.gateway.reports import to_log
from tricorn.gateway.tornado_headers import fields_of, make_headers
from tricorn.gateway.tornado_stream import StreamView, TakenStream
from tricorn.gateway.tornado_wsgi import RequestDelegate, wsgi_of

if TYPE_CHECKING:
    from tricorn._core import CallGateway
    from tricorn.config.config import Config
    from tricorn.gateway.call import Call
    from tricorn.log import Logger

Future = asyncio.Future[None]

MAX_BODY = 100 * 1024 * 1024
"""The largest body unless a handler says otherwise (`set_max_body_size`): tornado's own default."""
TURN = 1024 * 1024
"""Bytes of a body after which other requests get their turn."""


def make_gateway(
    application: Any,
    loop: asyncio.AbstractEventLoop,
    config: Config,
    log: Logger,
    *,
    before: Callable[..., Any] | None = None,
    after: Callable[..., Any] | None = None,
) -> CallGateway:
    """`before` and `after` are called around each request (`observe_call`)."""
    from tricorn._core import CallGateway

    server = Server(application, loop, tells_routes=config.route_metrics > 0)
    return CallGateway(
        loop,
        server.connect,
        server.begin,
        *to_log(log),
        before=before,
        after=after,
        leave=server.leave,
        dismiss=server.dismiss,
        disconnect_grace=config.asgi_disconnect_grace_period,
        grace_is_given=not config.is_default("asgi_disconnect_grace_period"),
    )


class Server:
    """Passes requests to applications with tornado's interfaces (`wsgi_of` tells what does not)."""

    def __init__(self, application: Any, loop: asyncio.AbstractEventLoop, *, tells_routes: bool = False) -> None:
        self.delegate = delegate_of(application)
        self.tells_routes = tells_routes
        self.loop = loop
        self.sent: Future = loop.create_future()
        """Finished future, returned by writes that need no waiting."""
        self.sent.set_result(None)
        self.websockets: WeakKeyDictionary[Any, None] = WeakKeyDictionary()
        """Handlers whose connections are WebSockets, the oldest first."""
        self._staying: deque[Any] = deque()
        """While the worker leaves: those that are still to be told so."""
        self._leaving = 0
        is_told = type(self.delegate).on_close is not HTTPServerConnectionDelegate.on_close
        self._connection_class = _ToldConnection if is_told else ServerConnection

    def connect(self, call: Call) -> ServerConnection:
        """Makes the object that stands for an open connection (`server_conn`), at its first request."""
        return self._connection_class(call, self)

    def begin(self, call: Call, server_conn: ServerConnection) -> Connection:
        """Begins to answer a request; raises nothing."""
        fields = call.fields
        connection = Connection(call, server_conn, fields)
        delegate = None
        try:
            delegate = connection.delegate = self.delegate.start_request(server_conn, connection)
            waits = delegate.headers_received(make_start_line(call.head), make_headers(fields))
            if waits is None and not call.has_body:
                connection.is_reading = False
                delegate.finish()
                connection.delegate = None
                return connection
        except Exception as error:
            connection.delegate_failed(error)
            return connection
        connection.read_body(waits)
        return connection

    def leave(self, code: int) -> int:
        """The server goes away (RFC 6455, section 7.4.1: 1001; 1012: it comes again). How many are to be told."""
        if not self._leaving:
            self._leaving = code
            self._staying.extend(self.websockets)
        return len(self._staying)

    def dismiss(self, most: int) -> None:
        """Tells so many of them, the oldest first. What a `close` raises is raised at the end."""
        failure: Exception | None = None
        for _ in range(min(most, len(self._staying))):
            try:
                self._staying.popleft().close(self._leaving)
            except Exception as error:
                failure = error
        if failure is not None:
            raise failure

    def add_websocket(self, handler: Any) -> None:
        """One that opens while the server leaves is told as well, when it is open."""
        self.websockets[handler] = None
        if self._leaving:
            self.loop.call_soon(handler.close, self._leaving)


class ServerConnection:
    """A client's connection, which brings request after request: what delegates know as `server_conn`."""

    def __init__(self, call: Call, server: Server) -> None:
        self.server = server
        self.is_trusted = call.is_trusted
        self.peer = call.peer
        # A stranger claims nothing: https is then what a balancer has announced, or a front end's vars have said.
        self.context = Context(self.peer, "http" if self.is_trusted else call.scheme)

    def context_for(self, call: Call, fields: dict[str, list[str]]) -> Context:
        """Returns the client of a request: the peer, or the client that a trusted peer names."""
        if not self.is_trusted:
            return self.context if call.scheme == self.context.protocol else Context(self.peer, call.scheme)
        forwarded, scheme = call.forwarded, call.scheme
        # X-Real-Ip only where there is no list: front ends that write one leave the other as their client sent it.
        real = fields.get("X-Real-Ip") if forwarded is None else None
        if forwarded is None and real is None and scheme == "http":
            return self.context
        context = Context(self.peer, scheme)
        if forwarded is not None:
            context.remote_ip = forwarded
        elif real is not None and is_valid_ip(real[-1]):
            context.remote_ip = real[-1]
        return context


class _ToldConnection(ServerConnection):
    """Connection for delegates that want to hear of its end."""

    def __del__(self) -> None:
        self.server.delegate.on_close(self)


class Context:
    """Context from which tornado's requests take `remote_ip` and `protocol`."""

    __slots__ = ("address", "address_family", "protocol", "remote_ip")

    def __init__(self, peer: tuple[str, int] | None, protocol: str = "http") -> None:
        self.address: tuple[str, int] | str = peer or ""
        self.protocol = protocol
        if peer is None:
            # What tornado has for peers without an address.
            self.remote_ip, self.address_family = "0.0.0.0", socket.AF_UNIX
        else:
            self.remote_ip = peer[0]
            self.address_family = socket.AF_INET6 if ":" in peer[0] else socket.AF_INET

    def __str__(self) -> str:
        return self.remote_ip if self.address_family != socket.AF_UNIX else str(self.address)


class Connection(HTTPConnection):
    """One request and its answer; the `Listener` of its call.

    Reading: until the body has ended `is_reading`, and its delegate learns if the client leaves. Answering: until
    `finish`, and who has asked with `set_close_callback` learns it.
    """

    delegate: HTTPMessageDelegate | None = None
    is_reading = True
    _is_over = False
    _close_callback: Callable[[], object] | None = None
    _owner: Callable[[], object] | None = None
    """The last close callback: a method of the handler."""
    _waiting: list[Future] | None = None
    _switched: IOStream | None = None
    _told: dict[str, Any] | None = None
    """Facts about the TLS session at the time the socket was taken."""
    _max_body_size = MAX_BODY
    _body_timeout: float | None = None
    _timer: asyncio.TimerHandle | None = None
    _received = 0

    def __init__(self, call: Call, server_conn: ServerConnection, fields: dict[str, list[str]]) -> None:
        self.call = call
        self.server = server_conn.server
        self.context = server_conn.context_for(call, fields)

    # What the application calls: tornado.httputil.HTTPConnection, and what tornado's own connection has besides.

    def write_headers(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders, chunk: bytes | None = None
    ) -> Future:
        _, status, reason = start_line
        if status == 101:
            return self._switch(str(reason), headers)
        sent = self.call.start(int(status), reason, fields_of(headers), chunk or b"")
        return self.server.sent if sent == ACCEPTED else self._outcome(sent)

    def write(self, chunk: bytes) -> Future:
        sent = self.call.write(chunk)
        return self.server.sent if sent == ACCEPTED else self._outcome(sent)

    def finish(self) -> None:
        if self._switched is not None:
            return
        if self.server.tells_routes:
            self.call.name_route(self._owner)
        self._is_over = True
        missing = self.call.end()
        if self._waiting:
            self.on_writable()  # the rest is the server's to send
        self._forget()
        if missing:
            raise HTTPOutputError(f"Tried to write {missing} bytes less than Content-Length")

    def set_close_callback(self, callback: Callable[[], object] | None) -> None:
        """Sets a callback for clients that disconnect, or half-close, before the response is complete."""
        self._close_callback = callback
        if callback is not None:
            self._owner = callback

    def set_max_body_size(self, max_body_size: int) -> None:
        """Bytes; for this request. `limit_request_body` holds besides."""
        self._max_body_size = max_body_size

    def set_body_timeout(self, timeout: float) -> None:
        """Seconds that the rest of the body may take; for this request."""
        self._body_timeout = timeout

    def close(self) -> None:
        """Closes the connection."""
        if not self._is_over:
            self.call.abort()
            self.on_gone()

    def detach(self) -> IOStream:
        """The connection is the caller's; it is closed when the stream is."""
        if self.server.tells_routes:
            self.call.name_route(self._owner)
        stream = self._switched or self._take()
        handler = getattr(self._owner, "__self__", None)
        websocket = sys.modules.get("tornado.websocket")
        if websocket is not None and isinstance(handler, websocket.WebSocketHandler):
            self.server.add_websocket(handler)
        self._is_over = True
        self._forget()
        self._switched = None
        return stream

    @property
    def stream(self) -> StreamView:
        """The part of a stream that applications use."""
        return StreamView(lambda: self._told or self.call.tls, lambda: self._is_over, self.close)

    # What the core tells: a Listener.

    def on_readable(self) -> None:
        self._pump()

    def on_writable(self) -> None:
        waiting, self._waiting = self._waiting, None
        for future in waiting or ():
            if not future.done():
                future.set_result(None)

    def on_hangup(self) -> None:
        callback, self._close_callback = self._close_callback, None
        if callback is not None:
            callback()

    def on_gone(self) -> None:
        if self._is_over:
            return
        self._is_over = True
        callback = self._close_callback
        waiting, self._waiting = self._waiting, None
        for future in waiting or ():
            if not future.done():
                future.set_exception(StreamClosedError())
                future.exception()  # not every writer waits for it
        was_reading = self.is_reading
        self._forget()
        if not was_reading and callback is not None:
            try:
                callback()
            except Exception as error:
                self.call.fail(error)

    # Reading the body.

    def read_body(self, waits: Awaitable[None] | None) -> None:
        """Gives the body to the delegate, once it is ready for it."""
        if waits is None:
            self._start_reading()
        else:
            self._wait_for(waits, self._start_reading)

    def _start_reading(self) -> None:
        length = self.call.length
        if length is not None and length > self._max_body_size:
            self._too_large("Content-Length too long")
            return
        if self._body_timeout is not None:
            self._timer = self.server.loop.call_later(self._body_timeout, self._too_slow)
        self._pump()

    def _pump(self) -> None:
        """Gives on what has come of the body, until there is no more, or the delegate wants to wait."""
        turn = self._received + TURN
        try:
            while self.is_reading and self.delegate is not None:
                chunk = self.call.read()
                if chunk is None:
                    return
                if not chunk:
                    self._body_ended(self.delegate)
                    return
                self._received += len(chunk)
                if self._received > self._max_body_size:
                    self._too_large("chunked body too large")
                    return
                waits = self.delegate.data_received(chunk)
                if waits is not None:
                    self._wait_for(waits, self._pump)
                    return
                if self._received > turn:
                    self.server.loop.call_soon(self._pump)
                    return
        except ConnectionError:
            self.on_gone()
        except Exception as error:
            self.delegate_failed(error)

    def _body_ended(self, delegate: HTTPMessageDelegate) -> None:
        self.is_reading = False
        self._stop_timer()
        delegate.finish()
        self.delegate = None

    def _wait_for(self, waits: Awaitable[None], then: Callable[[], None]) -> None:
        def done(future: asyncio.Future[Any]) -> None:
            if future.cancelled():
                error: BaseException | None = asyncio.CancelledError()
            else:
                error = future.exception()
            if error is not None:
                self.delegate_failed(error)
            elif self.is_reading and not self._is_over:
                then()

        convert_yielded(waits).add_done_callback(done)

    def _too_slow(self) -> None:
        logging.getLogger("tornado.general").info("Timeout reading body from %s", self.context)
        self.close()

    # Ends.

    def delegate_failed(self, error: BaseException) -> None:
        """A delegate has let an exception out while it was given its request: 400 if that is what it complains of."""
        if isinstance(error, HTTPInputError) and not is_about_answer(error):
            logging.getLogger("tornado.general").info("Malformed HTTP message from %s: %s", self.context, error)
            self._refuse(400, "")
        else:
            self.failed(error)

    def failed(self, error: BaseException) -> None:
        """The application has let an exception out: 500 and a line in the log, if it is not too late for an answer."""
        self._is_over = True
        self.call.fail(error)
        self._forget(at_once=True)

    def _refuse(self, status: int, message: str) -> None:
        self._is_over = True
        self.call.refuse(status, message)
        self._forget(at_once=True)

    def _too_large(self, message: str) -> None:
        logging.getLogger("tornado.general").info("Malformed HTTP message from %s: %s", self.context, message)
        self._refuse(413, message)

    def _forget(self, *, at_once: bool = False) -> None:
        """Lets go of the handler; a delegate that was not given all of the body is told so."""
        self._close_callback = self._owner = None
        if self._timer is not None:
            self._stop_timer()
        delegate, self.delegate = self.delegate, None
        if delegate is None or not (self.is_reading or at_once):
            return
        self.is_reading = False
        # Not in the midst of the handler's own call of `finish`.
        self.server.loop.call_soon(delegate.on_connection_close)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _outcome(self, sent: int) -> Future:
        """Returns the future of a write that was not accepted at once."""
        future: Future = self.server.loop.create_future()
        if sent == BEHIND:
            self._waiting = [*(self._waiting or ()), future]
            return future
        if sent == EXCESS:
            self.close()
            raise HTTPOutputError("Tried to write more data than Content-Length")
        future.set_exception(StreamClosedError())
        future.exception()
        return future

    def _take(self) -> IOStream:
        stream = TakenStream(self.call)
        self._told = stream.told
        return stream

    def _switch(self, reason: str, headers: HTTPHeaders) -> Future:
        """From here on the connection speaks another protocol (RFC 9110, section 15.2.2)."""
        head = [f"HTTP/1.1 101 {reason}", *(f"{name}: {value}" for name, value in headers.get_all()), "", ""]
        if any("\r" in line or "\n" in line for line in head):
            raise ValueError("Illegal characters (CR or LF) in header")
        self.is_reading = False
        self._switched = self._take()
        self._switched.write("\r\n".join(head).encode("latin-1"))
        return self.server.sent


make_start_line = partial(tuple.__new__, RequestStartLine)
"""Makes a start line from a tuple. The class's own constructor is a slower Python function with three parameters."""


def is_about_answer(error: HTTPInputError) -> bool:
    """Whether it is about a field that the application has added to its answer.

    `HTTPHeaders.add` knows neither requests nor answers, and raises the same error for both. Fields of a request are
    added by tornado's parser or by us.
    """
    frames = [frame for frame, _ in walk_tb(error.__traceback__)][-2:]
    modules = [frame.f_globals.get("__name__") for frame in frames]
    is_added = len(frames) == 2 and modules[1] == "tornado.httputil" and frames[1].f_code.co_name == "add"
    return is_added and modules[0] not in ("tornado.httputil", make_headers.__module__)


def delegate_of(application: Any) -> HTTPServerConnectionDelegate:
    """The application itself, if it is tornado's kind; else what calls it."""
    if isinstance(application, HTTPServerConnectionDelegate):
        return application
    if wsgi_of(application) is not None:
        raise TypeError(f"a WSGI application is not called through tornado's interfaces: {application!r}")
    return RequestDelegate(application)
