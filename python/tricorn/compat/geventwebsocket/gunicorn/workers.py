"""gevent-websocket's worker class for gunicorn."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.workers.gwebsocket import GeventWebSocketWorker

__all__ = ["GeventWebSocketWorker"]

__getattr__ = refuse(__name__)
