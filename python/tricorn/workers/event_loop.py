"""An event loop that runs in turns, and that no task can end."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import selectors
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from tricorn import forked

if TYPE_CHECKING:
    from tricorn.log import Logger
    from tricorn.workers.native import LoopClock

T = TypeVar("T")

LAST_TASKS = 0.3
"""Seconds that tasks have to end when the loop is closed: the arbiter's patience after QUIT is two seconds in all."""


class EventLoop:
    """asyncio's loop, or uvloop's, for the main thread of a worker; made after the fork.

    It is the current one as soon as it is made, for modules that ask for it while they are imported. It runs from turn
    to turn (`run`); tasks that are under way between two turns go on with the next one.
    """

    def __init__(
        self, kind: str, log: Logger, made: tuple[asyncio.AbstractEventLoop, frozenset[int]] | None = None
    ) -> None:
        """`made` is a loop that is there already, with the epolls that were there before it."""
        before = frozenset(forked.epolls()) if made is None else made[1]
        self.loop = _make(kind) if made is None else made[0]
        _hasten(self.loop)
        self._epolls = forked.epolls() - before
        self._thread = threading.get_ident()
        self._forker: asyncio.Task[Any] | None = None
        self._log = log
        asyncio.set_event_loop(self.loop)
        self._reader, self.wakeup_fd = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self.wakeup_fd, False)
        # A signal that comes right before the loop begins to wait would be noticed when something else happens.
        self.loop.add_reader(self._reader, self._take_wakeups)

    def run(self, awaitable: Awaitable[T]) -> T:
        """Runs the loop until `awaitable` is done; its result, or what it raised.

        `SystemExit` and `KeyboardInterrupt` leave a loop through whatever runs it. Here they are logged, and it
        goes on. A task that stops the loop stops nothing either.
        """
        task = asyncio.ensure_future(awaitable, loop=self.loop)
        task.add_done_callback(lambda _: self.loop.stop())
        while not task.done():
            try:
                self.loop.run_forever()
                self._leave_if_child()
            except (SystemExit, KeyboardInterrupt) as error:
                forked.leave_if_child(error)
                if not _let_out(task, error):  # which is raised below
                    self._log.error("%s in the event loop, which goes on", type(error).__name__, exc_info=error)
        return task.result()

    def keep_time(self, clock: LoopClock) -> None:
        """Tells when the loop waits for events, and when it has; nothing where it does not show that, as uvloop."""
        selector: Any = getattr(self.loop, "_selector", None)
        if selector is None:
            return
        keys: Any = getattr(selector, "_fd_to_key", None)
        descriptor = selector.fileno() if type(selector) is selectors.EpollSelector else None
        if descriptor is not None and type(keys) is dict:
            selector.select = clock.select(descriptor, keys)
        else:
            selector.select = clock.around(selector.select)
        clock.begin()

    def call(self, function: Callable[..., object], *arguments: object) -> None:
        """Calls a function in the loop, soon. For signal handlers, which run in the midst of something else."""
        self.loop.call_soon_threadsafe(function, *arguments)

    def in_child(self) -> None:
        """In a process that the application forked: this loop must neither go on, nor reach the parent's."""
        for shared in self._epolls:
            forked.own_epoll(shared)
        if threading.get_ident() != self._thread:
            # A thread of an executor hands over what it has come to, and would wait for its next task.
            self.loop.call_soon_threadsafe = _leave_by  # type: ignore[method-assign, assignment]
            return
        self._forker = asyncio.current_task(self.loop)
        # What else is to run in this turn is the parent's. uvloop does not show it.
        for handle in getattr(self.loop, "_ready", ()):
            handle.cancel()
        self.loop.stop()

    def _leave_if_child(self) -> None:
        if forked.is_child():
            if self._forker is not None:
                forked.leave_task(self._forker)
            forked.leave(None)

    def close(self) -> None:
        """Cancels the tasks that are left, and closes the loop. What they raise they tell the loop's handler."""
        try:
            self.run(self._end_tasks())
        finally:
            signal.set_wakeup_fd(-1)
            self.loop.remove_reader(self._reader)
            asyncio.set_event_loop(None)
            self.loop.close()
            os.close(self._reader)
            os.close(self.wakeup_fd)

    async def _end_tasks(self) -> None:
        me = asyncio.current_task()
        tasks = [task for task in asyncio.all_tasks() if task is not me]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=LAST_TASKS)
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.loop.shutdown_asyncgens(), LAST_TASKS)

    def _take_wakeups(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._reader, 512)


def _leave_by(_: Callable[..., object], *arguments: object, **__: object) -> NoReturn:
    """In place of `call_soon_threadsafe`, whose arguments tell what an executor's task has let out."""
    for value in arguments:
        if isinstance(value, concurrent.futures.Future) and value.done() and not value.cancelled():
            forked.leave(value.exception())
        if isinstance(value, BaseException):
            forked.leave(value)
    forked.leave(None)


def _let_out(task: asyncio.Future[Any], error: BaseException) -> bool:
    return task.done() and not task.cancelled() and task.exception() is error


def import_loop(kind: str) -> None:
    """Before the fork, so that workers share its pages."""
    if kind == "uvloop":
        import uvloop  # noqa: F401


def _hasten(loop: Any) -> None:
    """Gives asyncio's loop what does the same as some of its methods, by fewer Python functions."""
    kind, base = type(loop), asyncio.BaseEventLoop
    if kind.time is base.time:
        loop.time = time.monotonic
    inner = getattr(base, "_call_soon", None)  # what makes the handles
    if kind.call_soon is base.call_soon and getattr(kind, "_call_soon", None) is inner and hasattr(loop, "_ready"):
        from tricorn.workers.native import CallSoon

        loop.call_soon = CallSoon(loop).call_soon


def _make(kind: str) -> asyncio.AbstractEventLoop:
    if kind == "uvloop":
        import uvloop

        return uvloop.new_event_loop()
    return asyncio.new_event_loop()
