"""What every worker says alike is said once."""

from __future__ import annotations

from tricorn.arbiter.policy.events import ChildExited, Told
from tricorn.arbiter.policy.log_once import PAUSE
from tricorn.workers.messages import Notice, Ready

from tests.unit.arbiter.policy.support import running, texts


def test_once_for_all_workers_and_their_successors() -> None:
    it = running(workers=2)
    assert texts(it.feel(Told(1, Notice("warning", "pycurl blocks."))), "warning") == ["pycurl blocks."]
    assert it.feel(Told(2, Notice("warning", "pycurl blocks."))) == []
    it.feel(ChildExited(1, 0))
    it.now += 60
    it.wait(0)
    successor = max(it.state.workers)
    assert successor == 3
    assert it.feel(Told(successor, Notice("warning", "pycurl blocks."))) == []


def test_something_else_is_said_as_well() -> None:
    it = running(workers=1)
    it.feel(Told(1, Notice("warning", "pycurl blocks.")))
    assert texts(it.feel(Told(1, Notice("info", "sqlite3 blocks."))), "info") == ["sqlite3 blocks."]


def test_the_code_of_a_reload_says_it_anew_and_what_is_old_is_forgotten() -> None:
    it = running(workers=1)
    for generation in range(2, 6):
        it.feel(Told(max(it.state.workers), Notice("warning", "pycurl blocks.")))
        it.hang_up(generation)
        newcomer = max(it.state.workers)
        assert texts(it.feel(Told(newcomer, Notice("warning", "pycurl blocks.")))) == ["pycurl blocks."]
        it.feel(Told(newcomer, Ready()))
    assert len(it.state.notices) == 2


def test_what_differs_is_said_from_time_to_time_for_each_subject() -> None:
    it = running(workers=2)
    assert texts(it.feel(Told(1, Notice("error", "3 refused", "db:5432"))), "error") == ["3 refused"]
    it.now += PAUSE - 0.1
    assert it.feel(Told(2, Notice("error", "5 refused", "db:5432"))) == []
    assert texts(it.feel(Told(2, Notice("error", "1 refused", "db:6432")))) == ["1 refused"]
    it.now += 0.1
    assert texts(it.feel(Told(2, Notice("error", "2 refused", "db:5432")))) == ["2 refused"]
