"""tornado applications."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.workers.tornado import TornadoWorker

__all__ = ["TornadoWorker"]

__getattr__ = refuse(__name__)
