"""Stalls that were made for tests."""

from __future__ import annotations

from typing import Any

from tricorn.record import replace
from tricorn.stalls.keeper import Held
from tricorn.workers.stall import Native, Place, Stall, Wait

KAFKA = "confluent-kafka", "2.16.1"
"""An installed package, and its version."""
NOTHING = Wait()
HELD = Held(pid=7, slot=0, kind="gevent", doctor="observe", libraries={"librdkafka": "2.16.0"})


def stall(
    *,
    verdict: str = "BLOCKED_SYSCALL",
    line: int = 14,
    source: str = "p.flush()",
    library: str = "",
    package: tuple[str, str] = ("", ""),
    duration: float = 0.4,
    added: float | None = None,
    ongoing: bool = False,
    again: bool = False,
    delayed: int = 9,
    queued: float = 0.0,
    wait: Wait = NOTHING,
    missing: str = "",
) -> Stall:
    return Stall(
        duration=duration,
        added=duration if added is None else added,
        again=again,
        ongoing=ongoing,
        verdict=verdict,
        sentence="Blocked in the system call futex.",
        computed=0.02,
        queued=queued,
        place=Place("app.py", line, "pay", source),
        native=Native(library, package=package[0], package_version=package[1], call="futex"),
        request="GET /pay",
        sure=False,
        delayed=delayed,
        wait=wait,
        missing=missing,
    )


def pool_wait(*, waiting: int = 37, cost: float = 118.4, added: float = 118.4, **more: Any) -> Stall:
    """Requests that wait for a pool while nothing holds up a loop."""
    site = "sqlalchemy/pool/impl.py:_do_get"
    size = "5 connections and 10 overflow"
    wait = Wait("sqlalchemy", size, site, waiting, 40 if waiting else 0, 3.4, cost=cost, cost_added=added)
    return stall(verdict="POOL_WAIT", duration=3.2, wait=wait, **{"source": "", **more})


def saturated(*, process: float = 0.98, oldest: float = 0.0, waiting: int = 29, **more: Any) -> Stall:
    wait = Wait(waiting=waiting, in_flight=30, oldest=oldest, process=process, cost=150.0, cost_added=150.0)
    return replace(stall(verdict="SATURATED", duration=5.0, ongoing=True, wait=wait, **more), place=Place())


def slow(seen: str = "BLOCKED_SYSCALL", **more: Any) -> Stall:
    wait = Wait(seen=seen, cost=2.3, cost_added=2.3)
    return stall(verdict="SLOW_REQUEST", duration=2.3, source="query()", wait=wait, **more)
