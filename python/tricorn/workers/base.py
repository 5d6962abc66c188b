"""The child's side of a worker: from the fork to the exit status.

    boot: load the application, start the core   --any exception--> BootFailed, exit 3 or 4
    serve: until the core is drained or stopped
    leave: close the core, flush, exit 0

The parent's side is `arbiter.worker_handle`.
"""

from __future__ import annotations

import os
import signal
import sys
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from tricorn.errors import AppImportError, ExitCode
from tricorn.gateway import app_loader
from tricorn.workers.messages import BootFailed, Message, Ready, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import FrameType
    from typing import Any

    from tricorn.config.config import Config
    from tricorn.log import ErrorLog
    from tricorn.workers.native import Core, WsgiGateway


@dataclass(frozen=True, slots=True)
class Assignment:
    """What the arbiter leaves to a worker at the fork."""

    config: Config
    worker_class: str
    log: ErrorLog
    listeners: Sequence[int]
    page: memoryview
    siblings: bool
    messages: int
    """The write end of this worker's pipe to the arbiter."""
    life: int
    """The read end of a pipe that only the arbiter holds open: it ends when the arbiter does."""
    application: Callable[..., Any] | None
    """Already loaded, with `preload_app`."""


class Worker(ABC):
    """What all classes share. A class says how to wait and how to call, and nothing else."""

    # What a signal to a worker must not do: kill it. gunicorn's `pkill -HUP` trap, and the terminal's size.
    _HARMLESS: ClassVar = (signal.SIGHUP, signal.SIGUSR2, signal.SIGWINCH, signal.SIGTTIN, signal.SIGTTOU)

    def __init__(self, assignment: Assignment) -> None:
        self.assignment = assignment
        self.config = assignment.config
        self.log = assignment.log
        self.quick = False
        """Told to leave at once: running calls are not waited for."""
        self.crashed = False
        """An exception left the core: one of its own, or the SystemExit of an application."""

    @abstractmethod
    def serve(self, core: Core, gateway: WsgiGateway) -> None:
        """Serves until the core is drained or stopped."""

    def run(self) -> int:
        """The whole life of the process; returns its exit status."""
        self.log.info("Booting worker with pid: %s", os.getpid())
        try:
            core, gateway = self._boot()
        except SystemExit as error:
            self.log.error("The application called sys.exit(%r) while it was loaded", error.code)
            self._tell(BootFailed(ExitCode.WORKER_BOOT, f"SystemExit: {error.code}"))
            status: int = ExitCode.WORKER_BOOT
        except AppImportError as error:
            self.log.debug("Error while loading the application", exc_info=True)
            print(error, file=sys.stderr, flush=True)
            self._tell(BootFailed(ExitCode.APP_LOAD, str(error)))
            status = ExitCode.APP_LOAD
        except Exception as error:
            self.log.exception("Exception in worker process")
            self._tell(BootFailed(ExitCode.WORKER_BOOT, f"{type(error).__name__}: {error}"))
            status = ExitCode.WORKER_BOOT
        else:
            self._tell(Ready())
            status = self._serve(core, gateway)
        _ignore_signals()
        self.log.info("Worker exiting (pid: %s)", os.getpid())
        self.log.flush()
        return status

    def _boot(self) -> tuple[Core, WsgiGateway]:
        from tricorn.gateway import wsgi
        from tricorn.workers import native

        given = self.assignment
        application = given.application or app_loader.load(self.config.wsgi_app or "")
        core = native.make_core(given.listeners, self.config, given.worker_class, given.siblings, given.page)
        multithread = given.worker_class == "gthread" and self.config.threads > 1
        gateway = wsgi.make_gateway(application, self.log, multithread=multithread, multiprocess=given.siblings)
        core.start()
        # A signal must end the core's poll; Python's handlers then run inside `serve` or `wait`.
        signal.set_wakeup_fd(core.wakeup_fd, warn_on_full_buffer=False)
        self._listen_to_signals(core)
        self._watch_arbiter()
        return core, gateway

    def _serve(self, core: Core, gateway: WsgiGateway) -> int:
        try:
            self.serve(core, gateway)
        except (Exception, SystemExit):
            self.crash()
        finally:
            signal.set_wakeup_fd(-1)
            core.close()
        return CRASHED if self.crashed else ExitCode.OK

    def crash(self) -> None:
        """Logs the exception that is being handled; the worker will exit with a status that is not 0."""
        self.crashed = True
        self.log.exception("Exception in worker process")

    def _listen_to_signals(self, core: Core) -> None:
        def drain(*_: object) -> None:
            core.drain()

        def stop(*_: object) -> None:
            self.quick = True
            core.stop()

        def reopen(*_: object) -> None:
            core.reopen_logs()
            self.log.reopen()

        def ignore(*_: object) -> None:
            """Not SIG_IGN, which programs the application starts would inherit."""

        signal.signal(signal.SIGTERM, drain)
        signal.signal(signal.SIGINT, stop)
        signal.signal(signal.SIGQUIT, stop)
        signal.signal(signal.SIGABRT, self._abort)
        signal.signal(signal.SIGUSR1, reopen)
        for harmless in self._HARMLESS:
            signal.signal(harmless, ignore)

    def _abort(self, _: int, frame: FrameType | None) -> None:
        """The arbiter lost patience: says where the main thread is, and goes without ceremony."""
        import traceback

        self.log.critical("Worker aborted (pid: %s) at:\n%s", os.getpid(), "".join(traceback.format_stack(frame)))
        self.log.flush()
        os._exit(1)

    def _watch_arbiter(self) -> None:
        """Leaves gracefully when the arbiter dies: nobody else would ever tell this process to.

        A thread and not a poll of getppid(): it costs nothing while nothing happens, and knows at once.
        """
        import _thread  # `threading` is for those who join

        _thread.start_new_thread(self._outlive, ())

    def _outlive(self) -> None:
        while os.read(self.assignment.life, 1):
            pass
        self.log.warning("Parent changed, shutting down: worker (pid: %s)", os.getpid())
        os.kill(os.getpid(), signal.SIGTERM)
        import time

        time.sleep(self.config.graceful_timeout)
        os.kill(os.getpid(), signal.SIGKILL)

    def _tell(self, message: Message) -> None:
        with suppress(BrokenPipeError):  # the arbiter is gone; `_outlive` deals with that
            os.write(self.assignment.messages, encode(message))


def _ignore_signals() -> None:
    """From here on the process leaves by itself.

    The interpreter takes handlers away before it is gone: the QUIT that follows a Ctrl-C, or a second TERM,
    would kill a worker that has done everything right, and the log would say so.
    """
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)


CRASHED = 1


def run(assignment: Assignment) -> int:
    """Becomes the worker that `assignment` describes."""
    from tricorn import workers

    return workers.load(assignment.worker_class)(assignment).run()
