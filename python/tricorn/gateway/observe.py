"""Observers of requests: the hooks `pre_request` and `post_request`, and loggers that write the access log themselves.

    before(environ)     pre_request(worker, req)                      an exception: 500, the application is not called
    after(environ, …)   logger.access(resp, req, environ, time), then post_request(worker, req, environ, resp)

Where nothing observes there are no callbacks, and the core never comes to Python for them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tricorn.log import access_of, python_access

if TYPE_CHECKING:
    from tricorn.config.config import Config
    from tricorn.log import Logger

Environ = dict[str, Any]
Headers = list[tuple[str, str]]
Before = Callable[[Environ], object]
After = Callable[[Environ, Any, str, Headers, int, int], object]


class Request:
    """gunicorn's `req`, read from the environ when something is asked for.

    Attributes may be set: a hook finds on `post_request` what it has left on `pre_request`. What `pre_request`
    changes of the method, the target and the header fields, the application sees.
    """

    def __init__(self, environ: Environ) -> None:
        self._environ = environ

    @cached_property
    def proxy_protocol_info(self) -> dict[str, Any] | None:
        """Facts about the connection from the PROXY protocol. None without it."""
        environ = self._environ
        if "PROXY_PROTOCOL" not in environ:
            return None
        return {
            "proxy_protocol": environ["PROXY_PROTOCOL"],
            "client_addr": environ["REMOTE_ADDR"],
            "client_port": int(environ["REMOTE_PORT"] or 0),
            "proxy_addr": environ["PROXY_ADDR"],
            "proxy_port": int(environ["PROXY_PORT"]),
        }

    @cached_property
    def method(self) -> str:
        return str(self._environ["REQUEST_METHOD"])

    @cached_property
    def uri(self) -> str:
        """The request's target as the client sent it."""
        return str(self._environ["RAW_URI"])

    @cached_property
    def path(self) -> str:
        """Returns the raw path without query and fragment."""
        return _without_origin(self.uri.partition("#")[0].partition("?")[0])

    @cached_property
    def query(self) -> str:
        return str(self._environ["QUERY_STRING"])

    @cached_property
    def fragment(self) -> str:
        return self.uri.partition("#")[2]

    @cached_property
    def version(self) -> tuple[int, int]:
        """(1, 1) for HTTP/1.1."""
        major, _, minor = str(self._environ["SERVER_PROTOCOL"]).rpartition("/")[2].partition(".")
        return int(major), int(minor or 0)

    @cached_property
    def headers(self) -> Headers:
        """(`ACCEPT-ENCODING`, value); a field that came several times is here once, its values joined."""
        return _fields(self._environ)

    @cached_property
    def trailers(self) -> Headers:
        return []

    @cached_property
    def body(self) -> Any:
        return self._environ.get("wsgi.input")

    @cached_property
    def scheme(self) -> str:
        return str(self._environ["wsgi.url_scheme"])

    @cached_property
    def peer_addr(self) -> tuple[str, int] | str:
        """(host, port) of the client, or what a unix socket has for it."""
        port = self._environ.get("REMOTE_PORT")
        address = str(self._environ.get("REMOTE_ADDR", ""))
        return (address, int(port)) if port else address

    @cached_property
    def remote_addr(self) -> tuple[str, int] | str:
        return self.peer_addr


class Response:
    """gunicorn's `resp` of a request that is answered."""

    headers_sent = True

    def __init__(self, req: Request, status: str, headers: Headers, sent: int) -> None:
        self.req = req
        self.status = status
        self.headers = headers
        self.sent = sent
        """Bytes of the body."""

    @cached_property
    def status_code(self) -> int | None:
        code = self.status.partition(" ")[0]
        return int(code) if code.isdigit() else None

    @cached_property
    def response_length(self) -> int | None:
        """The application's Content-Length, if it gave one."""
        length = next((value for name, value in self.headers if name.lower() == "content-length"), "")
        return int(length) if length.isdigit() else None


def callbacks(worker: object, config: Config, logger: Logger) -> tuple[Before | None, After | None]:
    """The two callbacks of `WsgiGateway`; None where there is nothing to observe."""
    return _before(worker, config, logger), _after(worker, config, logger)


