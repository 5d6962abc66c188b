"""grpcio has a poller of its own for gevent, which must be chosen before anything of it is used."""

from __future__ import annotations

import importlib
from typing import Any

from tricorn_green.drivers.records import Ground


def apply(grpc: Any, ground: Ground) -> None:
    """Chooses it, once: a second time would make a second pool of threads."""
    if not getattr(grpc, "__tricorn__", False):
        importlib.import_module("grpc.experimental.gevent").init_gevent()
        grpc.__tricorn__ = True
        ground.say("debug", "grpcio waits cooperatively.")
