"""Python's side of the native watchdog: the stack of a stuck call, an exception in a late request.

The watchdog itself is the core's monitor (`crates/tricorn-io/src/monitor/watchdog.rs`), which no call and no GIL can
hold up. It sends two signals to the thread that runs the call:

    STACK_SIGNAL   faulthandler's C handler writes the thread's Python stack into the pipe to the arbiter, at once and
                   though C code may hold the GIL
    LATE_SIGNAL    the main thread's Python handler raises `RequestTimeout` in the application, or `RequestCancelled` if
                   an operator wants it to end; other threads get it from the main thread, which the monitor wakes
                   for that

A platform without realtime signals (macOS) has neither: limits are kept, but stacks are not told, and a request that is
late on the main thread is answered without its call being ended.
"""

from __future__ import annotations

import faulthandler
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from tricorn import errors
from tricorn.unpatched import os

if TYPE_CHECKING:
    from types import FrameType

    from tricorn.workers.native import Core


def told_by_arbiter() -> tuple[int, ...]:
    """Signals that have handlers in Python once a worker serves."""
    return tuple(number for number in (LEVEL_SIGNAL, WAITING_SIGNAL) if number is not None)


def _realtime(offset: int) -> int | None:
    first = getattr(signal, "SIGRTMIN", None)
    return None if first is None else int(first) + offset


# The numbers are the core's as well (`crates/tricorn-sys/src/signals.rs`).
STACK_SIGNAL = _realtime(5)
LATE_SIGNAL = _realtime(6)
STACKS_SIGNAL = _realtime(7) if hasattr(os, "memfd_create") else None
"""Sent by the arbiter only, when an operator asks."""
LEVEL_SIGNAL = _realtime(8)
"""Sent by the arbiter: the level of the log stands in the worker's page."""
WAITING_SIGNAL = _realtime(9) if STACKS_SIGNAL is not None else None
"""Sent by the arbiter with STACKS_SIGNAL: Python adds what waits, when it runs."""


def enable(messages: int, stacks: int = -1) -> None:
    """Lets STACK_SIGNAL write the stack of the thread that gets it into the descriptor `messages`.

    For a worker's first moments: an arbiter may ask one that hangs while it boots. STACKS_SIGNAL writes those of all
    threads of Python into the file `stacks`: they are too long for a pipe that others write to.
    """
    if STACK_SIGNAL is not None:
        faulthandler.register(STACK_SIGNAL, file=messages, all_threads=False, chain=False)
        if STACKS_SIGNAL is not None and stacks >= 0:
            faulthandler.register(STACKS_SIGNAL, file=stacks, all_threads=True, chain=False)
        _make_room_for_signals()


def prepare() -> None:
    """Makes faulthandler's signal stack large enough. Main thread, before an application may enable faulthandler.

    faulthandler makes its signal stack once, when it is first used, and lets a larger one be. Forks inherit that.
    """
    if STACK_SIGNAL is not None:
        faulthandler.register(STACK_SIGNAL, file=0, all_threads=False, chain=False)
        faulthandler.unregister(STACK_SIGNAL)
        _make_room_for_signals()


def _make_room_for_signals() -> None:
    """faulthandler's signal stack has room for four handlers, and signals may come all at once."""
    from tricorn.workers import native

    with suppress(OSError):  # no memory: as few signals as before
        native.enlarge_signal_stack()


def obey(change_level: Callable[[], object], write_waiting: Callable[[FrameType | None], object]) -> None:
    """Installs the handlers for the arbiter's realtime signals. Main thread of a worker that is about to serve.

    Before it says that it serves: a signal without a handler would end it.
    """
    if LEVEL_SIGNAL is None:
        return

    signal.signal(LEVEL_SIGNAL, lambda *_: change_level())
    signal.siginterrupt(LEVEL_SIGNAL, False)  # C code of the application need not know
    if WAITING_SIGNAL is not None:
        signal.signal(WAITING_SIGNAL, lambda _, frame: write_waiting(frame))
        signal.siginterrupt(WAITING_SIGNAL, False)


def disable() -> None:
    """Takes the handlers off in a process that is no worker, where the descriptor `messages` may be any file."""
    if STACK_SIGNAL is not None:
        faulthandler.unregister(STACK_SIGNAL)
    if STACKS_SIGNAL is not None:
        faulthandler.unregister(STACKS_SIGNAL)
    for number in told_by_arbiter():
        signal.signal(number, signal.SIG_DFL)


def listen(core: Core, late_call: Callable[[], type[BaseException] | None] | None = None) -> None:
    """Ends the application's calls that are older than the core's `request_timeout`; for the main thread.

    `late_call` tells what is to be raised in what runs there; if not given, the core does. Nothing is installed if
    there is no limit.
    """
    limit = core.request_timeout
    if not limit:
        return
    late_call = late_call or core.late_call
    core.raise_when_late(errors.request_timeout(limit), errors.RequestCancelled)
    if LATE_SIGNAL is None:
        return

    def end_call(*_: object) -> None:
        # The call may have ended, and another begun, since the monitor sent this.
        error = late_call()
        if error is not None:
            raise error

    signal.signal(LATE_SIGNAL, end_call)
