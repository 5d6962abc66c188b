"""The worker classes: the ways a worker can wait.

Configuration files name them in gunicorn's words, by alias or by the dotted path of gunicorn's class.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from tricorn.errors import ConfigError, nearest

if TYPE_CHECKING:
    from tricorn.workers.base import Worker

NAMES = ("sync", "gthread", "gevent", "eventlet")

GREEN = ("gevent", "eventlet")
"""The classes whose requests run on greenlets. Their aliases are the names of their packages, and of our extras."""

OLDEST = {"gevent": (24, 10, 1), "eventlet": (0, 36)}
"""The versions that the extras ask for."""


def choose(name: str | type, threads: int) -> str:
    """The alias of the class that `name` means; `sync` with several threads is `gthread`, as in gunicorn.

    Raises ConfigError for a class that is not available, or whose package is not. Imports nothing of it.
    """
    if isinstance(name, type):
        name = f"{name.__module__}.{name.__qualname__}"
    alias = _OTHER_NAMES.get(name, name)
    if alias in GREEN:
        _check_package(name, alias)
        return alias
    if alias in NAMES:
        return "gthread" if threads > 1 else alias
    family = name.split(".")[-1].lower() if "." in name else name
    if family in _NOT_YET or name.startswith(("uvicorn", "aiohttp", "gunicorn.workers.")):
        use = ", ".join(NAMES[:-1])
        raise ConfigError(
            f"The worker class {name!r} is not available in this version of tricorn: use {use} or {NAMES[-1]}."
        )
    meant = nearest(name, NAMES)
    hint = f" Did you mean {meant!r}?" if meant else ""
    raise ConfigError(f"The worker class {name!r} is not known: expected one of {', '.join(NAMES)}.{hint}")


def load(alias: str) -> type[Worker]:
    """The class of an alias, importing only that one."""
    if alias == "gthread":
        from tricorn.workers.gthread import ThreadWorker

        return ThreadWorker
    if alias == "gevent":
        from tricorn.workers.ggevent import GeventWorker

        return GeventWorker
    if alias == "eventlet":
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says at every import that it is old
            from tricorn.workers.geventlet import EventletWorker

        return EventletWorker
    from tricorn.workers.sync import SyncWorker

    return SyncWorker


def _check_package(name: str, package: str) -> None:
    """Raises ConfigError if the package that a class needs is not there, or is too old."""
    found = find_spec(package) and _version(package)
    if found and found >= OLDEST[package]:
        return
    oldest = ".".join(map(str, OLDEST[package]))
    state = f"{package} {'.'.join(map(str, found))} is installed" if found else "which is not installed"
    raise ConfigError(
        f"The worker class {name!r} needs {package} {oldest} or newer, {state}: pip install 'tricorn[{package}]'."
    )


def _version(package: str) -> tuple[int, ...]:
    """The numbers that a version begins with; those of the oldest that will do if nobody knows."""
    from importlib import metadata  # not for classes that need no package

    try:
        text = metadata.version(package)
    except metadata.PackageNotFoundError:  # a checkout on the path
        return OLDEST[package]
    numbers = []
    for part in text.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


_OTHER_NAMES = {
    "gunicorn.workers.sync.SyncWorker": "sync",
    "gunicorn.workers.gthread.ThreadWorker": "gthread",
    "gevent_wsgi": "gevent",
    "gevent_pywsgi": "gevent",
    "gunicorn.workers.ggevent.GeventWorker": "gevent",
    "gunicorn.workers.ggevent.GeventPyWSGIWorker": "gevent",
    "gunicorn.workers.ggevent.PyWSGIWorker": "gevent",
    "gunicorn.workers.geventlet.EventletWorker": "eventlet",
}

_NOT_YET = frozenset(("tornado", "asgi", "uvicorn", "aiohttp"))
