"""The cure fits the library, the class and the verdict."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tricorn.stalls.advice import cure_of

from tests.unit.stalls.made import KAFKA, pool_wait, saturated, slow, stall


def cure(verdict: str = "BLOCKED_SYSCALL", kind: str = "gevent", doctor: str = "observe", source: str = "x()") -> str:
    return cure_of(stall(verdict=verdict, source=source), kind, doctor).text


def test_a_known_library_has_its_own() -> None:
    found = cure_of(stall(package=KAFKA), "gevent", "observe")
    assert "poll(0)" in found.text
    assert found.text.endswith("--doctor heal.")
    assert found.link == "docs/diagnose/doctor.md#blocked_syscall"
    assert "--doctor heal" not in cure_of(stall(package=KAFKA), "eventlet", "heal").text
    assert "AIOProducer" in cure_of(stall(package=KAFKA), "asgi", "observe").text


def test_the_systems_own_library_is_known_by_its_driver() -> None:
    assert "poll(0)" in cure_of(stall(library="librdkafka"), "gevent", "observe").text


@pytest.mark.parametrize(
    ("verdict", "kind", "expected"),
    [
        ("BLOCKED_SYSCALL", "gevent", "(tricorn.offload)"),
        ("BLOCKED_SYSCALL", "asgi", "await tricorn.offload"),
        ("LOCK_WAIT", "gevent", "lock"),
        ("CPU_PYTHON", "asgi", "more workers"),
        ("CPU_NATIVE_GIL", "gevent", "more workers"),
        ("STARVED", "gevent", "Run fewer workers"),
        ("GC_PAUSE", "asgi", "gc.freeze()"),
        ("GIL_VICTIM", "gevent", "holds the GIL"),
        ("SOMETHING_NEW", "asgi", "tricorn doctor --pid"),
    ],
)
def test_each_verdict_has_advice(verdict: str, kind: str, expected: str) -> None:
    assert expected in cure(verdict, kind)


def test_a_sleep_in_a_coroutine_is_awaited() -> None:
    assert "await asyncio.sleep" in cure(kind="asgi", source="time.sleep(1)")
    assert "asyncio" not in cure(kind="gevent", source="time.sleep(1)")


def test_a_library_that_computes_is_not_cured_by_threads() -> None:
    assert "processes do" in cure_of(stall(verdict="CPU_NATIVE_GIL", package=KAFKA), "gevent", "observe").text


def test_the_page_has_a_part_for_each_verdict() -> None:
    page = (Path(__file__).parents[3] / "docs/diagnose/doctor.md").read_text()
    table = page[page.index("### The verdicts") :].partition("\n\n`CPU`")[0]
    verdicts = set(re.findall(r"^\| `([A-Z_]+)` \|", table, re.MULTILINE))
    helps = page[page.index("### Fixes") :].partition("\n## ")[0]
    harmless = {"IDLE", "NATIVE", "STOPPED"}  # nothing holds up a loop there
    assert len(verdicts) > 10
    assert set(re.findall(r"^#### (.*)$", helps, re.MULTILINE)) == verdicts - harmless
    for verdict in verdicts - harmless - {"UNDECIDED"}:
        assert "tricorn doctor --pid" not in cure(verdict), f"{verdict} has a cure of its own"


@pytest.mark.parametrize(
    ("kind", "process", "queued", "machine", "expected"),
    [
        (
            "asgi",
            0.98,
            0.0,
            (2, 8.0),
            "Start more workers: each worker uses one CPU, and there are idle ones (2 workers, 8 CPUs)",
        ),
        (
            "asgi",
            0.98,
            0.0,
            (2, 2.0),
            "All CPUs are in use (2 workers, 2 CPUs), so more workers will not help",
        ),
        ("asgi", 0.6, 0.38, (2, 8.0), "All CPUs are in use"),
        ("sync", 0.5, 0.4, (4, None), "All CPUs are in use, so"),
        ("sync", 0.98, 0.0, (4, None), "Start more workers: each worker uses one CPU, and there are idle ones."),
        ("gevent", 0.1, 0.0, (2, 2.0), "most of its time in short blocking calls"),
        ("gthread", 0.1, 0.0, (2, 2.0), "more threads"),
        ("sync", 0.1, 0.0, (2, 2.0), "-k gthread with several threads"),
    ],
)
def test_a_saturated_worker_is_cured_by_what_its_figures_say(
    kind: str, process: float, queued: float, machine: tuple[int, float | None], expected: str
) -> None:
    assert expected in cure_of(saturated(process=process, queued=queued), kind, "observe", machine).text


def test_a_pool_has_a_cure_of_its_own_wherever_it_is_waited_for() -> None:
    for told in (pool_wait(), pool_wait(waiting=0)):
        assert "max_overflow of create_engine()" in cure_of(told, "asgi", "observe").text


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ("BLOCKED_SYSCALL", "Set a timeout"),
        ("CPU_PYTHON", "a job queue: it also slows down the other threads"),
        ("STARVED", "Run fewer workers"),
    ],
)
def test_a_request_that_takes_long_is_cured_by_what_it_is_at(seen: str, expected: str) -> None:
    assert expected in cure_of(slow(seen), "gthread", "observe").text
