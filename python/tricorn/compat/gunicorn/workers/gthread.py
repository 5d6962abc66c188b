"""Several requests at a time, on threads."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.workers.gthread import ThreadWorker

__all__ = ["ThreadWorker"]

__getattr__ = refuse(__name__)
