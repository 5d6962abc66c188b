"""The arbiter: binds, starts workers, replaces dead ones, stops them.

`decide` is its mind (pure), `loop` its hands. Read events, commands, decide, loop, in this order.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable
from typing import Any

from tricorn import __version__, workers
from tricorn.arbiter import environment, sockets
from tricorn.arbiter.loop import Finished, Loop, Site
from tricorn.arbiter.pages import Pages
from tricorn.arbiter.state import State
from tricorn.config.config import Config
from tricorn.errors import AppImportError, BootError
from tricorn.log import ErrorLog
from tricorn.workers import base

SPARE_PAGES = 64


def run(config: Config, warnings: Iterable[str] = ()) -> int:
    """Serves until told to stop. Returns the exit status, and in a forked worker that of the worker."""
    environment.enter(config)
    log = ErrorLog(config.errorlog, config.loglevel)
    log.info("Starting tricorn %s", __version__)
    for warning in warnings:
        log.warning(warning)
    environment.raise_file_limit()
    site = _open_site(config, log)
    outcome = Loop(site, _first_state(config)).run()
    if not isinstance(outcome, Finished):
        return base.run(outcome)
    for listener in site.listeners:
        listener.close()
        listener.remove_file()
    return outcome.code


def _open_site(config: Config, log: ErrorLog) -> Site:
    alias = workers.choose(config.worker_class, config.threads)
    application = _preload(config, log) if config.preload_app else None
    # Before the fork, so that workers share the pages of the extension and of the class.
    workers.load(alias)
    from tricorn.workers import native

    native.check(config)
    listeners = sockets.listen(config.bind, backlog=config.backlog, umask=config.umask, log=log)
    log.info("Listening at: %s (%s)", ",".join(str(listener) for listener in listeners), os.getpid())
    log.info("Using worker: %s", alias)
    pages = Pages(native.SCOREBOARD_BYTES, _most_pages(config))
    # What exists now is no garbage: keep the workers' collectors from writing to the pages it is on.
    gc.collect()
    gc.freeze()
    return Site(config, alias, log, listeners, pages, application)


def _preload(config: Config, log: ErrorLog) -> Callable[..., Any]:
    from tricorn.gateway import app_loader

    try:
        return app_loader.load(config.wsgi_app or "")
    except AppImportError:
        raise
    except Exception as error:
        log.exception("Exception while the application was loaded")
        raise BootError(f"Worker failed to boot. ({type(error).__name__}: {error})") from None


def _first_state(config: Config) -> State:
    most = _most_pages(config) // 2
    return State(target=config.workers, most=most, graceful_timeout=config.graceful_timeout)


def _most_pages(config: Config) -> int:
    """For twice the workers there can be: those that leave still have theirs while their successors boot."""
    return 2 * (config.workers + SPARE_PAGES)
