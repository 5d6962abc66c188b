"""`--print-config` and `--check-config`: everything that can be known without serving."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

from tricorn import log as logs
from tricorn import workers
from tricorn.arbiter import generation
from tricorn.arbiter.environment import Environment
from tricorn.config.config import Config
from tricorn.config.load import Loaded
from tricorn.config.registry import SETTINGS
from tricorn.config.shown import shown
from tricorn.errors import ConfigError, ExitCode, TricornError, of_the_application
from tricorn.gateway import interfaces
from tricorn.log import classes, configured
from tricorn.record import Record
from tricorn.workers import native
from tricorn.workers.application import Application
from tricorn.workers.base import Worker


def run(loaded: Loaded) -> int:
    """Prints what is asked for, loads the application, and returns the exit status: 0 if all can be used, 1 if not."""
    for warning in loaded.warnings:
        print(f"Warning: {warning}", file=sys.stderr)
    config = loaded.config
    if config.print_config:
        print(render(config), flush=True)
    generation.check(config)
    if unknown := native.unknown_atoms(config):
        print(f"Warning: {unknown}", file=sys.stderr)
    check_files(config)
    return check_application(config)


def render(config: Config) -> str:
    """The page of `--print-config`: gunicorn's `name = value`, and where each value comes from."""
    width = max(len(setting.name) for setting in SETTINGS)
    lines = [
        f"{setting.name:{width}} = {shown(setting, config.value(setting.name))}  ({config.origin(setting.name)})"
        for setting in SETTINGS
    ]
    return "\n".join(sorted(lines))


def check_files(config: Config) -> None:
    """Raises ConfigError for logs and a pidfile that a start would fail with. Opens none that may not be there yet."""
    for name, path in (("errorlog", config.errorlog), ("accesslog", config.accesslog), ("pidfile", config.pidfile)):
        if path and path != "-":
            _check_writable(name, path, config)
    if configured.is_configured(config) or config.logger_class not in classes.OURS:
        logs.make(config.with_default("errorlog", "accesslog"))


def _check_writable(name: str, given: str, config: Config) -> None:
    path = os.path.join(config.chdir or "", given)
    directory = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path):
        reason = "it is a directory"
    elif not os.path.isdir(directory):
        reason = f"there is no directory {directory}"
    elif not os.access(path if os.path.exists(path) else directory, os.W_OK):
        reason = "it cannot be written"
    else:
        return
    raise ConfigError(f"Invalid value for {name}: {given} (from {config.origin(name)}): {reason}.")


def check_application(config: Config) -> int:
    try:
        load(config, _Printer())
    except (Exception, SystemExit) as error:
        report(error)
        return ExitCode.CONFIG
    return ExitCode.OK


class Inspected(Record):
    """An application as its worker would have it."""

    config: Config
    """With what a worker class of the user's says of settings."""
    worker_class: type[Worker]
    """That of `auto` is the one that the application has decided on."""


def load(config: Config, log: Any) -> Inspected:
    """Loads the application as a worker would, in this process. Raises what its modules raise, and TricornError."""
    Environment().enter(config)
    config = workers.adapted(config)
    worker_class = workers.kind_of(config)
    worker_class.patch_library(log)
    worker_class.patch_drivers(log, config)
    uri = config.wsgi_app or ""
    application = Application(config).load()
    interfaces.check(application, uri, worker_class.alias)
    if worker_class.alias == workers.AUTO:
        alias = workers.choose(interfaces.class_for(application, uri)[0], config.threads)
        worker_class = workers.load(alias)
    return Inspected(config, worker_class)


def report(error: BaseException) -> None:
    """In an exception handler: why the application cannot be loaded."""
    if isinstance(error, TricornError):
        print(f"\nError while loading the application:\n\n{error}", file=sys.stderr)
        return
    print("\nError while loading the application:\n", file=sys.stderr)
    traceback.print_exception(type(error), error, of_the_application(error.__traceback__))


class _Printer:
    """In the place of a log: what is only checked opens no files."""

    def debug(self, message: str, *args: object) -> None:
        """Nothing to warn of."""

    info = debug

    def warning(self, message: str, *args: object) -> None:
        print(f"Warning: {message % args}", file=sys.stderr)
