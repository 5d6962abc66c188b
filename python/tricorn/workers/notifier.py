"""`notify` of worker classes of the user's, which gunicorn calls once a second: heartbeats of their own.

It is called where applications may be called as well: by the main thread between two requests, in the event loop, in a
greenlet. A thread, or a greenlet, only says when.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from tricorn.errors import is_own_module

if TYPE_CHECKING:
    from tricorn.workers.contract import Contract
    from tricorn.workers.native import Core

INTERVAL = 1.0


def start(worker: Contract, core: Core) -> None:
    """Starts the calls of `notify`, if the class overrides it."""
    if not any("notify" in vars(each) for each in type(worker).__mro__ if not is_own_module(each.__module__)):
        return
    due = partial(worker.spawn, _notify, worker) if worker.hub else _between_requests(worker, core)
    threading.Thread(target=_run, args=(worker, due), name="tricorn-notify", daemon=True).start()


def _between_requests(worker: Contract, core: Core) -> Callable[[], object]:
    is_due = threading.Event()  # the main thread is woken by signals as well

    def when_woken() -> None:
        if is_due.is_set():
            is_due.clear()
            _notify(worker)

    def tell() -> None:
        is_due.set()
        with suppress(BlockingIOError):  # it was told before, and is busy
            os.write(core.wakeup_fd, b"\0")

    core.call_when_woken(when_woken)
    return tell


def _run(worker: Contract, tell: Callable[[], object]) -> None:
    rest = threading.Event()
    while worker.alive:
        tell()
        rest.wait(INTERVAL)


def _notify(worker: Contract) -> None:
    try:
        worker.notify()
    except Exception:
        worker.log.exception("Exception in notify() of the worker class")
