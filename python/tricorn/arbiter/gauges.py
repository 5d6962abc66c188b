"""What the arbiter measures for statsd: gunicorn's `workers` and `backlog`, and of ours what workers have to do.

It tells the log with `extra`, as gunicorn does: the class `Statsd` sends it, any other logger writes a line at debug.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tricorn.arbiter.policy.state import NEVER
from tricorn.metrics.scoreboard import Scoreboard
from tricorn.unpatched import select, socket

if TYPE_CHECKING:
    from tricorn.arbiter.effects import Effects
    from tricorn.arbiter.sockets import Listener

SECOND = 1.0
UNACKED = struct.Struct("8B5I")
"""The beginning of struct tcp_info (linux/tcp.h) up to tcpi_unacked: of a listener, the connections in its backlog."""


class Gauges:
    def __init__(self, effects: Effects, now: float) -> None:
        self._effects = effects
        self._workers = -1
        """How many there were when it was last told."""
        self._next = now + SECOND

    def next_look(self) -> float:
        config = self._effects.generation.config
        return self._next if config.enable_backlog_metric or config.statsd_extended else NEVER

    def count_workers(self) -> None:
        """Tells how many there are, if that has changed."""
        count = len(self._effects.processes.handles)
        if count != self._workers:
            self._workers = count
            self._tell(f"{count} workers", "workers", count, "gauge")

    def look(self, now: float) -> None:
        if now < self.next_look():
            return
        self._next = now + SECOND
        config = self._effects.generation.config
        if config.enable_backlog_metric:
            waiting = backlog(self._effects.generation.listeners)
            if waiting >= 0:
                self._tell(f"socket backlog: {waiting}", "backlog", waiting, "histogram")
        if config.statsd_extended:
            self._tell_of_requests()

    def _tell_of_requests(self) -> None:
        running = waiting = 0
        for handle in self._effects.processes.handles.values():
            seen = Scoreboard(handle.pages.page(handle.page)).read()
            if seen is not None:
                figures = seen.figures
                running += figures["in_flight"]
                waiting += figures["queued"]
        self._tell(f"{running} requests running", "requests.running", running, "gauge")
        self._tell(f"{waiting} requests waiting", "requests.waiting", waiting, "gauge")

    def _tell(self, text: str, name: str, value: int, kind: str) -> None:
        extra = {"metric": f"gunicorn.{name}", "value": value, "mtype": kind}
        self._effects.generation.log.debug("%s", text, extra=extra)


def backlog(listeners: list[Listener]) -> int:
    """Connections that wait to be accepted; -1 where that cannot be known, as of a unix socket alone."""
    return sum(map(_waiting, listeners))


def has_backlog(listeners: Iterable[Listener]) -> bool:
    """Whether a connection waits at one of them, of whatever family."""
    poll = select.poll()
    for listener in listeners:
        poll.register(listener.socket, select.POLLIN)
    return any(event & select.POLLIN for _, event in poll.poll(0))


def _waiting(listener: Listener) -> int:
    if listener.socket.family == socket.AF_UNIX or not hasattr(socket, "TCP_INFO"):
        return -1
    try:
        info = listener.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, UNACKED.size)
        return int(UNACKED.unpack(info)[-1])
    except (OSError, struct.error):
        return 0
