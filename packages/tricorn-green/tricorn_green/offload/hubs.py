"""How what called waits while a thread works: greenlets of gevent's and eventlet's hub, and coroutines of asyncio.

A waiter belongs to one call. `wake` is what other threads may call; all else happens on the thread of the hub, so that
nothing here needs a lock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from tricorn.unpatched import _thread, os

if TYPE_CHECKING:
    import asyncio


class Wakes(Protocol):
    """Wake-up of the hub by a thread of the pool."""

    def wake(self) -> None:
        """The waiter goes on, now or when it waits the next time."""

    def elsewhere(self, function: Callable[[], object]) -> None:
        """Calls `function` where it may wait, for a waiter that has gone. RuntimeError if there is no hub any more."""


class Waits(Wakes, Protocol):
    def wait(self) -> None:
        """Lets others go on until it is woken. Raises what is raised in it meanwhile."""


class Hub(Protocol):
    """Hub of a greenlet worker."""

    def may_wait(self) -> bool:
        """Whether the caller is a greenlet that can: not the hub itself, and no other thread."""

    def waiter(self) -> Waits: ...

    def me(self) -> object:
        """The greenlet that is running."""


def hub_of(alias: str) -> Hub:
    """Returns the hub of this thread, which runs that of the worker class `alias`."""
    return Eventlet() if alias == "eventlet" else Gevent()


class Gevent:
    def __init__(self) -> None:
        from gevent import get_hub, getcurrent, spawn
        from gevent.hub import Waiter

        self.me: Callable[[], object] = getcurrent
        self._thread = _thread.get_ident()
        self._get_hub = get_hub
        self._kit = Waiter, spawn
        self._bell: Async | None = None

    def may_wait(self) -> bool:
        return _thread.get_ident() == self._thread and self.me() is not self._get_hub()

    def waiter(self) -> Waits:
        if self._bell is None or self._bell.pid != os.getpid():
            self._bell = Async(self._get_hub().loop)
        return _GeventWaiter(self._get_hub(), self._bell, *self._kit)


class Async:
    """The one watcher that threads may wake, for all calls; it keeps the loop running while some are waited for."""

    def __init__(self, loop: Any) -> None:
        self.pid = os.getpid()
        self._watcher = loop.async_()
        self._calls: deque[Callable[[], object]] = deque()
        self._waiting = 0

    def call(self, function: Callable[[], object]) -> None:
        """From any thread: has the hub call `function`."""
        self._calls.append(function)
        self._watcher.send()

    def __enter__(self) -> None:
        if not self._waiting:
            self._watcher.start(self._rung)
            if self._calls:  # libev forgets what was sent to a watcher that had not started
                self._watcher.send()
        self._waiting += 1

    def __exit__(self, *_: object) -> None:
        self._waiting -= 1
        if not self._waiting:
            self._watcher.stop()

    def _rung(self) -> None:
        while self._calls:
            self._calls.popleft()()


class _GeventWaiter:
    def __init__(self, hub: Any, bell: Async, kind: Callable[[Any], Any], spawn: Callable[..., object]) -> None:
        self._hub, self._bell, self._kind, self._spawn = hub, bell, kind, spawn
        self._waiter: Any = None
        self._was_woken = False

    def wait(self) -> None:
        if not self._was_woken:
            self._waiter = self._kind(self._hub)
            try:
                with self._bell:
                    self._waiter.get()
            finally:
                self._waiter = None
        self._was_woken = False

    def wake(self) -> None:
        self._bell.call(self._arrive)

    def _arrive(self) -> None:
        self._was_woken = True
        if self._waiter is not None:
            self._waiter.switch(None)

    def elsewhere(self, function: Callable[[], object]) -> None:
        loop = self._hub.loop
        if loop is None:
            raise RuntimeError("gevent's hub has ended")
        loop.run_callback_threadsafe(self._spawn, function)


class Eventlet:
    def __init__(self) -> None:
        from eventlet import event, hubs
        from eventlet.greenthread import getcurrent, spawn_n

        self.me: Callable[[], object] = getcurrent
        self._thread = _thread.get_ident()
        self._get_hub = hubs.get_hub
        self._kit = event.Event, spawn_n
        self._bell: Bell | None = None

    def may_wait(self) -> bool:
        return _thread.get_ident() == self._thread and self.me() is not self._get_hub().greenlet

    def waiter(self) -> Waits:
        if self._bell is None or self._bell.pid != os.getpid():
            self._bell = Bell(self._get_hub())
        return _EventletWaiter(self._bell, *self._kit)


class Bell:
    """eventlet has no call that threads may make: they write into a pipe, which its hub watches."""

    def __init__(self, hub: Any) -> None:
        self.pid = os.getpid()
        self._hub = hub
        self._calls: deque[Callable[[], object]] = deque()
        self._reader, self._writer = os.pipe()
        for end in (self._reader, self._writer):
            os.set_blocking(end, False)
        self._listener = hub.add(hub.READ, self._reader, self._rung, _raise, _nothing)

    def call(self, function: Callable[[], object]) -> None:
        """From any thread: has the hub call `function`."""
        self._calls.append(function)
        with suppress(BlockingIOError):  # it is full, so that it will be read
            os.write(self._writer, b"\0")

    def _rung(self, _: object) -> None:
        if self.pid != os.getpid():
            self._hub.remove(self._listener)  # a forked child has the parent's pipe
            return
        with suppress(BlockingIOError):
            os.read(self._reader, 4096)
        while self._calls:
            self._hub.schedule_call_global(0, self._calls.popleft())


class _EventletWaiter:
    def __init__(self, bell: Bell, kind: Callable[[], Any], spawn: Callable[..., object]) -> None:
        self._bell, self._kind, self._spawn = bell, kind, spawn
        self._event: Any = None
        self._was_woken = False

    def wait(self) -> None:
        if not self._was_woken:
            self._event = self._kind()
            try:
                self._event.wait()
            finally:
                self._event = None
        self._was_woken = False

    def wake(self) -> None:
        self._bell.call(self._arrive)

    def _arrive(self) -> None:
        self._was_woken = True
        if self._event is not None and not self._event.ready():
            self._event.send()

    def elsewhere(self, function: Callable[[], object]) -> None:
        self._bell.call(lambda: self._spawn(function))


class Coroutine:
    """Caller in the thread of an event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._future: asyncio.Future[None] | None = None
        self._was_woken = False

    async def wait(self) -> None:
        if not self._was_woken:
            self._future = self._loop.create_future()
            try:
                await self._future
            finally:
                self._future = None
        self._was_woken = False

    def wake(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._arrive)

    def _arrive(self) -> None:
        self._was_woken = True
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def elsewhere(self, function: Callable[[], object]) -> None:
        self._loop.call_soon_threadsafe(function)


def _raise(error: BaseException) -> None:
    raise error


def _nothing() -> None:
    """The pipe is never closed while the hub watches it."""
