"""The logger of the server: `log` in the arbiter and the workers, and `log` of hooks written for gunicorn."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from tricorn.log import atoms as atom
from tricorn.log import capture, configured, formats, names, raw_text, rotation, targets
from tricorn.log.transaction import is_managed, made_here, transaction
from tricorn.unpatched import _thread

if TYPE_CHECKING:
    from datetime import timedelta

    from tricorn.config.config import Config
    from tricorn.log.stream import LogStream


class Logger:
    """gunicorn's `gunicorn.glogging.Logger`: the same methods and attributes, so that its subclasses work.

    Subclasses override `setup`, `access`, `atoms`, `now`, or the formats. As long as they leave the access log alone
    it is written by the native core and `access` is not called (`native_access`).
    """

    LOG_LEVELS: ClassVar[Mapping[str, int]] = {
        "critical": logging.CRITICAL,
        "error": logging.ERROR,
        "warning": logging.WARNING,
        "info": logging.INFO,
        "debug": logging.DEBUG,
    }
    loglevel = logging.INFO
    error_fmt = configured.FORMAT
    datefmt = configured.DATES
    access_fmt = "%(message)s"
    syslog_fmt = "[%(process)d] %(message)s"
    atoms_wrapper_class: type[Any] = atom.SafeAtoms

    def __init__(self, cfg: Config) -> None:
        names.give_second_names()
        self.error_log = logging.getLogger(names.ERROR)
        self.error_log.propagate = False
        self.access_log = logging.getLogger(names.ACCESS)
        self.access_log.propagate = False
        self.error_handlers: list[logging.Handler] = []
        self.access_handlers: list[logging.Handler] = []
        self.logfile: LogStream | None = None
        # Reentrant: a second USR1 may come while a signal handler is still busy with the first.
        self.lock = _thread.RLock()
        self.cfg = cfg
        self._captured = ""
        self.setup(cfg)

    def setup(self, cfg: Config) -> None:
        """Makes the log what `cfg` says, or raises ConfigError and leaves it as it was."""
        with transaction(), self._same_if_it_fails():
            self.cfg = cfg
            self.loglevel = self.LOG_LEVELS.get(cfg.loglevel.lower(), logging.INFO)
            error = self._targets("errorlog", cfg.errorlog, targets.STDERR, split=cfg.log_streams == "split")
            _format(error, formats.for_errors(cfg, self.error_fmt, self.datefmt))
            access = self._targets("accesslog", cfg.accesslog, targets.STDOUT, split=False)
            _format(access, formats.for_accesses(cfg, self.access_fmt))
            configured.retire()
            self.error_handlers = _exchange(self.error_log, error)
            self.access_handlers = _exchange(self.access_log, access)
            made_here((*error, *access))
            self.error_log.setLevel(self.loglevel)
            self.access_log.setLevel(logging.INFO)
            configured.apply(cfg)
            self._capture(cfg)

    @contextmanager
    def _same_if_it_fails(self) -> Iterator[None]:
        before = dict(vars(self))
        try:
            yield
        except BaseException:
            vars(self).update(before)
            raise

    def _targets(self, setting: str, path: str | None, console: int, *, split: bool) -> list[targets.Quiet]:
        if path is None:
            return []
        if path == "-":
            return targets.consoles(console, split=split)
        return [targets.file(path, setting, self.cfg.user, self.cfg.group)]

    def _capture(self, cfg: Config) -> None:
        capture.stop()
        self.logfile, self._captured = None, ""
        if not cfg.capture_output:
            return
        if cfg.log_format == "json":
            capture.into_records(self.error_log)
            return
        path = cfg.errorlog if cfg.errorlog != "-" else None
        if path is None and configured.is_configured(cfg):
            path = configured.file_behind(self.error_log)
        if path is not None:
            self._captured = os.path.abspath(path)
            self.logfile = capture.into_file(self._captured, cfg.user, cfg.group)

    # The error log

    def critical(self, msg: object, *args: object, **kwargs: Any) -> None:
        self.error_log.critical(msg, *args, **kwargs)

    def error(self, msg: object, *args: object, **kwargs: Any) -> None:
        self.error_log.error(msg, *args, **kwargs)

    def warning(self, msg: object, *args: object, **kwargs: Any) -> None:
        self.error_log.warning(msg, *args, **kwargs)

    def info(self, msg: object, *args: object, **kwargs: Any) -> None:
        self.error_log.info(msg, *args, **kwargs)

    def debug(self, msg: object, *args: object, **kwargs: Any) -> None:
        self.error_log.debug(msg, *args, **kwargs)

    def exception(self, msg: object, *args: object, **kwargs: Any) -> None:
        self.error_log.exception(msg, *args, **kwargs)

    def log(self, lvl: int | str, msg: object, *args: object, **kwargs: Any) -> None:
        level = self.LOG_LEVELS.get(lvl.lower(), logging.INFO) if isinstance(lvl, str) else lvl
        self.error_log.log(level, msg, *args, **kwargs)

    def write(self, text: str) -> None:
        """Puts `text` into the error log as it is, or as records if the log is made of such (`wsgi.errors`)."""
        raw_text.write(self.error_log, text)

    def flush(self) -> None:
        raw_text.flush(self.error_log)
        for handler in self.error_log.handlers:
            try:
                handler.flush()
            except (OSError, ValueError):  # a pipe nobody reads, a stream somebody has closed
                pass

    # The access log

    @property
    def access_log_enabled(self) -> bool:
        return bool(self.cfg.accesslog) or configured.is_configured(self.cfg)

    def access(self, resp: Any, req: Any, environ: Mapping[str, Any], request_time: timedelta) -> None:
        """Writes the line of one request. Called only if the core does not write it."""
        if not self.access_log_enabled:
            return
        found = self.atoms(resp, req, environ, request_time)
        wrapper = self.atoms_wrapper_class
        if wrapper is atom.SafeAtoms and self.cfg.log_format == "json" and not configured.is_configured(self.cfg):
            wrapper = atom.RawAtoms
        try:
            self.access_log.info(self.cfg.access_log_format, wrapper(found))
        except Exception:
            self.exception("Exception while a line of the access log was made")

    def atoms(self, resp: Any, req: Any, environ: Mapping[str, Any], request_time: timedelta) -> dict[str, Any]:
        """What the line is made of: letters, and `{name}i`, `{name}o`, `{name}e` for fields and environ."""
        return atom.collect(resp, req, environ, request_time, self.now(), self._get_user(environ))

    def now(self) -> str:
        """The time of a line: `[21/Nov/2026:01:02:32 +0000]`."""
        return time.strftime("[%d/%b/%Y:%H:%M:%S %z]")

    def _get_user(self, environ: Mapping[str, Any]) -> str | None:
        try:
            return atom.basic_user(environ)
        except ValueError as error:
            self.debug("Couldn't get username: %s", error)
            return None

    # Files

    def reopen_files(self) -> None:
        """Opens all log files of the process anew, after a rotation. What cannot be opened stays as it is."""
        for handler in rotation.file_handlers():
            try:
                rotation.reopen(handler)
            except OSError as error:
                self._stays(handler.baseFilename, error)
        if self.logfile is not None:
            try:
                with self.lock:
                    capture.reopen(self.logfile, self._captured, self.cfg.user, self.cfg.group)
            except OSError as error:
                self._stays(self._captured, error)

    reopen = reopen_files

    def _stays(self, path: str, error: OSError) -> None:
        self.error("The log %r cannot be opened anew, the old file stays in use: %s", path, error.strerror or error)

    def close_on_exec(self) -> None:
        """Keeps log files from programs that the application starts; ours never get there."""
        for handler in rotation.file_handlers():
            stream: Any = handler.stream
            os.set_inheritable(stream.fileno(), False)

    # Not documented by gunicorn, and used by its users' subclasses all the same

    def _set_handler(
        self, log: logging.Logger, output: str | None, fmt: logging.Formatter, stream: object = None
    ) -> None:
        console = targets.STDERR if log is self.error_log and stream is None else targets.number_of(stream)
        setting = "accesslog" if log is self.access_log else "errorlog"
        handlers = self._targets(setting, output, console, split=False)
        _format(handlers, fmt)
        _exchange(log, handlers)

    def _get_gunicorn_handler(self, log: logging.Logger) -> logging.Handler | None:
        return next((handler for handler in log.handlers if is_managed(handler)), None)


def _format(handlers: list[targets.Quiet], formatter: logging.Formatter) -> None:
    for handler in handlers:
        handler.setFormatter(formatter)


def _exchange(log: logging.Logger, handlers: list[targets.Quiet]) -> list[logging.Handler]:
    """Puts our handlers in the place of those we had there; those of others stay, as with gunicorn.

    In one assignment: a record of another thread finds the old ones or the new ones. Ours come first, because their
    formatter mends records that cannot be formatted.
    """
    foreign = [handler for handler in log.handlers if not is_managed(handler)]
    log.handlers = [*handlers, *foreign]
    return list(handlers)
