"""Which cores server and load generator get, and limits that are reported before the start."""

from __future__ import annotations

import os

import pytest
from tricorn_bench.bench import machine
from tricorn_bench.bench.errors import BenchError
from tricorn_bench.bench.machine import Cores

from tests.harness import with_each


@with_each(
    ("available", "server", "load"),
    [((0,), (0,), (0,)), ((0, 1), (0,), (1,)), (range(8), range(6), (6, 7)), ((2, 5, 9), (2, 5), (9,))],
)
def test_a_quarter_of_the_cores_makes_the_load(
    available: tuple[int, ...], server: tuple[int, ...], load: tuple[int, ...]
) -> None:
    assert Cores.split(available) == Cores(tuple(server), tuple(load))


def test_cores_that_are_chosen_leave_the_others_to_the_load() -> None:
    allowed = sorted(os.sched_getaffinity(0))
    found = Cores.choose(str(allowed[0]), None)
    assert found == Cores((allowed[0],), (allowed[-1],))
    assert found.apart == (len(allowed) > 1)


def test_a_core_that_is_not_there_is_refused() -> None:
    with pytest.raises(BenchError, match="may not run on core 4096"):
        Cores.choose("4096", None)
    with pytest.raises(BenchError, match="numbers such as"):
        Cores.choose("first", None)


def test_too_few_descriptors_are_told_with_the_remedy() -> None:
    machine.demand_descriptors(800, 1024)
    with pytest.raises(BenchError, match=r"10,000 connections need 10,200 open files.*1,024.*ulimit -Hn 10200"):
        machine.demand_descriptors(10_000, 1024)
