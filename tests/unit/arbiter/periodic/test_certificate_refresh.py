"""When the arbiter looks at certificates: its own clock and the machine's."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from tricorn.arbiter.periodic.certificate_refresh import CertificateRefresh
from tricorn.arbiter.policy.state import NEVER, State

from tests.unit.arbiter.policy.support import QUIET

STATE = State(1, QUIET)


class Due:
    def __init__(self, at: float) -> None:
        self.at = at
        self.looks: list[tuple[float, str]] = []

    def next_look(self) -> float:
        return self.at

    def look(self, now: float, log: str) -> None:
        self.looks.append((now, log))


def refresh(*dues: Due, end: int = 0) -> CertificateRefresh:
    generations: Any = SimpleNamespace(certificates=lambda: {due: f"log {n}" for n, due in enumerate(dues)})
    generation = SimpleNamespace(certificates=SimpleNamespace(end=end) if end else None)
    processes = SimpleNamespace(ledger=SimpleNamespace(certificates_end=ENDS.append))
    parts: Any = SimpleNamespace(generations=generations, generation=generation, processes=processes)
    return CertificateRefresh(parts)


ENDS: list[int] = []


def test_metrics_are_told_when_the_first_certificate_ends() -> None:
    ENDS.clear()
    made = refresh(end=4711)
    assert made.due(STATE, 5) == 5
    made.run(STATE, 5)
    assert ENDS == [4711]
    assert made.due(STATE, 5) == NEVER


def test_without_certificates_there_is_nothing_to_look_at() -> None:
    assert refresh().due(STATE, 5) == NEVER


def test_the_next_look_is_in_the_time_of_who_asks() -> None:
    """The arbiter's own time is behind the machine's where it was stopped."""
    now = time.monotonic()
    assert 105 < refresh(Due(now + 300), Due(now + 100), Due(NEVER)).due(STATE, 10) <= 110
    assert refresh(Due(now - 1)).due(STATE, 10) == 10


def test_only_what_is_due_is_looked_at_with_the_log_of_its_generation() -> None:
    now = time.monotonic()
    due, later = Due(now - 1), Due(now + 1000)
    refresh(later, due).run(STATE, 10)
    assert [log for _, log in due.looks] == ["log 1"]
    assert due.looks[0][0] >= now
    assert later.looks == []
