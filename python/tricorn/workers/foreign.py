"""Worker classes of the user's: what those may override that are derived from ours, and which ones are hosted."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any

from tricorn import import_hooks
from tricorn.config.lookups import import_class
from tricorn.errors import ConfigError, is_own_module
from tricorn.record import Record
from tricorn.workers import hosted, originals
from tricorn.workers.base import Worker

EGG = "egg:"


class Reason(Record):
    """Why a class cannot be called by the native core."""

    text: str
    remedy: str
    needs_gunicorn: bool = True
    """True if only gunicorn's own classes call the overridden methods."""


_hosts: dict[Any, tuple[Reason, type[Worker]]] = {}
"""Adapters of classes that serve by themselves: those derived from the classes here, and from gunicorn's."""


def load(named: Any, *, strict: bool = False) -> type[Worker]:
    """The class itself, or that of a dotted name or an entry point (`egg:DISTRIBUTION#NAME`). Raises ConfigError.

    A class that reads and writes its connections itself is hosted; `strict` refuses it.
    """
    name = named if isinstance(named, str) else f"{named.__module__}.{named.__qualname__}"
    found, reason = _look_at(named, name)
    if reason is None:
        kind: type[Worker] = found
        return kind
    who = f"The worker class {name!r} {reason.text}"
    if strict:
        raise ConfigError(f"{who} (worker_class_strict): {reason.remedy}.")
    if found not in _hosts:
        guest = _guest(named, who, found, reason)
        _hosts[found] = _hosts[guest] = reason, hosted.host(guest, why=reason.text)
    return _hosts[found][1]


def _guest(named: Any, who: str, found: Any, reason: Reason) -> type:
    """The class that is to be hosted: over gunicorn's own classes where they are there, or where it needs them."""
    if originals.are_there() and (isinstance(named, str) or reason.needs_gunicorn):
        return _of_gunicorns(named, who, found)
    if found is None or reason.needs_gunicorn:
        raise ConfigError(f"{who}: {reason.remedy}. It runs unchanged only with gunicorn installed: {_HOW}.")
    return found  # type: ignore[no-any-return]


def _look_at(named: Any, name: str) -> tuple[Any, Reason | None]:
    """The class, and why the core cannot call it; None for one that cannot be imported over the classes here."""
    try:
        found = _import(named) if isinstance(named, str) else named
    except ConfigError as error:
        cause = error.__cause__
        if isinstance(cause, ImportError) and (cause.name or "").partition(".")[0] == originals.TOP:
            if not originals.are_there():
                raise
            return None, Reason("uses more of gunicorn than this server has", f"{cause}")
        raise
    if isinstance(found, type) and found in _hosts:
        return found, _hosts[found][0]
    if not isinstance(found, type) or not issubclass(found, Worker):
        raise ConfigError(_NOT_DERIVED.format(name))
    reason = _reason(found)
    if reason is None and not hasattr(found, "alias"):
        raise ConfigError(_NOT_DERIVED.format(name))
    return found, reason


def _reason(kind: type[Worker]) -> Reason | None:
    if replaces(kind, "run"):
        return Reason("has a run() of its own, without super().run()", _CONNECTION, needs_gunicorn=False)
    for each in overridden(kind):
        if remedy := NO_COUNTERPART.get(each):
            return Reason(f"overrides {each}(), which this server does not call", remedy)
    if replaces(kind, "_serve"):
        return Reason("has a _serve() of its own, without super()._serve()", _CONNECTION)
    return None


def replaces(kind: type, name: str) -> bool:
    """Whether a method has one in its place that never comes back to it: its code does not name it."""
    for each in kind.__mro__:
        if not _is_ours(each) and name in vars(each):
            code = getattr(vars(each)[name], "__code__", None)
            if code is not None and name not in _names_in(code):
                return True
    return False


def _names_in(code: CodeType) -> set[str]:
    """Returns the names that the code and its nested functions look up."""
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return {*code.co_names, *(name for each in inner for name in _names_in(each))}


def _of_gunicorns(named: Any, who: str, found: type[Worker] | None) -> type:
    """The class over those of gunicorn itself: its module is imported once more."""
    if not isinstance(named, str):
        raise ConfigError(
            f"{who}, which requires gunicorn's own classes: move it to its own module and set worker_class = "
            "'module.Class'."
        )
    with originals.in_place():
        for _ in range(2):  # modules between it and gunicorn's may be those of before, too
            modules = {each.__module__ for each in (found.__mro__ if found else ()) if issubclass(each, Worker)}
            for module in {*modules, named.rpartition(".")[0]}:
                if not is_own_module(module):
                    sys.modules.pop(module, None)
            again: Any = _import(named)
            if not issubclass(again, Worker):
                kind: type = again
                return kind
            found = again
    raise ConfigError(f"{who}, and cannot be imported with gunicorn's own classes.")


def notes(kind: type[Worker]) -> Iterator[str]:
    """Yields warnings about a worker class."""
    if hosted.is_hosted(kind):
        who = f"The worker class {kind.__module__}.{kind.__qualname__} {getattr(kind, 'why', '')}"
        yield f"{who}: it does its own socket I/O. {hosted.WITHOUT}"
        return
    for each in overridden(kind):
        if each in NOT_CALLED:
            who = f"The worker class {kind.__qualname__}"
            yield f"{who} overrides {each}(), which tricorn does not call: {NOT_CALLED[each]}."


def overridden(kind: type) -> list[str]:
    """The names that classes outside of this package define."""
    return sorted({name for each in kind.__mro__ if not _is_ours(each) for name in vars(each)})


def _is_ours(kind: type) -> bool:
    return kind is object or is_own_module(kind.__module__)


def _import(name: str) -> object:
    if name.startswith(EGG):
        return _entry_point(name)
    if "." not in name:
        raise ConfigError(f"Unknown worker class {name!r}.")
    with import_hooks.importing(name):
        return import_class(f"The worker class {name!r}", name)


def _entry_point(name: str) -> object:
    """`egg:DISTRIBUTION#NAME`, of the group in which gunicorn looks."""
    from importlib import metadata

    distribution, _, entry = name.removeprefix(EGG).partition("#")
    try:
        points = metadata.distribution(distribution).entry_points
    except metadata.PackageNotFoundError:
        raise ConfigError(f"Worker class {name!r}: the distribution {distribution!r} is not installed.") from None
    for point in points:
        if point.group == "gunicorn.workers" and point.name == (entry or "sync"):
            return _import(point.value.replace(":", "."))
    raise ConfigError(f"Worker class {name!r}: {distribution} has no gunicorn.workers entry point {entry!r}.")


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
"""Methods of gunicorn's classes that are never called here, with what replaces each."""

_HOW = "pip install gunicorn, without `tricorn exec`"

_NOT_DERIVED = (
    "Unsupported worker class {!r}: expected a subclass of a gunicorn worker class, such as "
    "gunicorn.workers.sync.SyncWorker or uvicorn.workers.UvicornWorker, or of gunicorn.workers.base.Worker with its "
    "own run()."
)

NOT_CALLED: Mapping[str, str] = {
    "_serve": "signals are handled and connections served by this server",
    "_install_sigquit_handler": "signals are handled by this server",
    "_install_sigint_handler": "signals are handled by this server",
    "callback_notify": "notify() is, once a second",
}
"""Methods of uvicorn's class that can be ignored without a loss."""
