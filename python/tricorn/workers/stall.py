"""Report of a worker's monitor about one stall. Every value is validated: it comes from another process."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from tricorn.record import Record


class Place(Record):
    """The innermost line of the application; without a file it is not known."""

    file: str = ""
    line: int = 0
    function: str = ""
    source: str = ""


class Native(Record):
    """Native code on the stack. Fields are empty where unknown."""

    library: str = ""
    version: str = ""
    """The library's, as its file is called."""
    function: str = ""
    package: str = ""
    """The installed package that it belongs to, or that has called into it."""
    package_version: str = ""
    call: str = ""
    """The system call."""
    peer: str = ""


class Wait(Record):
    """Report about requests that wait although no loop is blocked."""

    pool: str = ""
    """Its name in the table (`pools`)."""
    size: str = ""
    """Size of the pool in words. Empty if unknown."""
    site: str = ""
    """The file and the function of the library."""
    waiting: int = 0
    in_flight: int = 0
    oldest: float = 0.0
    """Seconds since the first of them began, or waits for a thread."""
    process: float = 0.0
    """Processors that the worker has used."""
    seen: str = ""
    """The verdict on the thread of a request that takes long."""
    cost: float | None = None
    """Request-seconds of all of it, and of what was not told before; None: what `delayed` comes to."""
    cost_added: float = 0.0


class Stall(Record):
    duration: float
    added: float
    """Seconds of it that were not told before."""
    again: bool
    """It was told while it went on, and this is its end."""
    ongoing: bool
    verdict: str
    sentence: str
    computed: float
    """Share of its time."""
    queued: float
    """Share in which it wanted a processor and got none."""
    place: Place
    native: Native
    request: str
    sure: bool
    """It is the only request, so that it holds up the loop; else the last to begin."""
    delayed: int
    """Other requests at that time."""
    wait: Wait = Wait()
    missing: str = ""
    """Sentences: the steps of the look that were left out, and why."""

    @property
    def blocked(self) -> float:
        return max(0.0, 1.0 - self.computed - self.queued)

    @property
    def request_seconds(self) -> float:
        """Request-seconds that were not reported before."""
        return self.added * self.delayed if self.wait.cost is None else self.wait.cost_added

    @property
    def cost(self) -> float:
        """All of its request-seconds."""
        return self.duration * self.delayed if self.wait.cost is None else self.wait.cost


TEXT = 1024
"""Most characters of a text."""
MOST = 1e9
"""Upper bound of reported seconds and requests."""


def json_object(data: bytes) -> dict[str, Any] | None:
    """Parses a JSON object. None if it is not one."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def parse(data: bytes) -> Stall | None:
    """Parses a report. None if no monitor has written it."""
    found = json_object(data)
    if found is None:
        return None
    verdict = _text(found, "verdict")
    place = Place(_text(found, "file"), int(_number(found, "line")), _text(found, "function"), _text(found, "source"))
    names = "library", "library_version", "c_function", "package", "package_version", "call", "peer"
    return Stall(
        duration=_number(found, "duration"),
        added=_number(found, "added"),
        again=found.get("again") is True,
        ongoing=found.get("ongoing") is True,
        verdict=verdict if _VERDICT.fullmatch(verdict) else "UNDECIDED",
        sentence=_text(found, "sentence"),
        computed=min(1.0, _number(found, "computed")),
        queued=min(1.0, _number(found, "queued")),
        place=place,
        native=Native(*(_text(found, name) for name in names)),
        request=_text(found, "request"),
        sure=found.get("sure") is True,
        delayed=int(_number(found, "delayed")),
        missing=_text(found, "missing"),
        wait=_wait(found),
    )


def _wait(found: Mapping[str, Any]) -> Wait:
    seen = _text(found, "seen")
    return Wait(
        pool=_text(found, "pool"),
        size=_text(found, "size"),
        site=_text(found, "site"),
        waiting=int(_number(found, "waiting")),
        in_flight=int(_number(found, "in_flight")),
        oldest=_number(found, "oldest"),
        process=_number(found, "process"),
        seen=seen if _VERDICT.fullmatch(seen) else "",
        cost=_number(found, "cost") if "cost" in found else None,
        cost_added=_number(found, "cost_added"),
    )


_VERDICT = re.compile(r"[A-Z][A-Z_]{0,39}")


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    return "".join(each if each.isprintable() else " " for each in value[:TEXT]) if isinstance(value, str) else ""


def _number(found: Mapping[str, Any], name: str) -> float:
    value = found.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0.0
    # A whole number may have more digits than a float has room for.
    return min(max(0, value), MOST) if isinstance(value, int) or math.isfinite(value) else 0.0
