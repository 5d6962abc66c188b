"""Sends messages of Python code to a collector: its name is looked up here, the rest is the core's (`Collector`).

A name is looked up when the log is made, and by the arbiter later (`collector_resolver`). A fork shares a socket for
datagrams, and opens streams anew, where the arbiter has learned by then that the name leads.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from tricorn._core import Collector as NativeCollector
from tricorn.config.collectors import Collector
from tricorn.unpatched import os, socket


def _is_address(host: str, family: int) -> bool:
    try:
        socket.inet_pton(family, host)
    except (OSError, ValueError):
        return False
    return True


def look_up(collector: Collector, family: int) -> str:
    """Returns ADDRESS:PORT. Waits for the system's resolver; raises OSError."""
    kind = socket.SOCK_STREAM if collector.transport == "tcp" else socket.SOCK_DGRAM
    found = socket.getaddrinfo(collector.host, collector.port, family, kind)[0]
    place: Any = found[-1]
    if found[0] != socket.AF_INET6:
        return f"{place[0]}:{place[1]}"
    scope = f"%{place[3]}" if len(place) > 3 and place[3] else ""
    return f"[{place[0].partition('%')[0]}{scope}]:{place[1]}"


class Outlet:
    """A collector of the settings and the native connection to it. It has no thread, and may be forked at any time."""

    def __init__(self, collector: Collector, *, keeps: bool, inet4: bool = False) -> None:
        """`keeps`: what the socket does not take is sent later. `inet4`: a name is looked up for IPv4 only."""
        self.collector = collector
        self.trouble = ""
        """Why it could not be reached at first."""
        self.family: int = socket.AF_UNSPEC
        """The family of addresses that its name may mean: a socket cannot change its own."""
        place: str | None = collector.host
        error: OSError | None = None
        if collector.transport in ("udp", "tcp"):
            self.family = socket.AF_INET if inet4 and ":" not in collector.host else socket.AF_UNSPEC
            try:
                place = self._fix_family(look_up(collector, self.family))
            except OSError as failure:
                place, error = None, failure
        self.native = NativeCollector(collector.transport, place, keeps=keeps, follows=self.has_name)
        if error is None:
            try:
                self.native.connect()
            except OSError as failure:
                error = failure
        if error is not None:
            self.trouble = error.strerror or str(error)
        self.send, self.flush = self.native.send, self.native.flush
        self.close, self.lose = self.native.close, self.native.lose

    def _fix_family(self, place: str) -> str:
        self.family = socket.AF_INET6 if place.startswith("[") else socket.AF_INET
        return place

    @property
    def has_name(self) -> bool:
        """Whether its name may come to mean another address."""
        host = self.collector.host
        if self.collector.transport not in ("udp", "tcp") or host == "localhost":
            return False
        return not any(map(partial(_is_address, host), (socket.AF_INET, socket.AF_INET6)))

    @property
    def is_stream(self) -> bool:
        """Whether messages follow one another without borders, as far as that is known."""
        return self.native.is_stream or self.collector.transport in ("tcp", "stream")

    @property
    def address(self) -> str | tuple[str, int] | None:
        """A path, (ADDRESS, PORT), or None: a name that is not known."""
        return self.native.address

    @property
    def lost(self) -> int:
        """Messages that were lost in this process."""
        return self.native.lost

    def complaint(self, name: str, setting: str) -> str:
        """Returns a sentence for the log if the collector could not be reached at first, or an empty text."""
        if not self.trouble:
            return ""
        what = "A reload looks it up again" if self.address is None else "It is tried again"
        return f"Cannot reach {name} at {self.collector}: {self.trouble} ({setting}). {what}."

    def move(self, place: str) -> bool:
        """Follows its name to ADDRESS:PORT. Returns whether that is elsewhere."""
        return self.native.move_to(self._fix_family(place))

    def socket(self) -> socket.socket | None:
        """A copy of the connected socket, for programs that have gunicorn's `sock`."""
        descriptor = self.native.fileno()
        return None if descriptor < 0 else socket.socket(fileno=os.dup(descriptor))
