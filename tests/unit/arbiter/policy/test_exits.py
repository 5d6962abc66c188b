"""Why a worker has ended, as the metrics have it."""

from __future__ import annotations

from signal import SIGABRT, SIGKILL, SIGQUIT, SIGSEGV, SIGTERM, Signals

import pytest
from tricorn.arbiter.policy.events import ChildExited, Event, KillRequested, Told, WorkerSeen
from tricorn.arbiter.policy.exits import cause_of
from tricorn.arbiter.policy.worker import Cause
from tricorn.workers.messages import BootFailed, Ready, Retire, Stuck

from tests.unit.arbiter.policy.support import Arbiter, running, spawned


def ends(it: Arbiter, nr: int, status: int) -> Cause:
    cause = cause_of(it.state.workers[nr], status)
    it.feel(ChildExited(nr, status, ()))
    return cause


def replaced(it: Arbiter, event: Event) -> None:
    """The event, and a successor that serves."""
    for nr in spawned(it.feel(event)):
        it.feel(Told(nr, Ready()))


def test_one_that_never_served_did_not_boot() -> None:
    it = running(2)
    (new,) = spawned(it.signal("TTIN"))
    it.feel(Told(new, BootFailed(3, "no module")))
    assert ends(it, new, 3) == "boot"


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (-SIGKILL, "killed"),
        (-SIGSEGV, "crash"),
        (-SIGABRT, "crash"),
        (1, "crash"),
        (0, "asked"),
        (-SIGTERM, "asked"),
    ],
)
def test_one_that_was_not_told_to_go(status: int, cause: Cause) -> None:
    assert ends(running(2), 1, status) == cause


def test_one_that_has_served_enough() -> None:
    it = running(2)
    replaced(it, Told(1, Retire("max_requests")))
    assert ends(it, 1, 0) == "max_requests"


def test_one_that_uses_too_much_memory() -> None:
    it = running(2, max_worker_memory=100)
    replaced(it, WorkerSeen(1, silence=0, heartbeat=1, in_flight=0, queued=0, rss=200))
    assert ends(it, 1, 0) == "memory"


def test_worker_at_its_max_lifetime_ends() -> None:
    it = running(1, max_worker_lifetime=10)
    (successor,) = spawned(it.wait(11))
    it.feel(Told(successor, Ready()))
    assert ends(it, 1, 0) == "lifetime"


def test_one_that_is_stuck_is_late_however_it_is_stopped() -> None:
    for status in (0, -SIGABRT, -SIGKILL):
        it = running(1)
        replaced(it, Told(1, Stuck("timeout", 0, 31.0, "GET /", ())))
        it.wait(31)
        if status == -SIGKILL:
            it.wait(2)
        assert ends(it, 1, status) == "timeout"


def test_a_generation_that_is_replaced_and_one_that_is_given_up() -> None:
    it = running(2)
    for nr in spawned(it.hang_up()):
        it.feel(Told(nr, Ready()))
    assert [ends(it, nr, 0) for nr in (1, 2)] == ["reload", "reload"]
    first, second = spawned(it.hang_up(3))
    it.feel(Told(first, Ready()))
    assert ends(it, second, -SIGKILL) == "boot"
    assert ends(it, first, 0) == "reload"


def test_fewer_are_wanted() -> None:
    it = running(2)
    it.signal("TTOU")
    (leaving,) = [worker.nr for worker in it.state.workers.values() if not worker.counts]
    assert ends(it, leaving, 0) == "scale"


def test_the_program_has_told_it_to_go() -> None:
    it = running(2)
    it.feel(KillRequested(101, Signals.SIGQUIT))
    assert ends(it, 1, -SIGQUIT) == "asked"


@pytest.mark.parametrize(("name", "status"), [("TERM", 0), ("TERM", 3), ("TERM", -SIGKILL), ("QUIT", -SIGQUIT)])
def test_the_server_stops(name: str, status: int) -> None:
    it = running(2)
    it.signal(name)
    if status == -SIGKILL:
        it.wait(31)
        it.wait(3)
    assert ends(it, 1, status) == "shutdown"


def test_one_that_is_killed_or_dies_while_it_leaves_did_not_leave_as_it_was_told() -> None:
    it = running(2)
    it.signal("TERM")
    assert ends(it, 1, -SIGSEGV) == "crash"
    assert ends(it, 2, -SIGKILL) == "killed"
