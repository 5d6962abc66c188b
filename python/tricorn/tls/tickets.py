"""The keys of session tickets: random, in memory only, and changed while the server runs.

    current    seals tickets, and opens them
    previous   opens what it has sealed while it was current
    next       opens what a server with the same keys seals that changes them a moment earlier (USR2)

Each half of a ticket's lifetime the next becomes the current one, and that the previous one.
"""

from __future__ import annotations

import struct

from tricorn.record import Record
from tricorn.unpatched import os

SIZE = 32
_FORMAT = struct.Struct(f"<d{SIZE}s{SIZE}s{SIZE}s")


class Keys(Record):
    current: bytes
    next: bytes
    previous: bytes
    since: float
    """When the current one began, by the clock that does not go back (of the machine, and not of the process)."""

    @classmethod
    def fresh(cls, now: float) -> Keys:
        return cls(os.urandom(SIZE), os.urandom(SIZE), os.urandom(SIZE), now)

    def at(self, now: float, lifetime: float) -> Keys:
        """Returns the keys in force now."""
        half, keys = lifetime / 2, self
        if now >= self.since + 3 * half:  # the machine slept: none of these is worth anything any more
            return Keys.fresh(now)
        while now >= keys.since + half:
            keys = Keys(keys.next, os.urandom(SIZE), keys.current, keys.since + half)
        return keys

    @property
    def in_order(self) -> list[bytes]:
        """The one that seals first, then those that open as well."""
        return [self.current, self.previous, self.next]


class Tickets:
    """The keys of a server, whatever generation its workers are of."""

    def __init__(self, keys: Keys | None = None) -> None:
        self._keys = keys

    def at(self, now: float, lifetime: float) -> Keys:
        self._keys = Keys.fresh(now) if self._keys is None else self._keys.at(now, lifetime)
        return self._keys

    def as_bytes(self) -> bytes:
        """Returns the keys for a successor. Empty if no ticket was ever sealed."""
        keys = self._keys
        return b"" if keys is None else _FORMAT.pack(keys.since, keys.current, keys.next, keys.previous)

    @classmethod
    def from_bytes(cls, text: bytes) -> Tickets:
        """Reads a predecessor's keys. Makes new ones if there are none."""
        if len(text) != _FORMAT.size:
            return cls()
        since, current, following, previous = _FORMAT.unpack(text)
        return cls(Keys(current, following, previous, since))
