"""Stalls that were made for tests."""

from __future__ import annotations

from tricorn.arbiter.stalls.keeper import Held
from tricorn.arbiter.stalls.owner import Package
from tricorn.workers.stall import Native, Place, Stall

KAFKA = Package("confluent-kafka", "2.16.1")
HELD = Held(pid=7, slot=0, kind="gevent", doctor="observe", libraries={"librdkafka": "2.16.0"})


def stall(
    *,
    verdict: str = "BLOCKED_SYSCALL",
    line: int = 14,
    source: str = "p.flush()",
    library: str = "",
    duration: float = 0.4,
    added: float | None = None,
    ongoing: bool = False,
    again: bool = False,
    delayed: int = 9,
) -> Stall:
    return Stall(
        duration=duration,
        added=duration if added is None else added,
        again=again,
        ongoing=ongoing,
        verdict=verdict,
        sentence="Blocked in the system call futex.",
        computed=0.02,
        queued=0.0,
        place=Place("app.py", line, "pay", source),
        native=Native(library=library, call="futex"),
        request="GET /pay",
        sure=False,
        delayed=delayed,
    )
