"""Refreshes certificates: reads TLS files that have changed, and replaces ticket keys (`certificates`)."""

from __future__ import annotations

from collections.abc import Iterable

from tricorn.arbiter.parts import Parts
from tricorn.arbiter.periodic import Periodic
from tricorn.arbiter.policy.events import Event
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.unpatched import time


class CertificateRefresh(Periodic):
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._end = 0
        """The expiry of the first certificate, as metrics have it."""

    def due(self, state: State, now: float) -> float:
        """Returns a time of the arbiter's own clock, as `now` is. Keys of tickets go by the machine's."""
        if self._expiry() != self._end:
            return now
        due = min((each.next_look() for each in self._parts.generations.certificates()), default=NEVER)
        return due if due == NEVER else now + max(0, due - time.monotonic())

    def run(self, state: State, now: float) -> Iterable[Event]:
        machine_time = time.monotonic()
        for each, log in self._parts.generations.certificates().items():
            if machine_time >= each.next_look():
                each.look(machine_time, log)
        self._end = self._expiry()
        self._parts.processes.ledger.certificates_end(self._end)
        return ()

    def _expiry(self) -> int:
        certificates = self._parts.generation.certificates
        return 0 if certificates is None else certificates.end
