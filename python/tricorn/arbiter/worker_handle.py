"""The parent's side of a worker. The child's side is `workers.base`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from tricorn.arbiter.pages import Pages
from tricorn.record import Record
from tricorn.unpatched import os, signal
from tricorn.workers.base import Worker
from tricorn.workers.messages import Decoder, Message

READ_SIZE = 4096


@dataclass(slots=True, eq=False, repr=False)
class WorkerHandle:
    nr: int
    worker: Worker
    """As hooks know it; the one that serves is its copy in the other process."""
    pid: int
    messages: int
    """The read end of the worker's pipe."""
    pages: Pages
    page: int
    """The number of its page of the scoreboard."""
    decoder: Decoder = field(default_factory=Decoder)
    open: bool = True

    def receive(self) -> list[Message]:
        """What the worker has said since; closes the pipe at its end."""
        messages: list[Message] = []
        while self.open:
            try:
                data = os.read(self.messages, READ_SIZE)
            except BlockingIOError:
                break
            if not data:
                self.close()
                return messages + self.decoder.close()
            messages += self.decoder.feed(data)
        return messages

    def send(self, number: int) -> None:
        with suppress(ProcessLookupError):  # gone already; the reaper will say so
            os.kill(self.pid, number)

    def close(self) -> None:
        if self.open:
            self.open = False
            os.close(self.messages)


class Forked(Record):
    """Both results of a fork."""

    pid: int
    """0 in the child."""
    messages: int
    """The read end in the parent, the write end in the child."""


def fork(signals: Sequence[signal.Signals]) -> Forked:
    """Forks with the arbiter's signals held back.

    Between the fork and the child's first instruction a signal to the child would run the arbiter's handler,
    and write into the pipe that it shares with the arbiter, which would take the signal for its own.
    """
    read_end, write_end = os.pipe()
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        pid = os.fork()
        if pid == 0:
            _reset_signals(signals)
    except OSError:
        os.close(read_end)
        os.close(write_end)
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)
    if pid == 0:
        os.close(read_end)
        return Forked(0, write_end)
    os.close(write_end)
    os.set_blocking(read_end, False)
    return Forked(pid, read_end)


def _reset_signals(signals: Iterable[signal.Signals]) -> None:
    signal.set_wakeup_fd(-1)
    for number in signals:
        signal.signal(number, signal.SIG_DFL)
