"""Builds the parts of a server from its configuration, runs the loop, and ends with an exit status."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import NoReturn

from tricorn import log as logs
from tricorn.arbiter import daemon, hooks, reexec
from tricorn.arbiter.channel import Mailboxes, SharedChannel, open_channel, open_mailboxes
from tricorn.arbiter.control import bound_socket
from tricorn.arbiter.control.dispatcher import Dispatcher
from tricorn.arbiter.control.listener import ControlListener
from tricorn.arbiter.effects import Effects, Finished
from tricorn.arbiter.environment import Environment, raise_file_limit
from tricorn.arbiter.generation import Generation, adapted, check, prepare
from tricorn.arbiter.generations import Generations, MakeApplication
from tricorn.arbiter.hook_api import Server
from tricorn.arbiter.listeners import sockets
from tricorn.arbiter.loop import SIGNALS, Loop, Wakeup
from tricorn.arbiter.parts import Parts, Statistics
from tricorn.arbiter.periodic import Periodic
from tricorn.arbiter.periodic.admin_pages import LoadHistory, StatusSnapshot
from tricorn.arbiter.periodic.canary_watch import CanaryWatch
from tricorn.arbiter.periodic.certificate_refresh import CertificateRefresh
from tricorn.arbiter.periodic.collector_resolver import CollectorResolver
from tricorn.arbiter.periodic.drain_watch import DrainWatch
from tricorn.arbiter.periodic.memory_watch import MemoryWatch
from tricorn.arbiter.periodic.statsd_gauges import StatsdGauges
from tricorn.arbiter.periodic.worker_watch import WorkerWatch
from tricorn.arbiter.pidfile import Pidfiles
from tricorn.arbiter.policy.state import State
from tricorn.arbiter.process_table import ProcessTable
from tricorn.arbiter.systemd import Notifier, Watchdog
from tricorn.arbiter.upgrade import Upgrade
from tricorn.config.config import Config
from tricorn.config.load import Loaded, Sources
from tricorn.config.validators import MOLD
from tricorn.errors import TricornError
from tricorn.gateway.wsgi import SERVER_SOFTWARE
from tricorn.log import bounded
from tricorn.metrics import application
from tricorn.tls.tickets import Tickets
from tricorn.unpatched import os, time
from tricorn.version import __version__
from tricorn.workers import boot_failure, core_options, ending, native, registry, title, watch
from tricorn.workers.application import Application

SUCCESSOR_SUFFIX = ".2"
"""gunicorn's: of the pidfile while the server that is being replaced still lives."""


def run(sources: Sources, loaded: Loaded, make_application: MakeApplication, server: Server | None = None) -> int:  # noqa: PLR0915 - starts each part, in order
    """Serves until told to stop. Returns the exit status, and in a forked worker that of the worker.

    `server` is what hooks get; a program may have one of its own.
    """
    config = loaded.config
    check(config)
    launch = reexec.plan(sys.executable, sys.argv, sys.orig_argv, sources.cwd, sources.environ)
    title.prepare()
    os.environ["SERVER_SOFTWARE"] = SERVER_SOFTWARE
    environment = Environment(sources.cwd)
    environment.enter(config)
    loaded = adapted(loaded)
    config = loaded.config
    handed_over = reexec.inherited(os.environ)
    parent = None if handed_over is None else handed_over.pid
    if config.daemon and parent is None:
        daemon.daemonize(keep_stdio=config.enable_stdio_inheritance)
    bounded.begin()
    app_metrics, warnings = application.prepare(config, os.environ, fresh=parent is None)
    generation = prepare(loaded, logs.make(config), make_application(config))
    generation.set_title("master")
    if server is None:
        server = Server(generation)
    else:
        server.begin(generation)
    hooks.must(generation.config, generation.log, "nworkers_changed", server, config.workers, None)
    generation.log.info("Starting tricorn %s", __version__)
    if config.sizing is not None:
        generation.log.info("%s", config.sizing.sentence)
    if loaded.variables:
        generation.log.info("Settings from environment variables: %s", ", ".join(loaded.variables))
    _warn(generation, (*loaded.warnings, *warnings))
    server.pid = os.getpid()
    watch.prepare()
    wakeup = Wakeup()
    suffix = "" if parent is None else SUCCESSOR_SUFFIX
    pidfiles = Pidfiles(config.pidfile and config.pidfile + suffix, config.umask)
    notifier = Notifier.from_environ(os.environ)
    generations = Generations(sources, environment, generation, make_application)
    if handed_over is not None:
        generations.tickets = Tickets.from_bytes(handed_over.secrets)
    control = _control(generation, environ=sources.environ, is_successor=parent is not None)
    upgrade = Upgrade(launch, parent, pidfiles, generations, server, control.promote)

    def release() -> None:
        bounded.end()
        generations.release_memory()
        control.release()

    try:
        hooks.must(generation.config, generation.log, "on_starting", server)
        _find_application(generation)
        _open(generation, server, generations, [] if handed_over is None else handed_over.listeners)
        private = [wakeup.reader, wakeup.writer]
        shared = SharedChannel(open_channel(), _open_mailboxes(generation.config))
        processes = ProcessTable(server, SIGNALS, private, shared, release, app_metrics)
        parts = Parts(server, generations, processes, upgrade, Statistics(processes.ledger))
        return _serve(parts, Ending(parts, pidfiles, control), Effects(parts, pidfiles, notifier), notifier, wakeup)
    except TricornError:
        if not _is_arbiter(server):
            raise
        pidfiles.unlink()
        control.close()
        generation.close()
        generation.remove_files()
        raise


