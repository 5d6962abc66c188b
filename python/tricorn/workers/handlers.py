"""What signals do to a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tricorn.unpatched import os, signal

if TYPE_CHECKING:
    from types import FrameType

    from tricorn.workers.base import Worker
    from tricorn.workers.native import Core

# What a signal to a worker must not do: kill it. gunicorn's `pkill -HUP` trap, and the terminal's size.
HARMLESS = (signal.SIGHUP, signal.SIGUSR2, signal.SIGWINCH, signal.SIGTTIN, signal.SIGTTOU)

# What it handles.
OURS = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGABRT, signal.SIGUSR1)

HANDLED = (*OURS, *HARMLESS)


class Handlers:
    """TERM drains, INT and QUIT stop, USR1 reopens the logs, ABRT ends; others do nothing.

    A handler may run in the midst of a hub, where nothing may wait. What may wait is run by `worker.spawn`.
    """

    def __init__(self, worker: Worker, core: Core) -> None:
        self._worker = worker
        self._core = core

    def listen(self) -> None:
        # A signal must end the wait; Python's handlers then run inside `serve`.
        signal.set_wakeup_fd(self._worker.wakeup_fd(self._core), warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, self._drain)
        signal.signal(signal.SIGINT, self._stop)
        signal.signal(signal.SIGQUIT, self._stop)
        signal.signal(signal.SIGABRT, self._abort)
        signal.signal(signal.SIGUSR1, self._reopen)
        for harmless in HARMLESS:
            signal.signal(harmless, _ignore)

    @staticmethod
    def silence() -> None:
        signal.set_wakeup_fd(-1)

    @staticmethod
    def take_off() -> None:
        """In a child that the application forked: signals do what they do to any process."""
        signal.set_wakeup_fd(-1)
        for number in HANDLED:
            handler = signal.getsignal(number)
            if handler is _ignore or isinstance(getattr(handler, "__self__", None), Handlers):
                signal.signal(number, signal.SIG_DFL)

    def _drain(self, *_: object) -> None:
        self._worker.leaving = True
        self._worker.fds.refuse_newcomers()
        self._core.drain()
        self._worker.told_to_leave()

    def _stop(self, *_: object) -> None:
        worker = self._worker
        worker.leaving = True
        if worker.quick:
            self._core.stop()
        else:
            worker.quick = True
            worker.spawn(self._tell_and_stop)
        worker.told_to_leave()

    def _tell_and_stop(self) -> None:
        worker = self._worker
        try:
            worker.cfg.worker_int(worker)
        except Exception:
            worker.log.exception("Exception in the hook worker_int")
        finally:  # a hook may raise SystemExit
            self._core.stop()

    def _reopen(self, *_: object) -> None:
        self._worker.spawn(self._reopen_logs)

    def _reopen_logs(self) -> None:
        log = self._worker.log
        log.reopen_files()
        try:
            self._core.reopen_logs()
        except OSError as error:
            log.error("%s", error)

    def _abort(self, _: int, frame: FrameType | None) -> None:
        """The arbiter lost patience: tells the hook, says where the main thread is, and goes."""
        import traceback

        worker = self._worker
        worker.leaving = True
        worker.aborted = True
        try:
            worker.cfg.worker_abort(worker)
        except Exception:
            worker.log.exception("Exception in the hook worker_abort")
        worker.log.debug("Worker aborted (pid: %s) at:\n%s", os.getpid(), "".join(traceback.format_stack(frame)))
        worker.die()


def _ignore(*_: object) -> None:
    """Not SIG_IGN, which programs the application starts would inherit."""


def ignore_signals() -> None:
    """From here on the process leaves by itself.

    The interpreter takes handlers away before it is gone: the QUIT that follows a Ctrl-C, or a second TERM,
    would kill a worker that has done everything right, and the log would say so.
    """
    for number in OURS:
        signal.signal(number, signal.SIG_IGN)
