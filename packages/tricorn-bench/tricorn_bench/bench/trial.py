"""Trials: a configuration, and the loads that it is measured under."""

from __future__ import annotations

from tricorn.record import Record
from tricorn_bench.bench.configuration import Configuration
from tricorn_bench.load import Http2

ROOM = 1_000
"""Requests at a time in an open model."""


class Request(Record):
    path: str = "/"
    mix: tuple[tuple[str, float], ...] = ()
    """Paths with their weights, in place of `path`, which is asked for first."""
    method: str = "GET"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    keep_alive: bool = True
    timeout: float = 20.0
    message: int = 0
    """Bytes that are sent over a WebSocket, and echoed, in place of a request."""
    deflate: bool = False
    resume: bool = True
    """Over TLS: a connection anew resumes."""
    http2: Http2 | None = None
    """Requests are sent over HTTP/2."""


class Stage(Record):
    """One load on a server that runs. Closed (`connections`), open (`rate` or `share`), or of `users` that think."""

    seconds: float = 3.0
    connections: int = 64
    rate: float | None = None
    """Requests a second that are sent whatever the server does."""
    share: float | None = None
    """The same, as a part of what the server reached under a stage without a rate before."""
    users: int | None = None
    think: tuple[float, float] = (5.0, 15.0)
    hatch: float = 10.0
    """Seconds within which the users come."""
    at: float | None = None
    """Position on the chart's axis."""
    kept: bool = True
    """Whether it is in the report, or only prepares another one."""

    @property
    def most_connections(self) -> int:
        """Most connections."""
        return self.connections_of(1)

    def connections_of(self, streams: int) -> int:
        """Connections with so many requests at a time.

        In an open model they are enough that no request waits for another in the generator.
        """
        if self.users:
            return self.users
        is_open = self.rate is not None or self.share is not None
        return max(self.connections, ROOM // streams) if is_open else self.connections

    @property
    def duration(self) -> float:
        return self.seconds + (self.hatch if self.users else 0.0)


class Trial(Record):
    configuration: Configuration
    stages: tuple[Stage, ...]
    family: str
    """The line of a chart that it is a point of."""
