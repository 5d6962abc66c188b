"""Monkey-patching: at the right time, in full, and with what was imported too early set right.

    patch   the library patches     its warnings are kept from the log: ours say more
            the log of the server   back to real locks, since its real threads and its signal handlers log
            early modules           names, defaults, locks that are still the original ones (`early`)
            what is left            one warning per module: what, and who imported it

The process that patches is the one that imports the application: a worker, or the arbiter with `preload_app`. What an
arbiter has patched its workers inherit, and the hub, if the application has used it: `patch` makes it the worker's own.
"""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, Protocol

from tricorn import log as logs
from tricorn.config import config_file, importers
from tricorn.errors import ConfigError
from tricorn.green import early, locks
from tricorn.unpatched import _thread, os, signal


class Log(Protocol):
    def warning(self, message: str, /, *args: object) -> object: ...


def patch(alias: str, log: Log) -> None:
    """Patches the standard library for the worker class `alias` ("gevent", "eventlet"), once per process.

    Later calls do nothing; the first one after a fork makes what it inherited its own. To be called before the
    application is imported. Warns of each module that was imported too early and cannot be set right, and of who
    imported it. ConfigError if the process is patched for the other class.
    """
    global _patched
    if _patched is None:
        _patch(alias, log)
        if os.getpid() != _IMPORTED_BY:  # a configuration file may have patched the arbiter, and used its hub
            _OWNERS[alias]()
    elif _patched[0] != alias:
        raise ConfigError(
            f"The worker class {alias!r} cannot take over from {_patched[0]!r}, for which the arbiter is patched "
            "(preload_app): restart the server."
        )
    elif _patched[1] != os.getpid():
        _OWNERS[alias]()
    importers.stop()
    _patched = alias, os.getpid()


def prepare(alias: str) -> None:
    """Imports what `patch` will need and patches nothing: in the arbiter, so that workers share it and boot sooner."""
    for name in _NEEDED[alias]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import_module(name)


def take_signals_back() -> None:
    """In the arbiter, when code of the user's has run there: its children are its own to wait for.

    gevent's hub takes SIGCHLD for itself when that code starts a program.
    """
    if _patched is None or _patched[0] != "gevent":
        return
    from gevent._hub_local import get_hub_if_exists

    hub = get_hub_if_exists()
    if hub is not None:
        handler = signal.getsignal(signal.SIGCHLD)
        hub.loop.reset_sigchld()
        signal.signal(signal.SIGCHLD, handler)
        os.kill(os.getpid(), signal.SIGCHLD)  # one may have ended meanwhile


def watch_forks() -> None:
    """In a worker: gevent's loop hears of the first child that the application forks, too.

    It takes SIGCHLD when it is told of a child, which is after the fork: by then the child may have ended, and whoever
    waits for it waits for ever. gevent's `subprocess` takes it in time, as is done here for `os.fork`.
    """
    if _patched is None or _patched[0] != "gevent":
        return
    from gevent._hub_local import get_hub_if_exists

    def before() -> None:
        hub = get_hub_if_exists()
        if hub is not None and hub.loop.default:
            hub.loop.install_sigchld()

    os.register_at_fork(before=before)


_patched: tuple[str, int] | None = None
"""The class, and the process that it is set up for."""

_IMPORTED_BY = os.getpid()
"""The arbiter, which imports this for its workers (`prepare`)."""


def _patch(alias: str, log: Log) -> None:
    threads = early.other_threads()
    before = early.remember()
    with _quiet(alias, log):
        _LIBRARIES[alias]()
    logs.settle_after_patching()
    for finding in (*early.mend(before), *threads):
        log.warning(
            "%s before it could be patched for %s, and keeps %s. They block all requests of a worker, or are shared by "
            "them: import it later, in the application or in the hook post_fork.",
            _imported(finding.module),
            alias,
            ", ".join(finding.kept),
        )


def _imported(module: str) -> str:
    if module == config_file.MODULE_NAME:
        path = str(getattr(sys.modules[module], "__file__", ""))
        return f"The configuration file {os.path.relpath(path)} was executed"
    who = importers.importer(module)
    return f"The module {module} was imported{f' (by {who})' if who else ''}"


def _gevent() -> None:
    from importlib import metadata

    from gevent import monkey

    # gevent asks for its plugins 25 times, and each time every installed package is looked at.
    found, asked = metadata.entry_points(), metadata.entry_points
    names = vars(metadata)
    names["entry_points"] = lambda **which: found.select(**which)
    try:
        with _asking_nothing("gevent.monkey", "gevent.monkey._patch_thread_common"):
            monkey.patch_all()
    finally:
        names["entry_points"] = asked


