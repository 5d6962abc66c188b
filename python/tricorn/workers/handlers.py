"""Signal handlers of a worker."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Container
from typing import TYPE_CHECKING

from tricorn.shutdown import NOTICE
from tricorn.unpatched import os, signal
from tricorn.workers import watch

if TYPE_CHECKING:
    from types import FrameType

    from tricorn.workers.contract import Contract
    from tricorn.workers.native import Core

# What a signal to a worker must not do: kill it. gunicorn's `pkill -HUP` trap, and the terminal's size.
HARMLESS = (signal.SIGHUP, signal.SIGUSR2, signal.SIGWINCH, signal.SIGTTIN, signal.SIGTTOU)

# What it handles.
OURS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGABRT, signal.SIGUSR1)

HANDLED = (*OURS, *HARMLESS)

METHODS = {
    signal.SIGTERM: "handle_exit",
    signal.SIGINT: "handle_quit",
    signal.SIGQUIT: "handle_quit",
    signal.SIGABRT: "handle_abort",
    signal.SIGUSR1: "handle_usr1",
    signal.SIGWINCH: "handle_winch",
}
"""gunicorn's names; classes of the user's override them."""


class Handlers:
    """TERM drains, INT and QUIT stop, USR1 reopens the logs, ABRT ends; others do nothing.

    A handler may run in the midst of a hub, where nothing may wait. What may wait is run by `worker.spawn`.
    """

    def __init__(self, worker: Contract, core: Core) -> None:
        self._worker = worker
        self._core = core
        self._has_ended_calls = False

    @property
    def should_exit(self) -> bool:
        """Whether the worker leaves, by uvicorn's name.

        Libraries look for it at the object whose bound method handles TERM: sse-starlette ends its streams by it, and
        with it MCP's SDK.
        """
        return self._worker.leaving

    def listen(self, theirs: Container[int] = ()) -> None:
        """Installs the handlers, except for signals that a user's class handles itself."""
        from tricorn.workers import native

        # A signal must end the wait; Python's handlers then run inside `serve`.
        signal.set_wakeup_fd(self._worker.wakeup_fd(self._core), warn_on_full_buffer=False)
        handle = native.SignalHandler(self._handle)
        for number in HANDLED:
            if number not in theirs:
                signal.signal(number, handle if number in METHODS else _ignore)

    @staticmethod
    def silence() -> None:
        signal.set_wakeup_fd(-1)

    @staticmethod
    def take_off() -> None:
        """Restores the default actions. Called in a child that the application forked."""
        signal.set_wakeup_fd(-1)
        for number in HANDLED:
            handler = signal.getsignal(number)
            if handler is _ignore or isinstance(getattr(handler, "__self__", None), Handlers):
                signal.signal(number, signal.SIG_DFL)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        """Calls the class's method for a signal, which usually ends here again."""
        getattr(self._worker, METHODS[signal.Signals(number)])(number, frame)

    def _leave(self) -> None:
        self._worker.leaving = True
        NOTICE.announce()

    def drain(self) -> None:
        self._leave()
        self._worker.refuse_newcomers()
        self._core.drain()
        self._worker.told_to_leave()

    def stop(self, frame: FrameType | None) -> None:
        worker = self._worker
        self._leave()
        if worker.quick:
            self._core.stop()
        else:
            worker.quick = True
            worker.spawn(self._tell_and_stop)
        worker.told_to_leave()
        self._end_calls(frame)

    def _end_calls(self, frame: FrameType | None) -> bool:
        """Returns whether calls of the application are being ended, unless it raises SystemExit in the one at `frame`.

        Only once: a second signal must not end what the first one has begun, `finally` clauses, context managers, error
        reporters.
        """
        if self._has_ended_calls:
            return True
        self._has_ended_calls = True
        in_threads = self._core.end_calls()
        if self._worker.end_calls(frame) or in_threads:
            return True
        if _is_in_debugger(frame):
            raise SystemExit  # it waits at its prompt in code of the server's, or is about to
        return False

    def _tell_and_stop(self) -> None:
        worker = self._worker
        try:
            worker.cfg.worker_int(worker)
        except Exception:
            worker.log.exception("Exception in the hook worker_int")
        finally:  # a hook may raise SystemExit
            self._core.stop()

    def reopen(self) -> None:
        self._worker.spawn(self._reopen_logs)

    def _reopen_logs(self) -> None:
        log = self._worker.log
        log.reopen_files()
        try:
            self._core.reopen_logs()
        except OSError as error:
            log.error("%s", error)

    def abort(self, frame: FrameType | None) -> None:
        """The arbiter lost patience: tells the hook, says where the main thread is, ends the calls, and goes.

        The arbiter kills a process that does not go by that.
        """
        worker = self._worker
        self._leave()
        worker.aborted = True
        try:
            worker.cfg.worker_abort(worker)
        except Exception:
            worker.log.exception("Exception in the hook worker_abort")
        worker.log.debug("Worker aborted (pid: %s) at:\n%s", os.getpid(), "".join(traceback.format_stack(frame)))
        worker.quick = True
        self._core.stop()
        if not self._end_calls(frame):
            worker.die()


def changed_by(function: Callable[[], object]) -> set[int]:
    """The signals for which `function` sets handlers."""
    before = {number: signal.getsignal(number) for number in HANDLED}
    function()
    return {number for number in HANDLED if signal.getsignal(number) not in (before[number], signal.SIG_DFL)}


def _is_in_debugger(frame: FrameType | None) -> bool:
    files = {sys.modules[name].__file__ for name in ("bdb", "pdb") if name in sys.modules}
    while files and frame is not None:
        if frame.f_code.co_filename in files:
            return True
        frame = frame.f_back
    return False


def _ignore(*_: object) -> None:
    """Not SIG_IGN, which programs the application starts would inherit."""


def ignore_signals() -> None:
    """From here on the process leaves by itself.

    The interpreter takes handlers away before it is gone: the QUIT that follows a Ctrl-C, or a second TERM,
    would kill a worker that has done everything right, and the log would say so.
    """
    for number in (*OURS, *watch.told_by_arbiter()):
        signal.signal(number, signal.SIG_IGN)
