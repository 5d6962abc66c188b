"""Glue between an ASGI application and the core."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tricorn.gateway.reports import to_log

if TYPE_CHECKING:
    import asyncio

    from tricorn._core import AsgiGateway
    from tricorn.config.config import Config
    from tricorn.log import Logger


def make_gateway(
    application: Callable[..., Any],
    loop: asyncio.AbstractEventLoop,
    state: dict[str, Any],
    config: Config,
    log: Logger,
    *,
    before: Callable[..., Any] | None = None,
    after: Callable[..., Any] | None = None,
) -> AsgiGateway:
    """`state` is the lifespan's; `before` and `after` are called around each request (`observe_asgi`)."""
    from tricorn._core import AsgiGateway

    return AsgiGateway(
        application,
        loop,
        *to_log(log),
        before=before,
        after=after,
        state=state,
        root_path=config.root_path,
        disconnect_grace=config.asgi_disconnect_grace_period,
        grace_is_given=not config.is_default("asgi_disconnect_grace_period"),
        pathsend=config.asgi_pathsend,
        websocket_max_message_size=config.websocket_max_message_size,
        websocket_ping_interval=config.websocket_ping_interval,
        websocket_ping_timeout=config.websocket_ping_timeout,
        websocket_compression=config.websocket_compression,
    )
