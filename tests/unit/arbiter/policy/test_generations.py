"""HUP and `reload`: the new generation serves before the old one is told to go, or it is rolled back."""

from __future__ import annotations

import pytest
from tricorn.arbiter.policy.canary import Look, Plan, Sample
from tricorn.arbiter.policy.commands import (
    CloseListeners,
    Command,
    Commit,
    LogReady,
    Notify,
    Order,
    Reload,
    Rollback,
    ServiceState,
    Spawn,
    StartMold,
    StartSuccessor,
)
from tricorn.arbiter.policy.control_requests import Kill, ReloadAll, Scale, SetReadiness
from tricorn.arbiter.policy.events import (
    CanarySeen,
    ChildExited,
    Prepared,
    Quiet,
    ReloadFailed,
    Requested,
    Resized,
    Spawned,
    Start,
    Told,
)
from tricorn.arbiter.policy.exits import BACKOFF_FIRST
from tricorn.arbiter.policy.state import State
from tricorn.arbiter.policy.worker import Leaving, Retiring
from tricorn.config.sizing import Sizing
from tricorn.workers.messages import BootFailed, Changed, Parted, Ready, Retire, Stuck

from tests.unit.arbiter.policy.support import Arbiter, arbiter, exits, quiet, running, sends, spawned, texts


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


GOOD = Look(Sample(requests=4000), Sample(requests=1000))
BAD = Look(Sample(requests=4000), Sample(requests=1000, failed=100))


def looking(it: Arbiter, look: Look = GOOD, opinion: bool | None = None, generation: int = 2) -> list[Command]:
    return it.feel(CanarySeen(generation, look, opinion))


def watched(workers: int = 3, **settings: float | str) -> Arbiter:
    """A reload of which one canary, worker 4 of 3 old ones, is watched."""
    it = running(workers)
    assert spawned(it.hang_up(policy=quiet(canary=1, canary_time=60, **settings))) == [workers + 1]
    ready = it.feel(Told(workers + 1, Ready()))
    assert texts(ready, "info") == [f"Canary: comparing 1 of {workers} new workers with the old ones for 60 seconds."]
    return it


