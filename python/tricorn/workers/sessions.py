"""Requests of one session go to the worker that has it: by which names they are known."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tricorn.workers.contract import Contract
    from tricorn.workers.native import Core

LIBRARIES = (("mcp", "mcp.server"), ("socketio", "engineio"), ("cookie:session", "nicegui"))
"""With `auto`: a name, and the module that makes sessions so called in the memory of its process. A page of NiceGUI is
a session before its socket is; the cookie is there with a `storage_secret`."""


def follow(worker: Contract, core: Core) -> None:
    """Called once the application is loaded."""
    names = worker.cfg.affinity
    if worker.spec.sessions is None:
        return
    if names == ("auto",):
        names = tuple(name for name, module in LIBRARIES if module in sys.modules)
    if not names:
        return
    core.follow_sessions(names)
    listed = ", ".join(names)
    if worker.spec.once.claim(f"affinity {listed}"):
        worker.log.info("Requests of one session go to one worker (%s; affinity).", listed)
