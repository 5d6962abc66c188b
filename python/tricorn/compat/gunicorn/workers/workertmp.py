"""The heartbeat that is no file."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.workers.tmp import Tmp as WorkerTmp

__all__ = ["WorkerTmp"]

__getattr__ = refuse(__name__)
