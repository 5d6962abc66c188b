"""Many requests at a time, each on an eventlet greenthread."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import eventlet.event
from eventlet import hubs
from eventlet.greenthread import GreenThread, spawn_n

from tricorn import forked
from tricorn_green.workers import green

if TYPE_CHECKING:
    from tricorn.workers.native import LoopClock


class Hub(green.Hub):
    """eventlet's hub."""

    def __init__(self) -> None:
        self._hub = hubs.get_hub()
        self._listeners: list[Any] = []
        self.switch = self._hub.switch
        self.is_linked = RequestGreenlet.has_links

    def watch(self, fd: int, callback: Callable[[], object]) -> None:
        listener = self._hub.add(self._hub.READ, fd, callback, _raise, _nothing)
        self._listeners.append(listener)

    def unwatch(self) -> None:
        for listener in self._listeners:
            self._hub.remove(listener)
        self._listeners.clear()

    def keep_time(self, clock: LoopClock) -> None:
        """Keeps the loop's time, for hubs that wait by one method: those of epoll and poll."""
        wait = getattr(self._hub, "do_poll", None)
        if wait is not None:
            self._hub.do_poll = clock.around(wait)
            clock.begin()

    def new_greenlet(self, run: Callable[[], object]) -> RequestGreenlet:
        return RequestGreenlet(self._hub.greenlet, run)

    def wait_readable(self, fd: int, seconds: float) -> None:
        with suppress(_TooLong):
            hubs.trampoline(fd, read=True, timeout=seconds, timeout_exc=_TooLong)

    def wait_writable(self, fd: int, seconds: float) -> None:
        with suppress(_TooLong):
            hubs.trampoline(fd, write=True, timeout=seconds, timeout_exc=_TooLong)

    def event(self) -> Event:
        return Event()

    def in_child(self) -> None:
        """An epoll is shared with the parent: what one of them watches no longer is lost to both."""
        # Known by its method and not by its type: eventlet imports `select` a second time.
        shared = getattr(self._hub, "poll", None)
        if shared is None or not hasattr(shared, "fileno"):
            return
        forked.own_epoll(shared.fileno())
        for descriptor in {*self._hub.listeners[self._hub.READ], *self._hub.listeners[self._hub.WRITE]}:
            self._hub.register(descriptor, new=True)

    def when_ended(self, greenlet: Any, function: Callable[[BaseException | None], object]) -> None:
        if isinstance(greenlet, GreenThread):
            greenlet.link(lambda ended: function(_error_of(ended)))

    def spawn(self, function: Callable[..., object], *args: object) -> None:
        spawn_n(function, *args)


class RequestGreenlet(GreenThread):  # type: ignore[misc]
    """Greenlet that `eventlet.getcurrent()` returns in a request."""

    def __init__(self, parent: Any, run: Callable[[], object]) -> None:
        super().__init__(parent)
        self.run = partial(self.main, run, (), {})

    def has_links(self) -> bool:
        return bool(self._exit_funcs or self._exit_event._waiters)


class Event(eventlet.event.Event):  # type: ignore[misc]
    """Under the name that others use."""

    def set(self) -> None:
        if not self.ready():
            self.send()


class EventletWorker(green.GreenWorker):
    """Waits in eventlet's hub."""

    alias = "eventlet"

    def make_hub(self) -> Hub:
        return Hub()


def _error_of(ended: GreenThread) -> BaseException | None:
    try:
        ended.wait()
    except BaseException as error:
        return error
    return None


class _TooLong(BaseException):
    """This wait is over, and no other one."""


def _raise(error: BaseException) -> None:
    raise error


def _nothing() -> None:
    """A descriptor of ours is never closed under the hub's eyes."""