def _before(worker: object, config: Config, logger: Logger) -> Before | None:
    hook = config.pre_request
    # The default writes a line at debug level, and need not be called to find out that the level drops it.
    if config.is_default("pre_request") and not logger.error_log.isEnabledFor(logging.DEBUG):
        return None

    def before(environ: Environ) -> Request:
        request = Request(environ)
        hook(worker, request)
        _apply_changes(request, environ)
        return request

    return before


def _after(worker: object, config: Config, logger: Logger) -> After | None:
    access = _access(logger) if python_access(config, logger) else None
    hook = None if config.is_default("post_request") else config.post_request
    if access is None and hook is None:
        return None

    def after(environ: Environ, token: Any, status: str, headers: Headers, sent: int, micros: int) -> None:
        request = token if isinstance(token, Request) else Request(environ)
        response = Response(request, status, headers, sent)
        if access is not None:
            access(response, request, environ, micros)
        if hook is not None:
            hook(worker, request, environ, response)

    return after


def _access(logger: Logger) -> Callable[[Response, Request, Environ, int], None]:
    write = access_of(logger)
    from datetime import timedelta  # only where lines of the access log are made in Python

    def access(response: Response, request: Request, environ: Environ, micros: int) -> None:
        try:
            write(response, request, environ, timedelta(microseconds=micros))
        except Exception:  # of a subclass: post_request must come all the same
            logger.exception("Exception in the access log")

    return access


def _without_origin(target: str) -> str:
    """`/path` of `http://host/path`, the form for proxies (RFC 9112, 3.2.2)."""
    if target.startswith("/") or "://" not in target:
        return target
    return "/" + target.partition("://")[2].partition("/")[2]


def _fields(environ: Environ) -> Headers:
    fields = [(key[5:].replace("_", "-"), value) for key, value in environ.items() if key.startswith("HTTP_")]
    for key in ("CONTENT_TYPE", "CONTENT_LENGTH"):
        if environ.get(key):
            fields.append((key.replace("_", "-"), environ[key]))
    return fields


_TARGET = {"method": "REQUEST_METHOD", "uri": "RAW_URI", "query": "QUERY_STRING", "scheme": "wsgi.url_scheme"}


def _apply_changes(request: Request, environ: Environ) -> None:
    """gunicorn makes the environ after `pre_request`, so that hooks add header fields there, a request id for one."""
    seen = vars(request)
    for name, key in _TARGET.items():
        if name in seen:
            environ[key] = seen[name]
    if "path" in seen and seen["path"] != Request(environ).path:
        environ["PATH_INFO"] = decoded(seen["path"]).removeprefix(environ.get("SCRIPT_NAME", ""))
    if "headers" in seen:
        _apply_fields(_joined(_fields(environ)), _joined(seen["headers"]), environ)


def _apply_fields(before: dict[str, str], after: dict[str, str], environ: Environ) -> None:
    for key in before.keys() - after.keys():
        environ.pop(key, None)
    for key, value in after.items():
        if before.get(key) != value:
            environ[key] = value


def key_of(name: str) -> str:
    """The key of the environ that a header field has."""
    key = name.upper().replace("-", "_")
    return key if key in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{key}"


def _joined(fields: Any) -> dict[str, str]:
    """Joins header fields under the environ's keys. Accepts a mapping, too: some hooks make one of `req.headers`."""
    joined: dict[str, str] = {}
    for name, value in fields.items() if hasattr(fields, "items") else fields:
        key = key_of(name)
        joined[key] = f"{joined[key]}{separator(key)}{value}" if key in joined else value
    return joined


def named_server(host: str, scheme: str) -> Environ:
    """Returns the server's name and port by the Host field, for sockets without an address (PEP 3333: not empty)."""
    name, colon, port = host.rpartition(":")
    if not colon or "]" in port:
        name, port = host, ""
    usual = "443" if scheme in ("https", "wss") else "80"
    return {"SERVER_NAME": name or "localhost", "SERVER_PORT": port or usual}


def separator(key: str) -> str:
    """Returns the separator that joins repeated fields. Cookies take "; ", since a comma may be part of a value."""
    return "; " if key == "HTTP_COOKIE" else ","


def decoded(path: str) -> str:
    """Percent-decoded, as a string of WSGI's (PEP 3333: bytes in disguise)."""
    from urllib.parse import unquote_to_bytes

    return unquote_to_bytes(path.encode("latin-1")).decode("latin-1")