def _eventlet() -> None:
    import eventlet

    # All but psycopg2, which would be imported for it; `drivers` sees to it when the application does.
    with _asking_nothing("eventlet.patcher"), _searching_locks("eventlet.patcher"):
        eventlet.monkey_patch(os=True, select=True, socket=True, subprocess=True, thread=True, time=True)


@contextmanager
def _searching_locks(patcher: str) -> Iterator[None]:
    """Puts `locks.replace` in the place of eventlet's search for locks, which takes most of a worker's start.

    What eventlet would say of locks that it has not found, `early` says better.
    """
    names = vars(import_module(patcher))
    own = names.get("_green_existing_locks")
    renew = names.get("_convert_py3_rlock")
    if own is None or renew is None:  # another version of the library
        yield
        return
    get_ident = import_module("eventlet.green.thread").get_ident
    names["_green_existing_locks"] = lambda *_: locks.replace(
        sys.modules, _thread.RLock, lambda lock: renew(lock, get_ident())
    )
    try:
        yield
    finally:
        names["_green_existing_locks"] = own


@contextmanager
def _asking_nothing(*modules: str) -> Iterator[None]:
    """Lets modules see objects as they are, and not as what they say they are.

    They go through all objects there are, in search of locks. A lazy one (Django's settings) that is asked for its
    `__class__` becomes what it stands for, or fails.
    """
    changed = []
    for name in modules:
        with suppress(ImportError):  # of another version of the library
            changed.append(vars(import_module(name)))
    for names in changed:
        names.update(_NOT_ASKING)
    try:
        yield
    finally:
        for names in changed:
            for each in _NOT_ASKING:
                del names[each]


def _is_instance(value: object, kind: Any) -> bool:
    return issubclass(type(value), kind)


def _namespace(value: object) -> Any:
    try:
        return object.__getattribute__(value, "__dict__")
    except AttributeError as error:
        raise TypeError(error) from None


_NOT_ASKING = {"isinstance": _is_instance, "vars": _namespace}


_LIBRARIES: dict[str, Callable[[], None]] = {"gevent": _gevent, "eventlet": _eventlet}

_NEEDED = {
    "gevent": [
        *(f"gevent.{name}" for name in ("events", "local", "monkey", "os", "queue", "select", "selectors", "signal")),
        *(f"gevent.{name}" for name in ("socket", "ssl", "subprocess", "thread", "threading", "time")),
        "importlib.metadata",
    ],
    "eventlet": [
        *(f"eventlet.green.{name}" for name in ("Queue", "os", "select", "selectors", "socket", "ssl", "subprocess")),
        *(f"eventlet.green.{name}" for name in ("thread", "threading", "time")),
    ],
}


@contextmanager
def _quiet(alias: str, log: Log) -> Iterator[None]:
    """Keeps what a library says while it patches from stderr. What we do not know goes to the log in one line."""
    said: list[str] = []
    catcher = _Catcher(said)
    # eventlet makes loggers without a parent, and so without a handler but this one.
    last_resort, logging.lastResort = logging.lastResort, catcher
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    finally:
        logging.lastResort = last_resort
    for text in (*said, *(str(each.message) for each in caught if not issubclass(each.category, _IGNORED))):
        if not any(known in text for known in _SAID_BETTER):
            log.warning("%s: %s", alias, " ".join(text.split()))


class _Catcher(logging.Handler):
    def __init__(self, said: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        self._said.append(record.getMessage())


_IGNORED = (DeprecationWarning, PendingDeprecationWarning, ResourceWarning, ImportWarning)
"""About the library's own code."""

_SAID_BETTER = (
    "Monkey-patching ssl after ssl has already been imported",
    "RLock(s) were not greened",
    "An exception was thrown while monkey_patching for eventlet",
    "Eventlet is deprecated",
)


# After a fork


def _own_gevent() -> None:
    from gevent import reinit
    from gevent._hub_local import get_hub_if_exists

    hub = get_hub_if_exists()
    if hub is not None:
        hub.loop.reset_sigchld()  # else the loop believes that it still hears of children
        reinit(hub)


def _own_eventlet() -> None:
    """Its epoll descriptor is shared with the arbiter and all siblings."""
    from eventlet import hubs

    hub: Any = getattr(hubs._threadlocal, "hub", None)
    if hub is None:
        return
    if not hasattr(hub, "poll"):  # one that is not told apart from its descriptor (EVENTLET_HUB=asyncio)
        hubs.use_hub(sys.modules[type(hub).__module__])
        return
    hub.poll = type(hub)().poll
    for number in {*hub.listeners[hub.READ], *hub.listeners[hub.WRITE]}:
        hub.register(number, new=True)


_OWNERS: dict[str, Callable[[], None]] = {"gevent": _own_gevent, "eventlet": _own_eventlet}
