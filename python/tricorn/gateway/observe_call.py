"""Observers of requests in tornado and aiohttp (`call`): the hooks and loggers of `observe`.

They see an environ. What `pre_request` changes in it, the application does not see: it was told of its request by then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tricorn.gateway import observe

if TYPE_CHECKING:
    from tricorn.config.config import Config
    from tricorn.gateway.call import Call
    from tricorn.log import Logger

Before = Callable[["Call"], tuple[object, BaseException | None]]
After = Callable[[Any, str, observe.Headers, int, int], object]


def callbacks(worker: object, config: Config, logger: Logger) -> tuple[Before | None, After | None]:
    """The two callbacks of `CallGateway`; None where there is nothing to observe."""
    inner_before, inner_after = observe.callbacks(worker, config, logger)
    if inner_before is None and inner_after is None:
        return None, None

    def before(call: Call) -> tuple[object, BaseException | None]:
        environ = environ_of(call)
        try:
            return (environ, None if inner_before is None else inner_before(environ)), None
        except BaseException as error:
            return (environ, None), error  # `after` is called for a request that was refused, too

    def after(token: Any, status: str, headers: observe.Headers, sent: int, micros: int) -> None:
        environ, request = token
        if inner_after is not None:
            inner_after(environ, request, status, headers, sent, micros)

    return before, after


def environ_of(call: Call) -> observe.Environ:
    """Makes the environ (PEP 3333) that a WSGI application would get, without the body."""
    method, target, protocol = call.head
    path, _, query = target.partition("?")
    environ: observe.Environ = {
        "REQUEST_METHOD": method,
        "RAW_URI": target,
        "SCRIPT_NAME": "",
        "PATH_INFO": observe.decoded(path),
        "QUERY_STRING": query,
        "SERVER_PROTOCOL": protocol,
        "wsgi.url_scheme": call.scheme,
    }
    if call.peer is not None:
        environ |= {"REMOTE_ADDR": call.peer[0], "REMOTE_PORT": str(call.peer[1])}
    for name, values in call.fields.items():
        key = observe.key_of(name)
        environ[key] = observe.separator(key).join(values)
    return environ | observe.named_server(environ.get("HTTP_HOST", ""), call.scheme)
