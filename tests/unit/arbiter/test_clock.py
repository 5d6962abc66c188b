"""The arbiter's clock, with a world whose time the test moves."""

from __future__ import annotations

from tricorn.arbiter.clock import LATE, PausableClock


class World:
    def __init__(self) -> None:
        self.now = 500.0
        self.asked: list[float | None] = []

    def sleep(self, *, takes: float) -> object:
        def sleep(timeout: float | None) -> None:
            self.asked.append(timeout)
            self.now += takes

        return sleep


def test_a_wait_that_ends_in_time_takes_its_time() -> None:
    world = World()
    own = PausableClock(lambda: world.now)
    for timeout, takes in ((10.0, 10.0), (10.0, 0.5), (10.0, 10.0 + LATE), (0.0, 0.0), (None, 1000.0)):
        before = own.now()
        own.wait(world.sleep(takes=takes), timeout)
        assert own.now() == before + takes
    assert world.asked == [10.0, 10.0, 10.0, 0.0, None]


def test_a_pause_in_a_wait_is_no_time_at_all() -> None:
    world = World()
    own = PausableClock(lambda: world.now)
    own.wait(world.sleep(takes=3610.0), 10.0)
    assert own.now() == 500.0
    own.wait(world.sleep(takes=120.0), 0.0)
    assert own.now() == 500.0
    own.wait(world.sleep(takes=1.0), 1.0)
    assert own.now() == 501.0
