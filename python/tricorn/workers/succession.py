"""A worker that has drained becomes a mold (`refork`): what would not survive its forks is closed, or named.

own threads have ended --> hook before_refork --> connections are closed --> audit, which raises what it has found
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tricorn import log as logs
from tricorn.errors import BootError
from tricorn.unpatched import os, signal, time
from tricorn.workers import connections, fork_audit, handlers, watch

if TYPE_CHECKING:
    from tricorn.workers.base import Worker

PATIENCE = 2.0
"""Seconds for threads of the server to end."""

PAUSE = 0.01


def prepare(worker: Worker, server: Any, own: Iterable[int]) -> None:
    """Raises BootError, or what a hook raises, if the process cannot be forked.

    `own`: descriptors of the server that are open.
    """
    if worker.quick or worker.has_threads_left():
        raise BootError("Its requests were not waited for.")
    _await_own_threads()
    worker.let_go()
    gc.unfreeze()  # the collector does not tell of objects that are frozen
    try:
        worker.cfg.before_refork(server, worker)
    finally:
        logs.enable(worker.log)
    if has_children():
        raise BootError("It has processes of its own. End them in the hook before_refork.")
    fork_audit.Audit(fork_audit.REFORK, own).check(connections.close_idle)
    _restore_signals()


def _await_own_threads() -> None:
    end = time.monotonic() + PATIENCE
    while (left := _own_threads()) and time.monotonic() < end:
        time.sleep(PAUSE)
    if left:
        raise BootError(f"Threads of the server have not ended: {', '.join(left)}.")


def _own_threads() -> list[str]:
    names = {*fork_audit.thread_names(), *(each.name for each in threading.enumerate())}
    return sorted(name for name in names if name.startswith("tricorn-"))


def has_children() -> bool:
    """Whether a process that this one has started runs, or has ended and was not waited for."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _restore_signals() -> None:
    """From now on signals of a worker do what they do to any process."""
    own = (watch.LEVEL_SIGNAL, watch.WAITING_SIGNAL, watch.LATE_SIGNAL)
    for number in (*handlers.HANDLED, *filter(None, own)):
        signal.signal(number, signal.SIG_DFL)
