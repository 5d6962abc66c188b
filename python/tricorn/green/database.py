"""When the database says no: the connections this worker holds, and those it was refused.

PostgreSQL's limit is the next wall behind the server's own: a hundred connections unless it was told otherwise, for
all workers of all servers together. A refusal has no code that drivers would pass on; its text is what there is.
Whoever is refused tells the arbiter at once, and the arbiter writes one line about all of them.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable
from typing import Any

from tricorn.metrics import scoreboard

_REFUSAL = re.compile(
    r"sorry, too many clients already"
    r"|remaining connection slots are reserved[^\n]*"
    r"|too many connections for (?:role|database)[^\n]*"
    r"|no more connections allowed[^\n]*"  # pgbouncer
)


class Connections:
    """Counts without holding: a connection that nobody has any more, or that is closed, does not count."""

    def __init__(self, page: memoryview, tell: Callable[[str, str], None]) -> None:
        """`page` is the worker's page of the scoreboard; `tell` says to the arbiter who refused, and in what words."""
        self._page = page
        self._tell = tell
        self._held: dict[weakref.ref[Any], tuple[str, Callable[[Any], bool]]] = {}
        self._look_again = 16
        """At so many it is worth looking for those that were closed and are kept all the same."""

    def opened(self, connection: object, address: str, is_closed: Callable[[Any], bool]) -> None:
        """A connection was made. `is_closed` says later whether it still is one."""
        self._held[weakref.ref(connection, self._gone)] = address, is_closed
        if len(self._held) >= self._look_again:
            self.sweep()
            self._look_again = max(16, 2 * len(self._held))
        self._publish()

    def failed(self, address: str, text: str) -> None:
        """No connection could be made; the arbiter hears of it if the reason is that there are too many."""
        found = _REFUSAL.search(text)
        if found is not None:
            self.sweep()
            self._publish()
            self._tell(address, found[0])

    def held(self, address: str | None = None) -> int:
        """How many this worker holds, of one address or of all."""
        self.sweep()
        return sum(address in (None, theirs) for theirs, _ in list(self._held.values()))

    def sweep(self) -> None:
        """Forgets what was closed."""
        for reference in list(self._held):
            entry = self._held.get(reference)
            connection = reference()
            if entry is not None and (connection is None or entry[1](connection)):
                self._held.pop(reference, None)

    def _gone(self, reference: weakref.ref[Any]) -> None:
        self._held.pop(reference, None)
        self._publish()

    def _publish(self) -> None:
        scoreboard.count_databases(self._page, len(self._held))


def address_of(host: str | None, port: str | int | None) -> str:
    """As people write it: `host:port`, or the path of a socket. What is not given is libpq's default."""
    host, port = host or "localhost", port or 5432
    return f"{host}/.s.PGSQL.{port}" if host.startswith("/") else f"{host}:{port}"
