"""The logger of the server: `log` in the arbiter and the workers, and `log` of hooks written for gunicorn."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from tricorn.log import aliases, capture, configured, formats, names, raw_text, style, targets
from tricorn.log.atoms import RawAtoms, SafeAtoms, basic_auth_user, collect
from tricorn.log.guarded import guard, safe
from tricorn.log.stream import Ownership
from tricorn.log.targets import STDERR, STDOUT, is_managed, or_refused
from tricorn.log.transaction import transaction
from tricorn.unpatched import _thread

if TYPE_CHECKING:
    from datetime import timedelta

    from tricorn.config.config import Config
    from tricorn.log.outlet import Outlet
    from tricorn.log.stream import LogStream


class Logger:
    """Logger with the methods and attributes of `gunicorn.glogging.Logger`, so that its subclasses work.

    Subclasses override `setup`, `access`, `atoms`, `now`, or the formats. As long as they leave the access log alone
    it is written by the native core and `access` is not called (`native_access`).
    """

    LOG_LEVELS: ClassVar[Mapping[str, int]] = {
        name: getattr(logging, name.upper()) for name in ("critical", "error", "warning", "info", "debug")
    }
    loglevel = logging.INFO
    error_fmt = configured.FORMAT
    datefmt = configured.DATES
    access_fmt = "%(message)s"
    syslog_fmt = "[%(process)d] %(message)s"
    atoms_wrapper_class: type[Any] = SafeAtoms

    def __init__(self, cfg: Config) -> None:
        self.error_log = names.get(names.ERROR)
        self.access_log = names.get(names.ACCESS)
        self.error_handlers: list[logging.Handler] = []
        self.access_handlers: list[logging.Handler] = []
        self.logfile: LogStream | None = None
        # Reentrant: a second USR1 may come while a signal handler is still busy with the first.
        self.lock = _thread.RLock()
        self.cfg = cfg
        self._captured = ""
        self.setup(cfg)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        guard(cls)

    def setup(self, cfg: Config) -> None:
        """Configures the log by `cfg`. Raises ConfigError and changes nothing if that is not possible."""
        with transaction(self):
            self.cfg = cfg
            self.loglevel = self.LOG_LEVELS.get(cfg.loglevel.lower(), logging.INFO)
            error, access = self._formatters()
            split = cfg.log_streams == "split"
            errors = self._targets("errorlog", cfg.errorlog, STDERR, error, split=split)
            if isinstance(error, style.Pretty) and self.loglevel > logging.DEBUG:
                for handler in errors:
                    handler.addFilter(style.is_news)
            accesses = self._targets("accesslog", cfg.accesslog, STDOUT, access)
            complaint = self._add_syslog(errors, accesses)
            configured.retire()
            aliases.release()
            self.error_handlers = _exchange(self.error_log, errors)
            self.access_handlers = _exchange(self.access_log, accesses)
            self.error_log.setLevel(self.loglevel)
            self.access_log.setLevel(logging.INFO)
            complaints = [complaint, configured.apply(cfg)]
            self._capture(cfg)
        for complaint in filter(None, complaints):
            self.active_log.warning("%s", complaint)

    def _formatters(self) -> tuple[logging.Formatter, logging.Formatter]:
        if self.cfg.log_format == "json":
            from tricorn.log.json_lines import JsonAccessFormatter, JsonFormatter

            return JsonFormatter(), JsonAccessFormatter()
        is_own = (self.error_fmt, self.datefmt) != (Logger.error_fmt, Logger.datefmt)
        is_plain = is_own or style.of_errors(self.cfg) == style.GUNICORN
        error = formats.Plain(self.error_fmt, self.datefmt) if is_plain else style.pretty(self.cfg)
        kind = style.PaintedAccessLine if style.is_painted(self.cfg) else formats.AccessLine
        return error, kind(self.access_fmt)

    def _targets(
        self, setting: str, path: str | None, console: int, formatter: logging.Formatter, *, split: bool = False
    ) -> list[logging.Handler]:
        made: list[logging.Handler] = []
        if path == "-":
            made += targets.consoles(console, split=split)
        elif path is not None:
            with or_refused(f"The {setting.removesuffix('log')} log {path!r} ({setting}) cannot be written"):
                made.append(targets.File(path, Ownership.of(self.cfg)))
        for handler in made:
            handler.setFormatter(formatter)
        return made

    def _add_syslog(self, errors: list[logging.Handler], accesses: list[logging.Handler]) -> str:
        """Adds syslog's handlers. Returns a complaint for the log, or an empty text."""
        if not self.cfg.syslog:
            return ""
        from tricorn.log import syslog

        of_errors, of_accesses = syslog.handlers(self.cfg, self.syslog_fmt)
        errors.append(of_errors)
        if of_accesses is not None:
            accesses.append(of_accesses)
        return of_errors.outlet.complaint("syslog", "syslog_addr")

    def _capture(self, cfg: Config) -> None:
        capture.stop()
        self.logfile, self._captured = None, ""
        if not cfg.capture_output:
            return
        if cfg.log_format == "json":
            capture.into_records(self.active_log)
            return
        path = cfg.errorlog if cfg.errorlog != "-" else None
        if path is None and configured.is_configured(cfg):
            path = configured.file_behind(self.active_log)
        if path is not None:
            self._captured = os.path.abspath(path)
            with or_refused(f"The output cannot be captured (capture_output) into {path!r}"):
                self.logfile = capture.into_file(self._captured, Ownership.of(cfg))

    @safe
    def change_level(self, level: str) -> None:
        """Changes the level until the next reload, also for processes forked later."""
        self.loglevel = self.LOG_LEVELS[level]
        for log in {self.error_log, self.active_log}:
            log.setLevel(self.loglevel)
        aliases.follow(self.error_log)

    # The error log

    @property
    def active_log(self) -> logging.Logger:
        """The logger for the server's records: `error_log`, or its other name that is configured (`aliases`)."""
        return aliases.route(self.error_log)

    @safe
    def critical(self, msg: object, *args: object, **kwargs: Any) -> None:
        self.active_log.critical(msg, *args, **kwargs)

    @safe
    def error(self, msg: object, *args: object, **kwargs: Any) -> None:
        self.active_log.error(msg, *args, **kwargs)

    @safe
    def warning(self, msg: object, *args: object, **kwargs: Any) -> None:
        self.active_log.warning(msg, *args, **kwargs)

    @safe
    def info(self, msg: object, *args: object, **kwargs: Any) -> None:
        self.active_log.info(msg, *args, **kwargs)

    @safe
    def debug(self, msg: object, *args: object, **kwargs: Any) -> None:
        self.active_log.debug(msg, *args, **kwargs)

    @safe
    def exception(self, msg: object, *args: object, **kwargs: Any) -> None:
        self.active_log.exception(msg, *args, **kwargs)

    @safe
    def log(self, lvl: int | str, msg: object, *args: object, **kwargs: Any) -> None:
        level = self.LOG_LEVELS.get(lvl.lower(), logging.INFO) if isinstance(lvl, str) else lvl
        self.active_log.log(level, msg, *args, **kwargs)

    @safe
    def write(self, text: str) -> None:
        """Puts `text` into the error log as it is, or as records if the log is made of such (`wsgi.errors`)."""
        raw_text.write(self.active_log, text)

    @safe
    def flush(self) -> None:
        raw_text.flush(self.active_log)
        for handler in targets.reached(self.active_log):
            with suppress(OSError, ValueError):  # a pipe without a reader, a stream that is closed
                handler.flush()

    # The access log

    @property
    def access_log_enabled(self) -> bool:
        to_syslog = self.cfg.syslog and not self.cfg.disable_redirect_access_to_syslog
        if self.cfg.accesslog or to_syslog:
            return True
        routed = aliases.route(self.access_log)
        if routed is self.access_log:
            return configured.is_configured(self.cfg)
        # As under uvicorn, unless there is `--no-access-log`.
        return self.cfg.is_default("accesslog") and routed.hasHandlers()

    def access(self, resp: Any, req: Any, environ: Mapping[str, Any], request_time: timedelta) -> None:
        """Writes the line of one request. Called only if the core does not write it."""
        if not self.access_log_enabled:
            return
        found = self.atoms(resp, req, environ, request_time)
        wrapper = self.atoms_wrapper_class
        if wrapper is SafeAtoms and self.cfg.log_format == "json" and not configured.is_configured(self.cfg):
            wrapper = RawAtoms
        log, line = aliases.route(self.access_log), (style.access_format(self.cfg), wrapper(found))
        try:
            if log.name == aliases.UVICORN_ACCESS:
                from tricorn.log import uvicorn_records

                uvicorn_records.write(log, environ, line)
            else:
                log.info(*line)
        except Exception:
            self.exception("Exception while formatting an access log line")

    def atoms(self, resp: Any, req: Any, environ: Mapping[str, Any], request_time: timedelta) -> dict[str, Any]:
        """Collects what the line is made of: letters, and `{name}i`, `{name}o`, `{name}e` for fields and environ."""
        return collect(resp, req, environ, request_time, self.now(), self._get_user(environ))

    def now(self) -> str:
        """Returns the time of an access log line: `[21/Nov/2026:01:02:32 +0000]`."""
        return time.strftime("[%d/%b/%Y:%H:%M:%S %z]")

    def _get_user(self, environ: Mapping[str, Any]) -> str | None:
        return basic_auth_user(environ.get("HTTP_AUTHORIZATION") or "")

    # Collectors

    def outlets(self) -> list[Outlet]:
        """Returns the outlets to collectors, each once."""
        handlers = [*self.error_handlers, *self.access_handlers]
        found = {id(each.outlet): each.outlet for each in handlers if hasattr(each, "outlet")}
        return list(found.values())

    # Files

    @safe
    def reopen_files(self) -> None:
        """Opens all log files of the process anew, after a targets. What cannot be opened stays as it is."""
        for handler in targets.file_handlers():
            try:
                targets.reopen(handler)
            except OSError as error:
                self._stays(handler.baseFilename, error)
        if self.logfile is not None:
            try:
                with self.lock:
                    self.logfile = capture.into_file(self._captured, Ownership.of(self.cfg))
            except OSError as error:
                self._stays(self._captured, error)

    reopen = reopen_files

    def _stays(self, path: str, error: OSError) -> None:
        self.error("Could not reopen the log %r; still writing to the old file: %s", path, error.strerror or error)

    def close_on_exec(self) -> None:
        """Keeps log files from programs that the application starts; ours never get there."""
        for handler in targets.file_handlers():
            stream: Any = handler.stream
            os.set_inheritable(stream.fileno(), False)

    # Not documented by gunicorn, and used by its users' subclasses all the same

    def _set_handler(
        self, log: logging.Logger, output: str | None, fmt: logging.Formatter, stream: object = None
    ) -> None:
        to_stdout = stream is sys.stdout or (stream is None and log is not self.error_log)
        setting = "accesslog" if log is self.access_log else "errorlog"
        _exchange(log, self._targets(setting, output, STDOUT if to_stdout else STDERR, fmt))

    def _get_gunicorn_handler(self, log: logging.Logger) -> logging.Handler | None:
        return next((handler for handler in log.handlers if is_managed(handler)), None)


def _exchange(log: logging.Logger, handlers: list[logging.Handler]) -> list[logging.Handler]:
    """Puts our handlers in the place of those we had there; those of others stay, as with gunicorn.

    In one assignment: a record of another thread finds the old ones or the new ones. Ours come first, because their
    formatter mends records that cannot be formatted.
    """
    log.handlers = [*handlers, *(handler for handler in log.handlers if not is_managed(handler))]
    return handlers
