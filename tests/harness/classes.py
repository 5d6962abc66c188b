"""The worker classes, named once, and what a test of all of them needs to know of one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec

import pytest

from tests.harness.server import REFERENCE

THREADED = ("sync", "gthread")
GREEN = ("gevent", "eventlet")
WSGI = (*THREADED, *GREEN)
EVENT_LOOPS = ("asgi",)
"""Where requests wait side by side in coroutines; a fixture application has a twin in `tests/apps/asgi` for them."""
SERVERS_OF_CLASSES = ("tornado", "aiohttp")
"""Where the core calls a framework's own classes; the gallery has a twin for them, and other fixtures have none."""
EVERY = (*WSGI, *EVENT_LOOPS)


def each(*aliases: str, values: Sequence[object] = ()) -> list[object]:
    """Classes as parameters of a fixture or a test; what cannot run here is skipped. After a dash they may say more.

    With `values` each is followed by the value in its place, for a second parameter.
    """
    if values:
        pairs = zip(aliases, values, strict=True)
        return [pytest.param(alias, value, marks=_absent(alias), id=alias) for alias, value in pairs]
    return [pytest.param(alias, marks=_absent(alias), id=alias) for alias in aliases]


def _absent(name: str) -> list[pytest.MarkDecorator]:
    alias = name.partition("-")[0]
    if REFERENCE and alias in EVENT_LOOPS:
        return [pytest.mark.skip(reason="of the reference server's class only its defects are noted")]
    if alias not in (*GREEN, *SERVERS_OF_CLASSES):
        return []
    if REFERENCE and alias == "eventlet":
        return [pytest.mark.skip(reason="the reference server has no such class")]
    if REFERENCE and alias in SERVERS_OF_CLASSES:
        return [pytest.mark.skip(reason="the reference server leaves HTTP to the library there")]
    return [pytest.mark.skipif(not _is_installed(alias), reason=f"{alias} is not installed")]


@cache
def _is_installed(package: str) -> bool:
    return find_spec(package) is not None


CLASSES = pytest.mark.parametrize("worker_class", each(*EVERY))
"""For what the class may make a difference to."""
ALL_CLASSES = pytest.mark.parametrize("worker_class", each(*EVERY, *SERVERS_OF_CLASSES))
"""All seven, for what no class may make a difference to. Applications are the gallery's: others have no twin."""
KINDS = pytest.mark.parametrize("worker_class", each(*THREADED, "gevent", *EVENT_LOOPS))
"""For what the two libraries of greenlets cannot make a difference to, or take too long to be told apart in."""
WSGI_KINDS = pytest.mark.parametrize("worker_class", each(*THREADED, "gevent"))
"""The same, where what is told is WSGI's affair, or there is no twin."""
THREAD_CLASSES = pytest.mark.parametrize("worker_class", each(*THREADED))
"""For what the reactor, the arbiter or the log does whatever the class."""
GREEN_CLASSES = pytest.mark.parametrize("worker_class", each(*GREEN))


def at_once(worker_class: str, count: int = 4) -> int:
    """How many requests a worker runs at the same time, if `room` asked for so many."""
    return 1 if worker_class == "sync" else count


def room(worker_class: str, count: int = 4) -> dict[str, int]:
    """The setting that gives a worker room for `count` requests at the same time, where it can have it."""
    if worker_class in (*GREEN, *EVENT_LOOPS):
        return {"worker_connections": count}
    return {"threads": at_once(worker_class, count)}


def configured(worker_class: str, count: int = 4) -> str:
    """The lines of a configuration file that choose the class, and its `room`."""
    settings = {"worker_class": worker_class, **room(worker_class, count)}
    return "".join(f"{name} = {value!r}\n" for name, value in settings.items())
