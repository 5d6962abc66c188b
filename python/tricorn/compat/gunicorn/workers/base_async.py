"""Base of the greenlet classes."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.workers.green import GreenWorker as AsyncWorker

__all__ = ["AsyncWorker"]

__getattr__ = refuse(__name__)
