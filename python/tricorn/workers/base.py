"""The child's side of a worker: from the fork to the exit status.

    boot: hooks, user, application, core    --any exception--> BootFailed, exit 3 or 4
    serve: until the core is drained or stopped
    leave: close the core, hooks, flush, exit 0; without the interpreter's own end if threads are left.
           Or the process becomes a mold (`arbiter.molds`)

The arbiter makes the object before the fork and shows it to the hook `pre_fork`; the copy in the child becomes the
worker. The parent's side is `arbiter.worker_handle`.
"""

from __future__ import annotations

import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from tricorn import forked, import_hooks
from tricorn import log as logs
from tricorn.errors import AppImportError, BootError, ConfigError, ExitCode, shown
from tricorn.metrics.scoreboard import Scoreboard
from tricorn.record import Record
from tricorn.unpatched import os
from tricorn.workers import (
    boot_failure,
    ending,
    inherited,
    leaving,
    notifier,
    privileges,
    sessions,
    title,
    versions,
    watch,
)
from tricorn.workers.contract import Contract
from tricorn.workers.handlers import HANDLED, Handlers, changed_by, ignore_signals
from tricorn.workers.messages import BootFailed, Changed, Level, Libraries, Message, Notice, Ready, Retire, encode
from tricorn.workers.preparation import Preparation
from tricorn.workers.spec import WorkerFds, WorkerSpec
from tricorn.workers.tmp import Tmp

if TYPE_CHECKING:
    from types import FrameType

    from typing_extensions import Self

    from tricorn.config.config import Config
    from tricorn.log import Logger
    from tricorn.workers.native import Core
    from tricorn.workers.reloader import Reloader


