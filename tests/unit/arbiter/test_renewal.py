"""When the arbiter looks at certificates: its own clock and the machine's."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from tricorn.arbiter.policy.state import NEVER
from tricorn.arbiter.renewal import Renewal


class Due:
    def __init__(self, at: float) -> None:
        self.at = at
        self.looks: list[tuple[float, str]] = []

    def next_look(self) -> float:
        return self.at

    def look(self, now: float, log: str) -> None:
        self.looks.append((now, log))


def renewal(*dues: Due, end: int = 0) -> Renewal:
    generations: Any = SimpleNamespace(certificates=lambda: {due: f"log {n}" for n, due in enumerate(dues)})
    generation = SimpleNamespace(certificates=SimpleNamespace(end=end) if end else None)
    processes = SimpleNamespace(ledger=SimpleNamespace(certificates_end=ENDS.append))
    effects: Any = SimpleNamespace(generations=generations, generation=generation, processes=processes)
    return Renewal(effects)


ENDS: list[int] = []


def test_metrics_are_told_when_the_first_certificate_ends() -> None:
    ENDS.clear()
    made = renewal(end=4711)
    made.look()
    made.look()
    assert ENDS == [4711]


def test_without_certificates_there_is_nothing_to_look_at() -> None:
    assert renewal().next_look(5) == NEVER
    renewal().look()


def test_the_next_look_is_in_the_time_of_who_asks() -> None:
    """The arbiter's own time is behind the machine's where it was stopped."""
    now = time.monotonic()
    assert 105 < renewal(Due(now + 300), Due(now + 100), Due(NEVER)).next_look(10) <= 110
    assert renewal(Due(now - 1)).next_look(10) == 10


def test_only_what_is_due_is_looked_at_with_the_log_of_its_generation() -> None:
    now = time.monotonic()
    due, later = Due(now - 1), Due(now + 1000)
    renewal(later, due).look()
    assert [log for _, log in due.looks] == ["log 1"]
    assert due.looks[0][0] >= now
    assert later.looks == []
