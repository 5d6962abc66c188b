"""How a greenlet waits: no wake-up is lost, whenever it comes. In a process of its own, which is patched."""

from __future__ import annotations

import pytest

from tests.harness.interpreter import python
from tests.harness.needs import needs

EARLY = """
import sys, tricorn.unpatched
hub = sys.argv[1]
if hub == "gevent":
    from gevent import monkey
    monkey.patch_all()
else:
    import eventlet
    eventlet.monkey_patch()
from tricorn_green.offload.hubs import hub_of
from tricorn.unpatched import _thread
for _ in range(20):
    waiter = hub_of(hub).waiter()
    lock = _thread.allocate_lock()
    lock.acquire()
    def wake():
        waiter.wake()
        lock.release()
    _thread.start_new_thread(wake, ())
    lock.acquire()  # it was woken by now, and the hub has not run since
    waiter.wait()
"""


@pytest.mark.parametrize("hub", ["gevent", "eventlet"])
def test_a_wake_up_that_comes_before_the_wait(hub: str) -> None:
    needs(hub)
    python(EARLY, hub)
