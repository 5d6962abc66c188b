"""Worker classes that accept connections and read requests themselves: guests under this arbiter.

The class has gunicorn's contract: `(age, ppid, sockets, app, timeout, cfg, log)`, and a `run` that goes on while
`alive` is true and calls `notify`. Around it are the generations, signals, hooks and limits of this server:

    Front    what the arbiter calls, before anything of the class's own
    (the class, and what it is derived from: gunicorn's own, or ours)
    Back     what `super()` of a class finds that needs no gunicorn: gunicorn's `workers.base.Worker`

There is no core in the process. The heartbeat is that of `notify`, and `timeout` is about it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tricorn.config.resolve import Raw
from tricorn.config.settings.processes import HOSTED
from tricorn.errors import ConfigError, ExitCode
from tricorn.metrics.scoreboard import Scoreboard
from tricorn.shutdown import NOTICE
from tricorn.unpatched import os, signal, socket, time
from tricorn.workers import originals
from tricorn.workers.base import NOT_LOADED, Worker
from tricorn.workers.handlers import HANDLED, HARMLESS, METHODS
from tricorn.workers.messages import Parted
from tricorn.workers.spec import WorkerFds, WorkerSpec
from tricorn.workers.tmp import Tmp

if TYPE_CHECKING:
    from types import FrameType

    from typing_extensions import Self

    from tricorn.config.config import Config
    from tricorn.log import Logger


def host(kind: type, *, why: str) -> type[Worker]:
    """The class as a guest. `why` names what makes it one."""
    names = {
        "alias": HOSTED,
        "why": why,
        "is_gunicorns": not issubclass(kind, Worker),
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
    }
    return type(kind.__name__, (Front, kind, Back), names)


def is_hosted(kind: type) -> bool:
    return issubclass(kind, Front)


class Heartbeat(Tmp):
    """gunicorn's `worker.tmp`."""

    def __init__(self, worker: Front) -> None:
        super().__init__(worker.spec.page)
        self._worker = worker

    def notify(self) -> None:
        Scoreboard(self._page).beat()
        if self._worker.fds.has_no_arbiter():
            self._worker.leaving = True  # there is no arbiter to be told
            self._worker.alive = False

    def fileno(self) -> int:
        """A descriptor that no program is to inherit: gunicorn's classes see to that."""
        return self._worker.fds.life


