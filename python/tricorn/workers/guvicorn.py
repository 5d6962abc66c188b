"""uvicorn's worker class, whose `CONFIG_KWARGS` are settings here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

from tricorn.errors import ConfigError
from tricorn.workers.gasgi import AsgiWorker

Settings = Iterator[tuple[str, Any]]


class UvicornWorker(AsgiWorker):
    """Named by itself it is the class `asgi`; projects derive from it to set `CONFIG_KWARGS`."""

    CONFIG_KWARGS: ClassVar[dict[str, Any]] = {"loop": "auto", "http": "auto"}

    @classmethod
    def settings(cls) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        for name, value in cls.CONFIG_KWARGS.items():
            found.update(_setting(cls.__qualname__, name, value))
        return found


class UvicornH11Worker(UvicornWorker):
    CONFIG_KWARGS: ClassVar[dict[str, Any]] = {"loop": "asyncio", "http": "h11"}


def _setting(who: str, name: str, value: Any) -> Settings:
    if name in _NOTHING_TO_DO or name.startswith("h11_") or (name.startswith("ssl_") and value in (None, "")):
        return
    if name not in _MEANING:
        raise ConfigError(f"CONFIG_KWARGS of {who} has {name!r}, which has no counterpart here.")
    try:
        yield from _MEANING[name](value)
    except ValueError as error:
        raise ConfigError(f"CONFIG_KWARGS of {who}: {name} = {value!r}: {error}.") from None


def _same(name: str) -> Callable[[Any], Settings]:
    """The setting of this name with the same value; None is uvicorn's word for no limit, or its default."""

    def meaning(value: Any) -> Settings:
        if value is not None:
            yield name, value

    return meaning


def _loop(value: Any) -> Settings:
    if value not in ("auto", "asyncio", "uvloop", "none"):
        raise ValueError("expected auto, asyncio or uvloop")
    yield "asgi_loop", "asyncio" if value == "none" else value


def _limit_concurrency(value: Any) -> Settings:
    """uvicorn answers 503 to whatever comes beyond."""
    if value is not None:
        yield "worker_connections", value
        yield "queue_limit", 1


def _proxy_headers(value: Any) -> Settings:
    if not value:
        yield "forwarded_allow_ips", ""


def _access_log(value: Any) -> Settings:
    if not value:
        yield "accesslog", None


def _interface(value: Any) -> Settings:
    if value not in ("auto", "asgi3"):
        raise ValueError("expected auto or asgi3; WSGI applications are served by another worker class")
    yield from ()


def _factory(value: Any) -> Settings:
    if value:
        raise ValueError("name the application as MODULE:FACTORY()")
    yield from ()


_MEANING: Mapping[str, Callable[[Any], Settings]] = {
    "loop": _loop,
    "lifespan": _same("asgi_lifespan"),
    "root_path": _same("root_path"),
    "ws_max_size": _same("websocket_max_message_size"),
    "ws_ping_interval": _same("websocket_ping_interval"),
    "ws_ping_timeout": _same("websocket_ping_timeout"),
    "ws_per_message_deflate": _same("websocket_compression"),
    "limit_concurrency": _limit_concurrency,
    "limit_max_requests": _same("max_requests"),
    "limit_max_requests_jitter": _same("max_requests_jitter"),
    "backlog": _same("backlog"),
    "timeout_keep_alive": _same("keepalive"),
    "timeout_graceful_shutdown": _same("graceful_timeout"),
    "forwarded_allow_ips": _same("forwarded_allow_ips"),
    "proxy_headers": _proxy_headers,
    "log_level": _same("loglevel"),
    "access_log": _access_log,
    "server_header": _same("server_header"),
    "date_header": _same("date_header"),
    "headers": _same("headers"),
    "interface": _interface,
    "factory": _factory,
}
"""uvicorn's arguments, as settings."""

_NOTHING_TO_DO = frozenset(("http", "ws", "ws_max_queue", "log_config", "use_colors", "app", "env_file"))
