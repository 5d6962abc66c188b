"""Base of the greenlet classes."""

from __future__ import annotations

from tricorn import extensions
from tricorn.compat.absent import refuse

__all__ = ["AsyncWorker"]

AsyncWorker = extensions.load(extensions.MODULES, "workers.green", f"{__name__}.AsyncWorker").GreenWorker

__getattr__ = refuse(__name__)
