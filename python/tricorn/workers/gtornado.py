"""tornado applications, and WSGI applications in tornado's container, on asyncio's loop, which is tornado's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tricorn.gateway import observe_call, tornado
from tricorn.workers.loops import LoopWorker

if TYPE_CHECKING:
    from tricorn.workers.native import CallGateway


class TornadoWorker(LoopWorker):
    """The core calls tornado's own interfaces; no HTTPServer of tornado's is there."""

    def make_gateway(self) -> CallGateway:
        before, after = observe_call.callbacks(self, self.cfg, self.log)
        return tornado.make_gateway(self.wsgi, self.loop, self.log, before=before, after=after)
