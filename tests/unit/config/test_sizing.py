"""`workers = auto`: the number by processors, memory and class, and what is said of it."""

from __future__ import annotations

import os
from typing import Any

import pytest
from tricorn import cgroup
from tricorn.cgroup import Limit
from tricorn.config.config import Config
from tricorn.config.resolve import Layer, Raw, resolve
from tricorn.config.sizing import MIB, Sizing, kind_of

from tests.harness.cases import with_each

FOUR = Limit(4, "cpu.max 400000/100000")


def place(monkeypatch: pytest.MonkeyPatch, cores: int, cpu: Limit | None = None, memory: int | None = None) -> None:
    """Processors of this process, the quota of its group, and MiB of memory."""
    limit = None if memory is None else Limit(memory * MIB, f"memory.max {memory} MiB")
    monkeypatch.setattr(cgroup, "cores", lambda: cores)
    monkeypatch.setattr(cgroup, "cpu_limit", lambda: cpu)
    monkeypatch.setattr(cgroup, "memory_limit", lambda: limit)
    monkeypatch.setattr(os, "cpu_count", lambda: 16)


def configured(**values: Any) -> Config:
    return resolve([Layer({name: Raw(value, f"--{name}") for name, value in values.items()})])


@with_each(
    ("kind", "processors", "expected"),
    [
        ("sync", 4, 8),
        ("gthread", 4, 4),
        ("gevent", 4, 4),
        ("asgi", 4, 4),
        ("auto", 4, 4),
        ("asgi", 2.5, 3),
        ("sync", 2.5, 5),
        ("sync", 0.5, 1),
        ("asgi", 0.5, 1),
        ("asgi", 0.1, 1),
    ],
)
def test_worker_count_by_processors(kind: str, processors: float, expected: int) -> None:
    assert Sizing(processors, kind=kind).count == expected


@with_each(
    ("mebibytes", "each", "expected"),
    [(64 + 2 * 80 * 3, 80, 3), (64 + 2 * 80 * 3 - 1, 80, 2), (64, 80, 1), (16, 80, 1), (64 + 2 * 400, 400, 1)],
)
def test_worker_count_by_memory(mebibytes: int, each: int, expected: int) -> None:
    """Two generations and the arbiter have to have room; one worker there is always."""
    assert Sizing(8, "", Limit(mebibytes * MIB, "memory.max"), each * MIB, "asgi").count == expected


def test_the_quota_counts_where_it_is_less_than_the_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    place(monkeypatch, 8, FOUR, 2048)
    config = configured(workers="auto", worker_class="asgi")
    assert config.workers == 4
    assert config.sizing is not None
    assert config.sizing.sentence == (
        "4 workers (auto: asgi, 1 for each of 4 processors by cpu.max 400000/100000; "
        "memory allows 12 (memory.max 2048 MiB, 80 MiB each))"
    )


def test_the_affinity_counts_where_it_is_less_than_the_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    place(monkeypatch, 1, FOUR)
    config = configured(workers=" Auto ", worker_class="sync")
    assert config.sizing is not None
    assert config.sizing.sentence == "2 workers (auto: sync, 2 for each of 1 processor by sched_getaffinity)"


def test_worker_count_without_a_memory_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    place(monkeypatch, 16)
    config = configured(workers="auto")
    assert config.sizing is not None
    assert config.sizing.sentence == "16 workers (auto: 1 for each of 16 processors)"


def test_memory_of_a_worker_that_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    place(monkeypatch, 8, None, 64 + 2 * 300)
    assert configured(workers="auto", worker_class="asgi", max_worker_memory="150M").workers == 2


def test_a_number_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    place(monkeypatch, 8, FOUR)
    config = configured(workers="3")
    assert (config.workers, config.sizing) == (3, None)
    assert config.sized_for("sync").workers == 3


def test_the_class_is_known_later(monkeypatch: pytest.MonkeyPatch) -> None:
    place(monkeypatch, 4)
    config = configured(workers="auto")
    assert config.workers == 4
    later = config.sized_for("sync")
    assert later.workers == 8
    assert later.origin("workers") == "--workers"


def test_a_hook_may_say_auto(monkeypatch: pytest.MonkeyPatch) -> None:
    place(monkeypatch, 4)
    config = configured(worker_class="sync")
    config.set("workers", "auto")
    assert config.workers == 8


def test_largest_worker_count_of_any_class() -> None:
    assert Sizing(4, kind="asgi").most == 8


@with_each(
    ("worker_class", "threads", "expected"),
    [
        ("sync", 1, "sync"),
        ("sync", 4, "gthread"),
        ("asgi", 4, "asgi"),
        ("auto", 1, "auto"),
        ("uvicorn.workers.UvicornWorker", 1, "auto"),
        (Sizing, 1, "auto"),
    ],
)
def test_what_the_name_of_a_class_tells(worker_class: object, threads: int, expected: str) -> None:
    assert kind_of(worker_class, threads) == expected
