"""Workers that still serve and have to be replaced, and workers that do not come up."""

from __future__ import annotations

from tricorn.arbiter.policy.booting import ANSWER
from tricorn.arbiter.policy.commands import AskForStack, Order
from tricorn.arbiter.policy.events import ChildExited, Spawned, Start, Told, WorkerSeen
from tricorn.arbiter.policy.leaving import ABORT_PATIENCE
from tricorn.arbiter.policy.retiring import CONFIRMED, SERVER
from tricorn.record import replace
from tricorn.workers.messages import Ready, Retire, StackLines, Stuck

from tests.unit.arbiter.policy.support import Arbiter, arbiter, exits, running, sends, spawned, texts

MEGABYTE = 1 << 20


def stuck(nr: int = 1, *below: str) -> Told:
    return Told(nr, Stuck("timeout", 0, 30.2, "GET /slow", ('File "app.py", line 3 in slow', *below)))


def seen(
    nr: int, rss: int | None = None, in_flight: int = 0, queued: int = 0, silence: float = 0, heartbeat: int = 0
) -> WorkerSeen:
    return WorkerSeen(nr, rss, in_flight, queued, silence, heartbeat)


class TestWishes:
    def test_the_successor_serves_before_it_leaves(self) -> None:
        it = running(workers=1)
        commands = it.feel(Told(1, Retire("Autorestarting worker after current request.")))
        assert spawned(commands) == [2]
        assert sends(commands) == []
        assert sends(it.feel(Told(2, Ready()))) == [(1, "SIGTERM")]
        assert spawned(it.feel(ChildExited(1, 0))) == []

    def test_one_that_has_said_so_and_ends_by_itself_is_no_early_death(self) -> None:
        it = running(workers=2)
        for nr in (1, 2):
            it.feel(Told(nr, Retire("max_requests")))
        assert spawned(it.feel(ChildExited(2, 0))) == [4], "its turn had not come"
        assert spawned(it.feel(ChildExited(1, 0))) == []
        assert it.state.backoff.streak == 0

    def test_one_that_is_told_to_leave_already_is_not_restarted(self) -> None:
        it = running(workers=2)
        it.feel(Told(1, Retire("max_requests")))
        it.feel(Told(3, Ready()))
        assert texts(it.feel(Told(1, Retire("it has set alive to False")))) == []

    def test_a_quarter_of_the_workers_at_once(self) -> None:
        it = running(workers=8, most=40)
        for nr in range(1, 9):
            it.feel(Told(nr, Retire("max_requests")))
        assert sorted(it.state.workers) == [*range(1, 9), 9, 10]
        assert sends(it.feel(Told(9, Ready()))) == [(1, "SIGTERM")]
        # The place is free when it is gone, and not when it was told.
        assert spawned(it.feel(Told(10, Ready()))) == []
        assert spawned(it.feel(ChildExited(1, 0))) == [11]

    def test_a_stuck_one_leaves_before_one_that_only_wishes_to(self) -> None:
        it = running(workers=2)
        assert spawned(it.feel(Told(1, Retire("max_requests")))) == [3]
        assert spawned(it.feel(stuck(2))) == [4]
        assert sends(it.feel(Told(3, Ready()))) == [(2, "SIGTERM")]
        assert sends(it.feel(Told(4, Ready()))) == [(1, "SIGTERM")]

    def test_retiring_one_of_few_workers(self) -> None:
        it = running(workers=2)
        it.feel(Told(1, Retire("max_requests")))
        assert spawned(it.feel(Told(2, Retire("max_requests")))) == []

    def test_a_reload_replaces_them_anyway(self) -> None:
        it = running(workers=1)
        it.hang_up()
        assert spawned(it.feel(Told(1, Retire("max_requests")))) == []

    def test_a_successor_that_dies_is_tried_again(self) -> None:
        it = running(workers=1)
        it.feel(Told(1, Retire("max_requests")))
        assert spawned(it.feel(ChildExited(2, 1))) == [3]
        assert sends(it.feel(Told(3, Ready()))) == [(1, "SIGTERM")]