class Worker(Contract, Preparation, ABC):
    """Base of all worker classes. A class defines how to wait, how to call, and the facts that the server needs.

    The public attributes are those that hooks written for gunicorn use.
    """

    SIGNALS = HANDLED

    def __init__(
        self, age: int, ppid: int, sockets: Sequence[Any], app: Any, timeout: float, cfg: Any, log: Any
    ) -> None:
        """gunicorn's, and with its arguments; the rest is in `spec` by then."""
        spec = self.spec
        self.fds = WorkerFds((), (), -1, -1)
        self.call_file = -1
        """Descriptor that shows the main thread's system calls if the worker changes its user (`privileges`)."""
        self.age = age
        self.slot = spec.slot
        self.pid: int | str = "[booting]"
        self.ppid = ppid
        self.sockets = sockets
        self.app = app
        self.cfg: Config = cfg
        self.log: Logger = log
        self.timeout = timeout
        self.booted = False
        self.aborted = False
        self.leaving = False
        """Told to leave, or about to: the arbiter knows."""
        self._alive = True
        self.max_requests = _most_requests(spec.config)
        self.tmp = Tmp(spec.page)
        self.reloader: Reloader | None = None
        self.quick = False
        """Told to leave at once: running calls are not waited for."""
        self.late_streams = 0
        """Streams that were told to end, since the worker leaves, and had to be forced."""
        self.crashed = False
        """An exception left the core: one of its own, or of a signal handler."""
        self.is_serving = False
        """True in the worker's process once it has reported to the arbiter that it serves."""
        self._core: Core | None = None
        self._ready: Booted | None = None
        self._status: int | None = None
        """The exit status, once it has served."""

    @classmethod
    def hire(cls, spec: WorkerSpec) -> Self:
        """A worker as the arbiter has it before the fork."""
        worker = cls.__new__(cls)
        worker.spec = spec
        arguments = spec.sockets, spec.app, spec.config.timeout / 2, spec.config, spec.log
        worker.__init__(spec.age, os.getpid(), *arguments)  # type: ignore[misc]
        return worker

    @property
    def alive(self) -> bool:
        """Set to False in the worker, it is replaced; until its successor serves it goes on."""
        return self._alive and not self.leaving

    @alive.setter
    def alive(self, value: bool) -> None:
        asks = self.alive and not value and self.is_serving
        self._alive = value
        if asks:
            self._ask_to_retire()

    def _ask_to_retire(self) -> None:
        self._tell(Retire("the application has set worker.alive to False"))

    def notify(self) -> None:  # no class has more to do
        """gunicorn's heartbeat: nothing to do. `timeout` is about the progress of requests, which the core sees."""

    @property
    def nr(self) -> int:
        """Returns the number of requests that the worker has started."""
        return Scoreboard(self.spec.page).begun

    @abstractmethod
    def serve(self, core: Core, gateway: Any) -> None:
        """Serves until the core is drained or stopped."""

    def make_gateway(self) -> Any:
        """Returns the gateway through which the core calls the application."""
        from tricorn.workers import native

        return native.make_gateway(self)

    def make_stand_in(self, traceback: str) -> Any:
        """An application that shows why there is no other."""
        from tricorn.gateway import stand_in

        return stand_in.make_stand_in(traceback)

    def prepare(self) -> None:  # most have nothing to do
        """Sets up what must exist before any code of the application runs, hooks included."""

    def loaded(self) -> None:  # most have nothing to do
        """The application, or what stands in for it, is in `wsgi`. The core is made next."""

    def give_up(self) -> None:  # most have nothing to do
        """Undoes `prepare`: the worker has not booted."""

    def start_application(self) -> None:  # most have nothing to do
        """Runs the application's own start-up before its first request. An exception here is a failed boot."""

    def wakeup_fd(self, core: Core) -> int:
        return core.wakeup_fd

    def told_to_leave(self) -> None:
        if self._core is not None:
            leaving.close_streams(self, self._core)

    def refuse_newcomers(self) -> None:
        self.fds.refuse_newcomers(none_listens=not Scoreboard(self.spec.page).replaced)

    def has_threads_left(self) -> bool:
        """Whether threads of the server are still inside the application, after a quick stop."""
        return False

    def spawn(self, function: Callable[..., object], *arguments: object) -> None:
        function(*arguments)

    def after_fork(self, fds: WorkerFds) -> None:
        """Sets up the child process. Called after the fork."""
        inherited.forget_children()
        self.fds = fds
        self.pid = os.getpid()
        self.ppid = os.getppid()
        os.environ[SLOT] = str(self.slot)
        if self.spec.app_metrics is not None:
            self.spec.app_metrics.adopt(self.slot, self.log.warning)

    def live(self) -> int:
        """The whole life of the process; returns its exit status."""
        return self.end(self.work())

    def work(self) -> int:
        """Boots, and serves until it is told to leave; returns the exit status."""
        forked.guard(self._forked, HANDLED)
        watch.enable(self.fds.messages, self.fds.reports)
        self.log.info("Booting worker with pid: %s", self.pid)
        status = self._boot_and_serve()
        ignore_signals()
        self._finish()
        return status

    def end(self, status: int) -> int:
        """Ends the process if the interpreter cannot do it."""
        abandons = self.has_threads_left()
        if abandons or ending.threads():
            limits = ending.Limits(self.log, self.spec.config.graceful_timeout)
            ending.end_process(status, limits, abandons=abandons)
        return status

    def _boot_and_serve(self) -> int:
        """The exit status; if the boot failed, the arbiter has been told why."""
        try:
            self.prepare()
            with forked.fence():
                self._enter()
                self.init_process()
        except BaseException as error:
            if self._status is None:
                self.give_up()
                if not boot_failure.is_failure(error):
                    raise
                return self._boot_failed(error)
            if not isinstance(error, SystemExit):  # of a derived class, when it has served
                self.crash()
                return CRASHED
        if self._status is None:
            self.give_up()
            reason = NOT_SERVED % type(self).__qualname__
            if self.spec.once.claim(reason):
                self.log.error(NOT_SERVED, type(self).__qualname__)
            return self._failed(ExitCode.WORKER_BOOT, reason)
        return self._status

    def _boot_failed(self, error: BaseException) -> int:
        """Reports a failed boot, and returns the exit status. Called in an exception handler."""
        self.enable_log()
        reason = boot_failure.reason(error)
        if self.spec.once.claim(reason):
            boot_failure.write(self.log, self.app.app_uri, error)
        status = ExitCode.APP_LOAD if isinstance(error, AppImportError) else ExitCode.WORKER_BOOT
        return self._failed(status, reason)

    def _failed(self, status: ExitCode, reason: str) -> int:
        self._tell(BootFailed(status, reason))
        return status

    def _enter(self) -> None:
        """Does what must happen before code of a user's worker class runs."""
        import_hooks.keep(self.brings)  # the arbiter may have those of another generation
        config = self.spec.config  # a class of the user's may have another `cfg`
        title.set_title(f"{config.title_prefix}: worker [{config.proc_name or self.app.app_uri}]")
        config.post_fork(self.spec.server, self)
        self.call_file = privileges.keep_call_file(config.uid, config.gid)
        privileges.drop(config.uid, config.gid, initgroups=config.initgroups)
        if config.spew:
            from tricorn.workers import spew

            spew.install()
        if config.reload:
            from tricorn.workers import reloader

            watched, excluded = reloader.extra_files(config), config.reload_excludes
            self.reloader = reloader.start(watched, config.reload_engine, self._report_change, excluded)

    def init_process(self) -> None:
        """gunicorn's: boots, and serves. Returns when the worker has served."""
        from tricorn.workers import native

        theirs = changed_by(self.init_signals)
        self._load()
        if self.reloader is not None:
            self.reloader.note_modules()
        core = self._core = native.make_core(self)
        core.guard_forks()
        self._handlers = Handlers(self, core)
        self._handlers.listen(theirs)
        watch.listen(core)
        self.booted = True
        self.cfg.post_worker_init(self)
        self._start_application()
        self._warm_up()
        self._see_to_the_log(core)
        sessions.follow(self, core)
        gateway = self.make_gateway()  # after the hook, which may have put something around the application
        self.fds.start_listening()
        core.start()
        self._ready = Booted(core, gateway)
        self.run()

    def run(self) -> None:
        """gunicorn's: serves until the worker is told to leave."""
        if self._ready is None:
            raise ConfigError(f"{type(self).__qualname__}.run() was called before super().init_process().")
        self._say_ready()
        notifier.start(self, self._ready.core)
        self._status = self._run_core(self._ready.core, self._ready.gateway)

    def _say_ready(self) -> None:
        watch.obey(partial(self.spawn, self.change_log_level), self.tell_what_waits)
        if found := versions.of_c_libraries():
            self._tell(Libraries(found))
        self._tell(Ready(stand_in=self.stands_in, kind=self.alias))
        self.is_serving = True
        self.spec.once.close()
        if not self._alive:
            self._ask_to_retire()

    def enable_log(self) -> None:
        """Undoes a logging configuration of the application's that has switched the log off by leaving it out."""
        logs.enable(self.log, self.spec.once.claim)

    def _see_to_the_log(self, core: Core) -> None:
        """Follows what the application has made of the server's loggers while it was loaded and started."""
        self.enable_log()
        if not logs.is_native(self.cfg, self.log):
            core.hand_over_access_log()

    def change_log_level(self) -> None:
        """To what the arbiter has written into the page. Loggers of other classes keep theirs."""
        change = getattr(self.log, "change_level", None)
        level = LEVELS.get(Scoreboard(self.spec.page).log_level)
        if change is not None and level is not None:
            change(level)

    def calls(self) -> Sequence[tuple[int, object]]:
        """Returns the objects that identify requests waiting off-thread, with their slots."""
        return ()

    def tell_what_waits(self, frame: FrameType | None) -> None:
        """Writes the stacks of waiting requests. Called in a signal handler, when an operator asks for them."""
        from tricorn.workers import waiting

        if self.fds.reports >= 0:
            waiting.write(self.fds.reports, self.calls(), Scoreboard(self.spec.page).requests(), frame)

    def _load(self) -> None:
        try:
            self.load_wsgi()
        except (Exception, SystemExit) as error:
            if not self.spec.stand_in:
                raise
            self._let_stand_in(error, NOT_LOADED)
        self.enable_log()
        self.loaded()

    def _start_application(self) -> None:
        try:
            self.start_application()
        except (Exception, SystemExit) as error:
            if not self.spec.stand_in or self.stands_in:
                raise
            self._let_stand_in(error, "The application cannot start; browsers see its traceback until it can")
            self.start_application()

    def _warm_up(self) -> None:
        if self.spec.config.warmup:
            from tricorn.workers import warming

            warming.warm_worker(self)

    def _let_stand_in(self, error: BaseException, text: str) -> None:
        """Serves the failure itself as the application. Called in an exception handler."""
        self.enable_log()
        if self.spec.once.claim(f"{text}: {error}"):
            self.log.error("%s", text, exc_info=shown(error))
        details = error.details if isinstance(error, BootError) else ""
        self.wsgi = self.make_stand_in(details or "".join(traceback.format_exception(*shown(error))))
        self.stands_in = True
        if self.reloader is not None:
            # What failed while it was imported is no module, and is what will be mended.
            files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
            if isinstance(error, SyntaxError) and error.filename:
                files.append(error.filename)
            for path in filter(os.path.isfile, files):
                self.reloader.add(path)

    def _run_core(self, core: Core, gateway: Any) -> int:
        try:
            with forked.fence():
                self.serve(core, gateway)
        except BaseException as error:  # a panic of the core's is no Exception
            if not (self.quick and isinstance(error, SystemExit)):  # a signal's handler has raised that in the server
                self.crash()
        finally:
            self.leaving = True
            if self.reloader is not None:
                self.reloader.stop()
            Handlers.silence()
            if lost := core.close():
                self.log.warning("%s", lost)
            leaving.report_streams(self)
        return CRASHED if self.crashed else ExitCode.OK

    def _finish(self) -> None:
        self.log.info("Worker exiting (pid: %s)", self.pid)
        try:
            with forked.fence():
                self.cfg.worker_exit(self.spec.server, self)
        except Exception:
            self.log.warning("Exception in the hook worker_exit", exc_info=True)
        self.log.flush()

    def _forked(self) -> None:
        """Makes a process that the application forked an ordinary one, which keeps nothing of the worker alive.

        The core has seen to its own descriptors.
        """
        Handlers.take_off()
        descriptors = [self.fds.messages, self.fds.life]
        if self._core is None:
            descriptors += [*self.fds.listeners, *self.fds.admin_listeners, *(self.fds.channel or ())]
        self._release(descriptors)
        self.in_child()

    def in_child(self) -> None:  # most have nothing to do
        """Releases what the class holds. Called in a process that the application forked, where the fork happened."""

    def let_go(self) -> None:
        """Releases all that is a worker's, when it has served, but its end of the pipe: the process becomes a mold."""
        forked.release()
        if self._core is not None:
            self._core.let_go_of_forks()
        self._handlers = None  # it holds this, and so the core
        self._release()

    def _release(self, descriptors: Sequence[int] = ()) -> None:
        watch.disable()
        for descriptor in (*descriptors, self.fds.reports, self.fds.profile_bell, self.call_file):
            with suppress(OSError):  # there is none, or a child of this one comes here, too
                os.close(descriptor)
        self.fds, self.call_file = WorkerFds((), (), -1, -1), -1
        self.is_serving = False

    def crash(self) -> None:
        """Logs the exception that is being handled; the worker will exit with a status that is not 0."""
        self.crashed = True
        self.log.exception("Exception in worker process")

    def die(self) -> None:
        self._finish()
        os._exit(CRASHED)

    def notice(self, level: Level, text: str) -> None:
        """Logs a line once, however many workers report it."""
        self._tell(Notice(level, text))

    def _report_change(self, path: str) -> None:
        self._tell(Changed(path))

    def _tell(self, message: Message) -> None:
        with suppress(BrokenPipeError):  # the arbiter is gone; the core deals with that
            os.write(self.fds.messages, encode(message))

    def __str__(self) -> str:
        return f"<Worker {self.pid}>"


class Booted(Record):
    core: Core
    gateway: Any


def _most_requests(config: Config) -> int:
    """Returns `max_requests` with its jitter, or `sys.maxsize` without a limit, as gunicorn does."""
    if config.max_requests <= 0:
        return sys.maxsize
    from random import randint

    return config.max_requests + randint(0, config.max_requests_jitter)


CRASHED = 1

ENDING_CALLS = 1.0
"""Seconds for calls in which SystemExit was raised; the arbiter kills a worker a second later (`QUIT_PATIENCE`)."""

LEVELS = {10: "debug", 20: "info", 30: "warning", 40: "error", 50: "critical"}
"""Log levels by their number in `logging`."""

NOT_LOADED = "The application cannot be loaded; its traceback is served until it can"

NOT_SERVED = "%s: init_process() returned before the worker served. Call super() in init_process() and run()."

SLOT = "TRICORN_WORKER"
"""The variable that tells the application, and what it starts, the slot of its worker."""
