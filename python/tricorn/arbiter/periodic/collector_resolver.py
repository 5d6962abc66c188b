"""Resolves the names of collectors (`statsd_host`, `syslog_addr`) again, and follows those that have moved.

getaddrinfo(3) waits, and a thread of it must not be there when the arbiter forks. So a process of its own asks, and
writes what it was told into a pipe:

    look: is anything lost, or is it time? ── fork ──▶ child: getaddrinfo, write, exit
    pipe readable ──▶ another address? ──▶ connect(2) the socket anew

The arbiter, its workers and their cores have copies of one socket for datagrams. Connected anew by the arbiter it is so
for all of them (connect(2)). A stream is each process's own. The arbiter writes the address into a file that they all
have; a process that connects anew, because the stream has ended or takes no more, connects to that.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from tricorn.arbiter.parts import Parts
from tricorn.arbiter.periodic import Periodic
from tricorn.arbiter.policy.events import Event
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.arbiter.worker_handle import fork
from tricorn.log.outlet import look_up
from tricorn.record import Record
from tricorn.unpatched import os, signal

if TYPE_CHECKING:
    from tricorn.log.outlet import Outlet

PAUSE = 5.0
"""Seconds between looks at what was lost, and the least between two lookups."""
LONGEST = 300.0
"""Seconds between lookups whose answers were the same: doubled up to here while messages are lost."""
USUAL = 60.0
"""Seconds between lookups while nothing is lost: datagrams to an address of before may be lost in silence."""
ANSWER = 20
"""Seconds that the system's resolver may take."""
MOST_BYTES = 512


class Asking(Record):
    outlet: Outlet
    pid: int
    reader: int
    until: float


class CollectorResolver(Periodic):
    def __init__(self, parts: Parts, now: float) -> None:
        self._parts = parts
        self._next = now + PAUSE
        self._lost = 0
        self._delay = PAUSE
        self._since = now
        """The start of the last lookup."""
        self._asking: Asking | None = None
        self._turn = 0

    @property
    def descriptor(self) -> int:  # type: ignore[override]
        """Readable when there is an answer; -1: none is waited for."""
        return -1 if self._asking is None else self._asking.reader

    def due(self, state: State, now: float) -> float:
        if self._asking is not None:
            return min(self._next, self._asking.until)
        return self._next if self._outlets() else NEVER

    def run(self, state: State, now: float) -> Iterable[Event]:
        if self._asking is not None:
            self._take_answer(self._asking, now)
        if now >= self._next:
            self._next = now + PAUSE
            self._look(now)
        return ()

    def _look(self, now: float) -> None:
        """Begins a lookup if messages are lost, or the last one was long ago."""
        outlets = self._outlets()
        if not outlets or self._asking is not None:
            return
        before, self._lost = self._lost, self._count_lost(outlets)
        is_losing = self._lost > before or any(outlet.address is None for outlet in outlets)
        if now - self._since < (self._delay if is_losing else USUAL):
            return
        self._delay = min(self._delay * 2, LONGEST) if is_losing else PAUSE
        self._since = now
        self._turn += 1
        self._ask(outlets[self._turn % len(outlets)], now)

    def close(self) -> None:
        if self._asking is not None:
            self._parts.processes.private.remove(self._asking.reader)
            os.close(self._asking.reader)
            self._asking = None

    def _outlets(self) -> list[Outlet]:
        """Lists the outlets that have a name."""
        log = self._parts.generation.log
        outlets: list[Outlet] = getattr(log, "outlets", list)()
        return [outlet for outlet in outlets if outlet.has_name]

    def _count_lost(self, outlets: list[Outlet]) -> int:
        lost = sum(outlet.lost for outlet in outlets)
        for handle in self._parts.processes.handles.values():
            seen = handle.snapshot()
            if seen is not None:
                figures = seen.figures
                lost += figures["statsd_lost"] + figures["syslog_lost"]
        return lost

    def _ask(self, outlet: Outlet, now: float) -> None:
        try:
            forked = fork(self._parts.processes.signals)
        except OSError:
            return  # no process now: the next look tries again
        if forked.pid == 0:
            _answer(outlet, forked.messages)
        self._parts.processes.private.append(forked.messages)  # not for workers that are forked meanwhile
        self._asking = Asking(outlet, forked.pid, forked.messages, now + ANSWER)

    def _take_answer(self, asking: Asking, now: float) -> None:
        try:
            data = os.read(asking.reader, MOST_BYTES)
        except BlockingIOError:
            if now < asking.until:
                return
            data = b""
            with suppress(ProcessLookupError):
                os.kill(asking.pid, signal.SIGKILL)
        self.close()
        if not data:
            return  # the name is not known now: what was known before stays
        place = data.decode()
        if asking.outlet in self._outlets() and asking.outlet.move(place):
            self._delay = PAUSE
            where = f"{asking.outlet.collector} is at {place.rpartition(':')[0].strip('[]')} from now on"
            self._parts.generation.log.info("%s: the host name now resolves to another address.", where)


def _answer(outlet: Outlet, writer: int) -> NoReturn:
    """Runs in the child. It holds nothing of the arbiter's: workers watch a pipe, and ports would stay taken."""
    status = 1
    try:
        signal.alarm(ANSWER)
        os.dup2(writer, 0)
        os.closerange(1, 1 << 16)
        os.write(0, look_up(outlet.collector, outlet.family).encode())
        status = 0
    finally:
        os._exit(status)
