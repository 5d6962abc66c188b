"""Exceptions raised when a connection has ended."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.gateway.gevent_websocket import WebSocketError

__all__ = ["WebSocketError"]

__getattr__ = refuse(__name__)
