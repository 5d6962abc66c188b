"""An event loop that runs in turns, and that nothing in the application can end."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import selectors
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

from tricorn import forked

if TYPE_CHECKING:
    from tricorn.log import Logger
    from tricorn.workers.native import LoopClock

LAST_TASKS = 0.3
"""Seconds that tasks have to end when the loop is closed: the arbiter's patience after QUIT is two seconds in all."""


class EventLoop:
    """asyncio's loop, or uvloop's, for the main thread of a worker; made after the fork.

    It is the current one as soon as it is made, for modules that ask for it while they are imported. It runs from turn
    to turn (`run`); tasks that are under way between two turns go on with the next one.

    The worker has one task of its own, the root task, which lives as long as the loop. Each turn runs it by
    `run_until_complete`, as `asyncio.run` runs the main task of a program. Libraries look for that task: anyio keeps
    its idle threads until it ends. If the application cancels all tasks, the root task ends and is created again.
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
        self._root, self._end = self._make_root()
        self._turn: object = None
        """Identifies the current call of `run`."""
        self._reader, self.wakeup_fd = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self.wakeup_fd, False)
        # A signal that comes right before the loop begins to wait would be noticed when something else happens.
        self.loop.add_reader(self._reader, self._take_wakeups)

    def run(self, *futures: asyncio.Future[Any], timeout: float | None = None) -> None:
        """Runs the loop until one of these is done, or for so many seconds.

        `SystemExit` and `KeyboardInterrupt` leave a loop through whatever runs it. Here they are logged, and it
        goes on. `loop.stop()` in the application does not end the turn either.
        """
        turn = self._turn = object()
        is_over = False

        def end(_: object = None) -> None:
            nonlocal is_over
            is_over = True
            if self._turn is turn:  # not a late callback of a turn that another future has ended
                self.loop.stop()

        timer = None if timeout is None else self.loop.call_later(timeout, end)
        for future in futures:
            future.add_done_callback(end)
        while not is_over and not any(future.done() for future in futures):
            try:
                was_stopped = self._run_root()
                self._leave_if_child()
                if was_stopped and not is_over:
                    self._log.warning("The application stopped the event loop; the worker runs it again")
            except (SystemExit, KeyboardInterrupt) as error:
                forked.leave_if_child(error)
                if not any(_let_out(future, error) for future in futures):  # whose caller raises it
                    self._log.error(
                        "%s in the event loop; the loop keeps running", type(error).__name__, exc_info=error
                    )
        self._turn = None
        for future in futures:
            future.remove_done_callback(end)
        if timer is not None:
            timer.cancel()

    def _run_root(self) -> bool:
        """Runs the loop until it is stopped (True), or until the root task ends (False)."""
        if self._root.done():
            self._root, self._end = self._make_root()
        try:
            self.loop.run_until_complete(self._root)
        except asyncio.CancelledError:
            self._log.warning("The application cancelled all tasks of the event loop; the worker keeps serving")
        except RuntimeError:  # "Event loop stopped before Future completed."
            if self._root.done() or self.loop.is_closed() or self.loop.is_running():
                raise
            return True
        return False

    def _make_root(self) -> tuple[asyncio.Task[None], asyncio.Future[None]]:
        """Creates the root task and the future that ends it."""
        end: asyncio.Future[None] = self.loop.create_future()
        return self.loop.create_task(_until(end), name="tricorn"), end

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
        """Detaches the loop in a process that the application forked: it must not go on, nor reach the parent's."""
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
        ending = self.loop.create_task(self._end_tasks())
        try:
            self.run(ending)
            # Last, since the other tasks may have needed what ends with it, such as threads.
            self._end.set_result(None)
            self.run(self._root)
        finally:
            signal.set_wakeup_fd(-1)
            self.loop.remove_reader(self._reader)
            asyncio.set_event_loop(None)
            self.loop.close()
            os.close(self._reader)
            os.close(self.wakeup_fd)
        if not ending.cancelled():
            ending.result()

    async def _end_tasks(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task(), self._root}
        for task in tasks:
            with suppress(RecursionError):  # tasks that wait for one another in a circle
                task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=LAST_TASKS)
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self.loop.shutdown_asyncgens(), LAST_TASKS)

    def _take_wakeups(self) -> None:
        with suppress(BlockingIOError):
            os.read(self._reader, 512)


def _leave_by(_: Callable[..., object], *arguments: object, **__: object) -> NoReturn:
    """Stands in for `call_soon_threadsafe`: its arguments hold the exception of an executor's task."""
    for value in arguments:
        if isinstance(value, concurrent.futures.Future) and value.done() and not value.cancelled():
            forked.leave(value.exception())
        if isinstance(value, BaseException):
            forked.leave(value)
    forked.leave(None)


async def _until(end: asyncio.Future[None]) -> None:
    await end


def _let_out(task: asyncio.Future[Any], error: BaseException) -> bool:
    return task.done() and not task.cancelled() and task.exception() is error


def import_loop(kind: str) -> None:
    """Imports the event loop before the fork, so that workers share its memory."""
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
