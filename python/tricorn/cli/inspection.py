"""`--print-config` and `--check-config`: everything that can be known without serving."""

from __future__ import annotations

import errno
import os
import sys
from typing import Any

from tricorn import log as logs
from tricorn.arbiter import generation
from tricorn.arbiter.environment import Environment
from tricorn.arbiter.listeners import sockets
from tricorn.config.config import Config
from tricorn.config.load import Loaded
from tricorn.config.shown import page
from tricorn.errors import ConfigError, ExitCode
from tricorn.gateway import interfaces
from tricorn.log import configured, names, targets
from tricorn.record import Record
from tricorn.tls import certificates
from tricorn.workers import boot_failure, core_options, native, registry
from tricorn.workers.application import Application
from tricorn.workers.base import Worker


def run(loaded: Loaded) -> int:
    """Prints what is asked for, loads the application, and returns the exit status: 0 if all can be used, 1 if not."""
    for warning in loaded.warnings:
        print(f"Warning: {warning}", file=sys.stderr)
    config = loaded.config
    if config.print_config:
        print(page(config, loaded.files), flush=True)
    generation.check(config)
    if unknown := native.unknown_atoms(config):
        print(f"Warning: {unknown}", file=sys.stderr)
    if complaint := core_options.upload_warning(config, registry.kind_of(config)):
        print(f"Warning: {complaint}", file=sys.stderr)
    check_files(config)
    status = check_application(config)
    for warning in certificates.check(config):
        print(f"Warning: {warning}", file=sys.stderr)
    check_addresses(config)
    return status


def check_files(config: Config) -> None:
    """Raises ConfigError for logs and a pidfile, as a start would. Opens none that may not be there yet."""
    for name, path in (("error", config.errorlog), ("access", config.accesslog)):
        if path and path != "-":
            with targets.or_refused(f"The {name} log {path!r} ({name}log) cannot be written"):
                _check_writable(path, config)
    if config.pidfile:
        try:
            _check_writable(config.pidfile, config)
        except OSError as error:
            raise ConfigError(f"Cannot write the pidfile {config.pidfile!r}: {error.strerror}.") from None
    if configured.is_configured(config) or config.logger_class not in names.PLAIN:
        logs.make(config.with_default("errorlog", "accesslog"))


def _check_writable(given: str, config: Config) -> None:
    """Raises the OSError that opening it would."""
    path = os.path.join(config.chdir or "", given)
    directory = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path):
        code = errno.EISDIR
    elif not os.path.isdir(directory):
        code = errno.ENOENT
    elif not os.access(path if os.path.exists(path) else directory, os.W_OK):
        code = errno.EACCES
    else:
        return
    raise OSError(code, os.strerror(code))


def check_application(config: Config) -> int:
    try:
        load(config, _Printer())
    except (Exception, SystemExit) as error:
        boot_failure.report(error, config.wsgi_app or "")
        return ExitCode.CONFIG
    return ExitCode.OK


def check_addresses(config: Config) -> None:
    """Raises BindError for what a start could not listen on; a server like this one may, since it is reloaded."""
    if os.environ.get("LISTEN_PID") or config.reuse_port:
        return
    for text in (*config.bind, *config.admin_bind):
        try:
            sockets.check(text)
        except sockets.InUse as error:
            if not error.by_a_server(config.title_prefix):
                raise
            print(f"Warning: {error}", file=sys.stderr)


class Inspected(Record):
    """An application as its worker would have it."""

    config: Config
    """With what a worker class of the user's says of settings."""
    worker_class: type[Worker]
    """That of `auto` is the one that the application has decided on."""


def load(config: Config, log: Any) -> Inspected:
    """Loads the application as a worker would, in this process. Raises what its modules raise, and TricornError."""
    Environment().enter(config)
    config = registry.adapted(config)
    worker_class = registry.kind_of(config)
    worker_class.patch_library(log)
    worker_class.patch_drivers(log, config)
    uri = config.wsgi_app or ""
    application = Application(config).load()
    interfaces.check(application, uri, worker_class.alias)
    if worker_class.alias == registry.AUTO:
        alias = registry.choose(interfaces.class_for(application, uri)[0], config.threads)
        worker_class = registry.load(alias)
    return Inspected(config.sized_for(worker_class.alias), worker_class)


class _Printer:
    """Prints instead of logging: a check opens no log files."""

    def debug(self, message: str, *args: object) -> None:
        """Nothing to warn of."""

    info = debug

    def warning(self, message: str, *args: object) -> None:
        print(f"Warning: {message % args}", file=sys.stderr)
