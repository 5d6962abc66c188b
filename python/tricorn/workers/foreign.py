"""Worker classes of the user's, derived from those here: what they may override, and what replaces the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from tricorn.errors import ConfigError, nearest
from tricorn.workers.base import Worker

EGG = "egg:"


def load(named: Any) -> type[Worker]:
    """The class itself, or that of a dotted name or an entry point (`egg:DISTRIBUTION#NAME`). Raises ConfigError."""
    found = _import(named) if isinstance(named, str) else named
    name = named if isinstance(named, str) else f"{named.__module__}.{named.__qualname__}"
    if not isinstance(found, type) or not issubclass(found, Worker) or not hasattr(found, "alias"):
        raise ConfigError(
            f"The worker class {name!r} reads and writes its connections itself, which this server does not let it: "
            "expected one that is derived from a worker class with a name here, as gunicorn.workers.sync.SyncWorker or "
            "uvicorn.workers.UvicornWorker."
        )
    for each in overridden(found):
        if remedy := NO_COUNTERPART.get(each):
            raise ConfigError(
                f"The worker class {name!r} overrides {each}(), which this server does not call: {remedy}."
            )
    return found


def notes(kind: type[Worker]) -> Iterator[str]:
    """What is worth a warning."""
    for each in overridden(kind):
        if each in NOT_CALLED:
            who = f"The worker class {kind.__qualname__}"
            yield f"{who} overrides {each}(), which is not called here: {NOT_CALLED[each]}."


def overridden(kind: type) -> list[str]:
    """The names that classes outside of this package define."""
    return sorted({name for each in kind.__mro__ if not _is_ours(each) for name in vars(each)})


def _is_ours(kind: type) -> bool:
    return kind is object or kind.__module__.partition(".")[0] == "tricorn"


def _import(name: str) -> object:
    if name.startswith(EGG):
        return _entry_point(name)
    module, dot, attribute = name.rpartition(".")
    if not dot:
        raise ConfigError(f"The worker class {name!r} is not known.")
    try:
        found = import_module(module)
    except Exception as error:
        raise ConfigError(f"The worker class {name!r} cannot be imported: {type(error).__name__}: {error}.") from error
    try:
        return getattr(found, attribute)
    except AttributeError:
        meant = nearest(attribute, tuple(vars(found)))
        hint = f" Did you mean {module}.{meant}?" if meant else ""
        raise ConfigError(f"The worker class {name!r} is not in its module.{hint}") from None


def _entry_point(name: str) -> object:
    """`egg:DISTRIBUTION#NAME`, of the group in which gunicorn looks."""
    from importlib import metadata

    distribution, _, entry = name.removeprefix(EGG).partition("#")
    try:
        points = metadata.distribution(distribution).entry_points
    except metadata.PackageNotFoundError:
        raise ConfigError(f"The worker class {name!r}: no distribution {distribution!r} is installed.") from None
    for point in points:
        if point.group == "gunicorn.workers" and point.name == (entry or "sync"):
            return _import(point.value.replace(":", "."))
    raise ConfigError(f"The worker class {name!r}: {distribution} has no entry point {entry!r} of gunicorn.workers.")


_REQUEST = "the hooks pre_request and post_request run around a request, and request_timeout limits its time"
_CONNECTION = "connections are this server's, and applications see requests only"
_THREADS = "the number of threads is the setting threads"
_LIFE = "the arbiter watches workers, and a worker leaves with it"

NO_COUNTERPART: Mapping[str, str] = {
    "handle_request": _REQUEST,
    "handle": _REQUEST,
    "handle_error": "a logger class sees errors of requests, which are answered by this server",
    "accept": _CONNECTION,
    "wait": _CONNECTION,
    "run_for_one": _CONNECTION,
    "run_for_multiple": _CONNECTION,
    "finish_request": _CONNECTION,
    "enqueue_req": _CONNECTION,
    "reuse_connection": _CONNECTION,
    "on_client_socket_readable": _CONNECTION,
    "set_accept_enabled": _CONNECTION,
    "murder_keepalived": "keepalive limits how long a connection waits",
    "get_thread_pool": _THREADS,
    "timeout_ctx": "keepalive limits how long a connection waits",
    "is_already_handled": _CONNECTION,
    "server_class": _CONNECTION,
    "wsgi_handler": _CONNECTION,
    "watchdog": _LIFE,
    "is_parent_alive": _LIFE,
    "handle_http2": _CONNECTION,
    "handle_http2_request": _CONNECTION,
}
"""What gunicorn's classes have, and what replaces it."""

NOT_CALLED: Mapping[str, str] = {
    "_serve": "signals are handled and connections served by this server",
    "_install_sigquit_handler": "signals are handled by this server",
    "_install_sigint_handler": "signals are handled by this server",
    "callback_notify": "notify() is, once a second",
}
"""What uvicorn's class has, where nothing is lost."""
