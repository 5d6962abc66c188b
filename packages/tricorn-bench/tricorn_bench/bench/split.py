"""Breakdown of request time, read from `/metrics` on the admin listener of a running tricorn."""

from __future__ import annotations

import http.client
import re

from tricorn_bench.bench.result import Parts

FAMILIES = {
    "total": "request_duration_seconds",
    "queue": "queue_duration_seconds",
    "application": "application_duration_seconds",
    "gil": "gil_wait_seconds",
}
_LINE = re.compile(r"^tricorn_(\w+_(?:sum|count)) (\S+)$", re.MULTILINE)
PATIENCE = 5.0

Sums = dict[str, float]
"""Values by sample name without its prefix: seconds, and counts of requests."""


def read(port: int | None) -> Sums | None:
    """Reads the counters of all workers; None if the server does not answer."""
    if port is None:
        return None
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("GET", "/metrics")
        response = connection.getresponse()
        text = response.read().decode()
    except (OSError, http.client.HTTPException):
        return None
    finally:
        connection.close()
    return sums(text) if response.status == 200 else None


def sums(text: str) -> Sums | None:
    """Parses Prometheus' text format; None if a family is missing."""
    found = {name: float(value) for name, value in _LINE.findall(text)}
    wanted = [f"{family}_{what}" for family in FAMILIES.values() for what in ("sum", "count")]
    return {name: found[name] for name in wanted} if found.keys() >= set(wanted) else None


def between(before: Sums | None, after: Sums | None) -> Parts | None:
    """Returns mean seconds of the requests answered between two readings."""
    if before is None or after is None:
        return None
    requests = _grown(before, after, "total", "count")
    if requests <= 0:
        return None
    total, queue, application, gil = (_grown(before, after, part, "sum") / requests for part in FAMILIES)
    return {"queue": queue, "application": application, "rest": max(0.0, total - queue - application), "gil": gil}


def _grown(before: Sums, after: Sums, part: str, what: str) -> float:
    name = f"{FAMILIES[part]}_{what}"
    return after[name] - before[name]
