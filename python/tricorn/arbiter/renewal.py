"""When the files of certificates are looked at, and keys of tickets changed (`certificates`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tricorn.arbiter.policy.state import NEVER
from tricorn.unpatched import time

if TYPE_CHECKING:
    from tricorn.arbiter.effects import Effects


class Renewal:
    def __init__(self, effects: Effects) -> None:
        self._effects = effects
        self._end = 0
        """What metrics say: when the first certificate ends."""

    def next_look(self, now: float) -> float:
        """In the time of `now`, which may be the arbiter's own. Keys of tickets go by the machine's."""
        due = min((each.next_look() for each in self._effects.generations.certificates()), default=NEVER)
        return due if due == NEVER else now + max(0, due - time.monotonic())

    def look(self) -> None:
        now = time.monotonic()
        for each, log in self._effects.generations.certificates().items():
            if now >= each.next_look():
                each.look(now, log)
        certificates = self._effects.generation.certificates
        end = 0 if certificates is None else certificates.end
        if end != self._end:
            self._end = end
            self._effects.processes.ledger.certificates_end(end)
