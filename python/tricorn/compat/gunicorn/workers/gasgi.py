"""ASGI applications."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.workers.gasgi import AsgiWorker as ASGIWorker

__all__ = ["ASGIWorker"]

__getattr__ = refuse(__name__)
