"""Starting, replacing, stopping: events in, commands out."""

from __future__ import annotations

from signal import Signals

import pytest
from tricorn.arbiter.policy.commands import (
    CloseListeners,
    Exit,
    Log,
    LogReady,
    Order,
    ReopenLogs,
    Send,
    Spawn,
    StartSuccessor,
    WorkersChanged,
)
from tricorn.arbiter.policy.decide import decide
from tricorn.arbiter.policy.events import ChildExited, Resized, SpawnFailed, Start, Told, Upgraded
from tricorn.arbiter.policy.exits import BACKOFF_FIRST, BACKOFF_MOST, FORGET, STEADY
from tricorn.arbiter.policy.leaving import QUIT_PATIENCE
from tricorn.arbiter.policy.state import NEVER
from tricorn.arbiter.policy.worker import Booting
from tricorn.workers.messages import BootFailed, Parted, Ready, Retire

from tests.unit.arbiter.policy.support import arbiter, exits, running, sends, spawned, texts


class TestStart:
    def test_as_many_workers_as_asked_for(self) -> None:
        assert spawned(arbiter(workers=3).feel(Start())) == [1, 2, 3]

    def test_a_lone_worker_knows_that_it_has_no_siblings(self) -> None:
        assert arbiter(workers=1).feel(Start()) == [Spawn(1, generation=1, siblings=False)]

    def test_that_all_serve_is_logged_once_for_each_generation(self) -> None:
        it = arbiter(workers=2, reload=True)
        it.feel(Start())
        commands = it.feel(Told(1, Ready(stand_in=True))) + it.feel(Told(2, Ready(stand_in=True)))
        assert not any(isinstance(command, LogReady) for command in commands), "nothing but a traceback is served"
        it.hang_up(2)
        assert LogReady(2) not in it.feel(Told(3, Ready()))
        assert LogReady(2) not in it.feel(Told(4, Ready())), "clients may still ask the workers of before"
        assert LogReady(2) not in it.feel(Told(1, Parted()))
        assert LogReady(2) in it.feel(ChildExited(2, 0))
        it.feel(Told(3, Retire("max_requests")))
        assert LogReady(2) not in it.feel(Told(5, Ready()))

    def test_nothing_is_due_while_all_is_well(self) -> None:
        assert running().state.next_deadline() == NEVER


class TestFirstStartFails:
    def test_the_server_ends_with_the_workers_code_when_all_workers_failed(self) -> None:
        it = arbiter(workers=2)
        it.feel(Start())
        it.feel(Told(1, BootFailed(4, "Failed to find attribute 'x' in 'app'.")))
        assert exits(it.feel(ChildExited(1, 4))) == []
        end = it.feel(ChildExited(2, 4))
        assert exits(end) == [4]
        assert texts(end, "error")[-2:] == [
            "Shutting down: Master",
            "Reason: App failed to load.",
        ]

    def test_a_failed_worker_is_not_tried_again_while_none_was_ready(self) -> None:
        it = arbiter(workers=2)
        it.feel(Start())
        assert spawned(it.feel(ChildExited(1, 3))) == []
        assert spawned(it.wait(100)) == []

    def test_but_it_is_after_another_became_ready_and_not_at_once(self) -> None:
        it = arbiter(workers=2)
        it.feel(Start())
        it.feel(ChildExited(1, 3))
        assert spawned(it.feel(Told(2, Ready()))) == []
        assert spawned(it.wait(BACKOFF_FIRST)) == [3]

    @pytest.mark.parametrize(
        ("status", "code", "reason"),
        [
            (3, 3, "Reason: Worker failed to boot."),
            (4, 4, "Reason: App failed to load."),
            (0, 3, "Reason: Worker failed to boot."),
            (1, 3, "Reason: Worker failed to boot."),
            (-11, 3, "Reason: Worker failed to boot. (killed by SIGSEGV while it booted)"),
        ],
    )
    def test_every_way_to_die_before_being_ready(self, status: int, code: int, reason: str) -> None:
        it = arbiter(workers=1)
        it.feel(Start())
        end = it.feel(ChildExited(1, status))
        assert exits(end) == [code]
        assert texts(end)[-1] == reason

    def test_a_system_that_cannot_fork(self) -> None:
        it = arbiter(workers=1)
        decide(it.state, Start(), it.now)
        it.state, _ = decide(it.state, Start(), it.now)
        end = it.feel(SpawnFailed(1, "Resource temporarily unavailable"))
        assert exits(end) == [3]

    def test_asked_to_stop_meanwhile_it_ends_well(self) -> None:
        it = arbiter(workers=1)
        it.feel(Start())
        it.signal("TERM")
        assert exits(it.feel(ChildExited(1, -15))) == [0]


