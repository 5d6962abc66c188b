"""Some seconds of a healthy service, with thresholds that are half of the usual ones: the doctor says nothing false."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.healthy.service import watch

SECONDS = 5
CLASSES = ("gthread", "gevent", "asgi-asyncio")


def test_nothing_false_is_said_of_a_healthy_service() -> None:
    more = "doctor_threshold = 0.05\ndoctor_slow_request = 2.5\n"
    with ThreadPoolExecutor(len(CLASSES)) as pool:
        tallies = list(pool.map(lambda name: watch(name, 7, SECONDS, clients=2, more=more), CLASSES))
    assert [tally.false for tally in tallies] == [[]] * len(CLASSES)
    assert min(tally.requests for tally in tallies) > 20
