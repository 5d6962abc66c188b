"""Monkey-patching: at the right time, in full, and with what was imported too early set right.

    patch   the library patches     its warnings are dropped: ours say more
            the log of the server   back to real locks, since its real threads and its signal handlers log
            early modules           names, defaults, locks that are still the original ones (`early`)
            what is left            one warning per module

The process that patches is the one that imports the application: a worker, or the arbiter with `preload_app`. What an
arbiter has patched its workers inherit, and the hub, if the application has used it: `patch` makes it the worker's own.
"""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from tricorn import log as logs
from tricorn.config import config_file
from tricorn.errors import ConfigError
from tricorn.log.types import Log
from tricorn.unpatched import os, signal
from tricorn_green import early, plugins
from tricorn_green.survey import Survey


def patch(alias: str, log: Log) -> None:
    """Patches the standard library for the worker class `alias` ("gevent", "eventlet"), once per process.

    Later calls do nothing; the first one after a fork makes what it inherited its own. To be called before the
    application is imported. Warns of each module that was imported too early and cannot be set right. ConfigError if
    the process is patched for the other class.
    """
    global _patched
    if _patched is None:
        _patch(alias, log)
        if os.getpid() != _IMPORTED_BY:  # a configuration file may have patched the arbiter, and used its hub
            _OWNERS[alias]()
    elif _patched[0] != alias:
        raise ConfigError(
            f"Cannot reload to the worker class {alias!r}: the arbiter is patched for {_patched[0]!r} (preload_app). "
            "Restart the server."
        )
    elif _patched[1] != os.getpid():
        _OWNERS[alias]()
    _patched = alias, os.getpid()


def prepare(alias: str) -> None:
    """Imports what `patch` will need and patches nothing: in the arbiter, so that workers share it and boot sooner."""
    for name in _NEEDED[alias]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import_module(name)
    if alias == "gevent":
        plugins.look()


def survey() -> None:
    """Finds what workers will have to set right, once for all of them: in the arbiter, before it forks."""
    global _survey
    _survey = early.survey() if _patched is None else None


def take_signals_back() -> None:
    """Takes SIGCHLD back in the arbiter, once user code has run there: the arbiter waits for its children itself.

    gevent's hub takes SIGCHLD for itself when that code starts a program.
    """
    hub = _hub_of_gevent()
    if hub is not None:
        handler = signal.getsignal(signal.SIGCHLD)
        hub.loop.reset_sigchld()
        signal.signal(signal.SIGCHLD, handler)
        os.kill(os.getpid(), signal.SIGCHLD)  # one may have ended meanwhile


def watch_forks() -> None:
    """Lets gevent's loop of a worker hear of the first child that the application forks, too.

    It takes SIGCHLD when it is told of a child, which is after the fork: by then the child may have ended, and a
    greenlet that waits for it waits for ever. gevent's `subprocess` takes it in time, as is done here for `os.fork`.
    """

    def before() -> None:
        hub = _hub_of_gevent()
        if hub is not None and hub.loop.default:
            hub.loop.install_sigchld()

    os.register_at_fork(before=before)


def _hub_of_gevent() -> Any:
    """If the process is patched for gevent, and has used its hub."""
    if _patched is None or _patched[0] != "gevent":
        return None
    from gevent._hub_local import get_hub_if_exists

    return get_hub_if_exists()


_patched: tuple[str, int] | None = None
"""The class, and the process that it is set up for."""

_IMPORTED_BY = os.getpid()
"""The arbiter, which imports this for its workers (`prepare`)."""


_survey: Survey | None = None
"""The arbiter's, of which its workers have a copy."""


def _patch(alias: str, log: Log) -> None:
    found = _survey
    if found is None:
        found = early.survey()
    else:
        found.look_again()
    # gevent looks at every object that the collector knows, and would wake lazy ones (Django's settings).
    gc.freeze()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _LIBRARIES[alias]()
    logs.settle_after_patching()
    found.look_again()  # a plugin of gevent's may have been imported
    for module, kept in early.mend(found).items():
        more = [f"{len(kept) - MOST_NAMED} more"] if len(kept) > MOST_NAMED else []
        log.warning(
            "%s before it could be patched for %s, and still has %s. These block all requests of a worker, or are "
            "shared by them: import it later, in the application or in the hook post_fork.",
            _imported(module),
            alias,
            ", ".join([*kept[:MOST_NAMED], *more]),
        )


MOST_NAMED = 5
"""Names in one warning."""


def _imported(module: str) -> str:
    if module != config_file.MODULE_NAME:
        return f"The module {module} was imported"
    return f"The configuration file {os.path.relpath(str(getattr(sys.modules[module], '__file__', '')))} was executed"


def _gevent() -> None:
    from gevent import monkey

    with _instead("importlib", "metadata", plugins.Metadata()):
        monkey.patch_all()


def _eventlet() -> None:
    import eventlet

    # Its search for locks takes most of a worker's start, and wakes lazy objects: `early` has one of its own. psycopg2
    # would be imported to be patched; `drivers` sees to it when the application imports it.
    with _instead("eventlet.patcher", "_green_existing_locks", lambda kind: None):
        eventlet.monkey_patch(os=True, select=True, socket=True, subprocess=True, thread=True, time=True)


@contextmanager
def _instead(module: str, name: str, value: object) -> Iterator[None]:
    """Puts `value` in the place of a module's name, for a while; what is put there meanwhile stays."""
    names = vars(import_module(module))
    own = names.get(name)
    names[name] = value
    try:
        yield
    finally:
        if names.get(name) is value:
            names[name] = own
            if own is None:
                del names[name]


_LIBRARIES: dict[str, Callable[[], None]] = {"gevent": _gevent, "eventlet": _eventlet}

_NEEDED = {
    "gevent": [
        *(f"gevent.{name}" for name in ("events", "local", "monkey", "os", "queue", "select", "selectors", "signal")),
        *(f"gevent.{name}" for name in ("socket", "ssl", "subprocess", "thread", "threading", "time")),
    ],
    "eventlet": [
        *(f"eventlet.green.{name}" for name in ("Queue", "os", "select", "selectors", "socket", "ssl", "subprocess")),
        *(f"eventlet.green.{name}" for name in ("thread", "threading", "time")),
    ],
}


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