class TestReplacing:
    def test_a_worker_that_died_is_replaced_at_once(self) -> None:
        it = running()
        it.now += 1
        commands = it.feel(ChildExited(1, -9))
        assert spawned(commands) == [3]
        assert texts(commands) == ["Worker (pid:101) was sent SIGKILL! Perhaps out of memory?"]

    @pytest.mark.parametrize(
        ("status", "level", "text"),
        [
            (-15, "info", "Worker (pid:101) was sent SIGTERM!"),
            (-11, "warning", "Worker (pid:101) was sent SIGSEGV!"),
            (-64, "warning", "Worker (pid:101) was sent SIGRTMAX!"),
            (-50, "warning", "Worker (pid:101) was sent signal 50!"),
            (1, "error", "Worker (pid:101) exited with code 1."),
            (0, "debug", "Worker (pid:101) exited with code 0."),
        ],
    )
    def test_the_log_says_how_it_died(self, status: int, level: str, text: str) -> None:
        assert texts(running().feel(ChildExited(1, status)), level) == [text]

    def test_a_boot_failure_later_does_not_end_the_server(self) -> None:
        it = running()
        it.feel(ChildExited(1, -9))
        it.now += 1
        commands = it.feel(ChildExited(3, 3))
        assert exits(commands) == []
        assert it.state.stopping is None

    def test_the_second_early_death_waits_and_each_further_one_twice_as_long(self) -> None:
        it = running(workers=1)
        delays = []
        nr = 1
        for _ in range(10):
            it.now += 0.1
            it.feel(ChildExited(nr, 1))
            delay = max(0.0, it.state.backoff.until - it.now)
            delays.append(delay)
            if delay:
                assert it.state.next_deadline() == it.state.backoff.until
                assert spawned(it.wait(delay / 2)) == []
                it.wait(delay / 2)
            (nr,) = it.state.workers
            it.feel(Told(nr, Ready()))
        first, last = BACKOFF_FIRST, BACKOFF_MOST
        assert delays == [
            0,
            first,
            *(pytest.approx(min(last, first * 2**n)) for n in range(1, 9)),
        ]

    @pytest.mark.parametrize(("pause", "delay"), [(FORGET, BACKOFF_FIRST), (FORGET + 1, 0.0)])
    def test_an_early_death_is_forgotten_after_a_while(self, pause: float, delay: float) -> None:
        it = running(workers=1)
        it.now += 1
        assert spawned(it.feel(ChildExited(1, -9))) == [2]
        it.feel(Told(2, Ready()))
        it.now += pause - 1
        assert spawned(it.feel(ChildExited(2, -9))) == [3], "it served for long: this is no early death"
        it.feel(Told(3, Ready()))
        it.now += 1
        it.feel(ChildExited(3, -9))
        assert it.state.backoff.until - it.now == delay

    def test_siblings_that_die_together_count_once(self) -> None:
        it = running(workers=4)
        it.now += 1
        for nr in (1, 2, 3, 4):
            assert len(spawned(it.feel(ChildExited(nr, -9)))) == 1

    def test_a_worker_that_served_long_did_not_die_of_its_start(self) -> None:
        it = running(workers=1)
        for nr in range(1, 20):
            it.now += STEADY
            assert spawned(it.feel(ChildExited(nr, -9))) == [nr + 1]
            it.feel(Told(nr + 1, Ready()))

    def test_news_of_a_worker_that_is_gone_means_nothing(self) -> None:
        it = running()
        it.feel(ChildExited(1, 0))
        before = it.state
        for event in (Told(1, Ready()), Told(1, BootFailed(3, "late")), ChildExited(1, 0)):
            assert it.feel(event) == []
        assert it.state == before


