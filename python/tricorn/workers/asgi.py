"""ASGI applications: HTTP, WebSocket and lifespan, on asyncio or uvloop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tricorn.gateway import agents, asgi, observe_asgi, stand_in
from tricorn.gateway.lifespan import Lifespan, drive
from tricorn.workers.loops import SHUTDOWN_REST, LoopWorker

if TYPE_CHECKING:
    from tricorn.workers.native import AsgiGateway


class AsgiWorker(LoopWorker):
    """Each request is a task of its own."""

    alias = "asgi"
    websockets_over_http2 = True

    _lifespan: Lifespan

    def start_up(self) -> bool:
        self._lifespan = Lifespan(self.wsgi, self.loop, self.cfg.asgi_lifespan, self.log)
        return drive(self._lifespan.startup(self.wait_in_turns()))

    def shut_down(self) -> bool:
        return drive(self._lifespan.shutdown(self.wait_in_turns(SHUTDOWN_REST)))

    def make_gateway(self) -> AsgiGateway:
        before, after = observe_asgi.callbacks(self, self.cfg, self.log)
        state = self._lifespan.state
        application = agents.observed_asgi(self.wsgi)
        return asgi.make_gateway(application, self.loop, state, self.cfg, self.log, before=before, after=after)

    def make_stand_in(self, traceback: str) -> Any:
        return stand_in.make_asgi_stand_in(traceback)
