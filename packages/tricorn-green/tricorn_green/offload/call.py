"""One call that a thread makes for a greenlet or a coroutine, and what passes between them meanwhile.

    caller     makes the call ── waits ── runs a visit ── waits ── takes the result
                  │                ▲ │                        ▲
    thread        └▶ run ── visit ─┘ └▶ goes on ── … ── done ─┘

A *visit* is a function that the thread has the caller run, and waits for: C libraries call back on the thread that
they were called on, and what they call belongs to the application, which knows nothing of threads. While it is visited
the caller may make another call of the same object: that one is run by the thread that waits, so that it finds the
object as it would without threads.

A caller that is killed, or whose time is over, leaves. A call that has not begun is not made then; one that is under
way cannot be ended, and is counted as *abandoned*: its object stays busy until it returns. Its visits are run by a
greenlet of their own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextvars import copy_context
from typing import Any

from tricorn.unpatched import _thread, time
from tricorn_green.offload import board
from tricorn_green.offload.hubs import Coroutine, Hub, Waits, Wakes
from tricorn_green.offload.pool import Line

_lock = _thread.RLock()
"""Guards the moments in which a call begins, ends, or is left."""

_here = _thread._local()
"""On a thread of a pool: the call that it makes."""


class Counts:
    """Calls of this process."""

    def __init__(self) -> None:
        self.calls = 0
        self.abandoned = 0
        """Calls that are under way, and whose callers have gone."""
        self.abandoned_ever = 0


counts = Counts()


class Visit:
    """A function that a thread has the caller run."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._function, self._args, self._kwargs = function, args, kwargs
        self._result: Any = None
        self._error: BaseException | None = None
        self._is_over = False
        self._nested: deque[Call] = deque()
        self._park = _thread.allocate_lock()
        self._park.acquire()

    def run(self) -> None:
        """Runs the function. Called by the caller."""
        try:
            self._result = self._function(*self._args, **self._kwargs)
        except BaseException as error:
            self._error = error
        self.end()

    def fail(self, error: BaseException) -> None:
        """There is no caller any more."""
        self._error = error
        self.end()

    def end(self) -> None:
        self._is_over = True
        self._wake()

    def submit(self, call: Call) -> bool:
        """Submits a call from within it. Called by the caller."""
        self._nested.append(call)
        self._wake()
        return True

    def _wake(self) -> None:
        if self._park.locked():
            self._park.release()

    def wait(self) -> Any:
        """Waits until the function has returned. Called by the thread."""
        while True:
            self._park.acquire()
            while self._nested:
                self._nested.popleft().run()
            if self._is_over:
                break
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self._result


