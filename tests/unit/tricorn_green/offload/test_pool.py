"""Threads of a pool: how many there are, who is next, and when they end."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tricorn_green.offload.pool import Lane, Pin, Pool

from tests.harness import until


class Job:
    def __init__(self, function: Callable[[], object]) -> None:
        self.run = function


def test_there_are_as_many_threads_as_are_needed_and_no_more_than_may_be() -> None:
    pool, gate = Pool(2), threading.Event()
    assert pool.figures().threads == 0
    for _ in range(3):
        pool.submit(Job(lambda: gate.wait(10)))
    until(lambda: pool.figures().busy == 2, "both are at work")
    figures = pool.figures()
    assert (figures.threads, figures.waiting) == (2, 1)
    assert figures.oldest > 0
    gate.set()
    until(lambda: pool.figures().busy == pool.figures().waiting == 0, "all is done")
    pool.close()
    until(lambda: pool.figures().threads == 0, "they have ended")


def test_an_idle_thread_ends() -> None:
    pool = Pool(1, idle_seconds=0.01)
    pool.submit(Job(lambda: None))
    until(lambda: pool.figures().threads == 0, "it has ended")
    done = threading.Event()
    pool.submit(Job(done.set))
    assert done.wait(10), "and another comes"


def test_first_come_first_served() -> None:
    pool, gate, order = Pool(1), threading.Event(), []
    pool.submit(Job(lambda: gate.wait(10)))
    for number in range(5):
        pool.submit(Job(lambda number=number: order.append(number)))
    gate.set()
    until(lambda: len(order) == 5, "all are done")
    assert order == [0, 1, 2, 3, 4]


def test_an_object_that_is_busy_holds_one_thread_and_no_more() -> None:
    pool, gate, done = Pool(2), threading.Event(), threading.Event()
    owner = object()
    for _ in range(3):
        Lane.of(owner, pool).submit(Job(lambda: gate.wait(10)))
    pool.submit(Job(done.set))
    assert done.wait(10), "another object's call does not wait for it"
    gate.set()
    until(lambda: pool.figures().busy == 0, "all is done")


def test_a_thread_that_waits_for_its_caller_lends_its_place() -> None:
    pool, gate, done = Pool(1), threading.Event(), threading.Event()

    def visits() -> None:
        pool.lend()
        gate.wait(10)
        pool.take_back()

    pool.submit(Job(visits))
    pool.submit(Job(done.set))
    assert done.wait(10)
    gate.set()
    until(lambda: pool.figures().threads == 1, "there is one too many")


def test_a_pin_has_always_the_same_thread() -> None:
    pin, threads = Pin(), []
    for _ in range(3):
        pin.submit(Job(lambda: threads.append(threading.get_ident())))
    until(lambda: len(threads) == 3, "all are done")
    assert len(set(threads)) == 1
    pin.close()
    until(lambda: pin.figures().threads == 0, "it has ended")
