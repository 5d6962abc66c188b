"""Questions to workers: who is asked, when the answers are read, and what an operator is told."""

from __future__ import annotations

import json
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from tricorn.arbiter.control.inquiries import (
    ENDED,
    GONE,
    HEARD,
    NO_LIMIT,
    OVER,
    TOLD,
    WRITTEN,
    Cancel,
    Inquiries,
    Inquiry,
    Profile,
    SetLogLevel,
    Stacks,
    tell_level,
)
from tricorn.arbiter.policy.arguments import Refusal
from tricorn.arbiter.policy.control_requests import Scale
from tricorn.arbiter.policy.events import Requested
from tricorn.arbiter.policy.state import NEVER
from tricorn.log import Logger

from tests.unit.arbiter.policy.support import running

Json = dict[str, Any]


class Handle:
    """A worker with the slot of its number, that runs the call 3, which began at 77."""

    def __init__(self, nr: int) -> None:
        self.nr, self.pid, self.kind = nr, 100 + nr, "sync"
        spec = SimpleNamespace(config=SimpleNamespace(request_timeout=60))
        self.worker = SimpleNamespace(slot=nr, spec=spec)
        self.asked: list[Any] = []
        self.profile = b""
        self.cancelled: str | None = "told"

    def requests(self) -> list[Any]:
        return [SimpleNamespace(slot=3, started=77, age=1.0, text="GET /")]

    def ask_for_stacks(self) -> None:
        self.asked.append("stacks")

    def order_profile(self, seconds: float, rate: int, most: int) -> None:
        self.asked.append((seconds, rate))

    def order_cancel(self, place: int, start: int) -> None:
        self.asked.append((place, start))

    def order_log_level(self, level: int) -> None:
        self.asked.append(level)

    def take_cancelled(self) -> str | None:
        return self.cancelled

    def told_profile(self) -> bytes:
        return self.profile

    def told_stacks(self, most: int) -> str:
        return ""

    def told_waiting(self) -> bytes:
        return b""


class Server:
    """An arbiter in virtual time, with handles for its workers. Its clients are the tickets."""

    def __init__(self, workers: int = 2) -> None:
        self.policy = running(workers=workers)
        self.now = 1000.0
        self.handles: dict[int, Any] = {nr: Handle(nr) for nr in range(1, workers + 1)}
        self.answers: dict[int, Json] = {}
        self.levels: list[str] = []
        self.log_level: str | None = None
        config = SimpleNamespace(doctor="on", profile_after=1)
        self.parts: Any = SimpleNamespace(
            generation=SimpleNamespace(config=config),
            generations=SimpleNamespace(change_log_level=self.levels.append, log_level=lambda number: self.log_level),
            processes=SimpleNamespace(
                find=lambda nrs: [self.handles[nr] for nr in nrs if nr in self.handles],
                guard=lambda what: nullcontext(),
            ),
        )
        self.inquiries = Inquiries(self.parts, self.answers.__setitem__)

    def ask(self, inquiry: Inquiry, ticket: int = 1) -> None:
        nrs = self.inquiries.admit(inquiry, self.policy.state, self.now)
        self.inquiries.begin(inquiry, nrs, ticket, self.now)

    def refusal(self, inquiry: Inquiry) -> Refusal:
        with pytest.raises(Refusal) as caught:
            self.ask(inquiry)
        return caught.value

    def wait(self, seconds: float) -> dict[int, Json]:
        """What is answered by then."""
        self.answers.clear()
        self.now += seconds
        if self.now >= self.inquiries.due(self.policy.state, self.now):
            assert self.inquiries.run(self.policy.state, self.now) == ()
        return dict(self.answers)


