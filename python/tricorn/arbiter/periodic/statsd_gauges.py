"""Gauges of the arbiter for statsd: gunicorn's `workers` and `backlog`, and of ours what workers have to do.

It tells the log with `extra`, as gunicorn does: the class `Statsd` sends it, any other logger writes a line at debug.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from tricorn.arbiter.listeners.sockets import Listener
from tricorn.arbiter.parts import Parts
from tricorn.arbiter.periodic import Periodic
from tricorn.arbiter.policy.events import Event
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.unpatched import select, socket

SECOND = 1.0
UNACKED = struct.Struct("8B5I")
"""The beginning of struct tcp_info (linux/tcp.h) up to tcpi_unacked: of a listener, the connections in its backlog."""


class StatsdGauges(Periodic):
    """Sends the number of workers when it has changed; once a second the backlog and requests, if they are wanted."""

    failure = "The pages of workers cannot be read"

    def __init__(self, parts: Parts, now: float) -> None:
        self._parts = parts
        self._workers = 0
        """The number that was sent last."""
        self._next = now + SECOND

    def due(self, state: State, now: float) -> float:
        if len(self._parts.processes.handles) != self._workers:
            return -NEVER
        config = self._parts.generation.config
        return self._next if config.enable_backlog_metric or config.statsd_extended else NEVER

    def run(self, state: State, now: float) -> Iterable[Event]:
        count = len(self._parts.processes.handles)
        if count != self._workers:
            self._workers = count
            self._send(f"{count} workers", "workers", count, "gauge")
        if now >= self._next:
            self._next = now + SECOND
            self._send_load()
        return ()

    def _send_load(self) -> None:
        config = self._parts.generation.config
        waiting = backlog(self._parts.generation.listeners) if config.enable_backlog_metric else -1
        if waiting >= 0:
            self._send(f"socket backlog: {waiting}", "backlog", waiting, "histogram")
        if config.statsd_extended:
            seen = [handle.snapshot() for handle in self._parts.processes.handles.values()]
            figures = [each.figures for each in seen if each is not None]
            running, queued = sum(each["in_flight"] for each in figures), sum(each["queued"] for each in figures)
            self._send(f"{running} requests running", "requests.running", running, "gauge")
            self._send(f"{queued} requests waiting", "requests.waiting", queued, "gauge")

    def _send(self, text: str, name: str, value: int, kind: str) -> None:
        extra = {"metric": f"gunicorn.{name}", "value": value, "mtype": kind}
        self._parts.generation.log.debug("%s", text, extra=extra)


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
