"""ASGI applications."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.workers.asgi import AsgiWorker as ASGIWorker

__all__ = ["ASGIWorker"]

__getattr__ = refuse(__name__)
