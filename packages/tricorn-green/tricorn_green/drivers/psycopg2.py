"""psycopg2 waits where it is told to: in a callback, which every connection of the process uses.

    connect   PQconnectStart ─▶ poll() until it is made; libpq enforces no connect_timeout in this mode, so we do
    query     PQsendQuery ─▶ poll() until the answer is there
    an exception from outside meanwhile (a kill, a timeout) ─▶ the query is cancelled; psycopg2 closes the connection

psycopg2 closes: the next bytes of such a connection cannot be predicted. PostgreSQL does not notice that while it
computes or sleeps: without the cancel request the query of a client that is long gone would run to its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from tricorn_green.database import address_of
from tricorn_green.drivers import psycopg2_copy
from tricorn_green.drivers.records import Ground
from tricorn_green.drivers.waits import Waits, waits

CANCEL_SECONDS = 2.0
"""How long the greenlet that is being killed waits until the cancel request is through."""
MOST_TARGETS = 256
"""Applications have a few; one that makes up a new DSN for each connection must not fill the memory."""

SHARED = (
    " Two greenlets used one psycopg2 connection at the same time: in a greenlet worker other requests run while one "
    "waits for its query. Take a connection per request from a pool (psycopg2.pool.ThreadedConnectionPool, "
    "SQLAlchemy's), or hold a threading.Lock while you use the shared one."
)
REMEDIES = {
    "cannot be used with an asynchronous callback.": (
        " In a greenlet worker psycopg2 runs in green mode, which does not support replication: run that in a separate "
        "process. COPY works unless the configuration file imports psycopg2.extras."
    ),
    "cannot be used while an asynchronous query is underway": SHARED,
    "a single async query can be executed on the same connection": SHARED,
}
"""Sentences that are added to errors with these endings."""


class Target(NamedTuple):
    """Address and connect timeout of a DSN."""

    address: str
    seconds: float
    """Until when a connection must be made; 0: no limit."""


def apply(psycopg2: Any, ground: Ground) -> None:
    """Sets the wait callback, and has COPY and large objects work without it. Errors of its own say what helps."""
    callback = make_callback(psycopg2, waits(ground.alias), ground)
    callback.__tricorn__ = True  # type: ignore[attr-defined]
    psycopg2.extensions.set_wait_callback(callback)
    _explain(psycopg2.ProgrammingError)
    psycopg2_copy.apply(psycopg2, ground)
    ground.say("debug", "psycopg2 waits cooperatively.")


def apply_psycogreen(module: Any, ground: Ground) -> None:
    """psycogreen's callback does the same but for timeouts, cancelling and counting: ours stays if it is there."""
    patch = module.patch_psycopg
    if getattr(patch, "__tricorn__", False):
        return

    def patch_psycopg() -> None:
        if not getattr(module.extensions.get_wait_callback(), "__tricorn__", False):
            patch()

    patch_psycopg.__doc__ = patch.__doc__
    patch_psycopg.__tricorn__ = True  # type: ignore[attr-defined]
    module.patch_psycopg = patch_psycopg


def make_callback(psycopg2: Any, how: Waits, ground: Ground) -> Callable[[Any], None]:
    """The function psycopg2 calls whenever libpq would block. It is on the path of every query."""
    extensions = psycopg2.extensions
    done, read, write = extensions.POLL_OK, extensions.POLL_READ, extensions.POLL_WRITE
    connecting = extensions.STATUS_SETUP
    readable, writable = how.readable, how.writable
    connect = _Connect(psycopg2, how, ground)

    def wait(connection: Any) -> None:
        if connection.status == connecting:
            return connect(connection)
        while True:
            state = connection.poll()
            if state == done:
                return None
            try:
                if state == read:
                    readable(connection.fileno())
                elif state == write:
                    writable(connection.fileno())
                else:
                    raise psycopg2.OperationalError(f"bad state from poll: {state!r}")
            except BaseException:
                if not connection.closed:
                    how.in_thread(connection.cancel, CANCEL_SECONDS)
                raise

    return wait


class _Connect:
    """The waiting for a new connection."""

    def __init__(self, psycopg2: Any, how: Waits, ground: Ground) -> None:
        self._psycopg2 = psycopg2
        self._how = how
        self._ground = ground
        self._targets: dict[str, Target] = {}

    def __call__(self, connection: Any) -> None:
        target = self._target(connection)
        connections = self._ground.connections
        try:
            self._wait(connection, target)
        except self._psycopg2.OperationalError as error:
            if connections is not None:
                connections.failed(target.address, str(error))
            raise
        if connections is not None:
            connections.opened(connection, _is_closed)

    def _wait(self, connection: Any, target: Target) -> None:
        extensions = self._psycopg2.extensions
        end = time.monotonic() + target.seconds if target.seconds else 0.0
        while (state := connection.poll()) != extensions.POLL_OK:
            write = state == extensions.POLL_WRITE
            if not end:
                (self._how.writable if write else self._how.readable)(connection.fileno())
                continue
            left = end - time.monotonic()
            if left <= 0 or not self._how.in_time(connection.fileno(), write, left):
                raise self._psycopg2.OperationalError(
                    f'connection to server at "{target.address}" failed: timeout expired '
                    f"(connect_timeout: {target.seconds:g} s)"
                )

    def _target(self, connection: Any) -> Target:
        """From libpq, which knows of services, variables and defaults. It takes 20 µs, so the answer is kept."""
        dsn = connection.dsn
        target = self._targets.get(dsn)
        if target is None:
            if len(self._targets) >= MOST_TARGETS:
                self._targets.clear()
            target = self._targets[dsn] = _target_of(connection.info.dsn_parameters)
        return target


def _target_of(parameters: dict[str, str]) -> Target:
    hosts = (parameters.get("host") or parameters.get("hostaddr") or "localhost").split(",")
    ports = (parameters.get("port") or "5432").split(",")
    addresses = []
    for index, host in enumerate(hosts):
        port = ports[index] if index < len(ports) else ports[-1]
        addresses.append(address_of(host, port))
    try:
        seconds = max(0, int(parameters.get("connect_timeout") or 0))
    except ValueError:
        seconds = 0
    # libpq's limit is that of one host.
    return Target(",".join(addresses), seconds * len(hosts))


def _is_closed(connection: Any) -> bool:
    return bool(connection.closed)


def _explain(error: type[Exception]) -> None:
    """psycopg2 speaks of asynchronous queries and callbacks, to people who have asked for neither."""
    if getattr(error.__str__, "__tricorn__", False):
        return
    plain = error.__str__

    def text(self: BaseException) -> str:
        said = plain(self)
        return said + next((more for end, more in REMEDIES.items() if said.endswith(end)), "")

    text.__tricorn__ = True  # type: ignore[attr-defined]
    error.__str__ = text  # type: ignore[method-assign]
