"""What a program's own arbiter asks for."""

from __future__ import annotations

from signal import Signals

from tricorn.arbiter.policy.events import ChildExited, KillRequested, SpawnRequested, Told
from tricorn.arbiter.policy.worker import Booting
from tricorn.workers.messages import Ready

from tests.unit.arbiter.policy.support import arbiter, running, sends, spawned, texts


def test_one_more_until_one_is_dismissed() -> None:
    it = running(workers=2)
    assert spawned(it.feel(SpawnRequested())) == [3]
    assert it.state.target == 2, "hooks are told nothing"
    assert sends(it.feel(KillRequested(101, Signals.SIGTERM))) == [], "its successor boots"
    assert spawned(it.feel(Told(2, Ready()))) == []
    assert sends(it.feel(Told(3, Ready()))) == [(1, "SIGTERM")]
    assert spawned(it.feel(ChildExited(1, 0))) == []
    assert sorted(it.state.workers) == [2, 3]


def test_dismissed_without_one_more_its_successor_is_started() -> None:
    it = running(workers=2)
    assert spawned(it.feel(KillRequested(101, Signals.SIGTERM))) == [3]
    assert it.feel(KillRequested(101, Signals.SIGTERM)) == [], "asked twice"
    assert sends(it.feel(Told(3, Ready()))) == [(1, "SIGTERM")]


def test_each_that_is_dismissed_is_one_less() -> None:
    it = running(workers=1)
    for nr in (2, 3, 4):
        assert spawned(it.feel(SpawnRequested())) == [nr]
        it.feel(Told(nr, Ready()))
    for nr in (1, 2, 3):
        assert sends(it.feel(KillRequested(nr + 100, Signals.SIGTERM))) == [(nr, "SIGTERM")]
        assert spawned(it.feel(ChildExited(nr, 0))) == []
    assert sorted(it.state.workers) == [4]


def test_another_signal_is_sent_at_once() -> None:
    it = running(workers=2)
    it.feel(SpawnRequested())
    commands = it.feel(KillRequested(101, Signals.SIGQUIT))
    assert (sends(commands), spawned(commands)) == ([(1, "SIGQUIT")], [])


def test_one_that_boots_is_told_at_once() -> None:
    it = arbiter(workers=1)
    it.signal("CHLD")
    (worker,) = it.state.workers.values()
    assert worker.phase == Booting()
    commands = it.feel(KillRequested(101, Signals.SIGTERM))
    assert (sends(commands), spawned(commands)) == ([(1, "SIGTERM")], [2])


def test_program_requests_scale_up_to_the_worker_slots() -> None:
    it = running(workers=2, most=3)
    it.feel(SpawnRequested())
    assert texts(it.feel(SpawnRequested())) == ["Cannot run more than 3 workers."]


def test_a_reload_forgets_those_besides() -> None:
    it = running(workers=1)
    it.feel(SpawnRequested())
    assert spawned(it.hang_up()) == [3]


def test_a_server_that_leaves_starts_none() -> None:
    it = running(workers=1)
    it.signal("TERM")
    assert it.feel(SpawnRequested()) == []
    assert sends(it.feel(KillRequested(101, Signals.SIGQUIT))) == [(1, "SIGQUIT")]


def test_a_pid_that_is_nobodys_is_passed_over() -> None:
    assert running().feel(KillRequested(4242, Signals.SIGTERM)) == []
