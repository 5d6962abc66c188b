"""The names that each of the two logs has: gunicorn's, tricorn's, and those of uvicorn, hypercorn and granian.

    link(named)      gives a log's handlers and level to every name that the log configuration does not configure
    follow(log)      gives them what was changed of the log later
    release()        takes them back, before the next configuration
    route(logger)    the logger that the server's own records go to
    enable()         undoes what `disable_existing_loggers` has done to the log

Code that logs to any of the names is printed once, as the server's lines are. A name that a log configuration or the
application configures (handlers, filters, a level) is left alone, and the server's records go through it: a filter on
`uvicorn.access` sees access lines, and handlers of `uvicorn` print errors of requests, as under uvicorn.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from tricorn.log.names import ACCESS, ERROR
from tricorn.log.targets import is_managed, reached
from tricorn.record import Record

UVICORN, UVICORN_ERROR, UVICORN_ACCESS = "uvicorn", "uvicorn.error", "uvicorn.access"
OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    ERROR: ("tricorn.error", UVICORN, "hypercorn.error", "_granian"),
    ACCESS: ("tricorn.access", UVICORN_ACCESS, "hypercorn.access", "granian.access"),
}
"""Aliases by the name of the log. `uvicorn.error` is a child of `uvicorn`, whose handlers it has under uvicorn, too."""

ERROR_NAMES = frozenset((ERROR, *OTHER_NAMES[ERROR], UVICORN_ERROR))
ALL_NAMES = ERROR_NAMES | {ACCESS, *OTHER_NAMES[ACCESS]}

Entries = Mapping[str, Mapping[str, Any]]
"""Entries of a log configuration, one for each logger."""


class _Link(Record):
    """Handlers that `link` has given a logger. None in its place: a log configuration has configured the logger."""

    handlers: tuple[logging.Handler, ...]
    level: int


_LINK = "_tricorn_link"
"""The attribute of a logger that has its `_Link`. The transaction puts it back with the others."""

_loggers: dict[str, tuple[logging.Logger, ...]] = {}
"""The other names of each log, in the order of `OTHER_NAMES`; loggers live as long as the process."""


def release() -> None:
    """Leaves the other names as a process without a server has them, but for what others have attached."""
    for logger in _others():
        if not hasattr(logger, _LINK):
            continue
        link: _Link | None = getattr(logger, _LINK)
        if link is None:
            _reset(logger)
        else:
            given = link.handlers
            logger.handlers = [each for each in logger.handlers if not is_managed(each) and each not in given]
            logger.setLevel(logging.NOTSET if logger.level == link.level else logger.level)
        logger.propagate = True
        delattr(logger, _LINK)


def link(entries: Entries) -> None:
    """Gives each name that is not among `entries` the handlers and the level of its log.

    If the log itself is, the others follow it, as uvicorn's loggers do under its worker class for gunicorn.
    """
    for main, names in OTHER_NAMES.items():
        log = logging.getLogger(main)
        _loggers[main] = tuple(map(logging.getLogger, names))
        for logger in _loggers[main]:
            entry = _entry_of(logger.name, entries)
            if main in entries or entry is None:
                _link(logger, log)
            else:
                setattr(logger, _LINK, None)
                _keep_from_vanishing(logger, log, entry)
    if ERROR in entries:
        _reset(logging.getLogger(UVICORN_ERROR))


def follow(log: logging.Logger) -> None:
    """Gives the other names what was changed of their log since `link`; what was configured apart stays."""
    handlers = tuple(log.handlers or reached(log))
    for logger in _loggers.get(log.name, ()):
        link: _Link | None = getattr(logger, _LINK, None)
        if link is None:
            continue
        if tuple(logger.handlers) == link.handlers:
            logger.handlers = list(handlers)
        if logger.level == link.level:
            logger.setLevel(log.level)
        setattr(logger, _LINK, _Link(handlers, log.level))


def route(log: logging.Logger) -> logging.Logger:
    """The logger for the server's own records: the first other name that is configured, or `log`."""
    for logger in _loggers.get(log.name, ()):
        if logger.name == UVICORN:
            error = logging.getLogger(UVICORN_ERROR)
            if (_is_configured(logger) or _is_configured_child(error)) and _writes(error):
                return error
        elif logger.name == UVICORN_ACCESS:
            if _is_configured(logger) or _formats_for_uvicorn(logger):
                return logger
        elif _is_configured(logger) and (log.name == ACCESS or _writes(logger)):
            return logger
    return log


