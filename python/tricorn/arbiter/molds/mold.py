"""The mold's own side: loads the application, and forks workers until the arbiter closes its end.

boot    load, look what a fork would break, freeze    --any exception--> BootFailed, exit 3 or 4
serve   a request --> a worker, in a process of its own; end of the requests --> exit 0

A worker that has served may become a mold itself (`refork`, `succession`): its process is back here then, and serves.
"""

from __future__ import annotations

import errno
import sys
from contextlib import suppress
from signal import Signals
from typing import NoReturn

from tricorn import log as logs
from tricorn.arbiter import hooks
from tricorn.arbiter.generation import Generation, report
from tricorn.arbiter.hiring import Files, Hiring, only_worker
from tricorn.arbiter.molds.requests import (
    DESCRIPTORS,
    SIZE,
    HasForked,
    Here,
    NotForked,
    Reply,
    Request,
    decode_request,
    encode_reply,
    receive_promotion,
)
from tricorn.descriptors import receive
from tricorn.errors import AppImportError, ExitCode, shown
from tricorn.unpatched import os, signal, socket
from tricorn.workers import boot_failure, core_options, fork_audit, inherited, succession, watch
from tricorn.workers.base import Worker
from tricorn.workers.messages import BootFailed, IsMold, Level, Message, NoMold, Notice, Ready, encode

QUIET = tuple(Signals[f"SIG{name}"] for name in ("HUP", "QUIT", "INT", "USR2", "WINCH", "TTIN", "TTOU"))
"""Signals that do nothing to it: a terminal sends INT to all processes, and what follows is the arbiter's decision."""

GO = b"g"


