"""A package of gevent-websocket's names."""

from __future__ import annotations

from tricorn.compat.absent import refuse

__getattr__ = refuse(__name__)
