"""Several requests at a time, each on a thread of its own."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from tricorn.workers.base import Worker

if TYPE_CHECKING:
    from tricorn.workers.native import Core, WsgiGateway


JOIN_STEP = 0.1


class ThreadWorker(Worker):
    """`threads` threads wait, read, call and answer; the main thread is left to signals."""

    def serve(self, core: Core, gateway: WsgiGateway) -> None:
        # Daemons: after a quick stop a call that never returns must not hold the process.
        threads = [
            threading.Thread(target=self._work, args=(core, gateway), name=f"tricorn-{number}", daemon=True)
            for number in range(self.cfg.threads)
        ]
        for thread in threads:
            thread.start()
        core.wait()
        for thread in threads:
            # In steps, since a quick stop may follow; a join is not ended by a signal.
            while thread.is_alive() and not self.quick:
                thread.join(JOIN_STEP)

    def _work(self, core: Core, gateway: WsgiGateway) -> None:
        try:
            core.serve(gateway)
        except (Exception, SystemExit):
            self.crash()
            core.drain()  # a pool with a thread less would be slower for ever, and an empty one would hang
