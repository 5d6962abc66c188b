"""What is counted of both generations while canaries are watched, whatever stands in the pages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tricorn.arbiter.periodic.canary_watch import EDGES, PAUSE, CanaryWatch
from tricorn.arbiter.policy.canary import Plan, Watch
from tricorn.arbiter.policy.events import CanarySeen
from tricorn.arbiter.policy.state import NEVER, State, Trial
from tricorn.arbiter.policy.worker import Booting, Serving, Worker
from tricorn.arbiter.worker_handle import WorkerHandle
from tricorn.record import replace

from tests.harness.page import begun
from tests.unit.arbiter.policy.support import quiet

START = 1000.0
WORDS = {
    "requests": 17,
    "app_errors": 26,
    "bytes_out": 28,
    "5xx": 36,
    "queue_full": 42,
    "leaving": 47,
    "late": 49,
    "lent": 468,
}
APPLICATION_TIME = 165


class Page:
    """A page as a core writes it."""

    def __init__(self) -> None:
        self.words = begun()

    def serve(self, requests: int, milliseconds: float = 11.0, **others: int) -> None:
        self.words[WORDS["requests"]] += requests
        bucket = max(index for index, edge in enumerate(EDGES) if edge <= milliseconds * 1e6)
        self.words[APPLICATION_TIME + bucket] += requests
        for name, value in others.items():
            self.words[WORDS[name]] += value


class Scene:
    """Two old workers, 1 and 2, and a canary, 3."""

    def __init__(self, judge: Any = lambda server, old, new: None, seconds: float = 60.0) -> None:
        self.pages = {nr: Page() for nr in (1, 2, 3)}
        self.handles: dict[int, Any] = {}
        for nr in self.pages:
            self.join(nr)
        self.logged: list[str] = []
        log = SimpleNamespace(exception=lambda text, *values: self.logged.append(text % values))
        generation = SimpleNamespace(config=SimpleNamespace(canary_judge=judge), log=log)
        processes = SimpleNamespace(handles=self.handles)
        self.watch = CanaryWatch(SimpleNamespace(generation=generation, processes=processes, server=None))  # type: ignore[arg-type]
        watch = Watch(Plan(1, seconds, 500), 1, since=START)
        workers = {nr: Worker(nr, 2 if nr == 3 else 1, started=900.0, phase=Serving(950.0)) for nr in self.pages}
        self.state = State(2, quiet(), workers=workers, generation=2, trial=Trial(1, 2, quiet(), watch=watch))
        self.now = START

    def join(self, nr: int) -> None:
        self.pages[nr] = page = Page() if nr not in self.pages else self.pages[nr]
        pages = SimpleNamespace(page=lambda _: page.words.cast("B"))
        self.handles[nr] = WorkerHandle(nr, None, 100 + nr, -1, pages, 0)  # type: ignore[arg-type]

    def look(self) -> CanarySeen:
        self.now = self.watch.due(self.state, self.now)
        (event,) = self.watch.run(self.state, self.now)
        return event

    def begin(self) -> None:
        assert self.watch.due(self.state, self.now) == -NEVER
        assert list(self.watch.run(self.state, self.now)) == []


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_it_looks_once_a_second_while_canaries_are_watched_and_at_no_other_time(scene: Scene) -> None:
    scene.begin()
    assert scene.watch.due(scene.state, START) == START + PAUSE
    trial = scene.state.trial
    assert trial is not None
    assert trial.watch is not None
    booting = replace(trial, watch=replace(trial.watch, since=None))
    for other in (None, replace(trial, watch=None), booting):
        assert scene.watch.due(replace(scene.state, trial=other), START) == NEVER


def test_old_workers_are_counted_from_the_begin_of_the_watch_and_canaries_from_their_own(scene: Scene) -> None:
    scene.pages[1].serve(1000, bytes_out=10, late=3)
    scene.pages[3].serve(7, late=1)
    scene.begin()
    scene.pages[1].serve(20, bytes_out=200, late=2, lent=4)
    scene.pages[2].serve(5)
    scene.pages[3].serve(3)
    look = scene.look().look
    old, new = look.old, look.new
    assert (old.workers, old.requests, old.bytes_out, old.late, old.lent) == (2, 25, 200, 2, 4)
    assert (new.workers, new.requests, new.late) == (1, 10, 1)


def test_each_failed_request_counts_once_and_what_the_queue_refuses_does_not(scene: Scene) -> None:
    scene.begin()
    scene.pages[3].serve(50, **{"5xx": 12, "app_errors": 5, "queue_full": 3, "leaving": 1})
    assert scene.look().look.new.failed == 8
    scene.pages[3].serve(50, app_errors=10)
    assert scene.look().look.new.failed == 15


def test_times_are_compared_after_ten_seconds_and_fifty_requests(scene: Scene) -> None:
    scene.begin()
    for _ in range(9):
        scene.pages[1].serve(50, 900.0)
        scene.pages[3].serve(6, 900.0)
        assert not any(scene.look().look.new.times)
    scene.look()
    scene.pages[1].serve(50)
    scene.pages[3].serve(6)
    look = scene.look().look
    assert (sum(look.old.times), sum(look.new.times), look.new.requests) == (50, 6, 60)
    assert look.timed == 1.0
    assert look.new.percentile(0.5) == pytest.approx(0.01125)


def test_with_few_requests_they_are_compared_in_the_second_half_of_the_time(scene: Scene) -> None:
    scene.begin()
    for second in range(1, 40):
        scene.pages[3].serve(1)
        assert sum(scene.look().look.new.times) == max(0, second - 30)


def test_what_has_ended_stays_counted_and_its_successor_begins_with_nothing(scene: Scene) -> None:
    scene.begin()
    scene.pages[1].serve(10)
    assert scene.look().look.old.requests == 10
    del scene.handles[1]
    scene.pages[4] = Page()  # in the memory of the other, perhaps
    scene.join(4)
    workers = {nr: each for nr, each in scene.state.workers.items() if nr != 1}
    workers[4] = Worker(4, 1, started=START, phase=Serving(START))
    workers[5] = Worker(5, 1, started=START, phase=Booting())
    scene.state = replace(scene.state, workers=workers)
    scene.pages[4].serve(3)
    old = scene.look().look.old
    assert (old.workers, old.requests) == (2, 13)


@pytest.mark.parametrize("rubbish", ["falls", "leaps", "no page", "all ones"])
def test_a_page_with_rubbish_is_left_out_and_nothing_else(scene: Scene, rubbish: str) -> None:
    scene.begin()
    scene.pages[1].serve(10)
    scene.pages[2].serve(10)
    assert scene.look().look.old.requests == 20
    page = scene.pages[1]
    match rubbish:
        case "falls":
            page.words[WORDS["requests"]] = 3
        case "leaps":
            page.words[WORDS["requests"]] = 1 << 40
        case "no page":
            page.words[0] = 7
        case "all ones":
            page.words.cast("B")[2 * 8 :] = b"\xff" * (len(page.words) - 2) * 8
    scene.pages[2].serve(10)
    assert scene.look().look.old.requests == 30


def test_another_reload_is_counted_anew(scene: Scene) -> None:
    scene.begin()
    scene.pages[1].serve(10)
    scene.look()
    workers = {1: scene.state.workers[1], 3: replace(scene.state.workers[3], generation=3)}
    scene.state = replace(scene.state, generation=3, workers=workers)
    scene.begin()
    scene.pages[1].serve(4)
    assert scene.look().look.old.requests == 4


@pytest.mark.parametrize(("answer", "opinion"), [(True, True), (False, False), (None, None), (1, True), (0, False)])
def test_the_hook_is_asked_with_both_samples(answer: object, opinion: bool | None) -> None:
    seen = []

    def judge(server: object, old: Any, new: Any) -> object:
        seen.append((old.requests, new.requests))
        return answer

    scene = Scene(judge)
    scene.begin()
    scene.pages[1].serve(4)
    scene.pages[3].serve(2)
    assert scene.look().opinion is opinion
    assert seen == [(4, 2)]


def test_a_hook_that_fails_has_no_opinion() -> None:
    def judge(server: object, old: object, new: object) -> bool:
        raise RuntimeError

    scene = Scene(judge)
    scene.begin()
    assert scene.look().opinion is None
    assert scene.logged == ["Exception in the hook canary_judge"]
