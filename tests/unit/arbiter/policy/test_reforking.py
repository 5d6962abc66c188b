"""`refork`: when a worker becomes the mold, what follows of it, and when no more is tried."""

from __future__ import annotations

import pytest
from tricorn.arbiter.policy.commands import AdoptMold, Command, Commit, Promote, Send, Spawn, StartMold
from tricorn.arbiter.policy.events import ChildExited, Spawned, SpawnFailed, Start, Told, Weighed, WorkerSeen
from tricorn.arbiter.policy.worker import Leaving, Retiring, Serving
from tricorn.workers.messages import IsMold, NoMold, Ready

from tests.unit.arbiter.policy.support import Arbiter, arbiter, sends, spawned, texts

MEGABYTE = 1 << 20
THRESHOLDS = (100, 1000)


def ready(it: Arbiter, nr: int) -> list[Command]:
    return it.feel(Told(nr, Ready(kind="sync")))


def serve(it: Arbiter, nr: int) -> list[Command]:
    it.feel(Spawned(nr, nr + 100))
    return ready(it, nr)


def look(it: Arbiter, nr: int, served: int) -> list[Command]:
    return it.feel(WorkerSeen(nr, None, 0, 0, 0.0, served=served))


def weigh(it: Arbiter, megabytes: float | None) -> list[Command]:
    assert it.state.refork.weighs
    return it.feel(Weighed(it.state.generation, None if megabytes is None else int(megabytes * MEGABYTE)))


def booted(workers: int = 2) -> Arbiter:
    """Mold 1 has forked the workers from 2 on, and all serve."""
    it = arbiter(workers, molds=True, refork=THRESHOLDS)
    it.feel(Start())
    for nr in spawned(ready(it, 1)):
        serve(it, nr)
    return it


def promote(it: Arbiter, nr: int = 2, served: int = THRESHOLDS[0], megabytes: float = 50) -> int:
    """Until a worker is told to become the mold. Returns the number of its successor."""
    look(it, nr, served)
    weigh(it, megabytes)
    (successor,) = spawned(look(it, nr, served))
    commands = serve(it, successor)
    assert [type(each) for each in commands if isinstance(each, Promote | Send)] == [Promote, Send]
    return successor


def reforked() -> Arbiter:
    """Worker 2 is the mold, and 5 and 6 were forked from it."""
    it = booted()
    promote(it)
    it.feel(Told(2, IsMold()))
    it.feel(ChildExited(1, -15))
    for old in (3, 4):
        (successor,) = spawned(look(it, old, 0))
        serve(it, successor)
        it.feel(ChildExited(old, 0))
    assert sorted(it.state.workers) == [5, 6]
    return it


def test_a_worker_that_has_served_enough_is_replaced_and_told_to_become_the_mold() -> None:
    it = booted()
    assert look(it, 2, 99) == []
    assert not it.state.refork.weighs
    assert look(it, 2, 100) == []
    assert it.state.refork.weighs, "memory is measured first"
    assert weigh(it, 50) == []
    commands = look(it, 2, 104)
    assert [(each.nr, each.mold) for each in commands if isinstance(each, Spawn)] == [(4, 1)]
    assert isinstance(it.state.workers[2].phase, Retiring), "it serves until its successor does"
    commands = serve(it, 4)
    assert "Replacing worker (pid:102): it has served 104 requests, and becomes the mold." in texts(commands)
    assert [each.nr for each in commands if isinstance(each, Promote)] == [2]
    assert sends(commands) == [(2, "SIGTERM")]


def test_the_worker_is_the_mold_the_old_one_goes_and_others_are_forked_from_the_new_one() -> None:
    it = booted()
    promote(it)
    commands = it.feel(Told(2, IsMold()))
    assert [each.nr for each in commands if isinstance(each, AdoptMold)] == [2]
    assert sends(commands) == [(1, "SIGTERM")]
    assert isinstance(it.state.molds[2].phase, Serving)
    assert isinstance(it.state.molds[1].phase, Leaving)
    assert sorted(it.state.workers) == [3, 4]
    assert texts(it.feel(ChildExited(1, -15))) == ["Mold (pid:101) was sent SIGTERM!"]
    commands = look(it, 3, 7)
    assert [(each.nr, each.mold) for each in commands if isinstance(each, Spawn)] == [(5, 2)]
    assert look(it, 4, 7) == [], "one after another"


def test_memory_is_compared_when_the_new_workers_have_served_as_much() -> None:
    it = reforked()
    look(it, 5, 99)
    assert not it.state.refork.weighs
    look(it, 5, 100)
    commands = weigh(it, 40)
    assert texts(commands) == ["Refork after 100 requests: 40.0 MiB (PSS) a worker, 50.0 MiB before (-20%)."]
    look(it, 5, 999)
    assert not it.state.refork.weighs
    promote(it, 5, served=1000)
    it.feel(Told(5, IsMold()))
    assert it.state.molds[5].level == 2


