"""gevent-websocket's worker class: gevent's, and WebSockets in `environ["wsgi.websocket"]`."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tricorn.errors import ConfigError
from tricorn_green.workers.gevent import GeventWorker

if TYPE_CHECKING:
    from tricorn.config.config import Config
    from tricorn.log import Logger


class GeventWebSocketWorker(GeventWorker):
    brings = ("geventwebsocket",)

    @classmethod
    def check_config(cls, cfg: Config, log: Logger) -> None:
        super().check_config(cfg, log)
        if find_spec("simple_websocket") is None:
            raise ConfigError(
                f"The worker class {cls.__qualname__} needs simple-websocket, which is not installed: "
                "pip install 'tricorn[geventwebsocket]'."
            )

    def loaded(self) -> None:
        from tricorn.gateway.gevent_websocket import with_websockets

        self.wsgi = with_websockets(
            self.wsgi,
            import_module("geventwebsocket.exceptions").WebSocketError,
            max_message_size=self.cfg.websocket_max_message_size,
            ping_interval=self.cfg.websocket_ping_interval,
        )
        super().loaded()