class TestLifetime:
    def test_it_ends_with_the_workers_own_jitter(self) -> None:
        it = arbiter(workers=1, max_worker_lifetime=100, max_worker_lifetime_jitter=50)
        it.feel(Start())
        it.feel(Spawned(1, 101, jitter=0.5))
        it.feel(Told(1, Ready()))
        assert it.state.next_deadline() == it.now + 125
        assert spawned(it.wait(124)) == []
        assert spawned(it.wait(1)) == [2]
        assert texts(it.feel(Told(2, Ready())), "info") == [
            "Replacing worker (pid:101): it has served for 125 seconds."
        ]


class TestMemory:
    def test_too_much_of_it_is_a_wish(self) -> None:
        it = running(workers=1, max_worker_memory=100 * MEGABYTE)
        assert spawned(it.feel(seen(1, rss=100 * MEGABYTE))) == []
        assert spawned(it.feel(seen(1, rss=130 * MEGABYTE))) == [2]
        (text,) = texts(it.feel(Told(2, Ready())), "info")
        assert text == ("Replacing worker (pid:101): it uses 130 MiB of memory, more than 100 MiB (max_worker_memory).")

    def test_without_a_limit_nobody_minds(self) -> None:
        assert spawned(running(workers=1).feel(seen(1, rss=1 << 40))) == []


class TestStuck:
    def test_the_log_has_the_request_and_the_stack_and_a_successor_starts(self) -> None:
        it = running(workers=1, timeout=30)
        commands = it.feel(stuck())
        assert texts(commands) == [
            "WORKER TIMEOUT (pid:101): GET /slow has been running for 30.2 seconds without progress (timeout). "
            'Python stack, most recent call first:\n  File "app.py", line 3 in slow'
        ]
        assert spawned(commands) == [2]
        assert sends(commands) == []

    def test_frames_below_the_application_are_left_out(self) -> None:
        it = running(workers=1, timeout=30)
        below = f'File "{SERVER}/gthread.py", line 40 in serve'
        assert texts(it.feel(stuck(1, below, 'File "threading.py"')), "critical")[0].endswith('app.py", line 3 in slow')

    def test_it_finishes_its_other_requests_before_it_is_aborted(self) -> None:
        it = running(workers=1, timeout=30)
        it.feel(stuck())
        told = it.feel(Told(2, Ready()))
        assert Order((1,), drain=True, yields=True, replaced=True) in told
        assert sends(told) == [(1, "SIGTERM")]
        assert sends(it.feel(seen(1, in_flight=2))) == []
        assert sends(it.feel(seen(1, in_flight=1, queued=1))) == []
        assert sends(it.feel(seen(1, in_flight=1))) == [(1, "SIGABRT")]
        assert sends(it.wait(ABORT_PATIENCE)) == [(1, "SIGKILL")]

    def test_each_of_its_requests_that_is_stuck_counts(self) -> None:
        it = running(workers=1, timeout=30)
        for number in (1, 2, 3):
            it.feel(stuck())
            assert it.state.workers[1].stuck == number
        it.feel(Told(2, Ready()))
        assert sends(it.feel(seen(1, in_flight=4))) == []
        assert sends(it.feel(seen(1, in_flight=3))) == [(1, "SIGABRT")]

    def test_patience_ends_with_graceful_timeout(self) -> None:
        it = running(workers=1, timeout=30, graceful=5)
        it.feel(stuck())
        it.feel(Told(2, Ready()))
        assert sends(it.wait(5)) == [(1, "SIGABRT")]

    def test_all_workers_may_be_stuck_at_once(self) -> None:
        it = running(workers=3, timeout=30)
        assert spawned(it.feel(stuck(1)) + it.feel(stuck(2)) + it.feel(stuck(3))) == [4, 5, 6]

    def test_a_late_request_alone_costs_no_worker(self) -> None:
        it = running(workers=1, timeout=30)
        commands = it.feel(Told(1, Stuck("request_timeout", 0, 5.0, "GET /slow", ())))
        assert len(texts(commands, "error")) == 1
        assert spawned(commands) == []

    def test_a_process_that_does_not_run_at_all(self) -> None:
        it = running(workers=1, timeout=30)
        assert spawned(it.feel(seen(1, in_flight=1, silence=29))) == []
        assert spawned(it.feel(seen(1, in_flight=1, silence=31))) == [], "one look proves nothing"
        it.wait(CONFIRMED)
        commands = it.feel(seen(1, in_flight=1, silence=32))
        assert texts(commands, "critical") == [
            "WORKER TIMEOUT (pid:101): no sign of life for 32 seconds while busy; stopping it."
        ]
        assert spawned(commands) == [2]
        assert not it.state.has_silent()

    def test_one_that_goes_on_after_a_pause_of_the_machine_is_left_alone(self) -> None:
        """The arbiter runs first, and sees a heartbeat from before the pause."""
        it = running(workers=1, timeout=4)
        for pause in (8, 3600):
            assert it.feel(seen(1, in_flight=1, silence=pause, heartbeat=pause)) == []
            assert it.state.has_silent(), "it is looked at again soon"
            it.wait(CONFIRMED - 0.1)
            assert it.feel(seen(1, in_flight=1, silence=0.1, heartbeat=pause + 1)) == []
            assert not it.state.has_silent()
            it.wait(60)

    def test_a_second_pause_begins_the_doubt_anew(self) -> None:
        it = running(workers=1, timeout=4)
        it.feel(seen(1, in_flight=1, silence=8, heartbeat=1))
        it.wait(CONFIRMED)
        assert it.feel(seen(1, in_flight=1, silence=8, heartbeat=2)) == [], "it beat in between"
        it.wait(CONFIRMED)
        assert texts(it.feel(seen(1, in_flight=1, silence=9, heartbeat=2)), "critical")

    def test_a_doubt_ends_with_the_limit(self) -> None:
        it = running(workers=1, timeout=4)
        it.feel(seen(1, in_flight=1, silence=8))
        it.hang_up(policy=replace(it.state.policy, timeout=0))
        assert it.state.is_watched()
        it.feel(seen(1, in_flight=1, silence=8))
        assert not it.state.has_silent()
        assert not it.state.is_watched()

    def test_a_worker_that_is_leaving_and_gets_stuck(self) -> None:
        it = running(workers=2, timeout=30)
        it.signal("TTOU")
        assert spawned(it.feel(stuck(1))) == []
        assert sends(it.feel(seen(1, in_flight=1))) == [(1, "SIGABRT")]


