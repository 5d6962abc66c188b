"""One request at a time."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.workers.sync import SyncWorker

__all__ = ["SyncWorker"]

__getattr__ = refuse(__name__)
