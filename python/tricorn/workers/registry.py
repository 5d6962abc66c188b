"""Registry of the worker classes, by alias and by other servers' names.

Configuration files name them in gunicorn's words, by alias or by the dotted path of gunicorn's class.
"""

from __future__ import annotations

import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tricorn import extensions
from tricorn.config.resolve import override
from tricorn.config.settings import processes
from tricorn.errors import ConfigError
from tricorn.record import Record
from tricorn.spelling import hint
from tricorn.workers import versions

if TYPE_CHECKING:
    from tricorn.config.config import Config
    from tricorn.workers.base import Worker

AUTO = processes.AUTO
"""The application decides."""

GUNICORNS = "egg:gunicorn#"
"""Prefix of gunicorn's own entry points."""

REFORKED = ("sync", "gthread")
"""Classes whose workers have no loop and no hub when they have drained: a fork leaves nothing out (`refork`)."""

OLDEST = {"gevent": (24, 10, 1), "eventlet": (0, 36), "tornado": (6, 2), "aiohttp": (3, 9), "uvloop": (0, 19)}
"""The versions that the extras ask for."""


SERVED_INSTEAD = {
    **dict.fromkeys(("uvicorn", "hypercorn", "granian", "daphne", "async"), "asgi"),
    **dict.fromkeys(("wsgi", "default"), "sync"),
    **dict.fromkeys(("thread", "threads", "threaded"), "gthread"),
    "greenlet": "gevent",
}
"""Names of other servers and of their worker classes, each with the class that serves them here."""


def choose(name: str | type, threads: int) -> str:
    """The alias of the class that `name` means; `sync` with several threads is `gthread`, as in gunicorn.

    `auto` stays what it is: the class is known when the application is loaded (`class_for` of `gateway.interfaces`).
    Raises ConfigError for a class that is not available, or whose package is not. Imports nothing but a class of the
    user's, which has its family's alias.
    """
    named, name = name, dotted(name)
    if is_foreign(named):
        from tricorn.workers import foreign

        return foreign.load(named if isinstance(named, type) else name).alias
    alias = _alias(name)
    if alias not in NAMES:
        meant = SERVED_INSTEAD.get(name.lower())
        hinted = f"; did you mean {meant!r}?" if meant else hint(name, NAMES)
        raise ConfigError(f"Unknown worker class {name!r}: expected one of {', '.join(NAMES)}{hinted}")
    if alias in OLDEST:
        _check_package(f"The worker class {name!r}", alias)
    if not FAMILIES[alias].place and extensions.find(extensions.WORKER_CLASSES, alias) is None:
        raise extensions.NotInstalled(f"The worker class {name!r}", extensions.OWN[extensions.WORKER_CLASSES][alias])
    if name in _ON_UVLOOP:
        _check_package(f"The worker class {name!r}", "uvloop")
    return "gthread" if alias == "sync" and threads > 1 else alias


def choose_loop(name: str | type, asked: str) -> str:
    """Returns the event loop of a class, `asyncio` or `uvloop`, if it has one; `asked` is the setting `asgi_loop`.

    `auto` is uvloop where it is installed, as in gunicorn. Classes other than `asgi` have the loop of their name.
    Raises ConfigError if uvloop was asked for and is not there.
    """
    name = dotted(name)
    if _alias(name) != "asgi" or name in LOOPS_OF_HYPERCORN:
        return "uvloop" if name in _ON_UVLOOP else "asyncio"
    if asked == "uvloop":
        _check_package("asgi_loop = 'uvloop'", "uvloop")
        return asked
    return "uvloop" if asked == "auto" and _is_new_enough("uvloop") else "asyncio"


def loop_of(alias: str, config: Config) -> str:
    """`choose_loop` for a worker of the class `alias`, which the setting names or `auto` has chosen."""
    by_alias = config.worker_class == AUTO or is_foreign(config.worker_class)
    return choose_loop(alias if by_alias else config.worker_class, config.asgi_loop)


def is_foreign(name: str | type) -> bool:
    """Whether it is a class of the user's, which has to be imported to be known."""
    if isinstance(name, type):
        return dotted(name) not in _OTHER_NAMES
    name = dotted(name)
    return _alias(name) not in NAMES and ("." in name or name.startswith("egg:"))


def kind_of(config: Config) -> type[Worker]:
    """The class that is asked for. Raises ConfigError."""
    if not is_foreign(config.worker_class):
        return load(choose(config.worker_class, config.threads))
    from tricorn.workers import foreign

    named = config.worker_class
    return foreign.load(named if isinstance(named, type) else dotted(named), strict=config.worker_class_strict)


