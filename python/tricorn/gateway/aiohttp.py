"""aiohttp applications: aiohttp's own protocol parses and answers, on connections that are the reactor's.

    reactor ─▶ Transport ─▶ aiohttp.web.RequestHandler ─▶ the application
       ▲                           │ write
       └── reply machine ◀─────────┘

`web.AppRunner.server` makes protocols, which see an `asyncio.Transport`. Beside public interfaces are used: a method
of the protocol (`Handler.log_access`), what a server makes protocols of, and where the properties of a request have its
route (`transport/aiohttp.rs`). Where the latter two are not as expected, public ones do.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from aiohttp import web

from tricorn.gateway.reports import to_log
from tricorn.shutdown import NOTICE

if TYPE_CHECKING:
    import asyncio

    from tricorn._core import TransportGateway
    from tricorn.config.config import Config
    from tricorn.log import Logger


class Runner(web.AppRunner):
    """Sends `on_shutdown` once: it comes early, and `cleanup` would send it again."""

    _told = False

    async def shutdown(self) -> None:
        if not self._told:
            self._told = True
            await super().shutdown()


class Handler(web.RequestHandler):
    """The protocol of a connection, whose transport is told when a handler is done with its response.

    A handler that writes less than its Content-Length leaves aiohttp waiting for the next request, and the client for
    the rest. aiohttp logs each response when the handler is done with it, and nothing else says that.
    """

    __slots__ = ()

    def log_access(self, request: web.BaseRequest, response: web.StreamResponse, time: Any) -> None:
        """`time`: when the request began, by the loop's clock; `None` where nothing is logged."""
        if self.access_logger is not None:  # of a runner that the application has made
            super().log_access(request, response, time)
        transport: Any = self.transport
        if transport is not None:
            transport.response_ended()

    def handle_error(self, request: web.BaseRequest, *args: Any, **kwargs: Any) -> web.StreamResponse:
        self._current_request = request
        try:
            return super().handle_error(request, *args, **kwargs)
        finally:
            self._current_request = None

    def log_exception(self, *args: Any, **kwargs: Any) -> None:
        """Names the request, as every class does; aiohttp names the client's address.

        A handler that writes to a stream that the server has ended, since the worker leaves, has made no mistake.
        """
        is_gone = self.transport is None or self.transport.is_closing()
        if is_gone and NOTICE.is_given and isinstance(kwargs.get("exc_info"), ConnectionError):
            self.logger.debug("Worker shutting down: ended a response", exc_info=kwargs["exc_info"])
            return
        if (request := self._current_request) is not None:
            args = ("Error handling request %s %s", request.method, request.rel_url.raw_path)
        super().log_exception(*args, **kwargs)


async def make_runner(found: Any, config: Config, log: Logger) -> web.AppRunner:
    """A runner that is not set up: of an application, or what a coroutine function makes (an application or a runner).

    Raises TypeError for anything else.
    """
    if inspect.iscoroutinefunction(found):
        found = await found()
    if isinstance(found, web.AppRunner):
        return found
    if not isinstance(found, web.Application):
        raise TypeError(f"expected a web.Application or a coroutine function that returns one, not {found!r}")
    return Runner(
        found,
        logger=log,
        access_log=None,
        shutdown_timeout=config.graceful_timeout * LAST_RESORT,
        **HANDLER,
    )


def make_gateway(
    runner: web.AppRunner,
    loop: asyncio.AbstractEventLoop,
    config: Config,
    log: Logger,
    *,
    on_leave: Callable[[], object],
    before: Callable[..., Any] | None = None,
    after: Callable[..., Any] | None = None,
) -> TransportGateway:
    """`on_leave` is called when the worker is to leave; `before` and `after` around each request (`observe_asgi`)."""
    from tricorn._core import RequestFactory, TransportGateway

    server = runner.server
    assert server is not None, "the runner is not set up"
    has_front_ends = any(door.protocol for door in config.doors)
    if config.trusted_proxy_headers or config.proxy_protocol != "off" or has_front_ends:
        server.request_factory = _believing(server.request_factory)
    if config.route_metrics:
        server.request_factory = RequestFactory(server.request_factory).make

    return TransportGateway(
        _protocols(server, loop),
        loop,
        *to_log(log),
        on_leave,
        before,
        after,
        disconnect_grace=config.asgi_disconnect_grace_period,
        grace_is_given=not config.is_default("asgi_disconnect_grace_period"),
    )


def _protocols(server: web.Server, loop: asyncio.AbstractEventLoop) -> Callable[[], web.RequestHandler]:
    """Makes protocols as `server` does when it is called, without that call where it shows what it makes them of."""
    arguments = getattr(server, "_kwargs", None)
    if isinstance(arguments, dict):
        make = partial(Handler, server, loop=loop, **arguments)
        with suppress(TypeError):  # a version that does not know one of them; `server` leaves all of them out then
            make()
            return make

    def protocol() -> web.RequestHandler:
        made = server()
        made.__class__ = Handler
        return made

    return protocol


def _believing(make: Callable[..., web.BaseRequest]) -> Callable[..., Any]:
    """Requests as front ends and balancers tell of them: aiohttp asks for the client's address once a connection."""

    def make_request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        request = make(message, payload, protocol, writer, task)
        peer, scheme = (protocol.transport.get_extra_info(name) for name in ("peername", "scheme"))
        return request.clone(remote=str(peer[0] if peer else ""), scheme=str(scheme or request.scheme))

    return make_request


def send_files_natively(loop: asyncio.AbstractEventLoop) -> None:
    """`loop.sendfile` knows only its own transports; with ours the reactor sends the file."""
    from tricorn._core import Transport

    own = loop.sendfile

    async def sendfile(
        transport: Any, file: Any, offset: int = 0, count: int | None = None, *, fallback: bool = True
    ) -> int:
        if not isinstance(transport, Transport):
            return await own(transport, file, offset, count, fallback=fallback)
        # A response of another framing, and a file that is none: the caller sends the pieces.
        with suppress(OSError):
            if count is not None and transport.write_file(file.fileno(), offset, count):
                return count
        raise NotImplementedError

    loop.sendfile = sendfile  # type: ignore[method-assign]


LAST_RESORT = 0.04
"""The part of `graceful_timeout` that handlers have when it is nearly over, before and after they are cancelled."""

NEVER = 365 * 24 * 3600.0

HANDLER: dict[str, Any] = {
    # Idle connections are the reactor's.
    "keepalive_timeout": NEVER,
    # What the application has left of a body, the reactor reads.
    "lingering_time": 0,
    "tcp_keepalive": False,
    # The reactor has checked these (limit_request_line, limit_request_fields, limit_request_field_size).
    "max_line_size": 1 << 24,
    "max_field_size": 1 << 24,
    "max_headers": 1 << 16,
}
"""Settings of `RequestHandler` whose work the core does."""