def enable(but: Collection[str] = ()) -> bool:
    """Enables both logs under all their names again, except those of `but`. Whether the error log was disabled.

    `dictConfig` disables each logger that exists and that it does not name, unless it is told not to. One that the
    application has disabled on purpose stays so: then those that configurations seldom name are not.
    """
    if sum(logging.getLogger(name).disabled for name in _SELDOM_NAMED) < 2:
        return False
    was_disabled = logging.getLogger(ERROR).disabled
    for name in ALL_NAMES.difference(but):
        logging.getLogger(name).disabled = False
    return was_disabled


def _entry_of(name: str, entries: Entries) -> Mapping[str, Any] | None:
    """Finds the entry that configures a logger: its own, or of the one that is above or below it among uvicorn's."""
    return entries.get(name, entries.get(_RELATIVES.get(name, "")))


def _link(logger: logging.Logger, log: logging.Logger) -> None:
    handlers = tuple(log.handlers or reached(log))
    others = [each for each in logger.handlers if not is_managed(each) and each not in handlers]
    logger.handlers = [*handlers, *others]
    logger.propagate = False
    if logger.level == logging.NOTSET:
        logger.setLevel(log.level)
    setattr(logger, _LINK, _Link(handlers, log.level))


def _keep_from_vanishing(logger: logging.Logger, log: logging.Logger, entry: Mapping[str, Any]) -> None:
    """A configuration that gives a logger no handlers, as one that sets its level only, says nothing of where to."""
    if "handlers" not in entry and not logger.hasHandlers():
        logger.handlers, logger.propagate = log.handlers[:], False


def _reset(logger: logging.Logger) -> None:
    logger.setLevel(logging.NOTSET)
    logger.handlers = [each for each in logger.handlers if not is_managed(each)]
    logger.filters = []
    logger.propagate, logger.disabled = True, False


def _is_configured(logger: logging.Logger) -> bool:
    """Whether a log configuration or the application has a say in it."""
    if not hasattr(logger, _LINK):
        return False
    link: _Link | None = getattr(logger, _LINK)
    if link is None:
        return True
    changed = tuple(logger.handlers) != link.handlers or logger.level != link.level
    return changed or bool(logger.filters) or logger.disabled or logger.propagate


def _writes(logger: logging.Logger) -> bool:
    """An error log that was taken its handlers, or disabled, is no place for errors."""
    return not logger.disabled and logger.hasHandlers()


def _is_configured_child(logger: logging.Logger) -> bool:
    return bool(logger.handlers or logger.filters or logger.level or logger.disabled or not logger.propagate)


def _formats_for_uvicorn(logger: logging.Logger) -> bool:
    """Whether a handler was given a formatter that takes uvicorn's records apart (`AccessFormatter`)."""
    kinds = (type(handler.formatter).__mro__ for handler in reached(logger))
    return any(kind.__module__ == "uvicorn.logging" for mro in kinds for kind in mro)


def _others() -> Iterator[logging.Logger]:
    for names in OTHER_NAMES.values():
        yield from map(logging.getLogger, names)


_SELDOM_NAMED = ("hypercorn.error", "hypercorn.access", "_granian", "granian.access")
_RELATIVES = {UVICORN: UVICORN_ERROR, UVICORN_ACCESS: UVICORN}
