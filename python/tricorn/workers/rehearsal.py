"""An event loop for a mold, in which an application starts up, answers and shuts down before workers are forked.

Nothing of it may be left by then: the loop is closed, and threads that it has started have ended.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tricorn.unpatched import time
from tricorn.workers.event_loop import EventLoop

if TYPE_CHECKING:
    from tricorn.log import Logger

LAST_STEPS = 1.0
"""Seconds for threads to end: those of libraries are told when the loop closes. The audit names what is left."""


class Stage:
    """The loop, while it is there."""

    def __init__(self, event_loop: EventLoop) -> None:
        self._event_loop = event_loop
        self.loop = event_loop.loop

    async def wait(self, *futures: asyncio.Future[Any], timeout: float | None = None) -> bool:
        """Runs the loop until one of these is done, for coroutines that run outside of it (`lifespan.drive`)."""
        self._event_loop.run(*futures, timeout=timeout)
        return any(future.done() for future in futures)

    def complete(self, coroutine: Coroutine[Any, Any, None]) -> bool:
        """Runs a coroutine of the application in a task, and raises what it raises."""
        task = self.loop.create_task(coroutine)
        self._event_loop.run(task)
        task.result()
        return True

    def close(self) -> None:
        """Also tells the threads of the default executor to end."""
        self._event_loop.close()


@contextmanager
def stage(kind: str, log: Logger) -> Iterator[Stage]:
    """`kind` is the loop's, as of a worker."""
    before = set(threading.enumerate())
    made = Stage(EventLoop(kind, log))
    try:
        yield made
    finally:
        made.close()
        _join(set(threading.enumerate()) - before)


def _join(threads: Collection[threading.Thread]) -> None:
    deadline = time.monotonic() + LAST_STEPS
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