def booting(**policy: float) -> Arbiter:
    it = arbiter(workers=1, **policy)
    it.feel(Start())
    return it


class TestBootTimeout:
    def test_it_is_asked_where_it_is_and_killed(self) -> None:
        it = booting(boot_timeout=60)
        assert it.state.next_deadline() == it.now + 60
        assert AskForStack(1) in it.wait(60)
        it.feel(Told(1, StackLines(('File "app.py", line 1 in <module>',))))
        late = it.wait(ANSWER)
        assert texts(late, "critical") == [
            "Worker (pid:101) did not boot in time: it was not ready within 60 seconds (boot_timeout); "
            'it was at (most recent call first):\n  File "app.py", line 1 in <module>'
        ]
        assert sends(late) == [(1, "SIGKILL")]

    def test_at_the_first_start_it_ends_the_server(self) -> None:
        it = booting(boot_timeout=60)
        it.wait(60)
        it.wait(ANSWER)
        end = it.feel(ChildExited(1, -9))
        assert exits(end) == [3]
        assert texts(end, "error")[-1] == (
            "Reason: Worker failed to boot. (it was not ready within 60 seconds (boot_timeout))"
        )

    def test_on_a_reload_it_is_rolled_back(self) -> None:
        it = running(workers=1, boot_timeout=60)
        it.hang_up()
        it.wait(60)
        it.wait(ANSWER)
        assert "boot_timeout" in texts(it.feel(ChildExited(2, -9)), "error")[-1]
        assert it.state.generation == 1

    def test_one_that_makes_it_in_time_is_left_alone(self) -> None:
        it = booting(boot_timeout=60)
        it.wait(59)
        it.feel(Told(1, Ready()))
        assert sends(it.wait(60)) == []