def _open_mailboxes(config: Config) -> Mailboxes | None:
    return open_mailboxes(config.workers) if config.affinity and config.handover else None


def _is_arbiter(server: Server) -> bool:
    """A process that was forked from it must not remove its files."""
    return server.pid == os.getpid()


def _control(generation: Generation, *, environ: Mapping[str, str], is_successor: bool) -> ControlListener:
    config = generation.config
    if config.control_socket_disable or not config.control_socket:
        return ControlListener(None)
    bound = bound_socket.bind(
        config.control_socket,
        config.control_socket_mode,
        name=config.proc_name,
        environ=environ,
        is_successor=is_successor,
        log=generation.log,
    )
    return ControlListener(bound)


def _warn(generation: Generation, warnings: Iterable[str]) -> None:
    config, log = generation.config, generation.log
    for warning in warnings:
        log.warning("%s", warning)
    if config.reload:
        from tricorn.workers import reloader

        if note := reloader.note(config):
            log.info("%s", note)
    if unknown := native.unknown_atoms(config):
        log.warning("%s", unknown)
    if complaint := core_options.upload_warning(config, generation.worker_class):
        log.warning("%s", complaint)
    if config.preloads and config.reload:
        log.warning("preload_app loads the code only once, so reload has no effect. Use one of the two.")
    if config.preload_app == MOLD and config.reload:
        log.warning("preload_app = mold has no effect with reload: each worker loads the application, and watches it.")


def _find_application(generation: Generation) -> None:
    """Raises BootError if the application's module does not exist, before anything listens.

    Does nothing where other code may still change where modules are found: a hook, or a worker class of the user's.
    """
    config = generation.config
    hooked = not all(map(config.is_default, ("when_ready", "pre_fork", "post_fork")))
    if type(generation.app) is not Application or hooked or registry.is_foreign(config.worker_class):
        return
    if config.workers and not config.reload and not config.paste:
        boot_failure.check_module(generation.app.app_uri)


def _open(generation: Generation, server: Server, generations: Generations, inherited: list[int]) -> None:
    """Everything between the hook on_starting and the first fork."""
    log = generation.log
    raise_file_limit()
    from_systemd = sockets.passed_by_systemd(log)
    generations.inherits = bool(from_systemd)
    generation.open_certificates(generations.tickets)
    generation.open_listeners(sockets.inherit(inherited or from_systemd))
    log.info("Listening at: %s (%s)", ",".join(str(listener) for listener in generation.listeners), os.getpid())
    alias, reason = generation.worker_class.alias, generation.reason
    if alias != registry.AUTO:  # else the first worker that knows says it
        log.info("Using worker: %s", f"{alias} ({reason})" if reason else alias)
    if generation.admin:
        log.info(
            "Admin listener (health, readiness, metrics, page) at: %s",
            ",".join(str(listener) for listener in generation.admin),
        )
    generation.open_pages()
    hooks.must(generation.config, generation.log, "when_ready", server)
    generation.prepare_forks()


def _jobs(parts: Parts, notifier: Notifier) -> list[Periodic]:
    now = time.monotonic()
    return [
        Watchdog(notifier, now),
        WorkerWatch(parts, now),
        LoadHistory(parts, now),
        StatsdGauges(parts, now),
        MemoryWatch(parts, now),
        DrainWatch(parts),
        CanaryWatch(parts),
        StatusSnapshot(parts),
        CollectorResolver(parts, now),
        CertificateRefresh(parts),
    ]


def _serve(parts: Parts, end: Ending, effects: Effects, notifier: Notifier, wakeup: Wakeup) -> int:
    generation = parts.generation
    state = State(generation.config.workers, generation.policy)
    try:
        control = Dispatcher(end.control, parts)
        outcome = Loop(parts, effects, control, _jobs(parts, notifier), state, wakeup).run()
    except Exception:
        if _is_arbiter(parts.server):
            with suppress(Exception):
                end.abort()
        raise
    except BaseException:  # SystemExit, gunicorn's HaltServer: a hook wants the server to end
        if _is_arbiter(parts.server):
            end.quit()
        raise
    if isinstance(outcome, Finished):
        return end.leave(outcome.code)
    return outcome.live()


class Ending:
    """The last steps in the arbiter: nothing of the server stays in the file system."""

    def __init__(self, parts: Parts, pidfiles: Pidfiles, control: ControlListener) -> None:
        self.control = control
        self._parts = parts
        self._pidfiles = pidfiles

    def leave(self, code: int) -> int:
        """Ends as asked for. The workers are gone."""
        generation = self._parts.generation
        self._parts.processes.turn_away()
        self.control.close()
        generation.close()
        generation.remove_files()
        self._pidfiles.unlink()
        hooks.may(generation.config, generation.log, "on_exit", self._parts.server)
        generation.log.flush()
        ending.prepare(ending.Limits(generation.log, generation.config.graceful_timeout))
        return code

    def quit(self) -> None:
        """Ends because a hook wants it: workers notice that the arbiter is gone and leave gracefully."""
        self._parts.generation.log.error("A hook raised an exception; shutting down.", exc_info=True)
        self._remove_files()

    def abort(self) -> NoReturn:
        """Ends because the arbiter itself is broken: workers notice that it is gone and leave gracefully."""
        text = "The arbiter failed (this is a defect of tricorn); shutting down."
        self._parts.generation.log.critical(text, exc_info=True)
        self._remove_files()
        sys.stdout.flush()
        os._exit(UNHANDLED)

    def _remove_files(self) -> None:
        self._pidfiles.unlink()
        self.control.close()
        self._parts.generation.remove_files()
        self._parts.generation.log.flush()


UNHANDLED = 255
