"""Gauges of the arbiter for statsd: gunicorn's `workers` and `backlog`, and of ours what workers have to do.

It tells the log with `extra`, as gunicorn does: the class `Statsd` sends it, any other logger writes a line at debug.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from tricorn.arbiter.parts import Parts
from tricorn.arbiter.periodic import Periodic
from tricorn.arbiter.policy.events import Event
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.arbiter.sockets import Listener
from tricorn.metrics.scoreboard import Scoreboard
from tricorn.unpatched import select, socket

SECOND = 1.0
UNACKED = struct.Struct("8B5I")
"""The beginning of struct tcp_info (linux/tcp.h) up to tcpi_unacked: of a listener, the connections in its backlog."""


class WorkerGauge(Periodic):
    """Sends the number of workers when it has changed."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._sent = 0

    def due(self, state: State, now: float) -> float:
        return NEVER if len(self._parts.processes.handles) == self._sent else -NEVER

    def run(self, state: State, now: float) -> Iterable[Event]:
        self._sent = count = len(self._parts.processes.handles)
        send(self._parts, f"{count} workers", "workers", count, "gauge")
        return ()


class LoadGauges(Periodic):
    """Sends the backlog and the number of requests once a second, if they are wanted."""

    failure = "The pages of workers cannot be read"

    def __init__(self, parts: Parts, now: float) -> None:
        self._parts = parts
        self._next = now + SECOND

    def due(self, state: State, now: float) -> float:
        config = self._parts.generation.config
        return self._next if config.enable_backlog_metric or config.statsd_extended else NEVER

    def run(self, state: State, now: float) -> Iterable[Event]:
        self._next = now + SECOND
        config = self._parts.generation.config
        if config.enable_backlog_metric:
            self._send_backlog()
        if config.statsd_extended:
            self._send_requests()
        return ()

    def _send_backlog(self) -> None:
        waiting = backlog(self._parts.generation.listeners)
        if waiting >= 0:
            send(self._parts, f"socket backlog: {waiting}", "backlog", waiting, "histogram")

    def _send_requests(self) -> None:
        running = waiting = 0
        for handle in self._parts.processes.handles.values():
            seen = Scoreboard(handle.pages.page(handle.page)).read()
            if seen is not None:
                figures = seen.figures
                running += figures["in_flight"]
                waiting += figures["queued"]
        send(self._parts, f"{running} requests running", "requests.running", running, "gauge")
        send(self._parts, f"{waiting} requests waiting", "requests.waiting", waiting, "gauge")


def send(parts: Parts, text: str, name: str, value: int, kind: str) -> None:
    extra = {"metric": f"gunicorn.{name}", "value": value, "mtype": kind}
    parts.generation.log.debug("%s", text, extra=extra)


def backlog(listeners: list[Listener]) -> int:
    """Counts the connections that wait to be accepted; -1 where that cannot be known, as of a unix socket alone."""
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
