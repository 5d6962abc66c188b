"""Several requests at a time, each on a thread of its own."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tricorn import forked
from tricorn.workers.base import ENDING_CALLS, Worker

if TYPE_CHECKING:
    from types import FrameType

    from tricorn.config.config import Config
    from tricorn.workers.native import Core, WsgiGateway


JOIN_STEP = 0.1


class ThreadWorker(Worker):
    """`threads` threads wait, read, call and answer; the main thread is left to signals."""

    alias = "gthread"

    _threads: Sequence[threading.Thread] = ()
    _give_up_at = math.inf
    """When threads are left that are still inside the application, on the monotonic clock."""
    #: The number of the next thread that an exception ends. Taking it is atomic.
    _failures: Iterator[int]

    @classmethod
    def at_once(cls, config: Config) -> int:
        return config.threads

    def serve(self, core: Core, gateway: WsgiGateway) -> None:
        # Daemons: after a quick stop a call that never returns must not hold the process.
        self._threads = [
            threading.Thread(target=self._work, args=(core, gateway), name=f"tricorn-{number}", daemon=True)
            for number in range(self.cfg.threads)
        ]
        self._failures = itertools.count(1)
        for thread in self._threads:
            thread.start()
        core.wait()
        for thread in self._threads:
            # In steps, since a quick stop may follow; a join is not ended by a signal.
            while thread.is_alive() and time.monotonic() < self._give_up_at:
                thread.join(JOIN_STEP)

    def end_calls(self, frame: FrameType | None) -> bool:
        self._give_up_at = time.monotonic() + ENDING_CALLS
        return False  # none on the main thread

    def has_threads_left(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def _work(self, core: Core, gateway: WsgiGateway) -> None:
        try:
            with forked.fence():
                core.serve(gateway)
        except BaseException:  # a panic of the core's is no Exception
            self.crash()
            if next(self._failures) < len(self._threads):
                core.drain()  # the others finish what has come: a pool with a thread less would be slower for ever
            else:
                core.stop()  # none is left that could finish anything