class TestGracefulStop:
    def test_listeners_close_and_every_worker_is_told(self) -> None:
        commands = running().signal("TERM")
        assert commands[0] == Log("info", "Handling signal: term")
        assert CloseListeners() in commands
        assert sends(commands) == [(1, "SIGTERM"), (2, "SIGTERM")]

    def test_it_ends_when_the_last_worker_is_gone(self) -> None:
        it = running()
        it.signal("TERM")
        assert exits(it.feel(ChildExited(2, 0))) == []
        end = it.feel(ChildExited(1, 0))
        assert end[-2:] == [Log("info", "Shutting down: Master"), Exit(0)]

    def test_nobody_is_replaced_any_more(self) -> None:
        it = running()
        it.signal("TERM")
        assert spawned(it.feel(ChildExited(1, -9))) == []

    def test_workers_that_do_not_leave_are_told_to_quit_and_then_killed(self) -> None:
        it = running(workers=1, graceful=5)
        it.signal("TERM")
        assert it.state.next_deadline() == it.now + 5
        assert sends(it.wait(4.9)) == []
        late = it.wait(0.1)
        assert sends(late) == [(1, "SIGQUIT")]
        assert texts(late) == ["Worker (pid:101) is still running after 5 seconds (graceful_timeout)."]
        assert sends(it.wait(QUIT_PATIENCE)) == [(1, "SIGKILL")]
        assert it.state.next_deadline() == NEVER
        assert texts(it.feel(ChildExited(1, -9)))[0] == ("Worker (pid:101) was sent SIGKILL: it did not exit in time.")

    def test_a_second_term_changes_nothing(self) -> None:
        it = running()
        it.signal("TERM")
        before = it.state
        assert sends(it.signal("TERM")) == []
        assert it.state == before


class TestQuickStop:
    @pytest.mark.parametrize("name", ["INT", "QUIT"])
    def test_workers_are_told_to_quit_and_soon_killed(self, name: str) -> None:
        it = running(workers=1)
        assert sends(it.signal(name)) == [(1, "SIGQUIT")]
        assert sends(it.wait(QUIT_PATIENCE)) == [(1, "SIGKILL")]
        assert exits(it.feel(ChildExited(1, -9))) == [0]

    def test_it_may_follow_a_graceful_one(self) -> None:
        it = running(workers=1)
        it.signal("TERM")
        commands = it.signal("INT")
        assert "Quick shutdown requested" in texts(commands)
        assert sends(commands) == [(1, "SIGQUIT")]
        assert CloseListeners() not in commands

    def test_asked_for_twice_it_kills(self) -> None:
        it = running(workers=1)
        it.signal("INT")
        assert sends(it.signal("INT")) == [(1, "SIGKILL")]

    def test_a_term_does_not_slow_it_down(self) -> None:
        it = running(workers=1)
        it.signal("QUIT")
        assert sends(it.signal("TERM")) == []


