"""The same things by the same names, of gevent or of eventlet: whichever the environment's GREEN says."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

if os.environ["GREEN"] == "gevent":
    import gevent.local
    import gevent.monkey
    from gevent import GreenletExit as Exit
    from gevent import Timeout, getcurrent
    from gevent.local import local as GreenLocal

    blocking_sleep = gevent.monkey.get_original("time", "sleep")

    def kill(greenlet: Any, error: type[BaseException] | None) -> None:
        """Without waiting for its end: that is the caller's business."""
        greenlet.kill(error or Exit, block=False)

    def link(greenlet: Any, callback: Callable[[], object]) -> None:
        greenlet.link(lambda _: callback())

    def start_timeout(seconds: float) -> None:
        Timeout(seconds).start()

else:
    import eventlet
    import eventlet.patcher
    from eventlet import Timeout, getcurrent
    from eventlet.corolocal import local as GreenLocal
    from greenlet import GreenletExit as Exit

    blocking_sleep = eventlet.patcher.original("time").sleep

    def kill(greenlet: Any, error: type[BaseException] | None) -> None:
        eventlet.kill(greenlet, *([error] if error else []))

    def link(greenlet: Any, callback: Callable[[], object]) -> None:
        greenlet.link(lambda _: callback())

    def start_timeout(seconds: float) -> None:
        Timeout(seconds)  # it runs from now on


__all__ = ["Exit", "GreenLocal", "Timeout", "blocking_sleep", "getcurrent", "kill", "link", "start_timeout"]
