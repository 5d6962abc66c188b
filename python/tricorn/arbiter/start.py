"""From a configuration to the loop, and from its end to an exit status."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from contextlib import suppress

from tricorn import __version__, workers
from tricorn import log as logs
from tricorn.arbiter import daemon, hooks, reexec, sockets
from tricorn.arbiter import site as sites
from tricorn.arbiter.channel import Common, open_channel
from tricorn.arbiter.environment import Environment, raise_file_limit
from tricorn.arbiter.facade import Server
from tricorn.arbiter.hands import Finished, Hands, Lineage
from tricorn.arbiter.loop import SIGNALS, Loop, Wakeup
from tricorn.arbiter.mind.state import State
from tricorn.arbiter.nursery import Nursery
from tricorn.arbiter.pidfile import Pidfile
from tricorn.arbiter.site import Generations, Site
from tricorn.arbiter.systemd import Notifier
from tricorn.config.load import Loaded, Sources
from tricorn.errors import TricornError
from tricorn.unpatched import os
from tricorn.workers import title, watch

SUCCESSOR_SUFFIX = ".2"
"""gunicorn's: of the pidfile while the server that is being replaced still lives."""


def run(sources: Sources, loaded: Loaded) -> int:
    """Serves until told to stop. Returns the exit status, and in a forked worker that of the worker."""
    config = loaded.config
    sites.check(config)
    launch = reexec.plan(sys.executable, sys.argv, sys.orig_argv, sources.cwd, sources.environ)
    title.prepare()
    environment = Environment(sources.cwd)
    environment.enter(config)
    parent, inherited = reexec.inherited(os.environ) or (None, [])
    if config.daemon and parent is None:
        daemon.daemonize(keep_stdio=config.enable_stdio_inheritance)
    site = sites.prepare(config, logs.make(config))
    sites.set_title(site, "master")
    server = Server(site)
    hooks.must(site.log, "nworkers_changed", config.nworkers_changed, server, config.workers, None)
    site.log.info("Starting tricorn %s", __version__)
    _tell(site, loaded.warnings)
    server.pid = os.getpid()
    watch.prepare()
    wakeup = Wakeup()
    lineage = Lineage(parent, _pidfile(config.pidfile, parent), Notifier.from_environ(os.environ))
    generations = Generations(sources, environment, site)
    try:
        hooks.must(site.log, "on_starting", config.on_starting, server)
        _open(site, server, generations, inherited)
        nursery = Nursery(server, SIGNALS, [wakeup.reader, wakeup.writer], Common(open_channel()))
        outcome = _serve(Hands(generations, nursery, lineage, launch), site, wakeup)
    except TricornError:
        if lineage.pidfile is not None:
            lineage.pidfile.unlink()
        sites.close(site.all_listeners())
        sites.remove_files(site)
        raise
    return outcome


def _tell(site: Site, warnings: Iterable[str]) -> None:
    for warning in warnings:
        site.log.warning("%s", warning)
    from tricorn.workers import native

    if in_memory := native.uploads_in_memory(site.config, site.worker_class):
        site.log.warning("%s", in_memory)
    if site.config.preload_app and site.config.reload:
        site.log.warning("With preload_app the code is loaded once, and reload cannot change it.")


def _pidfile(path: str | None, parent: int | None) -> Pidfile | None:
    if not path:
        return None
    pidfile = Pidfile(path if parent is None else path + SUCCESSOR_SUFFIX)
    pidfile.create(os.getpid())
    return pidfile


def _open(site: Site, server: Server, generations: Generations, inherited: list[int]) -> None:
    """Everything between the hook on_starting and the first fork."""
    config, log = site.config, site.log
    raise_file_limit()
    from_systemd = sockets.passed_by_systemd(log)
    generations.inherits = bool(from_systemd)
    sites.open_listeners(site, sockets.inherit(inherited or from_systemd))
    log.info("Listening at: %s (%s)", ",".join(str(listener) for listener in site.listeners), os.getpid())
    if site.worker_class != workers.AUTO:  # else the first worker that knows says it
        log.info("Using worker: %s", f"{site.worker_class} ({site.reason})" if site.reason else site.worker_class)
    if site.admin:
        log.info("Health and readiness at: %s", ",".join(str(listener) for listener in site.admin))
    sites.open_pages(site)
    hooks.must(log, "when_ready", config.when_ready, server)
    sites.settle_memory()


def _serve(hands: Hands, site: Site, wakeup: Wakeup) -> int:
    try:
        outcome = Loop(hands, State(site.config.workers, site.policy), wakeup).run()
    except Exception:
        with suppress(Exception):
            hands.perish()
        raise
    except BaseException:  # SystemExit, gunicorn's HaltServer: a hook wants the server to end
        hands.quit()
        raise
    if isinstance(outcome, Finished):
        return hands.leave(outcome.code)
    return outcome.run()
