"""What workers are given to say of the server, and when."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from tricorn.arbiter.bulletin import Bulletin
from tricorn.arbiter.control import report
from tricorn.arbiter.policy.state import Policy, State
from tricorn.arbiter.policy.worker import Retiring, Serving, Worker
from tricorn.record import replace
from tricorn.unpatched import time


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


def effects(board: Board, *, admin: bool = True, wanted: bool = True) -> Any:
    generation = SimpleNamespace(admin=["a listener"] if admin else [], config=SimpleNamespace(admin_status=wanted))
    processes = SimpleNamespace(ledger=board, handles={})
    return SimpleNamespace(generation=generation, processes=processes, upgrade=SimpleNamespace(parent=None), began=10.0)


def state(count: int = 1) -> State:
    it = State(count, Policy(30))
    for nr in range(1, count + 1):
        it = it.with_worker(Worker(nr, 1, started=11.0, phase=Serving(11.5), pid=100 + nr))
    return it


def test_it_is_written_when_a_decision_has_changed_something() -> None:
    board = Board()
    it, now = effects(board), state()
    bulletin = Bulletin(it)
    bulletin.look(now, 12.0)
    bulletin.look(now, 13.0)
    assert len(board.texts) == 1
    retiring = replace(now.workers[1], phase=Retiring(11.5, "a secret reason"))
    bulletin.look(now.with_worker(retiring), 14.0)
    assert [text["workers"][0]["state"] for text in board.texts] == ["serving", "retiring"]
    it.upgrade.parent = 7
    bulletin.look(now.with_worker(retiring), 14.0)
    assert len(board.texts) == 3


def test_ages_are_moments_and_secrets_are_left_out() -> None:
    board = Board()
    before = time.monotonic_ns()
    Bulletin(effects(board)).look(state().with_worker(Worker(1, 1, started=11.0, phase=Retiring(1, "geheim"))), 12.0)
    (text,) = board.texts
    assert "geheim" not in json.dumps(text)
    assert text["status"].keys() == {"app", "name", "began"}
    assert before - 2_000_000_000 <= text["status"]["began"] <= time.monotonic_ns() - 2_000_000_000
    (worker,) = text["workers"]
    assert not {"age", "note"} & worker.keys()
    assert before - 1_000_000_000 <= worker["started"] <= time.monotonic_ns() - 1_000_000_000


def test_nothing_is_written_where_it_is_not_asked_for() -> None:
    board = Board()
    for it in (effects(board, admin=False), effects(board, wanted=False)):
        Bulletin(it).look(state(), 12.0)
    assert board.texts == []


def test_more_workers_than_there_is_room_for_are_left_out() -> None:
    board = Board(most=200)
    Bulletin(effects(board)).look(state(50), 12.0)
    (text,) = board.texts
    assert text["workers"] == []
