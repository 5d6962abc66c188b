"""uvicorn's worker classes, to derive from."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.workers.uvicorn import UvicornH11Worker, UvicornWorker

__all__ = ["UvicornH11Worker", "UvicornWorker"]

__getattr__ = refuse(__name__)
