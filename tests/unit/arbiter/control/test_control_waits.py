"""What `reload --wait` and `drain --wait` are answered, and when: the policy and the waits, in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tricorn.arbiter.control.waits import Waits
from tricorn.arbiter.policy.commands import Answer, Command, Refuse, Reload
from tricorn.arbiter.policy.control_requests import Drain, ReloadAll
from tricorn.arbiter.policy.events import ChildExited, ControlRequest, Event, ReloadFailed, Requested, Told
from tricorn.workers.messages import BootFailed, Ready

from tests.unit.arbiter.policy.support import Arbiter, running


@dataclass
class Waiting(Arbiter):
    waits: Waits = field(default_factory=Waits)
    answered: dict[int, Mapping[str, object] | str] = field(default_factory=dict)

    def feel(self, event: Event) -> list[Command]:
        before, self.answered = self.state, {}
        commands = super().feel(event)
        for answer in self.waits.after(before, event, self.state, commands):
            match answer:
                case Answer(ticket, result):
                    self.answered[ticket] = result
                case Refuse(ticket, _, sentence):
                    self.answered[ticket] = sentence
        return commands


def waiting(workers: int = 2) -> Waiting:
    return Waiting(running(workers).state)


def ask(it: Waiting, request: ControlRequest, ticket: int = 1) -> None:
    it.feel(Requested(ticket, request))
    assert it.answered == {}, "it waits"


class TestReload:
    def test_one_that_waits_is_answered_when_the_new_generation_serves(self) -> None:
        it = waiting()
        ask(it, ReloadAll(wait=True))
        it.reload(2, 2)
        assert it.answered == {}
        it.feel(Told(3, Ready()))
        assert it.answered == {}
        it.feel(Told(4, Ready()))
        assert it.answered == {1: {"generation": 2, "workers": 2}}
        assert len(it.waits) == 0

    def test_a_configuration_that_cannot_be_used_is_the_reason(self) -> None:
        it = waiting()
        ask(it, ReloadAll(wait=True))
        it.feel(ReloadFailed("workers is no number"))
        assert it.answered == {1: "workers is no number"}

    def test_a_worker_that_does_not_boot_is_the_reason(self) -> None:
        it = waiting()
        ask(it, ReloadAll(wait=True))
        it.reload(2, 2)
        it.feel(Told(3, BootFailed(3, "no module named shop")))
        it.feel(ChildExited(3, 3))
        assert it.answered == {1: "no module named shop"}

    def test_one_asked_for_during_another_waits_for_the_one_after_it(self) -> None:
        it = waiting(workers=1)
        ask(it, ReloadAll(wait=True), 1)
        ask(it, ReloadAll(wait=True), 2)
        it.reload(2, 1)
        commands = it.feel(Told(2, Ready()))
        assert Reload() in commands, "what is asked for meanwhile happens afterwards"
        assert it.answered == {1: {"generation": 2, "workers": 1}}
        it.reload(3, 1)
        it.feel(Told(3, Ready()))
        assert it.answered == {2: {"generation": 3, "workers": 1}}

    def test_a_client_that_has_left_is_not_answered(self) -> None:
        it = waiting()
        ask(it, ReloadAll(wait=True), 7)
        it.waits.forget((7, 8))
        it.feel(ReloadFailed("no"))
        assert it.answered == {}

    def test_a_server_that_ends_answers_those_that_wait(self) -> None:
        it = waiting()
        ask(it, ReloadAll(wait=True))
        it.signal("TERM")
        assert it.answered == {1: "The server was told to stop."}
        assert len(it.waits) == 0


class TestDrain:
    def test_one_that_waits_is_answered_when_the_worker_is_gone(self) -> None:
        it = waiting(workers=1)
        ask(it, Drain(1, wait=True))
        it.feel(Told(2, Ready()))
        assert it.answered == {}
        it.feel(ChildExited(1, 0))
        assert it.answered == {1: {"status": "drained", "pid": 101, "exit_status": 0}}
        assert len(it.waits) == 0

    def test_one_that_is_on_its_way_can_be_waited_for(self) -> None:
        it = waiting(workers=1)
        ask(it, Drain(1))
        ask(it, Drain(1, wait=True), 2)
        it.feel(ChildExited(1, 0))
        assert it.answered == {2: {"status": "drained", "pid": 101, "exit_status": 0}}

    def test_one_that_had_to_be_killed_is_not_drained(self) -> None:
        it = waiting(workers=1)
        ask(it, Drain(1, wait=True))
        it.feel(Told(2, Ready()))
        it.feel(ChildExited(1, -9))
        assert it.answered == {1: {"status": "ended", "pid": 101, "exit_status": -9}}

    def test_a_worker_that_ends_a_trial_answers_both(self) -> None:
        it = waiting(workers=1)
        ask(it, Drain(1, wait=True), 1)
        it.feel(Told(2, Ready()))
        it.feel(ChildExited(1, 0))
        ask(it, ReloadAll(wait=True), 2)
        it.reload(2, 1)
        it.feel(ChildExited(3, 3))
        assert it.answered == {2: "a new worker ended at once"}

    def test_what_is_refused_does_not_wait(self) -> None:
        it = waiting(workers=1)
        ask(it, Drain(9, wait=True))
        assert len(it.waits) == 0
