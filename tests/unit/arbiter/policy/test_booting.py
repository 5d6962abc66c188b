"""`workers = auto`, where the first worker that is ready tells the class."""

from __future__ import annotations

from tricorn.arbiter.policy.commands import LogReady, WorkersChanged
from tricorn.arbiter.policy.events import Start, Told
from tricorn.arbiter.policy.state import State
from tricorn.config.sizing import Sizing
from tricorn.workers.messages import Ready

from tests.unit.arbiter.policy.support import Arbiter, quiet, sends, spawned, texts

UNKNOWN = Sizing(2)
POLICY = quiet(workers=2, max_workers=72, sizing=UNKNOWN)


def starting() -> Arbiter:
    it = Arbiter(State(2, POLICY))
    assert spawned(it.feel(Start())) == [1, 2]
    return it


def test_sync_is_told_by_the_first_worker_and_more_are_started() -> None:
    it = starting()
    commands = it.feel(Told(1, Ready(kind="sync")))
    assert spawned(commands) == [3, 4]
    assert WorkersChanged(4, 2) in commands
    assert "4 workers (auto: sync, 2 for each of 2 processors)" in texts(commands)
    assert not it.feel(Told(2, Ready(kind="sync"))) or it.state.target == 4
    assert it.state.policy.workers == 4


def test_the_start_is_complete_when_all_of_them_serve() -> None:
    it = starting()
    said = [it.feel(Told(nr, Ready(kind="sync"))) for nr in (1, 2, 3, 4)]
    assert [LogReady(4) in commands for commands in said] == [False, False, False, True]


def test_another_class_changes_nothing() -> None:
    it = starting()
    assert spawned(it.feel(Told(1, Ready(kind="asgi")))) == []
    assert LogReady(2) in it.feel(Told(2, Ready(kind="asgi")))


def test_what_an_operator_has_asked_for_stays() -> None:
    it = starting()
    it.signal("TTIN")
    assert spawned(it.feel(Told(1, Ready(kind="sync")))) == []
    assert it.state.target == 3


def test_a_traceback_in_the_place_of_an_application_tells_no_class() -> None:
    it = starting()
    assert spawned(it.feel(Told(1, Ready(stand_in=True, kind="sync")))) == []


def test_a_reload_finds_its_class_anew() -> None:
    it = starting()
    for nr in (1, 2, 3, 4):
        it.feel(Told(nr, Ready(kind="sync")))
    it.hang_up(target=2, policy=POLICY)
    assert len(it.state.of(2)) == 2
    first = it.state.of(2)[0]
    assert len(spawned(it.feel(Told(first.nr, Ready(kind="sync"))))) == 2
    assert it.state.target == 4


def test_new_code_may_be_of_a_class_that_needs_fewer() -> None:
    """The reloader reads no configuration, and hands on the number that there is."""
    it = starting()
    for nr in (1, 2, 3, 4):
        it.feel(Told(nr, Ready(kind="sync")))
    it.hang_up(target=4, policy=POLICY)
    assert len(it.state.of(2)) == 2
    for worker in it.state.of(2):
        it.feel(Told(worker.nr, Ready(kind="asgi")))
    assert it.state.target == 2


def test_new_code_leaves_a_number_that_was_asked_for() -> None:
    it = starting()
    for nr in (1, 2, 3, 4):
        it.feel(Told(nr, Ready(kind="sync")))
    it.signal("TTIN")
    it.hang_up(target=5, policy=POLICY)
    assert len(it.state.of(2)) == 5


def test_a_number_that_was_given_is_kept() -> None:
    it = Arbiter(State(2, quiet(workers=2, max_workers=72)))
    it.feel(Start())
    assert spawned(it.feel(Told(1, Ready(kind="sync")))) == []


def test_the_first_worker_that_serves_stays_when_its_class_needs_fewer() -> None:
    it = Arbiter(State(4, quiet(workers=4, max_workers=72, sizing=Sizing(2, kind="sync"))))
    it.feel(Start())
    commands = it.feel(Told(1, Ready(kind="asgi")))
    assert it.state.target == 2
    assert sends(commands) == [(4, "SIGTERM"), (3, "SIGTERM")]
    assert it.state.serving(1) == 1
