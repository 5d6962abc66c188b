"""psycopg 3 can wait in Python, on modules that are patched.

It chooses when it is imported: to wait in C, unless it sees that gevent has patched `select` by then. It does not look
for eventlet. What it would have to choose is there all the same (`PSYCOPG_WAIT_FUNC` names it) and is chosen for it.
"""

from __future__ import annotations

import importlib
import os
import selectors
from collections.abc import Generator
from typing import Any

from tricorn.errors import RequestTimeout
from tricorn_green.database import address_of
from tricorn_green.drivers.records import Ground

IMPORTED_TOO_EARLY = (
    "psycopg blocks the whole worker while it waits: it was imported before the standard library was patched, and "
    "uses unpatched parts of it. Import it in the application instead of the configuration file."
)
WAITS_IN_C = (
    "psycopg blocks the whole worker while it waits: the variable PSYCOPG_WAIT_FUNC makes it wait in C. Unset it."
)


def apply(psycopg: Any, ground: Ground) -> None:
    """Checks how it waits, and has its connections counted."""
    waiting = psycopg.waiting
    in_c = getattr(waiting, "wait_c", None)
    chosen = "PSYCOPG_WAIT_FUNC" in os.environ
    if waiting.wait is in_c is not None and not chosen:
        waiting.wait = waiting.wait_select if ground.alias == "eventlet" else waiting.wait_poll
    if waiting.DefaultSelector is not selectors.DefaultSelector:
        ground.say("warning", IMPORTED_TOO_EARLY)
    elif waiting.wait is in_c is not None:
        ground.say("warning", WAITS_IN_C)
    else:
        ground.say("debug", "psycopg waits cooperatively.")
    _cancel_when_killed(psycopg.connection, ground)
    _count(psycopg, ground)


def _cancel_when_killed(connection: Any, ground: Ground) -> None:
    """It cancels the query of a greenlet that is interrupted, and is told what else interrupts one.

    Otherwise the connection would stay busy with it, and PostgreSQL would run it to its end.
    """
    hub = importlib.import_module(ground.alias)
    interrupts = (importlib.import_module("greenlet").GreenletExit, hub.Timeout, RequestTimeout)
    known = getattr(connection, "_INTERRUPTED", None)
    if isinstance(known, tuple):
        connection._INTERRUPTED = (*known, *(each for each in interrupts if each not in known))


def _count(psycopg: Any, ground: Ground) -> None:
    """Around the one generator that all kinds of its connections are made by."""
    generators = psycopg.generators
    original = generators.connect
    if getattr(original, "__tricorn__", False):
        return

    def connect(conninfo: str, *args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        try:
            connection = yield from original(conninfo, *args, **kwargs)
        except psycopg.OperationalError as error:
            if ground.connections is not None:
                words = psycopg.conninfo.conninfo_to_dict(conninfo)
                ground.connections.failed(address_of(words.get("host"), words.get("port")), str(error))
            raise
        if ground.connections is not None:
            ground.connections.opened(connection, _is_closed)
        return connection

    connect.__tricorn__ = True  # type: ignore[attr-defined]
    generators.connect = connect


def _is_closed(connection: Any) -> bool:
    """Returns whether the lower layer's connection is BAD: closed or lost."""
    return bool(connection.status != 0)