class Front(Worker):
    why: str
    is_gunicorns: bool
    """It is derived from a class of gunicorn itself, which reads gunicorn's own configuration."""
    nr = 0  # counted by the class itself
    _reloader: Any = None

    @classmethod
    def settings(cls) -> Mapping[str, Raw]:
        return {**super().settings(), "handover": Raw(False, f"the hosted class {cls.__qualname__}")}

    @classmethod
    def check_config(cls, cfg: Config, log: Logger) -> None:
        if cfg.admin_bind:
            raise ConfigError(
                f"admin_bind (from {cfg.origin('admin_bind')}) needs the native core, which the worker class "
                f"{cls.__qualname__} does not use: {cls.why}."
            )
        if any(door.tls for door in cfg.doors):
            raise ConfigError(
                f"bind = {','.join(cfg.bind)} (from {cfg.origin('bind')}) uses TLS, which needs the native core, but "
                f"the worker class {cls.__qualname__} does not use it: {cls.why}. Use http://, and a proxy for TLS."
            )
        if spoken := next((door for door in cfg.doors if door.protocol), None):
            raise ConfigError(
                f"{spoken} speaks {spoken.protocol}, which needs the native core, but the worker class "
                f"{cls.__qualname__} does not use it: {cls.why}. Use http://."
            )
        super().check_config(cfg, log)

    @classmethod
    def hire(cls, spec: WorkerSpec) -> Self:
        worker = cls.__new__(cls)
        worker.spec = spec
        config = originals.configuration(spec.config) if cls.is_gunicorns else spec.config
        arguments = spec.age, os.getpid(), list(spec.sockets), spec.app, spec.config.timeout / 2, config, spec.log
        Worker.__init__(worker, *arguments)
        worker.__init__(*arguments)  # type: ignore[misc]
        worker.tmp.close()
        worker.tmp = Heartbeat(worker)
        return worker

    @property
    def alive(self) -> bool:
        """Set to False by the class itself (`max_requests`), its successor is started at once."""
        return self._alive

    @alive.setter
    def alive(self, value: bool) -> None:
        asks = self._alive and not value and self.is_serving and not self.leaving
        self._alive = value
        if asks:
            self._ask_to_retire()

    @classmethod
    def called_directly(cls, application: Callable[..., Any], config: Config) -> tuple[Callable[..., Any], int] | None:
        return None

    def after_fork(self, fds: WorkerFds) -> None:
        super().after_fork(fds)
        for listener, descriptor in zip(self.sockets, fds.listeners, strict=True):
            listener.socket = socket.socket(fileno=descriptor)
            listener.socket.setblocking(False)
            listener.shared = True  # a class that closes it closes it for this process
        # A process that the class forks may go on accepting.
        self.fds = WorkerFds(
            listeners=(),
            admin_listeners=(),
            messages=fds.messages,
            life=fds.life,
            start_listening=fds.start_listening,
            refuse_newcomers=fds.refuse_newcomers,
            reports=fds.reports,
        )

    def _enter(self) -> None:
        super()._enter()
        self._reloader, self.reloader = self.reloader, None  # gunicorn's classes would start it

    def load_wsgi(self) -> None:
        """With `reload`, what cannot be loaded is shown by classes that call `wsgi`, as gunicorn's own do."""
        try:
            super().load_wsgi()
        except (Exception, SystemExit) as error:
            if not (self.spec.stand_in and self.is_gunicorns and hasattr(self, "handle_request")):
                raise
            self.reloader = self._reloader
            self._let_stand_in(error, NOT_LOADED)
            self.reloader = None

    def run(self) -> None:
        if self._reloader is not None:
            self._reloader.note_modules()
        self._warm_up()
        Scoreboard(self.spec.page).begin(os.getpid())
        self.fds.start_listening()
        self._say_ready()
        self._status = ExitCode.OK
        try:
            super().run()
        except SystemExit as end:
            self._status = end.code if isinstance(end.code, int) else int(end.code is not None)
            raise
        finally:
            self.leaving = True

    def init_signals(self) -> None:
        super().init_signals()
        for number in HARMLESS:
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, self.handle_winch)  # `pkill -HUP` must not kill it

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.leaving = True
        NOTICE.announce()
        self.refuse_newcomers()
        if self.spec.config.reload:
            self._tell(Parted())  # its idle connections are its own affair
        super().handle_exit(sig, frame)

    def handle_quit(self, sig: int, frame: FrameType | None) -> None:
        self.leaving = self.quick = True
        NOTICE.announce()
        super().handle_quit(sig, frame)

    def handle_abort(self, sig: int, frame: FrameType | None) -> None:
        self.leaving = self.aborted = True
        super().handle_abort(sig, frame)

    def serve(self, core: object, gateway: object) -> None:
        raise AssertionError("a hosted worker has no core")


class Back(Worker):
    """gunicorn's `workers.base.Worker`, as far as a class with a `run` of its own asks for it."""

    PIPE: tuple[int, int] | tuple[()] = ()
    wait_fds: list[Any]

    def init_process(self) -> None:
        self.PIPE = reader, writer = os.pipe()
        for end in (reader, writer):
            os.set_blocking(end, False)
        self.wait_fds = [*self.sockets, reader]
        self.init_signals()
        self.load_wsgi()
        self.loaded()
        self.enable_log()
        self.cfg.post_worker_init(self)
        self.booted = True
        self.run()

    def init_signals(self) -> None:
        signal.set_wakeup_fd(self.PIPE[1] if self.PIPE else -1, warn_on_full_buffer=False)
        for number in HANDLED:
            signal.signal(number, getattr(self, METHODS.get(number, "handle_winch")))
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.siginterrupt(number, False)

    def notify(self) -> None:
        self.tmp.notify()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.alive = False

    def handle_quit(self, sig: int, frame: FrameType | None) -> None:
        self.alive = False
        self.cfg.worker_int(self)
        time.sleep(QUIT_PAUSE)
        sys.exit(ExitCode.OK)

    def handle_abort(self, sig: int, frame: FrameType | None) -> None:
        self.alive = False
        self.cfg.worker_abort(self)
        sys.exit(1)

    def handle_usr1(self, sig: int, frame: FrameType | None) -> None:
        self.log.reopen_files()


QUIT_PAUSE = 0.1
"""Seconds that gunicorn gives other threads after the hook `worker_int`."""

WITHOUT = (
    "So it does without the native core: slow clients hold it, requests have no request_timeout, queue or named stack "
    "when they last too long, probes (admin_bind) are refused, and `timeout` is about its heartbeat, as with gunicorn."
)
