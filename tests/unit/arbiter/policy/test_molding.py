"""Molds: when one is made, what follows of its end, and which workers are asked of it."""

from __future__ import annotations

from signal import Signals

import pytest
from tricorn.arbiter.policy.commands import Command, Commit, Exit, Rollback, Send, Spawn, StartMold
from tricorn.arbiter.policy.events import ChildExited, Spawned, SpawnFailed, Start, Told
from tricorn.arbiter.policy.exits import FORGET
from tricorn.arbiter.policy.worker import Booting, Leaving, Serving
from tricorn.workers.messages import BootFailed, Ready

from tests.unit.arbiter.policy.support import Arbiter, arbiter, exits, quiet, sends, spawned, texts

MOLD = 1


def molds(commands: list[Command]) -> list[int]:
    return [command.nr for command in commands if isinstance(command, StartMold)]


def ready(it: Arbiter, nr: int) -> list[Command]:
    return it.feel(Told(nr, Ready()))


def booted(workers: int = 2, **settings: float) -> Arbiter:
    """Mold 1 has forked the workers from 2 on, and all serve."""
    it = arbiter(workers, molds=True, **settings)
    assert molds(it.feel(Start())) == [MOLD]
    for nr in spawned(ready(it, MOLD)):
        it.feel(Spawned(nr, nr + 100))
        ready(it, nr)
    return it


def test_workers_are_asked_of_the_mold_when_it_is_ready() -> None:
    it = arbiter(2, molds=True)
    commands = it.feel(Start())
    assert (molds(commands), spawned(commands)) == ([MOLD], [])
    commands = ready(it, MOLD)
    assert [(each.nr, each.mold) for each in commands if isinstance(each, Spawn)] == [(2, MOLD), (3, MOLD)]
    assert texts(commands) == ["Mold (pid:101) has loaded the application in 0.0 s; workers are forked from it."]


def test_without_workers_there_is_no_mold() -> None:
    assert arbiter(0, molds=True).feel(Start()) == []


def test_a_worker_that_ends_is_asked_of_the_mold() -> None:
    it = booted()
    assert [each.mold for each in it.feel(ChildExited(2, 1)) if isinstance(each, Spawn)] == [MOLD]


def test_a_mold_that_cannot_boot_ends_the_start_with_its_status() -> None:
    it = arbiter(2, molds=True)
    it.feel(Start())
    it.feel(Told(MOLD, BootFailed(4, "no such attribute")))
    commands = it.feel(ChildExited(MOLD, 4))
    assert exits(commands) == [4]


def test_a_mold_that_is_killed_while_it_loads_ends_the_start() -> None:
    it = arbiter(2, molds=True)
    it.feel(Start())
    commands = it.feel(ChildExited(MOLD, -9))
    assert exits(commands) == [3]
    assert "Reason: Worker failed to boot. (the mold was killed by SIGKILL)" in texts(commands)


def test_a_mold_that_dies_when_it_was_ready_is_made_again_and_failures_are_no_failures_of_the_workers() -> None:
    it = arbiter(2, molds=True)
    it.feel(Start())
    assert spawned(ready(it, MOLD)) == [2, 3]
    assert molds(it.feel(ChildExited(MOLD, -9))) == [4]
    for nr in (2, 3):
        assert it.feel(SpawnFailed(nr, "it was killed at once"))[1:] == []
    assert it.state.failures == ()
    assert spawned(ready(it, 4)) == [5, 6]


def test_a_mold_that_dies_again_and_again_before_a_worker_serves_ends_the_start() -> None:
    it = arbiter(1, molds=True)
    commands = it.feel(Start())
    for _ in range(20):
        (mold,) = molds(commands)
        (worker,) = spawned(ready(it, mold))
        commands = it.feel(ChildExited(mold, -9))
        commands = [*commands, *it.feel(SpawnFailed(worker, "it was killed at once"))]
        if any(isinstance(each, Exit) for each in commands):
            break
        commands = [*commands, *it.wait(30)]
    assert exits(commands) == [3]


def test_molds_that_die_young_are_made_again_with_restraint_and_workers_stay() -> None:
    it = booted()
    assert molds(it.feel(ChildExited(MOLD, -11))) == [4]
    commands = it.feel(ChildExited(4, -11))
    assert molds(commands) == []
    assert "Molds are crashing right after their start; next restart in 0.5 seconds." in texts(commands, "warning")
    assert it.state.next_deadline() == it.now + 0.5
    assert molds(it.wait(0.5)) == [5]
    assert len(it.state.workers) == 2


def test_a_worker_that_ends_meanwhile_waits_for_the_next_mold() -> None:
    it = booted()
    it.now += FORGET
    it.feel(ChildExited(MOLD, -9))
    assert spawned(it.feel(ChildExited(2, -9))) == []
    assert len(spawned(ready(it, 4))) == 1


def test_a_mold_that_fails_to_fork_twice_is_killed_and_made_again() -> None:
    it = booted()
    it.now += FORGET
    (first,) = spawned(it.feel(ChildExited(2, -9)))
    (second,) = spawned(it.feel(SpawnFailed(first, "Resource temporarily unavailable")))
    commands = it.feel(SpawnFailed(second, "Resource temporarily unavailable"))
    assert sends(commands) == [(MOLD, "SIGKILL")]
    assert isinstance(it.state.molds[MOLD].phase, Leaving)
    assert it.state.mold_of(1) is None
    it.feel(ChildExited(MOLD, -9))
    assert molds(it.wait(30)) != []


