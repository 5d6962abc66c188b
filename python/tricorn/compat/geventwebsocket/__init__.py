"""The name of gevent-websocket where it is not installed: what applications catch, and the worker class."""

from __future__ import annotations

from tricorn.compat.absent import refuse

from .exceptions import WebSocketError

__all__ = ["WebSocketError"]

__getattr__ = refuse(__name__)
