"""gevent-websocket's worker class for gunicorn."""

from __future__ import annotations

from tricorn import extensions
from tricorn.compat.absent import refuse

__all__ = ["GeventWebSocketWorker"]

_NAME = "The worker class GeventWebSocketWorker"
GeventWebSocketWorker = extensions.load(extensions.MODULES, "workers.gevent_websocket", _NAME).GeventWebSocketWorker

__getattr__ = refuse(__name__)