def test_a_fork_that_succeeds_makes_up_for_one_that_failed() -> None:
    it = booted()
    it.now += FORGET
    nr = 2
    for _ in range(3):
        (failing,) = spawned(it.feel(ChildExited(nr, -9)))
        it.now += FORGET
        (nr,) = spawned(it.feel(SpawnFailed(failing, "Resource temporarily unavailable"))) or spawned(it.wait(30))
        it.feel(Spawned(nr, nr + 100))
        ready(it, nr)
        it.now += FORGET
    assert isinstance(it.state.molds[MOLD].phase, Serving)


def test_a_mold_that_does_not_answer_is_killed_and_made_again() -> None:
    it = booted(boot_timeout=10)
    (asked,) = spawned(it.feel(ChildExited(2, -9)))
    commands = it.wait(10)
    assert (MOLD, "SIGKILL") in sends(commands)
    assert "Mold (pid:101) did not fork a worker within 10 seconds (boot_timeout); it is made again." in texts(commands)
    assert molds(commands) == []
    (mold,) = molds(it.feel(ChildExited(MOLD, -9)))
    it.feel(SpawnFailed(asked, "it was killed at once"))
    assert len(spawned(ready(it, mold))) == 1


def test_a_mold_that_loads_for_too_long_is_asked_where_it_is_and_killed() -> None:
    it = arbiter(1, molds=True, boot_timeout=10)
    it.feel(Start())
    it.wait(10)
    commands = it.wait(1)
    assert sends(commands) == [(MOLD, "SIGKILL")]
    assert texts(commands, "critical")[0].startswith("Mold (pid:101) did not boot in time")
    assert exits(it.feel(ChildExited(MOLD, -9))) == [3]


def test_a_reload_makes_a_mold_beside_the_old_one_which_goes_with_its_workers() -> None:
    it = booted()
    commands = it.hang_up()
    (mold,) = molds(commands)
    for nr in spawned(ready(it, mold)):
        it.feel(Spawned(nr, nr + 100))
        commands = ready(it, nr)
    assert Commit(2) in commands
    assert sends(commands) == [(2, "SIGTERM"), (3, "SIGTERM"), (MOLD, "SIGTERM")]
    assert texts(it.feel(ChildExited(MOLD, -15)), "info") == []


def test_a_reload_whose_mold_cannot_boot_is_rolled_back() -> None:
    it = booted()
    (mold,) = molds(it.hang_up())
    it.feel(Told(mold, BootFailed(3, "the reason")))
    commands = it.feel(ChildExited(mold, 3))
    assert Rollback(2, "the reason") in commands
    assert isinstance(it.state.molds[MOLD].phase, Serving)
    assert molds(commands) == []


def test_a_reload_whose_worker_fails_is_rolled_back_and_its_mold_goes() -> None:
    it = booted()
    (mold,) = molds(it.hang_up())
    first, second = spawned(ready(it, mold))
    it.feel(Spawned(first, 200))
    it.feel(Told(first, BootFailed(3, "the reason")))
    commands = it.feel(ChildExited(first, 3))
    assert Rollback(2, "the reason") in commands
    assert (mold, "SIGTERM") in sends(commands)
    assert isinstance(it.state.workers[second].phase, Leaving)
    assert it.feel(Spawned(second, 201)) == [Send(second, Signals.SIGTERM)]  # it was told before it was there


def test_a_reload_from_a_mold_to_none() -> None:
    it = booted()
    commands = it.hang_up(policy=quiet(molds=False, workers=2))
    assert molds(commands) == []
    assert [each.mold for each in commands if isinstance(each, Spawn)] == [None, None]
    for nr in spawned(commands):
        commands = ready(it, nr)
    assert (MOLD, "SIGTERM") in sends(commands)


def test_the_old_mold_is_made_again_during_a_trial() -> None:
    it = booted()
    (new,) = molds(it.hang_up())
    commands = it.feel(ChildExited(MOLD, -9))
    assert [(each.nr, each.generation) for each in commands if isinstance(each, StartMold)] == [(new + 1, 1)]


@pytest.mark.parametrize("signal", ["TERM", "INT"])
def test_at_the_end_the_mold_goes_and_is_waited_for(signal: str) -> None:
    it = booted()
    assert (MOLD, "SIGTERM") in sends(it.signal(signal))
    for nr in (2, 3):
        assert exits(it.feel(ChildExited(nr, 0))) == []
    assert exits(it.feel(ChildExited(MOLD, -15))) == [0]


def test_a_mold_that_does_not_go_is_killed() -> None:
    it = booted()
    it.signal("TERM")
    assert (MOLD, "SIGKILL") in sends(it.wait(2))


def test_logs_are_opened_anew_in_molds_too() -> None:
    it = booted()
    assert sends(it.signal("USR1")) == [(2, "SIGUSR1"), (3, "SIGUSR1"), (MOLD, "SIGUSR1")]
    (mold,) = molds(it.hang_up())
    it.signal("USR1")
    assert Send(mold, Signals.SIGUSR1) in ready(it, mold)


def test_a_lifetime_of_workers_is_none_of_molds() -> None:
    it = booted(max_worker_lifetime=60)
    it.wait(120)
    assert isinstance(it.state.molds[MOLD].phase, Serving)


def test_only_what_it_has_to_tell_is_heard() -> None:
    it = arbiter(1, molds=True)
    it.feel(Start())
    ready(it, MOLD)
    assert ready(it, MOLD) == []
    assert isinstance(it.state.workers[2].phase, Booting)
