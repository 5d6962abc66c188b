"""The end of a process that has run the application: its threads get a while, its exit handlers run, and it is gone.

The interpreter waits for threads and exit handlers as long as they take. A consumer that waits on a queue would hold
the process for ever, or until it is killed and no exit handler runs at all.
"""

from __future__ import annotations

import atexit
import sys
import threading
from contextlib import suppress
from types import FrameType, ModuleType
from typing import Any

from tricorn.record import Record
from tricorn.unpatched import os, signal

THREADS_PATIENCE = 2.0
"""Seconds for threads that are no daemons, once the requests are done."""


class Limits(Record):
    """Time limits of a server process at its end."""

    log: Any
    """Has a method `warning`, as loggers do."""
    exit_handlers: float
    """Seconds for the functions registered with `atexit`."""


_of_server: Limits | None = None


def prepare(limits: Limits) -> None:
    """Notes in the arbiter, which has stopped serving, how `end_server` is to end this process."""
    global _of_server  # it is the process that ends
    _of_server = limits


def end_server(status: int) -> None:
    """Ends a process that is a server's and nothing else. Does nothing if none has served in it."""
    if _of_server is not None:
        end_process(status, _of_server)


def end_process(status: int, limits: Limits, *, abandons: bool = False) -> None:
    """Does what the interpreter does at its end, within limits. Returns if the interpreter can do the rest itself.

    It cannot if threads are left, or with `abandons`, which says that threads are still inside the application: until
    3.13 CPython ends such threads by pthread_exit(3) as soon as they ask for the GIL. Its unwinding meets the frames of
    the core, which catch it, and glibc aborts the process: "FATAL: exception not rethrown".
    """
    # In the interpreter's order (Py_FinalizeEx). Both are private names; a Python without them has nothing to run.
    waited_for = threads()
    in_time = _call(threading, "_shutdown", THREADS_PATIENCE)
    if not in_time and (left := [each.name for each in waited_for if _is_running(each)]):
        limits.log.warning(LEFT, os.getpid(), THREADS_PATIENCE, ", ".join(left))
    _call(atexit, "_run_exitfuncs", max(limits.exit_handlers, THREADS_PATIENCE))
    if in_time and not abandons:
        return
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # closed, or None
            stream.flush()
    os._exit(status)


def threads() -> list[threading.Thread]:
    """The threads that an interpreter waits for at its end."""
    me = threading.current_thread()
    return [each for each in threading.enumerate() if each is not me and not each.daemon]


def _is_running(thread: threading.Thread) -> bool:
    """Until 3.13 a thread counts as ended once an exception has left a `join` of it (bpo-45274)."""
    return thread.is_alive() or thread.ident in sys._current_frames()


class _Overdue(SystemExit):
    """Ends a wait. Hubs of greenlets pass a SystemExit on to the main greenlet, and swallow other exceptions."""


def _call(module: ModuleType, name: str, seconds: float) -> bool:
    """Calls a function in the main thread, and ends each wait in it after so many seconds. Returns whether none was."""
    function = getattr(module, name, None)
    in_time = True

    def end_wait(number: int, frame: FrameType | None) -> None:
        nonlocal in_time
        in_time = False
        raise _Overdue

    if function is not None:
        signal.signal(signal.SIGALRM, end_wait)
        signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
        try:
            function()
        except _Overdue:
            pass
        except BaseException:  # as the interpreter does: told, and the next one follows
            sys.excepthook(*sys.exc_info())
        finally:
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
            signal.setitimer(signal.ITIMER_REAL, 0)
    return in_time


LEFT = "Process %s exits with threads still running %g seconds after its last request: %s"
