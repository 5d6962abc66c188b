"""C drivers in greenlet workers: those that can be are made cooperative, of the others the log says that they block.

    table      what is known, one record per library
    finder     notices that the application imports one of them
    psycopg2, psycopg, grpc, django     what is done to those that have a place for it
    (cures)    what is done to the others if the operator asks for it (`doctor = heal`, `offload`)
    waits      how a greenlet waits for a descriptor

The application imports what it wants when it wants; nothing in it has to know of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tricorn_green.drivers import finder
from tricorn_green.drivers.records import OBSERVES, Care, Ground

if TYPE_CHECKING:
    from tricorn.log.types import Log
    from tricorn_green.database import Connections


def install(alias: str, log: Log, connections: Connections | None, care: Care = OBSERVES) -> None:
    """Makes known C drivers cooperative when they are imported, or now if they are.

    `alias` is the worker class, `gevent` or `eventlet`, for which the process has been patched. A worker installs again
    what its arbiter installed for a preloaded application: then only the log and the count of connections change hands.
    """
    global _ground  # the drivers of a process are treated once
    if _ground is None:
        _ground = Ground(alias, log, connections, care)
        finder.install(_ground)
    else:
        _ground.renew(alias, log, connections)


_ground: Ground | None = None
