"""`tricorn.leaving`: notifies the application that its worker is shutting down.

signal handler ──▶ announce ──┬─▶ futures of event loops   `await tricorn.leaving()`
                              ├─▶ a pipe                   `tricorn.leaving().wait(5)` in threads and greenlets
                              └─▶ a flag                   `if tricorn.leaving():`
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tricorn.unpatched import os

if TYPE_CHECKING:
    import asyncio


class Leaving:
    """Shutdown notification of the worker: true after it was given; any number of callers can wait for it.

    while not tricorn.leaving():            # threads, WSGI generators
        yield next_event()

    await asyncio.wait([task, asyncio.ensure_future(tricorn.leaving())], return_when=FIRST_COMPLETED)
    """

    __slots__ = ("_futures", "_pipes", "_told", "is_used")

    def __init__(self) -> None:
        self._told = False
        self.is_used = False
        """The application has asked: it means to do something between the notice and the end."""
        self._futures: dict[asyncio.Future[None], None] = {}
        self._pipes: dict[int, tuple[int, int]] = {}
        """Pipes by process id. A child that the application forks gets no notice, nor waits for its parent's."""

    def __bool__(self) -> bool:
        self.is_used = True
        return self._told

    @property
    def is_given(self) -> bool:
        """Whether the notification was given. For the server: `bool` also records that the application asks."""
        return self._told

    def __reduce__(self) -> tuple[object, ...]:
        """Copies, as of a request's scope, are the same notice."""
        return leaving, ()

    def __repr__(self) -> str:
        return "tricorn.leaving()"

    def __await__(self) -> Generator[Any, None, None]:
        """Returns when the worker is told to leave; at once if it was."""
        self.is_used = True
        if self._told:
            return
        import asyncio  # the arbiter has no use for it

        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._futures[future] = None
        try:
            if not self._told:  # a signal may have come since the first look
                yield from future
        finally:
            del self._futures[future]

    def wait(self, timeout: float | None = None) -> bool:
        """Waits in this thread or greenlet for up to `seconds`; returns whether the worker is shutting down.

        It blocks: on an event loop, await the object instead.
        """
        self.is_used = True
        if self._told:
            return True
        reader = self._own_pipe()
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._told:
            rest = None if deadline is None else max(deadline - time.monotonic(), 0.0)
            if not _is_readable(reader, rest):
                break
        return self._told

    def announce(self) -> None:
        """Gives the notification. Takes no lock, since it is called in a signal handler."""
        self._told = True
        for future in tuple(self._futures):
            with suppress(RuntimeError):  # its loop is closed
                future.get_loop().call_soon_threadsafe(_finish, future)
        if (pipe := self._pipes.get(os.getpid())) is not None:
            os.write(pipe[1], b".")

    def _own_pipe(self) -> int:
        """The end that becomes readable, and is never read."""
        pid = os.getpid()
        if (pipe := self._pipes.get(pid)) is None:
            made = os.pipe()
            pipe = self._pipes.setdefault(pid, made)
            if pipe is not made:  # another thread was first
                for descriptor in made:
                    os.close(descriptor)
        return pipe[0]


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _is_readable(descriptor: int, timeout: float | None) -> bool:
    """Imports what greenlet libraries patch when it is called: they may have done so since this module was imported."""
    import select

    ready: Iterable[object]
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        ready = poll.poll(None if timeout is None else timeout * 1000)
    else:  # eventlet leaves it out, and its `select` has no limit of 1024
        ready, _, _ = select.select([descriptor], [], [], timeout)
    return bool(ready)


NOTICE = Leaving()


def leaving() -> Leaving:
    """Returns the shutdown notification of this worker: truthy at shutdown, awaitable, with `wait` for threads."""
    return NOTICE
