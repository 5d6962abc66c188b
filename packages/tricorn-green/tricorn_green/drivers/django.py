"""Django keeps a database connection open for the thread that made it (CONN_MAX_AGE); a greenlet has no next request.

It keeps them in a greenlet-local. When the greenlet has ended no code can use the connection again, and as the wrapper
is part of reference cycles it stays open until some collection of the garbage: hundreds of sessions without a
user. So connections end with their request.
"""

from __future__ import annotations

from typing import Any

from tricorn_green.drivers.records import Ground

OF_NO_USE = (
    "Django: CONN_MAX_AGE is of no use in a greenlet worker, where each request has connections of its own: they are "
    "closed when it ends. To keep connections, set CONN_MAX_AGE = 0 and pool them: OPTIONS['pool'] with psycopg 3 "
    "(Django 5.1), or PgBouncer."
)


def apply(db: Any, ground: Ground) -> None:
    """Closes the connections of a request when it is over."""
    from django.core.signals import request_finished

    def close_all(**_: object) -> None:
        for connection in _initialized(db.connections):
            if connection.settings_dict.get("CONN_MAX_AGE", 0) != 0:
                ground.say("warning", OF_NO_USE)
            connection.close()

    request_finished.connect(close_all, weak=False, dispatch_uid="tricorn_green")


def _initialized(connections: Any) -> list[Any]:
    try:
        return list(connections.all(initialized_only=True))
    except TypeError:  # before Django 4.1
        return list(connections.all())