class TestStacks:
    def test_workers_are_asked_and_read_a_moment_later(self) -> None:
        it = Server()
        it.ask(Stacks((1, 2)), 5)
        assert [handle.asked for handle in it.handles.values()] == [["stacks"], ["stacks"]]
        assert it.inquiries.due(it.policy.state, it.now) == it.now + WRITTEN
        assert it.wait(WRITTEN / 2) == {}
        (answer,) = it.wait(WRITTEN).values()
        assert [row["slot"] for row in answer["result"]["workers"]] == [1, 2]
        assert it.inquiries.due(it.policy.state, it.now) == NEVER

    def test_those_that_were_asked_later_are_told_later(self) -> None:
        it = Server()
        it.ask(Stacks((1,)), 5)
        it.wait(WRITTEN / 2)
        it.ask(Stacks((2,)), 6)
        assert it.wait(WRITTEN / 2).keys() == {5}
        assert it.wait(WRITTEN / 2).keys() == {6}
        assert it.wait(WRITTEN) == {}

    def test_one_that_boots_is_not_asked_since_the_signal_would_end_it(self) -> None:
        it = Server(workers=1)
        it.policy.feel(Requested(9, Scale(2)))
        it.handles[2] = Handle(2)
        it.ask(Stacks((1, 2)))
        assert it.handles[2].asked == []
        assert str(it.refusal(Stacks((2,)))) == "No such worker is ready yet."

    def test_a_server_that_ends_tells_too(self) -> None:
        it = Server(workers=1)
        it.policy.signal("TERM")
        it.ask(Stacks((1,)))
        assert it.wait(WRITTEN).keys() == {1}

    def test_there_is_nothing_to_wait_for_when_all_that_were_asked_have_ended(self) -> None:
        it = Server()
        it.ask(Stacks((1, 2)))
        del it.handles[1]
        assert it.wait(0.0) == {}
        del it.handles[2]
        assert it.wait(0.0) == {1: {"ok": True, "result": {"workers": []}}}


class TestProfile:
    def test_workers_are_ordered_and_read_when_the_time_is_over(self) -> None:
        it = Server()
        it.ask(Profile((1, 2), 10.0, 100), 5)
        assert [handle.asked for handle in it.handles.values()] == [[(10.0, 100)], [(10.0, 100)]]
        assert it.inquiries.due(it.policy.state, it.now) == it.now + 10.0 + WRITTEN
        assert it.wait(10.0) == {}
        it.handles[1].profile = json.dumps({"stacks": []}).encode()
        assert it.wait(WRITTEN)[5]["result"] == {
            "workers": [{"slot": 1, "pid": 101, "class": "sync", "profile": {"stacks": []}}],
            "missing": [2],
        }

    def test_one_profile_inquiry_at_a_time(self) -> None:
        it = Server()
        it.ask(Profile((1,), 10.0, 100), 1)
        refusal = it.refusal(Profile((2,), 1.0, 100))
        assert refusal.kind == "busy"
        assert "Try again in 10.3 seconds" in str(refusal)
        it.wait(10.0 + WRITTEN)
        it.ask(Profile((2,), 1.0, 100), 3)

    def test_a_client_that_leaves_ends_its_own(self) -> None:
        it = Server(workers=1)
        it.ask(Profile((1,), 10.0, 100), 1)
        it.inquiries.abandon([7])
        assert it.handles[1].asked == [(10.0, 100)]
        it.inquiries.abandon([1])
        assert it.handles[1].asked == [(10.0, 100), (0.0, 0)]
        it.ask(Profile((1,), 1.0, 100), 2)

    def test_one_that_boots_has_no_sampler(self) -> None:
        it = Server(workers=1)
        it.policy.feel(Requested(9, Scale(2)))
        assert str(it.refusal(Profile((2,), 1.0, 100))) == "No such worker is ready yet."
        it.ask(Profile((1, 2), 1.0, 100))

    def test_rubbish_and_a_worker_that_is_gone_are_missing(self) -> None:
        it = Server()
        it.ask(Profile((1, 2), 1.0, 100))
        it.handles[1].profile = b"{" * 5000
        del it.handles[2]
        assert it.wait(5.0)[1]["result"] == {"workers": [], "missing": [None, 1]}

    def test_without_a_sampler_it_is_refused(self) -> None:
        it = Server()
        it.parts.generation.config.doctor = "off"
        assert "no sampler" in str(it.refusal(Profile((1,), 1.0, 100)))


