"""What an operator asks for: done as by a signal, and answered when it is done."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tricorn.arbiter.policy.commands import (
    Answer,
    Command,
    Log,
    Order,
    Refuse,
    Reload,
    ReopenLogs,
    RunReloadHooks,
    StartSuccessor,
    WorkersChanged,
)
from tricorn.arbiter.policy.control_requests import (
    Drain,
    Kill,
    ReloadAll,
    Reopen,
    Scale,
    SetReadiness,
    Shutdown,
    UpgradeServer,
)
from tricorn.arbiter.policy.events import ChildExited, ControlRequest, Prepared, ReloadFailed, Requested, Told, Upgraded
from tricorn.config.sizing import Sizing
from tricorn.record import replace
from tricorn.workers.messages import Changed, Ready, Stuck

from tests.unit.arbiter.policy.support import Arbiter, exits, quiet, running, sends, spawned


def ask(it: Arbiter, request: ControlRequest, ticket: int = 1) -> list[Command]:
    return it.feel(Requested(ticket, request))


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

    @pytest.mark.parametrize(
        "wanted", [ReloadAll(), Scale(3), Drain(1), SetReadiness(False), UpgradeServer()], ids=repr
    )
    def test_a_server_that_ends_does_nothing_else(self, wanted: ControlRequest) -> None:
        it = running()
        it.signal("TERM")
        assert ask(it, wanted) == [Refuse(1, "refused", "The server is about to end.")]


class TestScale:
    def test_at_once_and_answered_with_both_numbers(self) -> None:
        it = running(workers=2)
        commands = ask(it, Scale(4))
        assert spawned(commands) == [3, 4]
        assert WorkersChanged(4, 2) in commands
        assert answers(commands) == {1: {"previous": 2, "workers": 4}}

    def test_scale_by_a_difference(self) -> None:
        it = running(workers=3)
        assert answers(ask(it, Scale(by=-2))) == {1: {"previous": 3, "workers": 1}}
        assert answers(ask(it, Scale(by=4))) == {1: {"previous": 1, "workers": 5}}

    @pytest.mark.parametrize("wanted", [Scale(0), Scale(9), Scale(by=-2), Scale(by=100)], ids=repr)
    def test_what_cannot_be_is_refused_and_not_corrected(self, wanted: Scale) -> None:
        it = running(workers=2, most=8)
        (refused,) = ask(it, wanted)
        assert isinstance(refused, Refuse)
        assert refused.sentence.startswith("There can be 1 to 8 workers, not ")
        assert it.state.target == 2

    def test_the_number_outlives_a_reload_that_configures_the_same(self) -> None:
        it = running(workers=2)
        ask(it, Scale(4))
        it.hang_up(target=4)
        assert (it.state.scaled, it.state.target) == (4, 4)

    def test_the_hooks_of_a_reload_get_the_number_that_an_operator_wants(self) -> None:
        it = running(workers=2)
        it.hang_up(target=2, policy=quiet(workers=2))
        ask(it, Scale(4))
        for configured, wanted in ((2, 4), (3, 3)):
            it.signal("HUP")
            policy = quiet(workers=configured)
            assert it.feel(Prepared(9, policy)) == [RunReloadHooks(9, policy, wanted)]
            it.feel(ReloadFailed("another try"))

    def test_auto_is_the_same_as_before_though_its_class_was_not_known_then(self) -> None:
        policy = quiet(workers=4, sizing=Sizing(2, kind="sync"), max_workers=72)
        it = Arbiter(replace(running(workers=6).state, policy=policy, scaled=6))
        policy = quiet(workers=2, sizing=Sizing(2), max_workers=72)
        it.signal("HUP")
        assert it.feel(Prepared(2, policy)) == [RunReloadHooks(2, policy, 6)]

    def test_new_code_alone_calls_no_hook(self) -> None:
        it = running(workers=2)
        it.feel(Told(1, Changed("app.py")))
        commands = it.feel(Prepared(2, it.state.policy, configuration=False))
        assert spawned(commands) == [3, 4]
        assert not any(isinstance(each, RunReloadHooks) for each in commands)

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
        it.hang_up(target=2, policy=quiet(max_workers=8, workers=2))
        ask(it, Scale(6))
        assert it.state.scaled == 6
        assert answers(ask(it, Scale())) == {1: {"previous": 6, "workers": 2}}
        assert it.state.scaled is None


class TestDrain:
    def test_restart_boots_the_successor_first(self) -> None:
        it = running(workers=2)
        commands = ask(it, Drain(1))
        assert spawned(commands) == [3]
        assert sends(commands) == []
        assert answers(commands) == {1: {"status": "draining", "pid": 101}}
        assert sends(it.feel(Told(3, Ready()))) == [(1, "SIGTERM")]
        assert it.state.workers[1].cause == "asked"

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


class TestSetReadiness:
    def test_every_worker_is_told_and_those_to_come(self) -> None:
        it = running(workers=2)
        commands = ask(it, SetReadiness(False))
        assert Order((1, 2), not_ready=True) in commands
        assert answers(commands) == {1: {"ready": False}}
        told: list[Command] = []
        ask(it, Scale(3))
        told += it.feel(Told(3, Ready()))
        assert it.state.unready
        assert Order((1, 2, 3)) in ask(it, SetReadiness(True))
        assert not it.state.unready

    def test_a_worker_that_starts_is_told_before_it_serves(self) -> None:
        from tricorn.arbiter.policy.decide import decide
        from tricorn.arbiter.policy.events import Spawned
        from tricorn.arbiter.policy.worker import Worker

        it = running(workers=1)
        ask(it, SetReadiness(False))
        state = it.state.with_worker(Worker(9, 1, started=it.now))
        _, commands = decide(state, Spawned(9, 109), it.now)
        assert Order((9,), not_ready=True) in commands

    def test_one_that_leaves_is_not_ready_either(self) -> None:
        it = running(workers=2)
        ask(it, SetReadiness(False))
        orders = [command for command in ask(it, Kill(1)) if isinstance(command, Order)]
        assert orders == [Order((1,), not_ready=True, yields=True, replaced=True)]
        orders = [command for command in ask(it, SetReadiness(True)) if isinstance(command, Order)]
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
        assert answers(ask(it, SetReadiness(True))) == {1: {"ready": False}}


def test_the_rest_is_what_the_signals_do() -> None:
    it = running(workers=1)
    assert ReopenLogs() in ask(it, Reopen())
    assert StartSuccessor() in ask(it, UpgradeServer())
    it.feel(Upgraded(4711))
    assert ask(it, UpgradeServer()) == [Refuse(1, "refused", "There is a successor already (pid 4711).")]
    assert sends(ask(it, Shutdown())) == [(1, "SIGTERM")]
    assert sends(ask(it, Shutdown(quick=True))) == [(1, "SIGQUIT")]
    assert exits(it.feel(ChildExited(1, 0))) == [0]


def test_what_a_cancelled_request_did_is_in_the_log_and_no_reason_to_replace_its_worker() -> None:
    it = running(workers=1)
    before = it.state
    (log,) = it.feel(Told(1, Stuck("cancel", 0, 4.25, "GET /report", ('File "app.py", line 3 in slow',))))
    assert isinstance(log, Log)
    assert log.level == "warning"
    assert "GET /report cancelled by operator after 4.2 seconds." in log.text
    assert log.text.endswith("line 3 in slow")
    assert it.state == before
