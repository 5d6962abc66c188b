"""HUP and `reload`: the new generation serves before the old one is told to go, or it is rolled back."""

from __future__ import annotations

import pytest
from tricorn.arbiter.policy.commands import (
    CloseListeners,
    Commit,
    LogReady,
    Notify,
    Order,
    Reload,
    Rollback,
    ServiceState,
    Spawn,
)
from tricorn.arbiter.policy.events import ChildExited, Quiet, ReloadFailed, Spawned, Start, Told
from tricorn.arbiter.policy.exits import BACKOFF_FIRST
from tricorn.workers.messages import BootFailed, Changed, Parted, Ready

from tests.unit.arbiter.policy.support import arbiter, exits, quiet, running, sends, spawned, texts


class TestHangUp:
    def test_nobody_leaves_before_all_of_the_new_generation_are_ready(self) -> None:
        it = running(workers=2)
        commands = it.hang_up()
        assert spawned(commands) == [3, 4]
        assert sends(it.feel(Told(3, Ready()))) == []
        done = it.feel(Told(4, Ready()))
        assert sends(done) == [(1, "SIGTERM"), (2, "SIGTERM")]
        assert Commit(2) in done
        assert spawned(it.feel(ChildExited(1, 0)) + it.feel(ChildExited(2, 0))) == []

    def test_a_fork_depends_on_its_hook_until_a_worker_of_the_generation_has_served(self) -> None:
        it = arbiter(workers=1)
        proven = [command.proven for command in it.feel(Start()) if isinstance(command, Spawn)]
        it.feel(Told(1, Ready()))
        commands = it.hang_up()
        commands += it.feel(ChildExited(1, -9))  # is replaced by another one of its own generation
        commands += it.feel(Told(2, Ready()))
        commands += it.feel(ChildExited(2, -9))
        commands += it.wait(BACKOFF_FIRST)
        proven += [command.proven for command in commands if isinstance(command, Spawn)]
        assert proven == [False, False, True, True]

    def test_the_service_manager_hears_of_it(self) -> None:
        it = running(workers=1)
        assert Notify(ServiceState.RELOADING) in it.signal("HUP")
        it.reload(2, 1)
        assert Notify(ServiceState.READY) in it.feel(Told(2, Ready()))

    def test_a_configuration_that_cannot_be_used_changes_nothing(self) -> None:
        it = running(workers=2)
        it.signal("HUP")
        commands = it.feel(ReloadFailed("Invalid value for workers: x"))
        assert texts(commands, "error") == ["Reload failed; nothing has changed: Invalid value for workers: x"]
        assert Notify(ServiceState.READY) in commands
        assert spawned(commands) == []
        assert sends(commands) == []
        assert Reload() in it.signal("HUP")

    @pytest.mark.parametrize("status", [3, 4, 1, -9, -11, 0])
    def test_a_generation_that_cannot_boot_is_rolled_back(self, status: int) -> None:
        it = running(workers=2)
        it.hang_up(target=3)
        it.feel(Told(3, Ready()))
        it.feel(Told(4, BootFailed(3, "SyntaxError: invalid syntax")))
        commands = it.feel(ChildExited(4, status))
        assert Rollback(2, "SyntaxError: invalid syntax") in commands
        assert sends(commands) == [(3, "SIGTERM"), (5, "SIGTERM")]
        assert texts(commands, "error")[-1] == (
            "Reload failed; the old workers keep serving: SyntaxError: invalid syntax"
        )
        assert it.state.generation == 1
        assert it.state.target == 2
        assert exits(commands) == []

    def test_what_the_failed_generation_leaves_behind_does_not_matter_any_more(self) -> None:
        it = running(workers=2)
        it.hang_up()
        it.feel(ChildExited(3, 3))
        assert it.feel(Told(4, Ready())) != []
        assert spawned(it.feel(ChildExited(4, -15))) == []
        assert spawned(it.feel(ChildExited(1, -9))) == [5]
        assert it.state.workers[5].generation == 1

    def test_an_old_worker_that_dies_meanwhile_is_replaced_by_one_of_its_generation(self) -> None:
        it = running(workers=2)
        it.hang_up()
        (spawn,) = [command for command in it.feel(ChildExited(1, -9)) if isinstance(command, Spawn)]
        assert spawn.generation == 1

    def test_more_workers_or_fewer(self) -> None:
        it = running(workers=2)
        assert spawned(it.hang_up(target=4)) == [3, 4, 5, 6]
        for nr in (3, 4, 5, 6):
            it.feel(Told(nr, Ready()))
        assert spawned(it.hang_up(generation=3, target=1)) == [7]
        assert len(sends(it.feel(Told(7, Ready())))) == 4

    def test_what_is_asked_for_meanwhile_happens_once_afterwards(self) -> None:
        it = running(workers=1)
        it.hang_up()
        assert Reload() not in it.signal("HUP") + it.signal("HUP")
        assert it.feel(Told(2, Ready())).count(Reload()) == 1
        it.reload(3, 1)
        assert Reload() not in it.feel(Told(3, Ready()))

    def test_a_reload_after_a_failed_one(self) -> None:
        it = running(workers=1)
        it.hang_up()
        it.signal("HUP")
        assert Reload() in it.feel(ChildExited(2, 3))

    def test_a_stop_ends_the_trial(self) -> None:
        it = running(workers=1)
        it.hang_up()
        assert sends(it.signal("TERM")) == [(1, "SIGTERM"), (2, "SIGTERM")]
        assert spawned(it.feel(ChildExited(2, -15))) == []
        assert exits(it.feel(ChildExited(1, 0))) == [0]

    def test_the_new_policy_counts_from_the_start_and_the_old_one_again_after_a_rollback(self) -> None:
        it = running(workers=1, graceful=30)
        it.hang_up(policy=quiet(graceful_timeout=5))
        assert it.state.policy.graceful_timeout == 5
        it.feel(ChildExited(2, 3))
        assert it.state.policy.graceful_timeout == 30

    def test_a_stop_while_the_configuration_is_read(self) -> None:
        it = running(workers=1)
        it.signal("HUP")
        it.signal("TERM")
        assert spawned(it.reload(2, 1)) == []


