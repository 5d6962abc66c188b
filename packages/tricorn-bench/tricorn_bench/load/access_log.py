"""Access logs as plans: what was asked for, and when.

Read are the common and the combined format (gunicorn's default, Apache's, nginx's) and tricorn's JSON
(docs/reference/log-formats.md).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

from tricorn_bench.load.errors import LoadError
from tricorn_bench.load.plan import Replay

_LINE = re.compile(r'\[(?P<time>[^\]]+)\] "(?P<method>[A-Z]+) (?P<path>/[^" ]*) HTTP/[\d.]+"')
_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: number for number, name in enumerate(_NAMES, 1)}
_TIME = re.compile(r"(\d+)/(\w{3})/(\d{4}):(\d\d):(\d\d):(\d\d(?:\.\d+)?) ([+-]\d{4})")


class Log(NamedTuple):
    requests: tuple[Replay, ...]
    skipped: int
    """Lines that tell of no request that could be sent again."""


class _Moment(NamedTuple):
    time: float
    method: str
    path: str


def read(lines: Iterable[str], speed: float = 1.0) -> Log:
    """The requests in the order of time, `speed` times as fast. Raises LoadError if there is none.

    Times in logs are whole seconds, as a rule. Requests of the same second are spread evenly over it.
    """
    moments, skipped = [], 0
    for line in lines:
        if not line.strip():
            continue
        moment = _of_json(line) if line.startswith("{") else _of_text(line)
        if moment is None:
            skipped += 1
        else:
            moments.append(moment)
    if not moments:
        raise LoadError(
            "The log has no line of an access log: expected the combined format, or tricorn's JSON, "
            f"got {skipped} lines of something else."
        )
    moments.sort(key=lambda moment: moment.time)
    start = moments[0].time
    times = _spread([moment.time for moment in moments])
    requests = (
        Replay((time - start) / speed, moment.method, moment.path) for time, moment in zip(times, moments, strict=True)
    )
    return Log(tuple(requests), skipped)


def _of_text(line: str) -> _Moment | None:
    found = _LINE.search(line)
    if found is None:
        return None
    time = _TIME.fullmatch(found["time"])
    if time is None or time[2] not in _MONTHS or found["method"] == "CONNECT":
        return None
    day, month, year, hour, minute, second, zone = time.groups()
    text = f"{year}-{_MONTHS[month]:02}-{int(day):02}T{hour}:{minute}:{int(float(second)):02}{zone[:3]}:{zone[3:]}"
    try:
        moment = datetime.fromisoformat(text).timestamp() + float(second) % 1
    except ValueError:
        return None
    return _Moment(moment, found["method"], found["path"])


def _of_json(line: str) -> _Moment | None:
    try:
        entry = json.loads(line)
        time = datetime.fromisoformat(entry["time"]).timestamp()
        method, path, query = entry["method"], entry["path"], entry.get("query")
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(method, str) or not isinstance(path, str) or not path.startswith("/") or method == "CONNECT":
        return None
    return _Moment(time, method, f"{path}?{query}" if query else path)


def _spread(times: list[float]) -> list[float]:
    counts, seen = Counter(times), Counter[float]()
    spread = []
    for time in times:
        is_whole = time == int(time)
        spread.append(time + seen[time] / counts[time] if is_whole else time)
        seen[time] += 1
    return spread