class TestCanary:
    def test_some_of_the_new_workers_serve_beside_all_of_the_old_ones_until_the_time_is_over(self) -> None:
        it = watched()
        it.now += 59
        assert spawned(looking(it)) == []
        it.now += 1
        commands = looking(it)
        assert spawned(commands) == [5, 6]
        assert texts(commands) == [
            "Canary: no difference found: 0.0% of 1000 requests failed (old: 0.0%); starting the other new workers."
        ]
        assert sends(it.feel(Told(5, Ready()))) == []
        done = it.feel(Told(6, Ready()))
        assert sends(done) == [(1, "SIGTERM"), (2, "SIGTERM"), (3, "SIGTERM")]
        assert Commit(2) in done

    def test_the_watch_begins_when_all_canaries_serve(self) -> None:
        it = running(4)
        assert spawned(it.hang_up(policy=quiet(canary="50%"))) == [5, 6]
        assert texts(it.feel(Told(5, Ready())), "info") == []
        it.now += 100
        assert looking(it) == []
        assert texts(it.feel(Told(6, Ready())))[-1].startswith("Canary: comparing 2 of 4 new workers")
        it.now += 59
        assert spawned(looking(it)) == []

    def test_a_canary_that_is_worse_is_rolled_back_at_once(self) -> None:
        it = watched()
        it.now += 1
        commands = looking(it, BAD)
        assert sends(commands) == [(4, "SIGTERM")]
        assert (
            Rollback(2, "100 of 1000 requests of the new workers failed (10.0%), and 0 of 4000 of the old ones (0.0%)")
            in commands
        )
        assert it.state.generation == 1
        assert it.state.trial is None
        assert looking(it, BAD) == [], "the news comes late"

    def test_one_that_serves_all_is_committed_when_it_has_been_watched(self) -> None:
        it = watched(workers=1)
        it.now += 60
        commands = looking(it)
        assert Commit(2) in commands
        assert sends(commands) == [(1, "SIGTERM")]

    @pytest.mark.parametrize(
        ("status", "how"), [(-9, "was killed by SIGKILL"), (-11, "was killed by SIGSEGV"), (1, "exited with code 1")]
    )
    def test_one_that_dies_is_rolled_back(self, status: int, how: str) -> None:
        it = watched()
        assert Rollback(2, f"a new worker (pid:104) {how}") in it.feel(ChildExited(4, status))
        assert spawned(it.feel(ChildExited(1, -9))) == [5]

    def test_one_that_is_stuck_is_rolled_back_and_aborted(self) -> None:
        it = watched()
        commands = it.feel(Told(4, Stuck("timeout", 0, 30.0, "GET /", ())))
        assert Rollback(2, "a request of a new worker exceeded timeout") in commands
        assert sends(commands) == [(4, "SIGTERM")]
        phase = it.state.workers[4].phase
        assert isinstance(phase, Leaving)
        assert phase.stuck == 1

    def test_one_that_was_told_to_go_is_replaced(self) -> None:
        it = watched()
        it.feel(Told(4, Ready()))
        it.feel(Requested(1, Kill(4)))
        assert spawned(it.feel(ChildExited(4, 0))) == []
        assert it.state.watch is not None
        assert [worker.generation for worker in it.state.workers.values()] == [1, 1, 1, 2]

    def test_an_old_one_that_is_stuck_is_replaced_by_one_of_its_generation_which_serves_first(self) -> None:
        it = watched()
        assert spawned(it.feel(Told(1, Stuck("timeout", 0, 30.0, "GET /", ())))) == [5]
        assert it.state.workers[5].generation == 1
        assert sends(it.feel(Told(5, Ready()))) == [(1, "SIGTERM")]
        assert it.state.watch is not None

    def test_old_ones_that_are_due_to_be_replaced_keep_the_code_that_they_have(self) -> None:
        it = watched()
        it.feel(Told(1, Retire("it has served 10 requests")))
        assert not isinstance(it.state.workers[1].phase, Retiring)

    def test_clients_connect_anew_for_a_second_so_that_canaries_meet_them(self) -> None:
        it = running(3)
        it.hang_up(policy=quiet(canary=1))
        assert Order((1, 2, 3, 4), reconnect=True) in it.feel(Told(4, Ready()))
        it.now += 1
        assert looking(it) == [Order((1, 2, 3, 4))]
        it.now += 1
        assert looking(it) == []

    @pytest.mark.parametrize("end", ["dies", "bad", "good"])
    def test_they_do_so_no_more_when_it_ends_before(self, end: str) -> None:
        it = watched()
        match end:
            case "dies":
                commands = it.feel(ChildExited(4, -9))
            case "bad":
                commands = looking(it, BAD)
            case _:
                commands = looking(it, opinion=True)
        orders = [each for each in commands if isinstance(each, Order) and set(each.nrs) >= {1, 2, 3}]
        assert [each.reconnect for each in orders] == [False]

    def test_readiness_that_was_denied_stays_denied(self) -> None:
        it = running(3)
        it.feel(Requested(1, SetReadiness(on=False)))
        it.hang_up(policy=quiet(canary=1))
        assert Order((1, 2, 3, 4), not_ready=True, reconnect=True) in it.feel(Told(4, Ready()))
        assert Order((1, 2, 3, 4), not_ready=True) in looking(it)

    def test_too_few_requests_are_told(self) -> None:
        it = watched()
        it.now += 60
        assert texts(looking(it, Look(Sample(requests=50), Sample(requests=3)))) == [
            "Canary: judged by 3 requests only (canary_requests = 500); starting the other new workers."
        ]

    def test_shorter_responses_are_told_once(self) -> None:
        it = watched()
        look = Look(Sample(requests=1000, bytes_out=10**6), Sample(requests=1000, bytes_out=10**5))
        warning = "Canary: the responses of the new workers are less than half as long as those of the old ones."
        assert texts(looking(it, look)) == [warning]
        assert texts(looking(it, look)) == []

    def test_the_hook_has_the_last_word(self) -> None:
        it = watched()
        assert texts(looking(it, BAD, opinion=True)) == [
            "Canary: the hook canary_judge returned True; starting the other new workers."
        ]
        it = watched()
        assert Rollback(2, "the hook canary_judge returned False") in looking(it, GOOD, opinion=False)

    def test_a_reload_asked_for_meanwhile_happens_afterwards(self) -> None:
        it = watched()
        assert Reload() not in it.signal("HUP")
        assert Reload() in looking(it, BAD)

    def test_a_successor_of_the_server_has_nothing_to_do_with_it(self) -> None:
        it = watched()
        assert StartSuccessor() in it.signal("USR2")
        it.now += 60
        assert spawned(looking(it)) == [5, 6]

    def test_a_stop_ends_it(self) -> None:
        it = watched()
        assert sends(it.signal("TERM")) == [(nr, "SIGTERM") for nr in (1, 2, 3, 4)]
        assert looking(it) == []
        assert spawned(it.feel(ChildExited(4, 0))) == []

    def test_a_delayed_stop_leaves_things_as_they_are(self) -> None:
        it = running(3, drain_delay=10)
        it.hang_up(policy=quiet(canary=1, drain_delay=10))
        it.feel(Told(4, Ready()))
        it.signal("TERM")
        it.now += 60
        assert looking(it, BAD) == []

    def test_scaling_holds_for_whichever_generation_stays(self) -> None:
        it = watched()
        assert spawned(it.signal("TTIN")) == [5]
        assert it.state.workers[5].generation == 1
        looking(it, BAD)
        assert it.state.target == 4
        it = watched()
        it.feel(Requested(1, Scale(5)))
        it.now += 60
        looking(it)
        assert len(it.state.of(2)) == 5
        it.feel(ChildExited(4, -9))
        assert (it.state.target, it.state.scaled) == (5, 5)

    def test_new_code_that_needs_another_number_of_workers_changes_none_of_the_old_ones(self) -> None:
        sizing = Sizing(processors=2.0, kind="gthread")
        it = Arbiter(State(2, quiet(workers=2, sizing=sizing)))
        it.boot()
        it.hang_up(policy=quiet(workers=2, sizing=sizing, canary=1))
        it.feel(Told(3, Ready(kind="sync")))
        assert it.state.target == 4
        assert len(it.state.of(1)) == 2
        it.now += 60
        assert len(spawned(looking(it))) == 3

    def test_no_workers_at_all_are_not_watched(self) -> None:
        it = watched()
        assert Commit(2) in it.feel(Resized(0))

    @pytest.mark.parametrize("why", ["off", "code", "nobody serves"])
    def test_all_new_workers_at_once(self, why: str) -> None:
        it = running(2, reload=True)
        policy = quiet(canary=0 if why == "off" else 1, reload=True)
        if why == "code":
            it.feel(Told(1, Changed("app.py")))
            commands = it.feel(Prepared(2, policy, configuration=False))
        else:
            if why == "nobody serves":
                for nr in (1, 2):
                    it.feel(ChildExited(nr, -9))
            commands = it.hang_up(policy=policy) + it.wait(BACKOFF_FIRST)
        assert [it.state.workers[nr].generation for nr in spawned(commands)].count(2) == 2
        assert it.state.watch is None

    def test_an_operator_asks_for_another_one(self) -> None:
        it = running(4)
        assert Reload() in it.feel(Requested(1, ReloadAll(canary="50%", seconds=7.0)))
        assert len(spawned(it.reload())) == 2
        assert it.state.watch is not None
        assert it.state.watch.plan == Plan("50%", 7.0, 500)
        it.feel(Requested(2, ReloadAll(canary=0)))
        it.signal("HUP")
        for worker in it.state.of(2):
            it.feel(Told(worker.nr, Ready()))
        assert Reload() in looking(it, GOOD, opinion=True) + [
            each for worker in it.state.of(2) for each in it.feel(Told(worker.nr, Ready()))
        ]
        it.reload(3, policy=quiet(canary=1))
        assert it.state.watch is None, "what was asked for, though HUP came after it"
        assert it.state.canary is it.state.next_canary is None

    def test_a_mold_forks_as_many_as_are_wanted(self) -> None:
        it = arbiter(3, molds=True)
        it.feel(Start())
        it.feel(Told(1, Ready()))
        for nr in (2, 3, 4):
            it.feel(Spawned(nr, nr + 100))
            it.feel(Told(nr, Ready()))
        begun = it.hang_up(policy=quiet(molds=True, canary=1))
        (mold,) = [each.nr for each in begun if isinstance(each, StartMold)]
        assert spawned(it.feel(Told(mold, Ready()))) == [mold + 1]
        it.feel(Spawned(mold + 1, 999))
        it.feel(Told(mold + 1, Ready()))
        it.now += 60
        assert len(spawned(looking(it))) == 2


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
