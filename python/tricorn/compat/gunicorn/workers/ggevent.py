"""Requests on gevent's greenlets."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.workers.registry import load

__all__ = ["GeventPyWSGIWorker", "GeventWorker", "PyWSGIWorker"]

GeventWorker = load("gevent")
GeventPyWSGIWorker = PyWSGIWorker = GeventWorker

__getattr__ = refuse(__name__)
