"""The worker classes: the ways a worker can wait.

Configuration files name them in gunicorn's words, by alias or by the dotted path of gunicorn's class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tricorn.errors import ConfigError, nearest

if TYPE_CHECKING:
    from tricorn.workers.base import Worker

NAMES = ("sync", "gthread", "gevent", "eventlet")

GREEN = ("gevent", "eventlet")
"""Those whose requests are greenlets."""


def choose(name: str | type, threads: int) -> str:
    """The alias of the class that `name` means; `sync` with several threads is `gthread`, as in gunicorn.

    Raises ConfigError for a class that is not available.
    """
    if isinstance(name, type):
        name = f"{name.__module__}.{name.__qualname__}"
    alias = _DOTTED.get(name, name)
    if alias in NAMES:
        return "gthread" if threads > 1 and alias == "sync" else alias
    family = name.split(".")[-1].lower() if "." in name else name
    if family in _NOT_YET or name.startswith(("uvicorn", "aiohttp", "gunicorn.workers.")):
        use = " or ".join(NAMES)
        raise ConfigError(f"The worker class {name!r} is not available in this version of tricorn: use {use}.")
    meant = nearest(name, NAMES)
    hint = f" Did you mean {meant!r}?" if meant else ""
    raise ConfigError(f"The worker class {name!r} is not known: expected one of {', '.join(NAMES)}.{hint}")


def load(alias: str) -> type[Worker]:
    """The class of an alias, importing only that one."""
    if alias == "gevent":
        from tricorn.workers.ggevent import GeventWorker

        return GeventWorker
    if alias == "eventlet":
        from tricorn.workers.geventlet import EventletWorker

        return EventletWorker
    if alias == "gthread":
        from tricorn.workers.gthread import ThreadWorker

        return ThreadWorker
    from tricorn.workers.sync import SyncWorker

    return SyncWorker


_DOTTED = {
    "gunicorn.workers.sync.SyncWorker": "sync",
    "gunicorn.workers.gthread.ThreadWorker": "gthread",
}

_NOT_YET = frozenset(("gevent", "gevent_wsgi", "gevent_pywsgi", "eventlet", "tornado", "asgi", "uvicorn", "aiohttp"))
