"""What an operator asks for: done as by a signal, and answered when it is done."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tricorn.arbiter.policy.commands import (
    Answer,
    AskForStacks,
    ChangeLogLevel,
    Command,
    Log,
    Order,
    OrderCancel,
    OrderProfile,
    Refuse,
    Reload,
    ReopenLogs,
    StartSuccessor,
    TellCancelled,
    TellLogLevel,
    TellProfile,
    TellStacks,
    WorkersChanged,
)
from tricorn.arbiter.policy.events import Asked, ChildExited, ClientGone, Reloaded, ReloadFailed, Told, Upgraded
from tricorn.arbiter.policy.pending import HEARD, WRITTEN
from tricorn.arbiter.policy.state import Policy
from tricorn.arbiter.policy.wishes import (
    Cancel,
    Drain,
    Kill,
    Profile,
    ReloadAll,
    Reopen,
    Replace,
    Scale,
    SetLogLevel,
    Shutdown,
    Stacks,
    Welcome,
    Wish,
)
from tricorn.workers.messages import BootFailed, Ready, Stuck

from tests.unit.arbiter.policy.support import Arbiter, exits, running, sends, spawned


def ask(it: Arbiter, wish: Wish, ticket: int = 1) -> list[Command]:
    return it.feel(Asked(ticket, wish))


def answers(commands: list[Command]) -> dict[int, Mapping[str, object] | str]:
    told: dict[int, Mapping[str, object] | str] = {}
    for command in commands:
        match command:
            case Answer(ticket, result):
                told[ticket] = result
            case Refuse(ticket, _, sentence):
                told[ticket] = sentence
    return told


class TestReload:
    def test_one_that_does_not_wait_is_answered_at_once(self) -> None:
        it = running()
        commands = ask(it, ReloadAll())
        assert Reload() in commands
        assert answers(commands) == {1: {"status": "reloading"}}

    def test_one_that_waits_is_answered_when_the_new_generation_serves(self) -> None:
        it = running()
        assert answers(ask(it, ReloadAll(wait=True))) == {}
        assert answers(it.feel(Reloaded(2, 2, it.state.policy))) == {}
        assert answers(it.feel(Told(3, Ready()))) == {}
        assert answers(it.feel(Told(4, Ready()))) == {1: {"generation": 2, "workers": 2}}
        assert it.state.pending == ()

    def test_a_configuration_that_cannot_be_used_is_the_reason(self) -> None:
        it = running()
        ask(it, ReloadAll(wait=True))
        assert answers(it.feel(ReloadFailed("workers is no number"))) == {1: "workers is no number"}

    def test_a_worker_that_does_not_boot_is_the_reason(self) -> None:
        it = running()
        ask(it, ReloadAll(wait=True))
        it.feel(Reloaded(2, 2, it.state.policy))
        it.feel(Told(3, BootFailed(3, "no module named shop")))
        assert answers(it.feel(ChildExited(3, 3))) == {1: "no module named shop"}

    def test_one_asked_for_during_another_waits_for_the_one_after_it(self) -> None:
        it = running(workers=1)
        ask(it, ReloadAll(wait=True), 1)
        ask(it, ReloadAll(wait=True), 2)
        it.feel(Reloaded(2, 1, it.state.policy))
        commands = it.feel(Told(2, Ready()))
        assert Reload() in commands, "what is asked for meanwhile happens afterwards"
        assert answers(commands) == {1: {"generation": 2, "workers": 1}}
        it.feel(Reloaded(3, 1, it.state.policy))
        assert answers(it.feel(Told(3, Ready()))) == {2: {"generation": 3, "workers": 1}}

    def test_a_client_that_has_left_is_not_answered(self) -> None:
        it = running()
        ask(it, ReloadAll(wait=True), 7)
        it.feel(ClientGone((7, 8)))
        assert answers(it.feel(ReloadFailed("no"))) == {}

    def test_a_server_that_ends_answers_those_that_wait(self) -> None:
        it = running()
        ask(it, ReloadAll(wait=True))
        assert answers(it.signal("TERM")) == {1: "The server was told to stop."}
        assert it.state.pending == ()

    @pytest.mark.parametrize("wish", [ReloadAll(), Scale(3), Drain(1), Welcome(False), Replace()], ids=repr)
    def test_a_server_that_ends_does_nothing_else(self, wish: Wish) -> None:
        it = running()
        it.signal("TERM")
        assert ask(it, wish) == [Refuse(1, "refused", "The server is about to end.")]


class TestScale:
    def test_at_once_and_answered_with_both_numbers(self) -> None:
        it = running(workers=2)
        commands = ask(it, Scale(4))
        assert spawned(commands) == [3, 4]
        assert WorkersChanged(4, 2) in commands
        assert answers(commands) == {1: {"previous": 2, "workers": 4}}

    def test_by_a_difference(self) -> None:
        it = running(workers=3)
        assert answers(ask(it, Scale(by=-2))) == {1: {"previous": 3, "workers": 1}}
        assert answers(ask(it, Scale(by=4))) == {1: {"previous": 1, "workers": 5}}

    @pytest.mark.parametrize("wish", [Scale(0), Scale(9), Scale(by=-2), Scale(by=100)], ids=repr)
    def test_what_cannot_be_is_refused_and_not_corrected(self, wish: Scale) -> None:
        it = running(workers=2, most=8)
        (refused,) = ask(it, wish)
        assert isinstance(refused, Refuse)
        assert refused.sentence.startswith("There can be 1 to 8 workers, not ")
        assert it.state.target == 2

    def test_the_number_outlives_a_reload_that_configures_the_same(self) -> None:
        it = running(workers=2)
        ask(it, Scale(4))
        it.hang_up(target=4)
        assert (it.state.scaled, it.state.target) == (4, 4)

    def test_another_number_in_the_configuration_ends_it_and_a_rollback_brings_it_back(self) -> None:
        it = running(workers=2)
        ask(it, Scale(3))
        it.feel(Told(3, Ready()))
        it.hang_up(target=5)
        assert (it.state.scaled, it.state.target) == (None, 5)
        it.feel(ChildExited(4, 3))
        assert (it.state.scaled, it.state.target) == (3, 3)

    def test_auto_is_what_is_configured(self) -> None:
        it = running(workers=2)
        it.hang_up(target=2, policy=Policy(most=8, workers=2))
        ask(it, Scale(6))
        assert it.state.scaled == 6
        assert answers(ask(it, Scale())) == {1: {"previous": 6, "workers": 2}}
        assert it.state.scaled is None


class TestDrain:
    def test_the_successor_first(self) -> None:
        it = running(workers=2)
        commands = ask(it, Drain(1))
        assert spawned(commands) == [3]
        assert sends(commands) == []
        assert answers(commands) == {1: {"status": "draining", "pid": 101}}
        assert sends(it.feel(Told(3, Ready()))) == [(1, "SIGTERM")]
        assert it.state.workers[1].cause == "asked"

    def test_one_that_waits_is_answered_when_the_worker_is_gone(self) -> None:
        it = running(workers=1)
        assert answers(ask(it, Drain(1, wait=True))) == {}
        assert answers(it.feel(Told(2, Ready()))) == {}
        assert answers(it.feel(ChildExited(1, 0))) == {1: {"status": "drained", "pid": 101, "exit_status": 0}}
        assert it.state.pending == ()

    def test_one_that_is_on_its_way_can_be_waited_for(self) -> None:
        it = running(workers=1)
        ask(it, Drain(1))
        ask(it, Drain(1, wait=True), 2)
        assert answers(it.feel(ChildExited(1, 0))) == {2: {"status": "drained", "pid": 101, "exit_status": 0}}

    def test_one_that_had_to_be_killed_is_not_drained(self) -> None:
        it = running(workers=1)
        ask(it, Drain(1, wait=True))
        it.feel(Told(2, Ready()))
        assert answers(it.feel(ChildExited(1, -9))) == {1: {"status": "ended", "pid": 101, "exit_status": -9}}

    def test_what_cannot_be_drained_is_refused(self) -> None:
        it = running(workers=1)
        assert isinstance(ask(it, Drain(9))[0], Refuse)
        ask(it, Scale(2))
        assert isinstance(ask(it, Drain(2))[0], Refuse), "it boots"
        it.hang_up()
        assert ask(it, Drain(1)) == [Refuse(1, "busy", "All workers are about to be replaced.")]


def test_a_worker_that_is_killed_is_replaced_at_once() -> None:
    it = running(workers=2)
    commands = ask(it, Kill(2))
    assert sends(commands) == [(2, "SIGTERM")]
    assert spawned(commands) == [3]
    assert answers(commands) == {1: {"killed": 102}}
    assert isinstance(ask(it, Kill(50))[0], Refuse)


class TestWelcome:
    def test_every_worker_is_told_and_those_to_come(self) -> None:
        it = running(workers=2)
        commands = ask(it, Welcome(False))
        assert Order((1, 2), not_ready=True) in commands
        assert answers(commands) == {1: {"ready": False}}
        told: list[Command] = []
        ask(it, Scale(3))
        told += it.feel(Told(3, Ready()))
        assert it.state.unready
        assert Order((1, 2, 3)) in ask(it, Welcome(True))
        assert not it.state.unready

    def test_a_worker_that_starts_is_told_before_it_serves(self) -> None:
        from tricorn.arbiter.policy.decide import decide
        from tricorn.arbiter.policy.events import Spawned
        from tricorn.arbiter.policy.worker import Worker

        it = running(workers=1)
        ask(it, Welcome(False))
        state = it.state.with_worker(Worker(9, 1, started=it.now))
        _, commands = decide(state, Spawned(9, 109), it.now)
        assert Order((9,), not_ready=True) in commands

    def test_one_that_leaves_is_not_ready_either(self) -> None:
        it = running(workers=2)
        ask(it, Welcome(False))
        orders = [command for command in ask(it, Kill(1)) if isinstance(command, Order)]
        assert orders == [Order((1,), not_ready=True, yields=True, replaced=True)]
        orders = [command for command in ask(it, Welcome(True)) if isinstance(command, Order)]
        assert orders[-1] == Order((1,), yields=True, replaced=True), "it answers for those that serve"
        assert 1 not in orders[0].nrs

    def test_one_that_leaves_in_the_drain_delay_of_all_is_not_ready(self) -> None:
        it = running(workers=2, drain_delay=10)
        it.signal("TERM")
        orders = [command for command in ask(it, Kill(1)) if isinstance(command, Order)]
        assert [each.not_ready for each in orders] == [True]

    def test_a_server_in_its_drain_delay_stays_unready(self) -> None:
        it = running(workers=1, drain_delay=10)
        it.signal("TERM")
        assert answers(ask(it, Welcome(True))) == {1: {"ready": False}}


class TestStacks:
    def test_workers_are_asked_and_read_a_moment_later(self) -> None:
        it = running(workers=2)
        assert ask(it, Stacks((1, 2)), 5) == [AskForStacks((1, 2))]
        assert it.state.next_deadline() == it.now + WRITTEN
        assert it.wait(WRITTEN / 2) == []
        assert it.wait(WRITTEN) == [TellStacks(5, (1, 2))]
        assert it.state.stacks == ()

    def test_those_that_were_asked_later_are_told_later(self) -> None:
        it = running(workers=2)
        ask(it, Stacks((1,)), 5)
        it.wait(WRITTEN / 2)
        ask(it, Stacks((2,)), 6)
        assert it.wait(WRITTEN / 2) == [TellStacks(5, (1,))]
        assert it.wait(WRITTEN / 2) == [TellStacks(6, (2,))]
        assert it.wait(WRITTEN) == []

    def test_one_that_boots_is_not_asked_since_the_signal_would_end_it(self) -> None:
        it = running(workers=1)
        ask(it, Scale(2))
        assert ask(it, Stacks((1, 2))) == [AskForStacks((1,))]
        assert isinstance(ask(it, Stacks((2,)))[0], Refuse)

    def test_a_server_that_ends_tells_too(self) -> None:
        it = running(workers=1)
        it.signal("TERM")
        assert ask(it, Stacks((1,))) == [AskForStacks((1,))]


class TestProfile:
    def test_workers_are_ordered_and_read_when_the_time_is_over(self) -> None:
        it = running(workers=2)
        assert ask(it, Profile((1, 2), 10.0, 100), 5) == [OrderProfile((1, 2), 10.0, 100)]
        assert it.state.next_deadline() == it.now + 10.0 + WRITTEN
        assert it.wait(10.0) == []
        assert it.wait(WRITTEN) == [TellProfile(5, (1, 2))]
        assert it.state.profile is None

    def test_there_is_one_at_a_time(self) -> None:
        it = running(workers=2)
        ask(it, Profile((1,), 10.0, 100), 1)
        (refused,) = ask(it, Profile((2,), 1.0, 100), 2)
        assert isinstance(refused, Refuse)
        assert refused.kind == "busy"
        assert "for 10.3 seconds more" in refused.sentence
        it.wait(10.0 + WRITTEN)
        assert ask(it, Profile((2,), 1.0, 100), 3) == [OrderProfile((2,), 1.0, 100)]

    def test_a_client_that_leaves_ends_its_own(self) -> None:
        it = running(workers=1)
        ask(it, Profile((1,), 10.0, 100), 1)
        assert it.feel(ClientGone((7,))) == []
        assert it.feel(ClientGone((1,))) == [OrderProfile((1,), 0.0)]
        assert ask(it, Profile((1,), 1.0, 100), 2) == [OrderProfile((1,), 1.0, 100)]

    def test_one_that_boots_has_no_sampler(self) -> None:
        it = running(workers=1)
        ask(it, Scale(2))
        assert isinstance(ask(it, Profile((2,), 1.0, 100))[0], Refuse)
        assert ask(it, Profile((1, 2), 1.0, 100)) == [OrderProfile((1,), 1.0, 100)]


class TestCancel:
    def test_the_monitor_has_a_second_to_hear_of_it(self) -> None:
        it = running(workers=2)
        assert ask(it, Cancel(2, 5, 77), 9) == [OrderCancel(2, 5, 77)]
        assert it.state.next_deadline() == it.now + HEARD
        assert it.wait(HEARD / 2) == []
        assert it.wait(HEARD) == [TellCancelled(9, 2)]
        assert it.state.cancels == ()

    def test_an_order_that_came_later_is_told_later(self) -> None:
        it = running(workers=2)
        ask(it, Cancel(1, 0, 77), 1)
        it.wait(HEARD / 2)
        ask(it, Cancel(2, 0, 78), 2)
        assert it.wait(HEARD / 2) == [TellCancelled(1, 1)]
        assert it.wait(HEARD / 2) == [TellCancelled(2, 2)]
        assert it.wait(HEARD) == []

    def test_a_worker_has_one_order_at_a_time(self) -> None:
        it = running(workers=2)
        ask(it, Cancel(1, 0, 77), 1)
        (refused,) = ask(it, Cancel(1, 1, 78), 2)
        assert isinstance(refused, Refuse)
        assert (refused.ticket, refused.kind) == (2, "busy")
        assert ask(it, Cancel(2, 0, 79), 3) == [OrderCancel(2, 0, 79)]
        assert it.wait(HEARD) == [TellCancelled(1, 1), TellCancelled(3, 2)]
        assert ask(it, Cancel(1, 1, 78), 4) == [OrderCancel(1, 1, 78)]

    def test_what_a_leaving_server_hangs_on_can_be_cancelled(self) -> None:
        it = running(workers=1)
        it.signal("TERM")
        assert ask(it, Cancel(1, 0, 77)) == [OrderCancel(1, 0, 77)]

    def test_what_the_worker_did_is_in_the_log_and_no_reason_to_replace_it(self) -> None:
        it = running(workers=1)
        before = it.state
        (log,) = it.feel(Told(1, Stuck("cancel", 0, 4.25, "GET /report", ('File "app.py", line 3 in slow',))))
        assert isinstance(log, Log)
        assert log.level == "warning"
        assert "GET /report is cancelled by an operator after 4.2 seconds." in log.text
        assert log.text.endswith("line 3 in slow")
        assert it.state == before


class TestTheLevelOfTheLog:
    def test_workers_that_serve_are_told_at_once_and_others_when_they_do(self) -> None:
        it = running(workers=2)
        ask(it, Scale(3))
        told = ask(it, SetLogLevel("debug"))
        assert told == [
            ChangeLogLevel("debug"),
            TellLogLevel((1, 2), "debug"),
            Answer(1, {"level": "debug", "workers": 2}),
        ]
        assert TellLogLevel((3,), "debug") in it.feel(Told(3, Ready()))

    def test_the_workers_of_a_reload_have_that_of_their_configuration(self) -> None:
        it = running(workers=1)
        ask(it, SetLogLevel("debug"))
        it.hang_up()
        assert not any(isinstance(each, TellLogLevel) for each in it.feel(Told(2, Ready())))
        assert it.state.log_level is None

    def test_one_that_is_asked_for_while_a_reload_is_on_trial_holds(self) -> None:
        it = running(workers=1)
        it.hang_up()
        ask(it, SetLogLevel("error"))
        assert TellLogLevel((2,), "error") in it.feel(Told(2, Ready()))
        assert it.state.log_level is not None

    def test_a_reload_that_is_rolled_back_leaves_it(self) -> None:
        it = running(workers=1)
        ask(it, SetLogLevel("debug"))
        it.hang_up()
        assert ChangeLogLevel("debug") in it.feel(ChildExited(2, 1))
        assert it.state.log_level is not None


def test_the_rest_is_what_the_signals_do() -> None:
    it = running(workers=1)
    assert ReopenLogs() in ask(it, Reopen())
    assert StartSuccessor() in ask(it, Replace())
    it.feel(Upgraded(4711))
    assert ask(it, Replace()) == [Refuse(1, "refused", "There is a successor already (pid 4711).")]
    assert sends(ask(it, Shutdown())) == [(1, "SIGTERM")]
    assert sends(ask(it, Shutdown(quick=True))) == [(1, "SIGQUIT")]
    assert exits(it.feel(ChildExited(1, 0))) == [0]
