"""tornado applications on asyncio's loop, which is tornado's; and WSGI applications on the loop's thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tornado.wsgi import WSGIContainer

from tricorn.errors import ConfigError
from tricorn.gateway import observe_call, tornado
from tricorn.gateway.tornado_wsgi import wsgi_of
from tricorn.workers.loops import LoopWorker

if TYPE_CHECKING:
    from tricorn.config.config import Config
    from tricorn.workers.native import CallGateway, WsgiGateway


class TornadoWorker(LoopWorker):
    """The core calls tornado's own interfaces, or WSGI; no HTTPServer or container of tornado's is there."""

    alias = "tornado"

    @classmethod
    def called_directly(cls, application: Callable[..., Any], config: Config) -> tuple[Callable[..., Any], int] | None:
        called = wsgi_of(application)
        return None if called is None else (called, 1)

    def loaded(self) -> None:
        # A WSGI call that waits for its client holds up the loop.
        self.streaming = self.yields = wsgi_of(self.wsgi) is None
        self.merges_names = not self.streaming or isinstance(self.wsgi, WSGIContainer)

    def make_gateway(self) -> CallGateway | WsgiGateway:
        from tricorn.workers import native

        application = wsgi_of(self.wsgi)
        if (application is None) != self.streaming:
            raise ConfigError(CHANGED)
        if application is not None:
            return native.make_wsgi_gateway(self, application, 1)
        before, after = observe_call.callbacks(self, self.cfg, self.log)
        return tornado.make_gateway(self.wsgi, self.loop, self.cfg, self.log, before=before, after=after)


CHANGED = (
    "The hook post_worker_init replaced a WSGI application by a tornado application or vice versa. Do that where the "
    "application is created."
)
