"""How a greenlet waits for a descriptor, and how it calls what would block: the same words for both hubs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Waits(NamedTuple):
    readable: Callable[[int], object]
    writable: Callable[[int], object]
    in_time: Callable[[int, bool, float], bool]
    """Waits for a descriptor, to write (True) or to read, for so many seconds; whether it came in time."""
    in_thread: Callable[[Callable[[], object], float], None]
    """Calls a function in a thread and waits for it, at most so many seconds; what it raises is dropped."""


def waits(alias: str) -> Waits:
    return _eventlet() if alias == "eventlet" else _gevent()


def _gevent() -> Waits:
    import gevent
    from gevent.socket import wait_read, wait_write

    def in_time(descriptor: int, write: bool, seconds: float) -> bool:
        try:
            (wait_write if write else wait_read)(descriptor, seconds, _Late)
        except _Late:
            return False
        return True

    def in_thread(function: Callable[[], object], seconds: float) -> None:
        with gevent.Timeout(seconds, False):
            gevent.get_hub().threadpool.apply(_quietly, (function,))

    return Waits(wait_read, wait_write, in_time, in_thread)


def _eventlet() -> Waits:
    import eventlet
    from eventlet import tpool
    from eventlet.hubs import trampoline

    def readable(descriptor: int) -> None:
        trampoline(descriptor, read=True)

    def writable(descriptor: int) -> None:
        trampoline(descriptor, write=True)

    def in_time(descriptor: int, write: bool, seconds: float) -> bool:
        try:
            trampoline(descriptor, read=not write, write=write, timeout=seconds, timeout_exc=_Late)
        except _Late:
            return False
        return True

    def in_thread(function: Callable[[], object], seconds: float) -> None:
        with eventlet.Timeout(seconds, False):
            tpool.execute(_quietly, function)

    return Waits(readable, writable, in_time, in_thread)


class _Late(BaseException):
    """Ours, so that it is not taken for the application's own timeout."""


def _quietly(function: Callable[[], Any]) -> None:
    try:
        function()
    except Exception:
        pass
