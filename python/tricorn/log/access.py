"""Who writes the access log: the native core, or Python because somebody wants a say in it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tricorn.log import configured, formats
from tricorn.log.logger import Logger

if TYPE_CHECKING:
    from tricorn.config.config import Config

# What a line depends on. A subclass that has one of its own is asked for each line.
MAKERS = ("access", "atoms", "now", "atoms_wrapper_class", "access_fmt", "_get_user", "access_log_enabled")


def native_access(config: Config, logger: Logger) -> str | None:
    """The path (or `-`) the core writes the access log to; None if there is none or Python must write it."""
    if not config.accesslog or configured.is_configured(config) or _has_own_makers(logger):
        return None
    log = logger.access_log
    if log.handlers != logger.access_handlers or log.filters or log.disabled or not log.isEnabledFor(logging.INFO):
        return None
    for handler in log.handlers:
        if handler.filters or handler.level > logging.INFO:
            return None
        if not formats.is_default_access(handler.formatter, logger.access_fmt):
            return None
    return config.accesslog


def may_be_native(config: Config) -> bool:
    """Whether the core is given `access_log_format`, as far as a configuration tells before its logger is made.

    A format with atoms that only a logger class knows is none of the core's business. Imports nothing: a class that
    is named is taken to have some.
    """
    from tricorn.log.classes import OURS

    named = config.logger_class
    if not config.accesslog or configured.is_configured(config):
        return False
    return named in OURS if isinstance(named, str) else not _makes_lines(named)


def python_access(config: Config, logger: Logger) -> bool:
    """Whether `logger.access` must be called for every request.

    A subclass with an `access` of its own is called even without an access log: it may count, not write.
    """
    if type(logger).access is not Logger.access:
        return True
    return logger.access_log_enabled and native_access(config, logger) is None


def _has_own_makers(logger: Logger) -> bool:
    return _makes_lines(type(logger)) or any(name in vars(logger) for name in MAKERS)


def _makes_lines(kind: type[Logger]) -> bool:
    return any(getattr(kind, name) is not getattr(Logger, name) for name in MAKERS)
