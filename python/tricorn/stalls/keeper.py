"""The stalls of all workers: the last ones, and sums of what is the same, since the start and by minute."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Literal

from tricorn.record import Record
from tricorn.stalls.advice import WAITS, cure_of
from tricorn.stalls.log_line import Sums, line, sentence_of
from tricorn.workers.stall import Stall

SCHEMA = "tricorn-stall/1"

Json = dict[str, Any]
Since = Literal["start", "minute"]

KEPT = 256
"""Records, and kinds of stalls."""
OF_LIBRARY = ("library", "library_version", "package", "c_function", "cure", "link")
"""Fields of a record about the library that was on the stack."""
MINUTES = 10
MINUTE = 60
MOST_MISSING = 16
PAUSE = 10.0
"""Seconds for which what comes again is only counted."""
LONG_PAUSE = 60.0
"""The same where it is a state of the service rather than one call."""
STATES = ("POOL_WAIT", "SATURATED", "SLOW_REQUEST")


class Held(Record):
    """The worker that was held up, and what is known of it."""

    pid: int
    slot: int
    kind: str
    """Its class."""
    doctor: str
    """The setting of this name."""
    libraries: Mapping[str, str]
    """Versions of C libraries, as modules have told them."""
    workers: int = 1
    """Workers of the server."""
    processors: float | None = None
    """Processors that the server may use; None: not known."""


class _Kind:
    """The same again and again."""

    def __init__(self) -> None:
        self.record: Json = {}
        self.sums = Sums()
        self.minutes: deque[tuple[int, Sums]] = deque(maxlen=MINUTES + 1)
        self.untold = Sums()
        self.told: float | None = None
        self.unfinished: int | None = None
        """The worker of which a stall was logged that went on: its end is logged, too."""

    def add(self, stall: Stall, now: float) -> None:
        minute, count = int(now // MINUTE), 0 if stall.again else 1
        cost = stall.added, stall.request_seconds, count
        self.sums = self.sums.plus(*cost)
        if not self.minutes or self.minutes[-1][0] != minute:
            self.minutes.append((minute, Sums()))
        self.minutes[-1] = minute, self.minutes[-1][1].plus(*cost)
        self.untold = self.untold.plus(*cost)

    def within(self, since: Since, now: float) -> Sums:
        """`minute`: the one that runs, and the one before, of which a part is older."""
        if since == "start":
            return self.sums
        total, first = Sums(), int(now // MINUTE) - 1
        for minute, sums in self.minutes:
            if minute >= first:
                total = total.and_more(sums)
        return total


class Stalls:
    def __init__(self) -> None:
        self._kinds: dict[tuple[str, int, str, str], _Kind] = {}
        self._records: deque[Json] = deque(maxlen=KEPT)
        self._dropped = Sums()
        """Sums of kinds that are forgotten."""
        self._missing: set[str] = set()
        """Sources that could not be looked at, as far as the log has said it."""

    def take(self, stall: Stall, held: Held, now: float, time: float) -> tuple[Json, str | None]:
        """The record, and a line for the log unless the same was told a moment ago. `time` is that of the day."""
        kind = self._kind_of(stall)
        before = kind.untold
        kind.add(stall, now)
        record = self._record(stall, held, time) | {"repeats": kind.sums.count - 1}
        known = {name: kind.record.get(name) for name in OF_LIBRARY}
        kind.record = record if record["library"] or not known["library"] else record | known
        self._records.append(record)
        ends = stall.again and not stall.ongoing and kind.unfinished == held.pid
        pause = LONG_PAUSE if stall.verdict in STATES else PAUSE
        if not ends and kind.told is not None and now - kind.told < pause:
            return record, None
        kind.told, kind.untold = now, Sums()
        kind.unfinished = held.pid if stall.ongoing else None
        return record, line(record, before, missing=self._is_news(stall.missing))

    def _kind_of(self, stall: Stall) -> _Kind:
        """The same line in the same library; without a line the same verdict.

        The line is that of the thread to blame: of one that waits for the GIL, that of the thread which holds it.

        A wait in slices that was looked at between two of them has no library on its stack: it is of the one that is
        known of that line, whichever of both comes first.
        """
        line = stall.place.file, stall.place.line
        is_apart = stall.verdict in STATES or not stall.place.file
        name, state = stall.wait.pool or stall.native.library, stall.verdict if is_apart else ""
        key = (*line, name, state)
        if key not in self._kinds and stall.verdict in WAITS and stall.place.file:
            waits = [each for each, kind in self._kinds.items() if each[:2] == line and kind.record["verdict"] in WAITS]
            if not name and len(waits) == 1:
                return self._kinds[waits[0]]
            if name and (*line, "", "") in waits:
                self._kinds[key] = self._kinds.pop((*line, "", ""))
        kind = self._kinds.get(key)
        if kind is None:
            self._make_room()
            kind = self._kinds[key] = _Kind()
        return kind

    def _is_news(self, missing: str) -> str:
        """Returns the text if the log has not said it yet."""
        if missing in self._missing or len(self._missing) >= MOST_MISSING:
            return ""
        self._missing.add(missing)
        return missing

    def report(self, since: Since, now: float) -> Json:
        """Reports all kinds, the most expensive first."""
        rows = []
        for kind in self._kinds.values():
            sums = kind.within(since, now)
            if sums.count or sums.seconds:
                rows.append({**kind.record, "total": sums.as_json()})
        rows.sort(key=lambda row: (-row["total"]["request_seconds"], -row["total"]["seconds"]))
        forgotten = self._dropped.as_json() if since == "start" else Sums().as_json()
        return {"since": since, "stalls": rows, "forgotten": forgotten}

    def records(self) -> list[Json]:
        """The last ones, oldest first."""
        return list(self._records)

    def _record(self, stall: Stall, held: Held, time: float) -> Json:
        native, place = stall.native, stall.place
        package = {"name": native.package, "version": native.package_version} if native.package else None
        cure = cure_of(stall, held.kind, held.doctor, (held.workers, held.processors))
        return {
            "schema": SCHEMA,
            "time": round(time, 3),
            "pid": held.pid,
            "slot": held.slot,
            "class": held.kind,
            "duration": stall.duration,
            "ongoing": stall.ongoing,
            "verdict": stall.verdict,
            "sentence": sentence_of(stall),
            "blocked": round(stall.blocked, 4),
            "computed": stall.computed,
            "queued": stall.queued,
            "file": place.file or None,
            "line": place.line or None,
            "function": place.function or None,
            "source": place.source,
            "library": native.library or None,
            # The module that brought it knows better than the name of the file.
            "library_version": held.libraries.get(native.library) or native.version or None,
            "package": package,
            "c_function": native.function or None,
            "call": native.call or None,
            "peer": native.peer or None,
            "request": stall.request,
            "sure": stall.sure,
            "delayed": stall.delayed,
            "missing": stall.missing or None,
            "request_seconds": round(stall.cost, 4),
            "seen": stall.wait.seen or None,
            "pool": stall.wait.pool or None,
            "waiting": stall.wait.waiting,
            "in_flight": stall.wait.in_flight,
            "cure": cure.text,
            "link": cure.link,
        }

    def _make_room(self) -> None:
        if len(self._kinds) >= KEPT:
            least = min(
                self._kinds, key=lambda key: (self._kinds[key].sums.request_seconds, self._kinds[key].told or 0)
            )
            self._dropped = self._dropped.and_more(self._kinds.pop(least).sums)
