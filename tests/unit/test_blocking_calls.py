"""A worker and the package that has threads for blocking calls find one another, whichever comes first."""

from __future__ import annotations

import pytest
from tricorn import blocking_calls
from tricorn.blocking_calls import Threads


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocking_calls, "_threads", [])
    monkeypatch.setattr(blocking_calls, "_settings", [])


def test_the_settings_reach_threads_that_come_later_and_those_that_were_there() -> None:
    page, told = object(), list[tuple[int, object]]()
    blocking_calls.configure(3, page)
    blocking_calls.provide(Threads(lambda *given: told.append(given), lambda: False))
    assert told == [(3, page)]
    blocking_calls.configure(5, page)
    assert told == [(3, page), (5, page)]


def test_threads_are_busy_only_where_there_are_some() -> None:
    assert not blocking_calls.is_busy()
    blocking_calls.provide(Threads(lambda *_: None, lambda: True))
    assert blocking_calls.is_busy()
