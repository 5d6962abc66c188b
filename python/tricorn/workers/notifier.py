"""`notify` of worker classes of the user's, which gunicorn calls once a second: heartbeats of their own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tricorn.workers.base import Worker

INTERVAL = 1.0


def start(worker: Worker) -> None:
    """Calls it from a thread; a greenlet under greenlets. Where no class overrides it there is none."""
    if not any("notify" in vars(each) for each in type(worker).__mro__ if not each.__module__.startswith("tricorn.")):
        return
    threading.Thread(target=_run, args=(worker,), name="tricorn-notify", daemon=True).start()


def _run(worker: Worker) -> None:
    rest = threading.Event()
    while worker.alive:
        try:
            worker.notify()
        except Exception:
            worker.log.exception("Exception in notify() of the worker class")
        rest.wait(INTERVAL)
