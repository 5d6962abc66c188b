"""The parent's side of a worker. The child's side is `workers.base`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Literal

from tricorn.arbiter.pages import Pages
from tricorn.metrics.scoreboard import Reports, RunningRequest, Scoreboard, Snapshot
from tricorn.record import Record
from tricorn.unpatched import os, signal, socket
from tricorn.workers import watch
from tricorn.workers.base import Worker
from tricorn.workers.messages import Decoder, Libraries, Message, Ready

READ_SIZE = 16 << 10
"""Bytes that are read of a worker in one turn of the loop; the pipe holds the rest."""
LAST_WORDS = 1 << 20
"""Bytes that are read of a worker that has ended: as many as a pipe can hold (fs.pipe-max-size)."""
BURST = 16 << 20
"""Stacks of a thousand requests that have run for too long at once are some 10 MB."""
RATE = 1 << 20
"""Bytes per second."""
MESSAGE = 200
"""Bytes that a message counts besides its own: decoding it costs more than reading a few bytes."""

NO_PID = 0
"""The pid of a worker that a mold has not forked yet: kill(2) would send to the whole process group."""

Cancelled = Literal["told", "ended", "over"]
"""Outcome of a cancellation: told to end, ended before, or told or answered before."""


class ProcessHandle:
    """A process that sends messages to the arbiter: a worker, or a mold."""

    def __init__(self, nr: int, pid: int, messages: int) -> None:
        self.nr = nr
        self.pid = pid
        self.messages = messages
        """The read end of its pipe."""
        self.decoder = Decoder()
        self.allowance = Allowance()
        self.open = messages >= 0

    def receive(self, now: float, most: int = READ_SIZE) -> list[Message]:
        """Returns new messages of at most so many bytes. Closes the pipe at its end.

        Raises TooTalkative if it has sent more than its allowance.
        """
        messages: list[Message] = []
        size = 0
        while self.open and size < most:
            try:
                data = os.read(self.messages, most - size)
            except BlockingIOError:
                break
            if not data:
                self.close()
            messages += self.decoder.feed(data) if data else self.decoder.close()
            size += len(data)
        if not self.allowance.take(size, len(messages), now, is_all=size < most):
            raise TooTalkative
        return messages

    def send(self, number: int) -> None:
        if self.pid == NO_PID:
            return
        with suppress(ProcessLookupError):  # gone already; the reaper will say so
            os.kill(self.pid, number)

    def close(self) -> None:
        if self.open:
            self.open = False
            os.close(self.messages)


class WorkerHandle(ProcessHandle):
    """A worker as the arbiter sees it."""

    def __init__(
        self,
        nr: int,
        worker: Worker,
        pid: int,
        messages: int,
        pages: Pages,
        page: int,
        *,
        reports: int = -1,
        profile_bell: int = -1,
    ) -> None:
        super().__init__(nr, pid, messages)
        self.worker = worker
        """The worker as hooks know it; the one that serves is its copy in the other process."""
        self.pages = pages
        self.page = page
        """The number of its page of the scoreboard."""
        self.reports = reports
        """The file of its reports and stacks (`Reports`); -1 where there is none."""
        self.profile_bell = profile_bell
        """The write end of a pipe at which its sampler waits for orders.

        A pipe rather than an eventfd: its ends have separate flags, so a worker cannot make the arbiter's writes block.
        """
        self.mold_requests: socket.socket | None = None
        """The arbiter's end of the requests to it once it is a mold; None if it will be none."""
        self.profiled = 0
        """The number of the last order."""
        self.kind = ""
        """The worker's class, once it serves."""
        self.libraries: Mapping[str, str] = {}
        """Versions of C libraries in it."""

    def receive(self, now: float, most: int = READ_SIZE) -> list[Message]:
        messages = super().receive(now, most)
        for message in messages:
            if isinstance(message, Ready):
                self.kind = message.kind
            elif isinstance(message, Libraries):
                self.libraries = message.versions
        return messages

    def snapshot(self) -> Snapshot | None:
        """Returns the snapshot of its page. None if it has not begun the page, or has written rubbish into it."""
        try:
            return Scoreboard(self.pages.page(self.page)).read()
        except ValueError:
            return None

    def requests(self) -> list[RunningRequest]:
        """Returns the requests that it runs, or ran when it was killed. Empty if its page holds rubbish."""
        return [] if self.snapshot() is None else Scoreboard(self.pages.page(self.page)).requests()

    def order_cancel(self, place: int, start: int) -> None:
        """Has its monitor end a call; what became of it is there a moment later (`take_cancelled`)."""
        Scoreboard(self.pages.page(self.page)).order_cancel(place, start)

    def order_log_level(self, level: int) -> None:
        """Its Python takes it when it runs again. Only for one that serves: before, the signal may have no handler."""
        Scoreboard(self.pages.page(self.page)).order_log_level(level)
        if watch.LEVEL_SIGNAL is not None:
            self.send(watch.LEVEL_SIGNAL)

    def take_cancelled(self) -> Cancelled | None:
        """None if the monitor has not heard of it, and will not any more."""
        return Scoreboard(self.pages.page(self.page)).take_cancelled()

    def ask_for_stacks(self) -> None:
        """Has the worker write its stacks: they are there a moment later (`told_stacks`), whatever it is doing."""
        if self.reports >= 0 and watch.STACKS_SIGNAL is not None:
            Reports(self.reports).forget_stacks()
            self.send(watch.STACKS_SIGNAL)
            if watch.WAITING_SIGNAL is not None:
                self.send(watch.WAITING_SIGNAL)

    def told_stacks(self, most: int) -> str:
        """Returns the stacks of its threads."""
        return Reports(self.reports).stacks(most).decode("utf-8", "replace")

    def told_waiting(self) -> bytes:
        """Returns what its Python has written since; empty: it has not come to it."""
        return Reports(self.reports).waiting()

    def told_slow(self) -> bytes:
        """Returns what its sampler has written last of slow requests; empty: nothing yet."""
        return Reports(self.reports).slow()

    def order_profile(self, seconds: float, rate: int, most: int) -> None:
        """Has its sampler look at everything; 0 seconds: it ends what it is at. `most`: bytes of the report."""
        if self.reports < 0 or self.profile_bell < 0:
            return
        self.profiled = Reports(self.reports).order(seconds, rate, most)
        with suppress(OSError):  # full: it is rung; broken: its sampler is gone
            os.write(self.profile_bell, b"p")

    def told_profile(self) -> bytes:
        """Returns what its sampler has written for the last order, which may go on; empty: nothing."""
        return Reports(self.reports).profile(self.profiled)

    def forget(self) -> None:
        """It is gone, or this process is another worker."""
        self.close()
        if self.mold_requests is not None:
            self.mold_requests.close()
        files = (self.reports, self.profile_bell)
        self.reports = self.profile_bell = -1
        for file in files:
            if file >= 0:
                os.close(file)