class TestCodeChanged:
    def test_new_workers_with_the_same_configuration(self) -> None:
        it = running(workers=2, reload=True)
        commands = it.feel(Told(1, Changed("app.py")))
        assert Reload(configuration=False) in commands
        assert texts(commands, "info") == ["Worker reloading: app.py modified"]
        assert it.feel(Told(2, Changed("app.py"))) == []

    def test_the_new_code_is_ready_when_no_idle_connection_leads_to_the_old(self) -> None:
        it = running(workers=1, reload=True)
        it.feel(Told(1, Changed("app.py")))
        it.reload(2, 1)
        commands = it.feel(Told(2, Ready()))
        assert Order((1,), drain=True, yields=True, replaced=True) in commands
        assert LogReady(1) not in commands
        assert LogReady(1) in it.feel(Told(1, Parted()))
        assert LogReady(1) not in it.feel(ChildExited(1, 0))

    def test_a_worker_that_never_served_is_not_waited_for(self) -> None:
        it = running(workers=2, reload=True)
        it.feel(ChildExited(2, -9))  # its successor boots
        it.feel(Told(1, Changed("app.py")))
        it.reload(2, 2)
        it.feel(Told(4, Ready()))
        it.feel(Told(5, Ready()))
        assert LogReady(2) in it.feel(Told(1, Parted()))

    def test_in_production_it_is_ready_as_soon_as_it_serves(self) -> None:
        it = running(workers=1)
        it.hang_up()
        commands = it.feel(Told(2, Ready()))
        assert LogReady(1) in commands
        assert Order((1,), yields=True, replaced=True) in commands

    def test_what_an_old_generation_says_is_no_news(self) -> None:
        it = running(workers=1)
        it.hang_up()
        it.feel(Told(2, Ready()))
        assert it.feel(Told(1, Changed("app.py"))) == []

    def test_the_traceback_of_the_newest_code_is_shown_in_place_of_older_code(self) -> None:
        it = arbiter(workers=1, reload=True)
        (first,) = it.feel(Start())
        assert isinstance(first, Spawn)
        assert first.stand_in
        it.feel(Told(1, Ready(stand_in=True)))
        it.feel(Told(1, Changed("app.py")))
        (second,) = it.reload(2, 1)
        assert isinstance(second, Spawn)
        assert second.stand_in
        it.feel(Told(2, Ready()))
        it.feel(Told(2, Changed("app.py")))
        (third,) = it.reload(3, 1)
        assert isinstance(third, Spawn)
        assert third.stand_in
        assert not running(workers=1).state.policy.reload


class TestDrainDelay:
    def test_readiness_is_denied_first_and_the_rest_follows(self) -> None:
        it = running(workers=2, drain_delay=10)
        commands = it.signal("TERM")
        assert Order((1, 2), not_ready=True) in commands
        assert sends(commands) == []
        assert it.state.next_deadline() == it.now + 10
        assert sends(it.wait(10)) == [(1, "SIGTERM"), (2, "SIGTERM")]

    def test_workers_are_still_replaced_meanwhile(self) -> None:
        it = running(workers=2, drain_delay=10)
        it.signal("TERM")
        assert spawned(it.feel(ChildExited(1, -9))) == [3]
        assert it.feel(Spawned(3, 103)) == [Order((3,), not_ready=True)], "it is not ready either"

    @pytest.mark.parametrize(("name", "told"), [("TERM", "SIGTERM"), ("INT", "SIGQUIT")])
    def test_a_second_signal_does_not_wait(self, name: str, told: str) -> None:
        it = running(workers=1, drain_delay=10)
        it.signal("TERM")
        assert sends(it.signal(name)) == [(1, told)]

    def test_it_ends_early_when_no_request_comes(self) -> None:
        it = running(workers=2, drain_delay=10)
        it.signal("TERM")
        it.now += 4
        commands = it.feel(Quiet(3))
        assert texts(commands)[0] == "No requests for 3 seconds (drain_quiet); draining ends early."
        assert sends(commands) == [(1, "SIGTERM"), (2, "SIGTERM")]
        assert CloseListeners() in commands
        assert it.feel(Quiet(3)) == [], "the news comes late"

    def test_silence_means_nothing_while_it_serves(self) -> None:
        it = running(workers=2, drain_delay=10)
        assert it.feel(Quiet(3)) == []
        assert it.state.stopping is None

    def test_no_reload_begins_any_more(self) -> None:
        it = running(workers=1, drain_delay=10)
        it.signal("TERM")
        assert Reload() not in it.signal("HUP")
