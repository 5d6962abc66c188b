"""Styles of the lines of the two logs: gunicorn's text, short ones for a terminal, or JSON (`log_format`)."""

from __future__ import annotations

import logging
import os
import re
from typing import TYPE_CHECKING

from tricorn.config.config import DEFAULT
from tricorn.log.formats import AccessLine, Plain, as_gunicorns, harmless, with_message
from tricorn.log.targets import STDERR, STDOUT

if TYPE_CHECKING:
    from tricorn.config.config import Config

PRETTY, GUNICORN, JSON, AUTO = "pretty", "gunicorn", "json", "auto"
SHORT_ACCESS = '%(clock)s %(s)-8s %(h)s "%(r)s" %(b)s bytes, %(M)s ms'
"""The format in place of the default `access_log_format`, where lines are short."""


def of_errors(config: Config) -> str:
    """Returns `pretty`, `gunicorn` or `json`, the style of the error log."""
    return _style(config, config.errorlog, STDERR)


def is_on_terminal(config: Config) -> bool:
    """Whether the error log is read as it is written."""
    return config.errorlog == "-" and _is_terminal(STDERR)


def of_accesses(config: Config) -> str:
    """Returns the style of access lines. Each log checks its own target: `> file` does not change the other."""
    return _style(config, config.accesslog, STDOUT)


def _style(config: Config, target: str | None, console: int) -> str:
    if config.log_format != AUTO:
        return config.log_format
    return PRETTY if target == "-" and _is_terminal(console) else GUNICORN


def access_format(config: Config) -> str:
    """The format of access lines: the one that was asked for, or the one that the style has."""
    asked = config.origin("access_log_format") != DEFAULT
    return SHORT_ACCESS if not asked and of_accesses(config) == PRETTY else config.access_log_format


def is_painted(config: Config) -> bool:
    """Whether access lines have the colour of their status."""
    return of_accesses(config) == PRETTY and config.accesslog == "-" and has_colours(STDOUT)


def has_colours(descriptor: int) -> bool:
    """Whether escape sequences are wanted there: NO_COLOR, FORCE_COLOR and TERM=dumb have their usual meaning."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "0") not in ("", "0"):
        return True
    return os.environ.get("TERM") != "dumb" and _is_terminal(descriptor)


def _is_terminal(descriptor: int) -> bool:
    try:
        return os.isatty(descriptor)
    except OSError:
        return False


def pretty(config: Config) -> Pretty:
    """The formatter of the error log; files have no colours."""
    return Pretty(coloured=config.errorlog == "-" and has_colours(STDERR))


class Pretty(Plain):
    """`19:18:24 info     message`. Of pids only that of a worker that has trouble."""

    def __init__(self, *, coloured: bool) -> None:
        super().__init__()
        self._coloured = coloured
        self._arbiter = os.getpid()

    def format(self, record: logging.LogRecord) -> str:
        with_message(record)
        level = record.levelname.lower()
        clock = self._in(DIM, self.formatTime(record, "%H:%M:%S"))
        told = f"{clock} {self._in(LEVELS.get(record.levelno, ''), f'{level:8}')} "
        if record.levelno >= logging.WARNING and record.process != self._arbiter:
            told += self._in(DIM, f"[{record.process}] ")
        lines = [record.getMessage()]
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            lines.append(record.exc_text)
        if record.stack_info:
            lines.append(self.formatStack(record.stack_info))
        return told + harmless("\n".join(lines))

    def _in(self, colour: str, text: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._coloured and colour else text


class PaintedAccessLine(AccessLine):
    """The line of the access log in the colour of its status, as the core paints it."""

    def format(self, record: logging.LogRecord) -> str:
        record = as_gunicorns(record)
        line = super().format(record)
        status = record.args.get("s") if isinstance(record.args, dict) else None
        colour = CLASSES.get(str(status)[:1])
        return f"\x1b[{colour}m{line}\x1b[0m" if colour else line


def is_news(record: logging.LogRecord) -> bool:
    """A filter: leaves out what gunicorn tells of each worker and what another line tells of all of them."""
    return record.levelno > logging.INFO or not ROUTINE.match(record.getMessage())


ROUTINE = re.compile(r"Booting worker with pid: |Worker exiting \(pid: |Worker \(pid:\d+\) was sent SIG|Listening at: ")
DIM = "2"
LEVELS = {
    logging.DEBUG: "36",
    logging.INFO: "32",
    logging.WARNING: "33",
    logging.ERROR: "31",
    logging.CRITICAL: "1;31",
}
CLASSES = {"2": "32", "3": "36", "4": "33", "5": "31"}
"""Colours of Select Graphic Rendition (ECMA-48), by the first digit of a status."""
