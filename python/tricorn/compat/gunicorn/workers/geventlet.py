"""Requests on eventlet's greenlets."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.workers.geventlet import EventletWorker

__all__ = ["EventletWorker"]

__getattr__ = refuse(__name__)