def test_after_the_last_number_no_more_is_tried() -> None:
    it = reforked()
    look(it, 5, 100)
    weigh(it, 40)
    promote(it, 5, served=1000)
    it.feel(Told(5, IsMold()))
    it.feel(ChildExited(2, -15))
    for old in list(it.state.workers):
        for successor in spawned(look(it, old, 0)):
            serve(it, successor)
            it.feel(ChildExited(old, 0))
    look(it, max(it.state.workers), 1000)
    weigh(it, 30)
    assert look(it, max(it.state.workers), 10**6) == []
    assert not it.state.refork.weighs


@pytest.mark.parametrize(("after", "is_off"), [(47.4, False), (47.6, True), (60, True), (None, False)])
def test_with_a_small_gain_no_more_is_tried(after: float | None, is_off: bool) -> None:
    it = reforked()
    look(it, 5, 100)
    commands = weigh(it, after)
    assert it.state.refork.is_off is is_off
    assert any("That is less than 5%: no more until the next reload." in text for text in texts(commands)) is is_off
    look(it, 5, 1000)
    assert it.state.refork.weighs is not is_off


def test_what_prevents_forks_is_told_and_after_a_second_time_no_more_is_tried() -> None:
    it = booted()
    promote(it)
    commands = it.feel(Told(2, NoMold("It has the thread 'poller'.")))
    assert texts(commands) == ["Refork failed; worker (pid:102) ends. It has the thread 'poller'."]
    assert it.feel(ChildExited(2, 0))[1:] == [], "it is told once, and its successor is there"
    assert it.state.molds[1].level == 0
    promote(it, 3)
    (text,) = texts(it.feel(Told(3, NoMold("again."))))
    assert text == "Refork failed; worker (pid:103) ends. again. No more until the next reload."
    it.feel(ChildExited(3, 0))
    look(it, 4, 10**6)
    assert not it.state.refork.weighs


@pytest.mark.parametrize("status", [0, -9, 1])
def test_a_worker_that_ends_before_it_is_the_mold_is_a_failure_and_no_other_worker_is_missing(status: int) -> None:
    it = booted()
    promote(it)
    commands = it.feel(ChildExited(2, status))
    assert any(text.startswith("Refork failed; worker (pid:102) ends. It ended before") for text in texts(commands))
    assert spawned(commands) == []
    assert it.state.refork.failures == 1


def test_a_mold_that_was_a_worker_and_dies_is_made_again_from_code() -> None:
    it = reforked()
    commands = it.feel(ChildExited(2, -9))
    (mold,) = [each.nr for each in commands if isinstance(each, StartMold)]
    ready(it, mold)
    assert it.state.molds[mold].level == 0
    assert look(it, 5, 10) == [], "a mold that is loaded from code is no reason to replace workers"


def test_a_mold_that_was_a_worker_and_cannot_fork_is_made_again_from_code() -> None:
    it = reforked()
    it.feel(ChildExited(5, -9))
    worker = it.state.next_nr - 1
    it.feel(SpawnFailed(worker, "no"))
    it.wait(60)
    commands = it.feel(SpawnFailed(it.state.next_nr - 1, "no"))
    assert (2, "SIGKILL") in sends(commands)
    commands = it.feel(ChildExited(2, -9))
    assert [each for each in commands if isinstance(each, StartMold)] or it.wait(60)


@pytest.mark.parametrize("word", [IsMold(), NoMold("why")])
def test_nothing_of_it_is_believed_unless_it_was_asked_for(word: IsMold | NoMold) -> None:
    it = booted()
    assert it.feel(Told(2, word)) == []
    look(it, 2, 100)
    weigh(it, 50)
    look(it, 2, 100)
    if isinstance(word, IsMold):
        assert it.feel(Told(2, word)) == [], "it has not been told to leave"
    assert sorted(it.state.molds) == [1]


def test_a_reload_meanwhile_ends_the_new_mold_with_its_generation() -> None:
    it = booted()
    promote(it)
    it.reload(policy=it.state.policy)
    mold = max(it.state.molds)
    for nr in spawned(ready(it, mold)):
        commands = serve(it, nr)
    assert any(isinstance(each, Commit) for each in commands)
    commands = it.feel(Told(2, IsMold()))
    assert [each.nr for each in commands if isinstance(each, AdoptMold)] == [2]
    assert sends(commands) == [(2, "SIGTERM")]


def test_a_worker_that_is_replaced_during_a_reload_gets_what_belongs_to_its_own_generation() -> None:
    """A reload may have other listeners."""
    it = booted()
    look(it, 2, 100)
    weigh(it, 50)
    (successor,) = spawned(look(it, 2, 100))
    it.reload(policy=it.state.policy)
    commands = serve(it, successor)
    assert [each for each in commands if isinstance(each, Promote)] == [Promote(2, generation=1)]


def test_when_all_ends_the_new_mold_ends_as_well() -> None:
    it = booted()
    promote(it)
    it.signal("TERM")
    commands = it.feel(Told(2, IsMold()))
    assert sends(commands) == [(2, "SIGTERM")]


def test_nothing_begins_while_anything_else_is_going_on() -> None:
    it = booted()
    it.feel(ChildExited(3, 1))
    look(it, 2, 10**6)
    assert not it.state.refork.weighs, "a worker is missing"
