"""Observers of ASGI requests: the hooks and loggers of `observe`, which see an environ.

    before(scope)     makes the environ, pre_request(worker, req)       what it changed is put into the scope
    after(scope, …)   logger.access(resp, req, environ, time), post_request(worker, req, environ, resp)

gunicorn shows them an environ as well. Where nothing observes there are no callbacks, and no environ is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tricorn.gateway import observe

if TYPE_CHECKING:
    from tricorn.config.config import Config
    from tricorn.log import Logger

Scope = dict[str, Any]
Before = Callable[[Scope], object]
After = Callable[[Scope, Any, str, observe.Headers, int, int], object]


def callbacks(worker: object, config: Config, logger: Logger) -> tuple[Before | None, After | None]:
    """The two callbacks of `AsgiGateway`; None where there is nothing to observe."""
    wsgi_before, wsgi_after = observe.callbacks(worker, config, logger)
    before = None if wsgi_before is None else _before(wsgi_before)
    return before, None if wsgi_after is None else _after(wsgi_after)


def _before(inner: observe.Before) -> Before:
    def before(scope: Scope) -> tuple[observe.Environ, object]:
        environ = environ_of(scope)
        seen = dict(environ)
        request = inner(environ)
        _apply_changes(seen, environ, scope)
        return environ, request

    return before


def _after(inner: observe.After) -> After:
    def after(scope: Scope, token: Any, status: str, headers: observe.Headers, sent: int, micros: int) -> None:
        environ, request = token or (environ_of(scope), None)
        inner(environ, request, status, headers, sent, micros)

    return after


def environ_of(scope: Scope) -> observe.Environ:
    """Makes the environ (PEP 3333) that a WSGI application would get, without the body."""
    query = scope["query_string"].decode("latin-1")
    path = _wsgi_text(scope["path"])
    raw_path = scope.get("raw_path")
    target = _quoted(scope["path"]) if raw_path is None else raw_path.decode("latin-1")
    environ = {
        "REQUEST_METHOD": scope.get("method", "GET"),  # a WebSocket begins with one
        "RAW_URI": f"{target}?{query}" if query else target,
        "SCRIPT_NAME": _wsgi_text(scope.get("root_path", "")),
        "PATH_INFO": path.removeprefix(_wsgi_text(scope.get("root_path", ""))),
        "QUERY_STRING": query,
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "wsgi.url_scheme": scope["scheme"],
        "asgi.scope": scope,
    }
    client, server = scope.get("client"), scope.get("server")
    if client:
        environ |= {"REMOTE_ADDR": client[0], "REMOTE_PORT": str(client[1])}
    if server and server[1] is not None:
        environ |= {"SERVER_NAME": server[0], "SERVER_PORT": str(server[1])}
    for name, value in scope["headers"]:
        key = _key(name)
        text = value.decode("latin-1")
        environ[key] = f"{environ[key]}{observe.separator(key)}{text}" if key in environ else text
    if "SERVER_NAME" not in environ:
        environ |= observe.named_server(environ.get("HTTP_HOST", ""), scope["scheme"])
    return environ


def _quoted(path: str) -> str:
    from urllib.parse import quote  # most workers observe nothing, and wait for their imports

    return quote(path)


def _key(name: bytes) -> str:
    return observe.key_of(name.decode("latin-1"))


def _wsgi_text(text: str) -> str:
    """Bytes in disguise (PEP 3333)."""
    return text.encode("utf-8", "replace").decode("latin-1")


def _scope_text(text: str) -> str:
    return text.encode("latin-1").decode("utf-8", "replace")


def _apply_changes(before: observe.Environ, after: observe.Environ, scope: Scope) -> None:
    """Copies the hook's changes of method, target and header fields into the scope."""
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    if not changed:
        return
    if "REQUEST_METHOD" in changed and "method" in scope:
        scope["method"] = after["REQUEST_METHOD"]
    if "wsgi.url_scheme" in changed:
        scope["scheme"] = after["wsgi.url_scheme"]
    if "QUERY_STRING" in changed:
        scope["query_string"] = after["QUERY_STRING"].encode("latin-1")
    if "PATH_INFO" in changed:
        scope["path"] = scope.get("root_path", "") + _scope_text(after["PATH_INFO"])
    if "RAW_URI" in changed:
        scope["raw_path"] = after["RAW_URI"].partition("?")[0].encode("latin-1")
    fields = {key for key in changed if key.startswith("HTTP_") or key in ("CONTENT_TYPE", "CONTENT_LENGTH")}
    if fields:
        kept = [(name, value) for name, value in scope["headers"] if _key(name) not in fields]
        new = [(_name(key), after[key].encode("latin-1")) for key in sorted(fields) if key in after]
        scope["headers"] = kept + new


def _name(key: str) -> bytes:
    return key.removeprefix("HTTP_").lower().replace("_", "-").encode("latin-1")
