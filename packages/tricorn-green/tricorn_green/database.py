"""When the database refuses connections: those that this worker holds, and those that it was refused.

PostgreSQL's limit is the next wall behind the server's own: a hundred connections unless it was told otherwise, for
all workers of all servers together. A refusal has no code that drivers would pass on; its text is what there is.
Each worker counts its own, and has the arbiter log a line about them; the arbiter logs one for all workers.
"""

from __future__ import annotations

import math
import re
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tricorn.metrics.scoreboard import Scoreboard

_REFUSAL = re.compile(
    r"sorry, too many clients already"
    r"|remaining connection slots are reserved[^\n]*"
    r"|too many connections for (?:role|database)[^\n]*"
    r"|no more connections allowed[^\n]*"  # pgbouncer
)


class Refusals:
    """Connections that one database refused this worker."""

    def __init__(self, count: int = 0, text: str = "") -> None:
        self.count = count
        """Refusals since the last report."""
        self.text = text
        """The first message of the database."""
        self.reported = -math.inf
        """The time of the last report."""

    def sentence(self, address: str, held: int, workers: int, each: int) -> str:
        """Returns a line for the log. `held`: by all workers; `each`: the requests that a worker may run at once."""
        connections = "connection" if self.count == 1 else "connections"
        return (
            f"The database at {address} refused a worker {self.count} {connections}: {self.text}. "
            f"This server holds {held}. {workers} x {each} requests (workers x worker_connections) can use up to "
            f"{workers * each} connections at once; PostgreSQL allows 100 by default, 97 of them for ordinary users. "
            "Share connections in a pool, lower workers or worker_connections, raise max_connections, or put PgBouncer "
            "in front of the database."
        )


class Connections:
    """Counts without holding: a connection that was collected, or that is closed, does not count."""

    def __init__(
        self,
        page: Scoreboard,
        tell: Callable[[str, Refusals], object],
        call_later: Callable[[float, Callable[[], object]], object],
    ) -> None:
        """`page` is the worker's page of the scoreboard; `tell` reports the refusals of the database at an address.

        `call_later` calls a function after so many seconds.
        """
        self._page = page
        self._tell = tell
        self._call_later = call_later
        self._refusals: dict[str, Refusals] = {}
        self._held: dict[weakref.ref[Any], Callable[[Any], bool]] = {}
        self._look_again = 16
        """At so many it is worth looking for those that were closed and are kept all the same."""

    def opened(self, connection: object, is_closed: Callable[[Any], bool]) -> None:
        """A connection was made. `is_closed` says later whether it still is one."""
        self._held[weakref.ref(connection, self._gone)] = is_closed
        if len(self._held) >= self._look_again:
            self.sweep()
            self._look_again = max(16, 2 * len(self._held))
        else:
            self._publish()

    def failed(self, address: str, text: str) -> None:
        """No connection could be made. A report follows if the reason is that there are too many."""
        found = _REFUSAL.search(text)
        if found is None:
            return
        self.sweep()
        refusals = self._refusals.setdefault(address, Refusals())
        refusals.count += 1
        if refusals.count == 1:
            refusals.text = found[0]
            wait = max(DELAY, refusals.reported + PAUSE - time.monotonic())
            self._call_later(wait, partial(self._report, address, refusals))

    def report(self) -> None:
        """Tells of the refusals that were not told yet."""
        for address, refusals in list(self._refusals.items()):
            self._report(address, refusals)

    def _report(self, address: str, refusals: Refusals) -> None:
        if refusals.count:
            self._tell(address, refusals)
            refusals.count, refusals.reported = 0, time.monotonic()

    def sweep(self) -> None:
        """Forgets what was closed."""
        for reference in list(self._held):
            is_closed = self._held.get(reference)
            connection = reference()
            if is_closed is not None and (connection is None or is_closed(connection)):
                self._held.pop(reference, None)
        self._publish()

    def _gone(self, reference: weakref.ref[Any]) -> None:
        self._held.pop(reference, None)
        self._publish()

    def _publish(self) -> None:
        self._page.count_databases(len(self._held))


def address_of(host: str | None, port: str | int | None) -> str:
    """Formats an address as `host:port`, or as the path of a socket. Missing parts are libpq's defaults."""
    host, port = host or "localhost", port or 5432
    return f"{host}/.s.PGSQL.{port}" if host.startswith("/") else f"{host}:{port}"


DELAY = 1.0
"""Seconds from a refusal to the report: where there is one, others follow."""
PAUSE = 10.0
"""Seconds between two reports."""
