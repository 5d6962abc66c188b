"""What a worker tells its arbiter: one line each, over a pipe of its own.

    ready
    boot-failed <exit code> <reason>

A line is shorter than PIPE_BUF, so that the kernel writes it whole. Load and liveness are no messages: they
stand in the worker's page of the scoreboard.
"""

from __future__ import annotations

from dataclasses import dataclass

REASON_BYTES = 2048


@dataclass(frozen=True, slots=True)
class Ready:
    """The application is loaded and requests are being taken."""


@dataclass(frozen=True, slots=True)
class BootFailed:
    """This worker is about to exit with `code` and never served."""

    code: int
    reason: str


Message = Ready | BootFailed


def encode(message: Message) -> bytes:
    match message:
        case Ready():
            return b"ready\n"
        case BootFailed(code, reason):
            words = " ".join(reason.split()).encode("utf-8", "replace")[:REASON_BYTES]
            return b"boot-failed %d %s\n" % (code, words)


class Decoder:
    """Puts lines together from whatever pieces a read returned."""

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[Message]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [message for line in lines if (message := _decode(line)) is not None]


def _decode(line: bytes) -> Message | None:
    """None for what no worker says: the application may have written to a descriptor that is not its own."""
    match line.split(b" ", 2):
        case [b"ready"]:
            return Ready()
        case [b"boot-failed", code, reason] if code.isdigit():
            return BootFailed(int(code), reason.decode("utf-8", "replace"))
    return None
