"""Talking to systemd: sd_notify(3) and sd_watchdog_enabled(3).

A datagram of `NAME=value` lines to the socket that $NOTIFY_SOCKET names. A failure is not reported: a server
that serves is worth more than one that stopped because systemd did not listen.
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from contextlib import suppress

from tricorn.arbiter.periodic import Periodic
from tricorn.arbiter.policy.events import Event
from tricorn.arbiter.policy.state import NEVER, State
from tricorn.record import Record
from tricorn.unpatched import os, socket, time

SEND_TIMEOUT = 1.0
"""Seconds. The manager's queue may be full, and the arbiter has other things to do."""


class Notifier(Record):
    address: str | None = None
    """A path, or a name with a leading NUL in the abstract namespace; None: no such socket is named."""
    watchdog_interval: float | None = None
    """Seconds between two calls of `alive`: half of what systemd waits, as it advises. None: it does not watch."""

    @classmethod
    def from_environ(cls, environ: MutableMapping[str, str]) -> Notifier:
        """Reads the variables and removes them, so that no child speaks in our name."""
        name = environ.pop("NOTIFY_SOCKET", "")
        microseconds = environ.pop("WATCHDOG_USEC", "")
        watched = environ.pop("WATCHDOG_PID", "")
        if len(name) < 2 or name[0] not in "/@":
            return cls()  # e.g. vsock:, which a virtual machine's own manager speaks
        address = "\0" + name[1:] if name[0] == "@" else name
        meant = watched in ("", str(os.getpid()))
        is_number = microseconds.isascii() and microseconds.isdigit()
        interval = int(microseconds) / 2e6 if meant and is_number and int(microseconds) > 0 else None
        return cls(address, interval)

    def ready(self, status: str = "") -> None:
        """Started, or done with a reload."""
        self._send("READY=1", *_status(status))

    def reloading(self, status: str = "") -> None:
        """`ready` must follow. The time tells systemd which of several reloads it belongs to."""
        microseconds = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        self._send("RELOADING=1", f"MONOTONIC_USEC={microseconds}", *_status(status))

    def stopping(self, status: str = "") -> None:
        self._send("STOPPING=1", *_status(status))

    def main_pid(self, pid: int) -> None:
        """The service is `pid` from now on. Said by the process that is it until then (NotifyAccess=main)."""
        self._send(f"MAINPID={pid}")

    def alive(self) -> None:
        """Due every `watchdog_interval` seconds."""
        self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> None:
        if self.address is None or not lines:
            return
        # ValueError: a variable that holds what no path can
        with suppress(OSError, ValueError), socket.socket(socket.AF_UNIX, _DATAGRAM) as sock:
            sock.settimeout(SEND_TIMEOUT)
            sock.sendto("\n".join(lines).encode("utf-8", "replace"), self.address)


class Watchdog(Periodic):
    """Pings systemd's watchdog as often as it asks for, as long as the arbiter's loop turns."""

    def __init__(self, notifier: Notifier, now: float) -> None:
        self._notifier = notifier
        self._interval = notifier.watchdog_interval or NEVER
        self._next = now if notifier.watchdog_interval else NEVER

    def due(self, state: State, now: float) -> float:
        return self._next

    def run(self, state: State, now: float) -> Iterable[Event]:
        self._next = now + self._interval
        self._notifier.alive()
        return ()


def _status(text: str) -> tuple[str, ...]:
    return (f"STATUS={' '.join(text.split())}",) if text else ()


_DATAGRAM = socket.SOCK_DGRAM | getattr(socket, "SOCK_CLOEXEC", 0)