def adapted(config: Config) -> Config:
    """The configuration with what a worker class of the user's says of settings (uvicorn's CONFIG_KWARGS)."""
    if not is_foreign(config.worker_class):
        return config
    return override(config, kind_of(config).settings())


def _alias(name: str) -> str:
    return _OTHER_NAMES.get(name.removeprefix(GUNICORNS), name.removeprefix(GUNICORNS))


def load(alias: str) -> type[Worker]:
    """The class of an alias, importing only that one."""
    module, _, name = FAMILIES[alias].place.partition(":")
    found: type[Worker]
    if module:
        found = getattr(import_module(f"tricorn.workers.{module}"), name)
        return found
    with warnings.catch_warnings():
        if alias == "eventlet":
            warnings.simplefilter("ignore")  # it says at every import that it is old
        found = extensions.load(extensions.WORKER_CLASSES, alias, f"The worker class {alias!r}")
    return found


def dotted(name: str | type) -> str:
    """Returns the name of a class: of one that a configuration file gives by itself, or that an extension has."""
    if isinstance(name, type):
        return f"{name.__module__}.{name.__qualname__}"
    is_word = name.isidentifier() and name not in NAMES and name not in _OTHER_NAMES
    target = extensions.find(extensions.WORKER_CLASSES, name) if is_word else None
    return name if target is None else target.replace(":", ".")


def _check_package(who: str, package: str) -> None:
    """Raises ConfigError if the package that `who` needs is not there, or is too old."""
    if _is_new_enough(package):
        return
    found = _version(package) if find_spec(package) else ()
    oldest = ".".join(map(str, OLDEST[package]))
    state = f"{package} {'.'.join(map(str, found))} is installed" if found else "which is not installed"
    raise ConfigError(f"{who} needs {package} {oldest} or newer, {state}: pip install 'tricorn[{package}]'.")


def _is_new_enough(package: str) -> bool:
    return find_spec(package) is not None and _version(package) >= OLDEST[package]


def _version(package: str) -> tuple[int, ...]:
    """The numbers that a version begins with; those of the oldest that will do if it is unknown."""
    text = versions.of_package(package)
    if text is None:  # a checkout on the path
        return OLDEST[package]
    numbers = []
    for part in text.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


class Family(Record):
    """A class of ours, and the names under which it is known."""

    place: str
    """Its module here, and its name there; empty: an extension has it."""
    names: str = ""
    """Further names beside the alias, separated by spaces."""
    on_uvloop: str = ""
    """Names that ask for uvloop, too."""


FAMILIES = {
    AUTO: Family("auto:AutoWorker"),
    "sync": Family(
        "sync:SyncWorker",
        "gunicorn.workers.sync.SyncWorker egg:meinheld#gunicorn_worker meinheld.gmeinheld.MeinheldWorker",
    ),
    "gthread": Family("gthread:ThreadWorker", "gunicorn.workers.gthread.ThreadWorker"),
    "gevent": Family(
        "",
        "gevent_wsgi gevent_pywsgi gunicorn.workers.ggevent.GeventWorker gunicorn.workers.ggevent.GeventPyWSGIWorker "
        "gunicorn.workers.ggevent.PyWSGIWorker",
    ),
    "eventlet": Family("", "gunicorn.workers.geventlet.EventletWorker"),
    "asgi": Family(
        "asgi:AsgiWorker",
        "asyncio gunicorn.workers.gasgi.ASGIWorker uvicorn.workers.UvicornWorker uvicorn.workers.UvicornH11Worker "
        "uvicorn_worker.UvicornWorker uvicorn_worker.UvicornH11Worker uvicorn_worker._workers.UvicornWorker "
        "uvicorn_worker._workers.UvicornH11Worker",
        "uvloop",
    ),
    "tornado": Family("tornado:TornadoWorker", "gunicorn.workers.gtornado.TornadoWorker"),
    "aiohttp": Family(
        "aiohttp:AiohttpWorker",
        "gaiohttp aiohttp.GunicornWebWorker aiohttp.worker.GunicornWebWorker",
        "aiohttp.GunicornUVLoopWebWorker aiohttp.worker.GunicornUVLoopWebWorker",
    ),
}
NAMES = tuple(FAMILIES)

LOOPS_OF_HYPERCORN = ("asyncio", "uvloop")
"""hypercorn's names of its worker classes."""

_ON_UVLOOP = frozenset(name for family in FAMILIES.values() for name in family.on_uvloop.split())
_OTHER_NAMES = {
    name: alias for alias, family in FAMILIES.items() for name in f"{family.names} {family.on_uvloop}".split()
}
