"""Follows collectors whose names come to mean another address: `statsd_host`, `syslog_addr`.

getaddrinfo(3) waits, and a thread of it must not be there when the arbiter forks. So a process of its own asks, and
writes what it was told into a pipe:

    look: is anything lost, or is it time? ── fork ──▶ child: getaddrinfo, write, exit
    pipe readable ──▶ another address? ──▶ connect(2) the socket anew

The arbiter, its workers and their cores have copies of one socket for datagrams. Connected anew by the arbiter it is so
for all of them (connect(2)). A stream is each process's own. The arbiter writes the address into a file that they all
have (`Outlet.told`); a process that connects anew, because the stream has ended or takes no more, connects to that.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from tricorn.arbiter.policy.state import NEVER
from tricorn.arbiter.worker_handle import fork
from tricorn.log.outlet import Place, look_up
from tricorn.record import Record
from tricorn.unpatched import os, signal

if TYPE_CHECKING:
    from tricorn.arbiter.effects import Effects
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


class Lookups:
    def __init__(self, effects: Effects, now: float) -> None:
        self._effects = effects
        self._next_look = now + PAUSE
        self._lost = 0
        self._delay = PAUSE
        self._since = now
        """When a lookup was begun last."""
        self._asking: Asking | None = None
        self._turn = 0

    @property
    def descriptor(self) -> int:
        """Readable when there is an answer; -1: none is waited for."""
        return -1 if self._asking is None else self._asking.reader

    def next_look(self) -> float:
        return self._next_look if self._asking is not None or self._outlets() else NEVER

    def look(self, now: float) -> None:
        if self._asking is not None:
            self._take_answer(self._asking, now)
        if now < self.next_look():
            return
        self._next_look = now + PAUSE
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
            self._effects.processes.private.remove(self._asking.reader)
            os.close(self._asking.reader)
            self._asking = None

    def _outlets(self) -> list[Outlet]:
        """Those that have a name."""
        log = self._effects.generation.log
        outlets: list[Outlet] = getattr(log, "outlets", list)()
        return [outlet for outlet in outlets if outlet.has_name]

    def _count_lost(self, outlets: list[Outlet]) -> int:
        lost = sum(outlet.lost for outlet in outlets)
        for handle in self._effects.processes.handles.values():
            seen = handle.snapshot()
            if seen is not None:
                figures = seen.figures
                lost += figures["statsd_lost"] + figures["syslog_lost"]
        return lost

    def _ask(self, outlet: Outlet, now: float) -> None:
        try:
            forked = fork(self._effects.processes.signals)
        except OSError:
            return  # no process now: the next look tries again
        if forked.pid == 0:
            _answer(outlet, forked.messages)
        self._effects.processes.private.append(forked.messages)  # not for workers that are forked meanwhile
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
        try:
            family, host, port = json.loads(data)
        except ValueError:
            return  # the name is not known now: what was known before stays
        if asking.outlet in self._outlets() and asking.outlet.move(Place(family, host, port)):
            self._delay = PAUSE
            where = f"{asking.outlet.collector} is at {host} from now on"
            self._effects.generation.log.info("%s: its name means another address.", where)


def _answer(outlet: Outlet, writer: int) -> NoReturn:
    """In the child. It holds nothing of the arbiter's: workers watch a pipe for its end, and ports would stay taken."""
    status = 1
    try:
        signal.alarm(ANSWER)
        os.dup2(writer, 0)
        os.closerange(1, 1 << 16)
        os.write(0, json.dumps(look_up(outlet.collector, outlet.family)).encode())
        status = 0
    finally:
        os._exit(status)
