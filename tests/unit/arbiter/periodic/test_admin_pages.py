"""What the arbiter publishes for the admin listener of its workers, and when."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tricorn.arbiter.channel import SharedChannel
from tricorn.arbiter.control import report
from tricorn.arbiter.pages import Pages
from tricorn.arbiter.periodic.admin_pages import INTERVAL, LoadHistory, StatusSnapshot
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.arbiter.policy.worker import Retiring, Serving, Worker
from tricorn.metrics.scoreboard import Ledger
from tricorn.record import replace
from tricorn.unpatched import time

from tests.unit.arbiter.policy.support import QUIET


class Board:
    def __init__(self, most: int = 1 << 16) -> None:
        self.texts: list[dict[str, Any]] = []
        self._most = most

    def post(self, text: bytes) -> bool:
        if len(text) > self._most:
            return False
        self.texts.append(json.loads(text))
        return True


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> None:
    status = {"app": "shop:make('geheim')", "name": "shop:make('geheim')", "uptime": 2.0}
    monkeypatch.setattr(report, "status", lambda *_, **__: dict(status))


def parts(board: Board, *, admin: bool = True, wanted: bool = True) -> Any:
    generation = SimpleNamespace(admin=["a listener"] if admin else [], config=SimpleNamespace(admin_status=wanted))
    processes = SimpleNamespace(ledger=board, handles={})
    return SimpleNamespace(
        generation=generation,
        processes=processes,
        upgrade=SimpleNamespace(parent=None),
        statistics=SimpleNamespace(began=10.0),
    )


def state(count: int = 1) -> State:
    it = State(count, QUIET)
    for nr in range(1, count + 1):
        it = it.with_worker(Worker(nr, 1, started=11.0, phase=Serving(11.5), pid=100 + nr))
    return it


def publish(snapshot: StatusSnapshot, state: State, now: float) -> None:
    if now >= snapshot.due(state, now):
        assert snapshot.run(state, now) == ()


def test_it_is_written_when_a_decision_has_changed_something() -> None:
    board = Board()
    it, now = parts(board), state()
    snapshot = StatusSnapshot(it)
    publish(snapshot, now, 12.0)
    publish(snapshot, now, 13.0)
    assert len(board.texts) == 1
    retiring = replace(now.workers[1], phase=Retiring(11.5, "a secret reason"))
    publish(snapshot, now.with_worker(retiring), 14.0)
    assert [text["workers"][0]["state"] for text in board.texts] == ["serving", "retiring"]
    it.upgrade.parent = 7
    publish(snapshot, now.with_worker(retiring), 14.0)
    assert len(board.texts) == 3


def test_ages_are_moments_and_secrets_are_left_out() -> None:
    board = Board()
    before = time.monotonic_ns()
    publish(
        StatusSnapshot(parts(board)), state().with_worker(Worker(1, 1, started=11.0, phase=Retiring(1, "geheim"))), 12.0
    )
    (text,) = board.texts
    assert "geheim" not in json.dumps(text)
    assert text["status"].keys() == {"app", "name", "began"}
    assert before - 2_000_000_000 <= text["status"]["began"] <= time.monotonic_ns() - 2_000_000_000
    (worker,) = text["workers"]
    assert not {"age", "note"} & worker.keys()
    assert before - 1_000_000_000 <= worker["started"] <= time.monotonic_ns() - 1_000_000_000


def test_nothing_is_written_where_it_is_not_asked_for() -> None:
    board = Board()
    for it in (parts(board, admin=False), parts(board, wanted=False)):
        publish(StatusSnapshot(it), state(), 12.0)
    assert board.texts == []


def test_more_workers_than_there_is_room_for_are_left_out() -> None:
    board = Board(most=200)
    publish(StatusSnapshot(parts(board)), state(50), 12.0)
    (text,) = board.texts
    assert text["workers"] == []


def parts_with_a_page(noted: list[Any], *, admin: bool = True, page: str = "/") -> Any:
    config = SimpleNamespace(admin_page=page)
    generation = SimpleNamespace(admin=["a listener"] if admin else [], config=config, pages="pages")
    return SimpleNamespace(generation=generation, processes=SimpleNamespace(note=noted.append))


def sample(history: LoadHistory, now: float) -> None:
    if now >= history.due(state(), now):
        assert history.run(state(), now) == ()


def test_a_note_is_made_every_other_second_and_one_that_was_missed_is_not_made_up_for() -> None:
    noted: list[Any] = []
    history = LoadHistory(parts_with_a_page(noted), 100.0)
    for now, count in [(100.0, 1), (101.9, 1), (102.0, 2), (150.0, 3), (151.9, 3), (152.0, 4)]:
        sample(history, now)
        assert len(noted) == count, now
    assert history.due(state(), 0.0) == 152.0 + INTERVAL


def test_nothing_is_noted_where_there_is_no_page() -> None:
    noted: list[Any] = []
    for history in (
        LoadHistory(parts_with_a_page(noted, admin=False), 0.0),
        LoadHistory(parts_with_a_page(noted, page=""), 0.0),
    ):
        assert history.due(state(), 0.0) == NEVER
        sample(history, 1e9)
    assert noted == []


def test_the_ledger_takes_pages_of_the_size_that_is_given() -> None:
    shared, pages = SharedChannel(None), Pages(4096, 2)
    ledger = Ledger(shared.ledger)
    ledger.note(pages.region, pages.size, shared.group)
    for size in (0, 4097, 1 << 20):
        with pytest.raises(ValueError, match="page"):
            ledger.note(pages.region, size, shared.group)