class Call:
    def __init__(self, function: Callable[[], Any], line: Line, waiter: Wakes) -> None:
        self.line = line
        self._function = function
        self._context = copy_context()
        self._waiter = waiter
        self._messages: deque[Visit | None] = deque()
        """None: it is done."""
        self._has_begun = self._is_done = self._was_left = False
        self.waited = 0.0
        """Seconds from the making of the call to its begin."""
        self._made = time.monotonic()
        self._result: Any = None
        self._error: BaseException | None = None
        board.page().offload_waits(1)

    # By the thread

    def run(self) -> None:
        with _lock:
            if self._was_left:
                return
            self._has_begun = True
            board.page().offload_begins()
        began = time.monotonic_ns()
        self.waited = time.monotonic() - self._made
        before = getattr(_here, "call", None)
        _here.call = self
        try:
            self._result = self._context.run(self._function)
        except BaseException as error:
            self._error = error
        finally:
            _here.call = before
        with _lock:
            self._is_done = True
            # One inside another, by the thread that waits for its visit, is part of that one's time.
            board.page().offload_ends(time.monotonic_ns() - began if before is None else 0)
            counts.abandoned -= self._was_left
            if self._was_left:
                self._result = self._error = None
        self._tell(None)

    def bring(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        visit = Visit(function, args, kwargs)
        self._tell(visit)
        self.line.pool.lend()
        try:
            return visit.wait()
        finally:
            self.line.pool.take_back()

    def _tell(self, message: Visit | None) -> None:
        with _lock:
            was_left = self._was_left
            if not was_left:
                self._messages.append(message)
        if not was_left:
            self._waiter.wake()
        elif message is not None:
            self._visit_elsewhere(message)

    def _visit_elsewhere(self, visit: Visit) -> None:
        try:
            self._waiter.elsewhere(visit.run)
        except RuntimeError as error:
            visit.fail(error)

    # By the caller

    @property
    def is_abandoned(self) -> bool:
        return self._was_left and self._has_begun and not self._is_done

    def leave(self) -> None:
        with _lock:
            if not (self._has_begun or self._was_left):
                board.page().offload_waits(-1)
            self._was_left = True
            if self.is_abandoned:
                board.page().offload_abandoned()
                counts.abandoned += 1
                counts.abandoned_ever += 1
            left, self._messages = self._messages, deque()
        for message in left:
            if message is not None:
                self._visit_elsewhere(message)

    def messages(self) -> Iterator[Visit | None]:
        """Returns the messages that have come, after a wait."""
        while self._messages:
            yield self._messages.popleft()

    def outcome(self) -> Any:
        """Returns what the function returned, or raises what it raised, with the traceback of the thread."""
        error, self._error = self._error, None
        if error is None:
            return self._result
        try:
            raise error
        finally:
            del error  # its traceback has this frame


_visiting: dict[int, Visit] = {}
"""Visits that run just now, by greenlet."""
_lines: dict[int, Line] = {}
"""The lines of the calls that these visits belong to."""


def by_greenlet(function: Callable[[], Any], line: Line, hub: Hub, tell: Callable[[Call], object]) -> Any:
    """Has a thread call `function`, and lets other greenlets go on meanwhile. `tell` looks at the call afterwards."""
    me = id(hub.me())
    counts.calls += 1
    waiter = hub.waiter()
    call = Call(function, line, waiter)
    visit = _visiting.get(me)
    if visit is not None and _is_same(_lines[me], line):
        visit.submit(call)
    elif not line.submit(call):
        call.leave()
        return function()
    try:
        return _follow(call, waiter, me)
    finally:
        tell(call)


def is_visiting(greenlet: object, line: Line) -> bool:
    """Whether the greenlet runs a visit of a call of this line: its thread waits, and may be sent another."""
    return id(greenlet) in _visiting and _is_same(_lines[id(greenlet)], line)


def _is_same(one: Line, other: Line) -> bool:
    return one is other or (one.pool is one and other.pool is one)


def _follow(call: Call, waiter: Waits, me: int) -> Any:
    try:
        while True:
            waiter.wait()
            for visit in call.messages():
                if visit is None:
                    return call.outcome()
                before = _visiting.get(me), _lines.get(me)
                _visiting[me], _lines[me] = visit, call.line
                try:
                    visit.run()
                finally:
                    _restore(me, *before)
    except BaseException:
        call.leave()
        raise


def _restore(me: int, visit: Visit | None, line: Line | None) -> None:
    if visit is None or line is None:
        del _visiting[me], _lines[me]
    else:
        _visiting[me], _lines[me] = visit, line


async def by_coroutine(function: Callable[[], Any], line: Line) -> Any:
    """Makes a call for a coroutine. Callbacks of the library run on the thread of the loop."""
    import asyncio

    counts.calls += 1
    waiter = Coroutine(asyncio.get_running_loop())
    call = Call(function, line, waiter)
    if not line.submit(call):
        call.leave()
        return function()
    try:
        while True:
            await waiter.wait()
            for visit in call.messages():
                if visit is None:
                    return call.outcome()
                visit.run()
    except BaseException:
        call.leave()
        raise


def bring(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """On a thread of a pool: has the caller call `function`, and returns what it returns. Elsewhere just calls it."""
    call: Call | None = getattr(_here, "call", None)
    return function(*args, **kwargs) if call is None else call.bring(function, args, kwargs)


def begin_anew() -> None:
    """Resets the state in a forked child, which has no threads."""
    global _lock  # a thread that is not here may have held it
    _lock = _thread.RLock()
    counts.calls = counts.abandoned = counts.abandoned_ever = 0
    _visiting.clear()
    _lines.clear()