class Mold:
    """`live` returns in a worker when that has lived, and in the mold if it cannot boot.

    The hook `mold_ready` gets it, for its public attributes.
    """

    def __init__(self, generation: Generation, hiring: Hiring, messages: int, requests: socket.socket) -> None:
        self._generation = generation
        self._hiring = hiring
        self._messages = messages
        self._requests = requests
        self._promotion: socket.socket | None = None
        """A worker's: where it is told to become a mold, and then gets its requests."""
        self.pid = os.getpid()
        self.cfg, self.log, self.app = generation.config, generation.log, generation.app

    def live(self) -> int:
        """The exit status."""
        self._handle_signals()
        watch.enable(self._messages)
        inherited.forget_children()
        try:
            self._boot()
        except BaseException as error:
            if not boot_failure.is_failure(error):
                raise
            return self._failed(error)
        self._tell(Ready(kind=self._generation.worker_class.alias))
        while True:
            status = self._live_as_worker()
            if status is not None:
                return status

    def _live_as_worker(self) -> int | None:
        """Serves as a mold, and then in each fork of it as a worker. Returns None in one that has become a mold."""
        worker = self._serve()
        status = worker.work()
        if status == ExitCode.OK and self._succeed(worker):
            return None
        return worker.end(status)

    def _succeed(self, worker: Worker) -> bool:
        """Becomes a mold, if the worker was told to."""
        descriptors = None if self._promotion is None else receive_promotion(self._promotion)
        if self._promotion is None or descriptors is None:
            return False
        generation = self._generation
        try:
            succession.prepare(worker, self._hiring.server, {*descriptors, self._promotion.fileno()})
        except BaseException as error:  # a hook of the user's, or a library's
            generation.log.debug("The worker becomes no mold.", exc_info=shown(error))
            self._tell(NoMold(boot_failure.reason(error)))
            return False
        self._requests, self._promotion = self._promotion, None
        self._hiring.take_back(generation, iter(descriptors))
        self.pid = os.getpid()
        self._handle_signals()
        watch.enable(self._messages)
        generation.set_title("mold")
        generation.prepare_forks()
        self._tell(IsMold())
        return True

    def _handle_signals(self) -> None:
        for number in QUIET:
            signal.signal(number, _ignore)
        signal.signal(Signals.SIGUSR1, lambda *_: self._generation.log.reopen_files())

    def _boot(self) -> None:
        generation = self._generation
        generation.set_title("mold")
        audit = fork_audit.Audit()
        generation.load_application()
        if generation.choose_class():
            self._notice("info", f"Using worker: {generation.worker_class.alias} ({generation.reason})")
            if warning := core_options.upload_warning(generation.config, generation.worker_class):
                self._notice("warning", warning)
        if generation.config.warmup:
            self._warm_up()
        hooks.must(generation.config, generation.log, "mold_ready", self._hiring.server, self)
        audit.check()
        generation.prepare_forks()
        signal.signal(Signals.SIGTERM, signal.SIG_DFL)  # modules of the application may have set a handler
        self._handle_signals()

    def _warm_up(self) -> None:
        from tricorn.workers import warming

        generation = self._generation
        kind, config, application = generation.worker_class, generation.config, generation.app.wsgi()
        warming.warm_mold(kind, application, config, generation.log, self._hiring.once.claim)

    def _failed(self, error: BaseException) -> int:
        """Reports that it cannot boot. Called in an exception handler."""
        generation = self._generation
        logs.enable(generation.log)
        reason = boot_failure.reason(error)
        if self._hiring.once.claim(reason):
            report(generation, error)
        status = ExitCode.APP_LOAD if isinstance(error, AppImportError) else ExitCode.WORKER_BOOT
        self._tell(BootFailed(status, reason))
        generation.log.flush()
        return status

    def _serve(self) -> Worker:
        """Forks what it is asked for. Returns in each worker."""
        while True:
            data, descriptors = receive(self._requests, SIZE, DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
            if not data:
                self._leave()
            request = decode_request(data)
            if len(descriptors) == request.descriptors:
                worker = self._fork(request, descriptors)
                if worker is not None:
                    return worker
            else:
                self._reply(NotForked(request.position.nr, "the mold has no descriptors left"))
            for each in descriptors:
                os.close(each)

    def _fork(self, request: Request, descriptors: list[int]) -> Worker | None:
        """Forks twice, so that the worker becomes a child of the arbiter. Returns it in its own process."""
        nr = request.position.nr
        go_reader, go_writer = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            between = os.fork()
        except OSError as error:
            reply: Reply = NotForked(nr, error.strerror or str(error))
        else:
            if between == 0:
                _fork_and_end()
                os.close(go_writer)
                return self._become(request, descriptors, go_reader)
            code = os.waitstatus_to_exitcode(os.waitpid(between, 0)[1])
            if code == 0:
                os.write(go_writer, GO)  # the process between has ended: the worker is a child of the arbiter
                reply = HasForked(nr)
            else:
                reply = NotForked(nr, os.strerror(code) if code > 0 else f"signal {-code} killed the fork")
        os.close(go_reader)
        os.close(go_writer)
        self._reply(reply)
        return None

    def _become(self, request: Request, descriptors: list[int], go: int) -> Worker:
        """Makes this process the worker, if it is told to go; else it ends, since nobody may know of it."""
        messages, *others = descriptors
        with only_worker(messages):
            if os.read(go, len(GO)) != GO:
                os._exit(ExitCode.OK)
            os.close(go)
            self._reply(Here(request.position.nr))
            self._requests.close()
            os.close(self._messages)
            for number in (*QUIET, Signals.SIGUSR1):
                signal.signal(number, signal.SIG_DFL)
            worker = self._hiring.hire(request.position, self._generation)
            request.apply(worker)
            reports = others.pop(0) if request.has_reports else -1
            bell = others.pop(0) if request.has_bell else -1
            self._promotion = socket.socket(fileno=others.pop(0)) if request.has_requests else None
            self._messages = messages
            self._hiring.join(worker, self._generation, messages, Files(reports, bell, -1))
        return worker

    def _reply(self, reply: Reply) -> None:
        with suppress(BrokenPipeError):  # the arbiter is gone, and the requests end
            self._requests.send(encode_reply(reply))

    def _notice(self, level: Level, text: str) -> None:
        self._tell(Notice(level, text))

    def _tell(self, message: Message) -> None:
        with suppress(BrokenPipeError):
            os.write(self._messages, encode(message))

    def _leave(self) -> NoReturn:
        """Ends. Functions registered with `atexit` do not run: what they clean up, workers may use."""
        self._generation.log.flush()
        for stream in (sys.stdout, sys.stderr):
            with suppress(Exception):
                stream.flush()
        os._exit(ExitCode.OK)


def _ignore(*_: object) -> None:
    """Not SIG_IGN, which programs that the application starts would inherit."""


def _fork_and_end() -> None:
    """Forks once more, and ends. Returns in the child."""
    try:
        if os.fork() == 0:
            return
    except OSError as error:
        os._exit(error.errno or errno.EAGAIN)
    except BaseException:  # no memory for an object
        os._exit(errno.ENOMEM)
    os._exit(ExitCode.OK)