PROFILES = 512 << 10
"""Bytes of the profiles of all workers: each is told with its order how much it may write."""


def open_reports() -> int:
    """Opens the file of a worker's reports; -1 where the system has none."""
    try:
        return Reports.create()
    except OSError:
        return -1


def open_bell() -> tuple[int, int]:
    """A pipe: the end that waits, and the one that rings. (-1, -1) if there are no descriptors left."""
    try:
        reader, writer = os.pipe()
    except OSError:
        return -1, -1
    for end in (reader, writer):
        os.set_blocking(end, False)
    return reader, writer


class TooTalkative(Exception):
    """A worker has sent more than the arbiter is ready to read."""


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


class Allowance:
    """Limits what a worker may send, so that no worker takes all of the arbiter's time: a token bucket, of bytes.

    It fills up while the arbiter reads all that the worker sends, however slow a busy machine makes both.
    """

    def __init__(self) -> None:
        self._left: float = BURST
        self._at: float | None = None
        """When all was last read; None: the pipe may hold more."""

    def take(self, size: int, messages: int, now: float, *, is_all: bool) -> bool:
        """Whether there was enough left. `is_all`: the pipe is empty now."""
        if self._at is not None:
            self._left = min(BURST, self._left + (now - self._at) * RATE)
        self._at = now if is_all else None
        self._left -= size + messages * MESSAGE
        return self._left >= 0
