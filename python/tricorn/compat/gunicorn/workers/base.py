"""Base of all worker classes."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.workers.base import Worker

__all__ = ["Worker"]

__getattr__ = refuse(__name__)
