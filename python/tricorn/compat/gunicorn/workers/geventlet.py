"""Requests on eventlet's greenlets."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.workers.registry import load

__all__ = ["EventletWorker"]

EventletWorker = load("eventlet")

__getattr__ = refuse(__name__)