class TestMoreAndFewer:
    def test_ttin_adds_one(self) -> None:
        assert spawned(running(workers=1).signal("TTIN")) == [2]

    def test_ttou_sends_the_oldest_away(self) -> None:
        it = running(workers=3)
        assert sends(it.signal("TTOU")) == [(1, "SIGTERM")]
        assert spawned(it.feel(ChildExited(1, 0))) == []

    def test_workers_that_boot_go_before_those_that_serve(self) -> None:
        it = running(workers=2)
        for _ in range(3):
            it.signal("TTIN")
        assert [sends(it.signal("TTOU")) for _ in range(3)] == [[(nr, "SIGTERM")] for nr in (5, 4, 3)]
        assert it.state.serving(1) == 2

    def test_of_those_that_boot_the_one_that_may_serve_next_stays(self) -> None:
        it = running(workers=1, boot_timeout=5)
        it.feel(Resized(4))
        it.feel(Told(3, BootFailed(3, "no such module")))
        assert sends(it.feel(Resized(3))) == [(3, "SIGTERM")], "one that has failed will never serve"
        assert sends(it.feel(Resized(2))) == [(4, "SIGTERM")]
        it.feel(Told(2, Ready()))
        assert sends(it.feel(Resized(1))) == [(1, "SIGTERM")], "both serve: the oldest goes, as under gunicorn"

    def test_a_worker_that_cannot_boot_leaves_no_second_one_to_go(self) -> None:
        it = running(workers=2)
        it.feel(Resized(4))
        it.feel(Told(4, BootFailed(3, "no such module")))
        assert sends(it.feel(Resized(3))) == [(4, "SIGTERM")]
        assert sends(it.wait(0.1)) == []
        assert sends(it.feel(ChildExited(4, 3))) == []
        assert len(it.state.of(1)) == 3

    def test_a_start_that_lost_a_worker_is_not_short_of_another(self) -> None:
        it = arbiter(workers=3)
        it.feel(Start())
        it.feel(Told(1, BootFailed(3, "no such module")))
        it.feel(ChildExited(1, 3))
        assert sends(it.signal("TTOU")) == [], "two are left, and two are wanted"

    def test_one_that_was_due_to_be_replaced_goes_before_others_that_serve(self) -> None:
        it = running(workers=8)
        for nr in (5, 6, 7):
            it.feel(Told(nr, Retire("it has had its requests")))  # two are at once, the third waits for its turn
        assert sends(it.signal("TTOU")) == [(10, "SIGTERM"), (5, "SIGTERM")], "and not one of the six others"
        for nr in [worker.nr for worker in it.state.of(1) if isinstance(worker.phase, Booting)]:
            it.feel(Told(nr, Ready()))
        assert (7, "SIGTERM") in sends(it.signal("TTOU"))

    def test_during_a_reload_the_new_workers_that_serve_stay(self) -> None:
        it = running(workers=3)
        it.hang_up()
        it.feel(Told(4, Ready()))
        assert sends(it.signal("TTOU")) == [(6, "SIGTERM")]
        assert sends(it.feel(Told(5, Ready()))) == [(nr, "SIGTERM") for nr in (1, 2, 3)]

    def test_ttou_stops_at_one(self) -> None:
        it = running(workers=1)
        assert sends(it.signal("TTOU")) == []
        assert it.state.target == 1

    def test_ttin_stops_where_the_scoreboard_ends(self) -> None:
        it = running(workers=2, most=2)
        commands = it.signal("TTIN")
        assert spawned(commands) == []
        assert texts(commands, "warning") == ["Cannot run more than 2 workers."]

    def test_a_hook_may_ask_for_any_number_there_can_be(self) -> None:
        it = running(workers=2, most=3)
        commands = it.feel(Resized(9))
        assert texts(commands, "warning") == ["Cannot run more than 3 workers."]
        assert WorkersChanged(3, 2) in commands
        assert spawned(commands) == [3]
        assert it.feel(Resized(3)) == []
        assert sends(it.feel(Resized(0))) == [(3, "SIGTERM"), (1, "SIGTERM"), (2, "SIGTERM")]

    def test_a_worker_that_is_leaving_and_will_not_is_killed_in_the_end(self) -> None:
        it = running(workers=2, graceful=5)
        it.signal("TTOU")
        assert sends(it.wait(5)) == [(1, "SIGQUIT")]
        assert sends(it.wait(QUIT_PATIENCE)) == [(1, "SIGKILL")]


class TestOtherSignals:
    def test_usr1_reopens_logs_here_and_in_workers_that_are_ready(self) -> None:
        it = running(workers=2)
        it.feel(ChildExited(2, -9))  # its successor boots, and the signal would kill it
        assert it.signal("USR1")[1:] == [ReopenLogs(), Send(1, Signals.SIGUSR1)]

    def test_a_worker_that_booted_meanwhile_reopens_them_when_it_is_ready(self) -> None:
        it = running(workers=2)
        it.feel(ChildExited(2, -9))
        it.signal("USR1")
        assert sends(it.feel(Told(3, Ready()))) == [(3, "SIGUSR1")]
        it.now += 1
        it.feel(ChildExited(3, -9))
        assert sends(it.feel(Told(4, Ready()))) == []

    def test_usr2_starts_one_successor(self) -> None:
        it = running()
        assert StartSuccessor() in it.signal("USR2")
        it.feel(Upgraded(4711))
        again = it.signal("USR2")
        assert StartSuccessor() not in again
        assert texts(again, "warning") == ["USR2 signal ignored. Child exists."]
        it.feel(Upgraded(None))
        assert StartSuccessor() in it.signal("USR2")

    def test_winch_is_for_daemons(self) -> None:
        assert texts(running().signal("WINCH"), "debug") == ["SIGWINCH ignored. Not daemonized"]
        it = running(daemon=True)
        told = it.signal("WINCH")
        assert sends(told) == [(1, "SIGTERM"), (2, "SIGTERM")]
        # What waits there is theirs: no other worker serves it.
        assert [command.replaced for command in told if isinstance(command, Order)] == [False, False]
        assert spawned(it.feel(ChildExited(1, 0))) == []

    def test_the_number_of_workers_is_told(self) -> None:
        it = running(workers=1)
        assert WorkersChanged(2, 1) in it.signal("TTIN")
        assert WorkersChanged(1, 2) in it.signal("TTOU")
        assert WorkersChanged(1, 1) not in it.signal("TTOU")

    def test_chld_is_for_debugging(self) -> None:
        assert running().signal("CHLD") == [Log("debug", "Handling signal: chld")]
