"""Many requests at a time, each on a gevent greenlet."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gevent import event, get_hub, spawn, timeout
from gevent.greenlet import Greenlet

from tricorn_green.workers import green

if TYPE_CHECKING:
    from tricorn.workers.native import LoopClock


class Hub(green.Hub):
    """gevent's hub."""

    def __init__(self) -> None:
        self._hub = get_hub()
        self._watchers: list[Any] = []
        self.switch = self._hub.switch
        self.is_linked = RequestGreenlet.has_links

    def watch(self, fd: int, callback: Callable[[], object]) -> None:
        watcher = self._hub.loop.io(fd, READ)
        watcher.start(callback)
        self._watchers.append(watcher)

    def unwatch(self) -> None:
        for watcher in self._watchers:
            watcher.stop()
            watcher.close()
        self._watchers.clear()

    def keep_time(self, clock: LoopClock) -> None:
        """Keeps the loop's time by the callbacks before and after each wait. libuv's loop has none before."""
        loop = self._hub.loop
        try:
            before = loop.prepare(ref=False, priority=loop.MINPRI)
        except TypeError:
            return
        after = loop.check(ref=False, priority=loop.MAXPRI)
        before.start(clock.waits)
        after.start(clock.works)
        self._watchers += (before, after)
        clock.begin()

    def new_greenlet(self, run: Callable[[], object]) -> RequestGreenlet:
        return RequestGreenlet(run)

    def wait_readable(self, fd: int, seconds: float) -> None:
        self._wait(fd, READ, seconds)

    def wait_writable(self, fd: int, seconds: float) -> None:
        self._wait(fd, WRITE, seconds)

    def _wait(self, fd: int, event: int, seconds: float) -> None:
        watcher = self._hub.loop.io(fd, event)
        try:
            with timeout.Timeout(seconds, False):
                self._hub.wait(watcher)
        finally:
            watcher.close()

    def event(self) -> event.Event:
        return event.Event()

    def in_child(self) -> None:
        """`gevent.os.fork` sees to the hub."""

    def when_ended(self, greenlet: Any, function: Callable[[BaseException | None], object]) -> None:
        if isinstance(greenlet, Greenlet):
            greenlet.rawlink(lambda ended: function(ended.exception))

    def spawn(self, function: Callable[..., object], *args: object) -> None:
        spawn(function, *args)


class RequestGreenlet(Greenlet):  # type: ignore[misc]
    """Greenlet that `gevent.getcurrent()` returns in a request."""


class GeventWorker(green.GreenWorker):
    """Waits in gevent's hub."""

    alias = "gevent"

    def make_hub(self) -> Hub:
        return Hub()


READ = 1
WRITE = 2