class TestCancel:
    def test_the_monitor_has_a_second_to_hear_of_it(self) -> None:
        it = Server()
        it.ask(Cancel((2,), 3, 77), 9)
        assert it.handles[2].asked == [(3, 77)]
        assert it.inquiries.due(it.policy.state, it.now) == it.now + HEARD
        assert it.wait(HEARD / 2) == {}
        assert it.wait(HEARD) == {9: {"ok": True, "result": {"status": "cancelled", "pid": 102, "note": TOLD}}}

    def test_a_worker_has_one_order_at_a_time(self) -> None:
        it = Server()
        it.ask(Cancel((1,), 3, 77), 1)
        assert it.refusal(Cancel((1,), 3, 77)).kind == "busy"
        it.ask(Cancel((2,), 3, 77), 3)
        assert it.wait(HEARD).keys() == {1, 3}
        it.ask(Cancel((1,), 3, 77), 4)

    def test_an_order_whose_client_has_left_is_taken_back_and_until_then_there_is_no_other(self) -> None:
        it = Server(workers=1)
        it.ask(Cancel((1,), 3, 77), 1)
        it.inquiries.abandon([1])
        assert it.refusal(Cancel((1,), 3, 77)).kind == "busy"
        taken: list[bool] = []
        it.handles[1].take_cancelled = lambda: taken.append(True)
        it.wait(HEARD)
        assert taken == [True]

    @pytest.mark.parametrize(
        ("inquiry", "limit", "sentence"),
        [
            (Cancel((9,), 3, 77), 60, GONE),
            (Cancel((1,), 3, 78), 60, ENDED),
            (Cancel((1,), 4, 77), 60, ENDED),
            (Cancel((1,), 3, 77), 0, NO_LIMIT),
        ],
    )
    def test_what_cannot_be_is_refused_at_once(self, inquiry: Cancel, limit: float, sentence: str) -> None:
        it = Server()
        it.handles[1].worker.spec.config.request_timeout = limit
        assert str(it.refusal(inquiry)) == sentence
        assert it.handles[1].asked == []

    def test_the_answer_says_what_became_of_it(self) -> None:
        for became, sentence in (("ended", ENDED), ("over", OVER), (None, "does not respond")):
            it = Server()
            it.handles[2].cancelled = became
            it.ask(Cancel((2,), 3, 77))
            answer = it.wait(HEARD)[1]
            assert (answer["ok"], answer["kind"]) == (False, "refused")
            assert sentence in answer["error"]

    def test_a_worker_that_ends_meanwhile_is_the_answer(self) -> None:
        it = Server()
        it.ask(Cancel((2,), 3, 77))
        del it.handles[2]
        assert it.wait(0.0)[1]["error"] == GONE


class TestTheLevelOfTheLog:
    def test_workers_that_serve_are_told_at_once_and_others_when_they_do(self) -> None:
        it = Server()
        it.policy.feel(Requested(9, Scale(3)))
        it.handles[3] = Handle(3)
        it.ask(SetLogLevel(level="debug"))
        assert it.levels == ["debug"]
        assert [handle.asked for handle in it.handles.values()] == [[Logger.LOG_LEVELS["debug"]]] * 2 + [[]]
        assert it.wait(0.0) == {1: {"ok": True, "result": {"level": "debug", "workers": 2}}}
        tell_level(it.parts, 3, 1)
        assert it.handles[3].asked == []
        it.log_level = "debug"
        tell_level(it.parts, 3, 1)
        assert it.handles[3].asked == [Logger.LOG_LEVELS["debug"]]


def test_an_answer_that_cannot_be_made_is_told_to_the_client() -> None:
    it = Server(workers=1)
    failed: list[str] = []

    class Guard:
        def __init__(self, what: str) -> None:
            failed.append(what)

        def __enter__(self) -> None:
            pass

        def __exit__(self, *_: object) -> bool:
            return True

    it.parts.processes.guard = Guard
    it.handles[1].told_waiting = lambda: 1 / 0
    it.ask(Stacks((1,)))
    assert it.wait(WRITTEN)[1]["kind"] == "failed"
    assert failed == ["Workers cannot be asked", "Could not answer a control request"]
