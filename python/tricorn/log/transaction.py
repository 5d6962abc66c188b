"""All or nothing: a log configuration that fails leaves the log as it was.

with transaction():
    ...                 an exception puts every logger, stdout and stderr back, and closes what was opened;
                        otherwise the handlers that nobody has any more are closed
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from tricorn.log.names import all_loggers
from tricorn.record import Record

STANDARD = (1, 2)

_running: list[set[logging.Handler]] = []
"""While a transaction runs: the handlers made in it, attached or not. Those inside of it belong to it."""


@contextmanager
def transaction() -> Iterator[None]:
    if _running:
        yield
        return
    made: set[logging.Handler] = set()
    _running.append(made)
    before = _State.now()
    try:
        yield
    except BaseException:
        attached = _attached()
        before.restore()
        _close((attached | made) - _attached())
        raise
    else:
        _close({handler for handler in (before.attached | made) - _attached() if is_managed(handler)})
    finally:
        _running.pop()
        before.forget()


def made_here(handlers: Iterable[logging.Handler]) -> None:
    """Tells the running transaction about handlers, which a logging configuration may displace at once."""
    for made in _running:
        made.update(handlers)


def manage(handler: logging.Handler) -> None:
    """Marks a handler as made by a logging configuration: the next setup may close it."""
    with suppress(AttributeError):
        handler._tricorn = True  # type: ignore[attr-defined]


def is_managed(handler: logging.Handler) -> bool:
    return bool(getattr(handler, "_tricorn", False) or getattr(handler, "_gunicorn", False))


class _Logger(Record):
    logger: logging.Logger
    level: int
    propagate: bool
    disabled: bool
    handlers: list[logging.Handler]
    filters: list[object]

    def restore(self) -> None:
        logger = self.logger
        logger.setLevel(self.level)  # and forgets what it has remembered about levels
        logger.propagate, logger.disabled = self.propagate, self.disabled
        logger.handlers[:] = self.handlers
        logger.filters[:] = self.filters  # type: ignore[assignment]


class _State(Record):
    loggers: list[_Logger]
    attached: set[logging.Handler]
    streams: tuple[TextIO, TextIO]
    descriptors: dict[int, int]

    @classmethod
    def now(cls) -> _State:
        loggers = [
            _Logger(each, each.level, each.propagate, each.disabled, each.handlers[:], [*each.filters])
            for each in all_loggers()
        ]
        descriptors = {}
        for number in STANDARD:
            with suppress(OSError):  # closed
                descriptors[number] = os.dup(number)
        return cls(loggers, _attached(), (sys.stdout, sys.stderr), descriptors)

    def restore(self) -> None:
        known = {each.logger for each in self.loggers}
        for each in self.loggers:
            each.restore()
        for logger in all_loggers():
            if logger not in known:
                logger.handlers[:] = []
        sys.stdout, sys.stderr = self.streams
        for number, copy in self.descriptors.items():
            os.dup2(copy, number)

    def forget(self) -> None:
        for copy in self.descriptors.values():
            os.close(copy)


def _attached() -> set[logging.Handler]:
    return {handler for logger in all_loggers() for handler in logger.handlers}


def _close(handlers: set[logging.Handler]) -> None:
    for handler in handlers:
        with suppress(Exception):  # a foreign handler's; there is nobody left to tell
            handler.close()
