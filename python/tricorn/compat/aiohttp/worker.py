"""aiohttp's worker classes, to derive from."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.workers.aiohttp import AiohttpWorker

__all__ = ["GunicornUVLoopWebWorker", "GunicornWebWorker"]

GunicornWebWorker = AiohttpWorker


class GunicornUVLoopWebWorker(AiohttpWorker):
    """Its name decides on the loop."""


__getattr__ = refuse(__name__)
