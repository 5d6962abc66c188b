"""Threads of the server's own, which are real ones also in a worker whose standard library is patched.

There `threading.Thread` is a greenlet, and one that waits in the kernel stops all requests. A real thread has no hub:
it must touch nothing that may be patched, which includes `logging`, whose handlers may be the application's. It calls
what `tricorn.unpatched` has, and tells the worker with a signal or the arbiter with a message.
"""

from __future__ import annotations

from collections.abc import Callable

from tricorn.unpatched import _thread


def start(function: Callable[..., object], *arguments: object) -> None:
    """Runs `function` in a thread that the end of the process does not wait for."""
    _thread.start_new_thread(function, arguments)


class Event:
    """`threading.Event` for a single waiting thread."""

    def __init__(self) -> None:
        self._unset = _thread.allocate_lock()
        self._unset.acquire()
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        if not self._is_set:
            self._is_set = True
            self._unset.release()

    def wait(self, seconds: float) -> bool:
        """Whether it is set within `seconds`."""
        if not self._is_set and self._unset.acquire(timeout=seconds):
            self._unset.release()
        return self._is_set
