"""When the arbiter notes what its workers do, and that it does not where there is no page."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tricorn.arbiter.channel import SharedChannel
from tricorn.arbiter.history import INTERVAL, History
from tricorn.arbiter.pages import Pages
from tricorn.arbiter.policy.state import NEVER
from tricorn.metrics.scoreboard import Ledger


def effects(noted: list[Any], *, admin: bool = True, page: str = "/") -> Any:
    config = SimpleNamespace(admin_page=page)
    generation = SimpleNamespace(admin=["a listener"] if admin else [], config=config, pages="pages")
    return SimpleNamespace(generation=generation, processes=SimpleNamespace(note=noted.append))


def test_a_note_is_made_every_other_second_and_one_that_was_missed_is_not_made_up_for() -> None:
    noted: list[Any] = []
    history = History(effects(noted), 100.0)
    for now, count in [(100.0, 1), (101.9, 1), (102.0, 2), (150.0, 3), (151.9, 3), (152.0, 4)]:
        history.note(now)
        assert len(noted) == count, now
    assert history.next_note() == 152.0 + INTERVAL


def test_nothing_is_noted_where_there_is_no_page() -> None:
    noted: list[Any] = []
    for history in (History(effects(noted, admin=False), 0.0), History(effects(noted, page=""), 0.0)):
        assert history.next_note() == NEVER
        history.note(1e9)
    assert noted == []


def test_the_ledger_takes_pages_of_the_size_that_is_given() -> None:
    shared, pages = SharedChannel(None), Pages(4096, 2)
    ledger = Ledger(shared.ledger)
    ledger.note(pages.region, pages.size, shared.group)
    for size in (0, 4097, 1 << 20):
        with pytest.raises(ValueError, match="page"):
            ledger.note(pages.region, size, shared.group)
