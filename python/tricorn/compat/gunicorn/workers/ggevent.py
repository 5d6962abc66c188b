"""Requests on gevent's greenlets."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.workers.ggevent import GeventWorker

__all__ = ["GeventPyWSGIWorker", "GeventWorker", "PyWSGIWorker"]

GeventPyWSGIWorker = PyWSGIWorker = GeventWorker

__getattr__ = refuse(__name__)
