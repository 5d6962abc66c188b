"""Who writes the access log: the native core, or Python because somebody wants a say in it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from tricorn.log import configured
from tricorn.log.logger import Logger

if TYPE_CHECKING:
    from tricorn.config.config import Config

# What a line depends on. A subclass that has one of its own is asked for each line.
MAKERS = ("access", "atoms", "now", "atoms_wrapper_class", "access_fmt", "_get_user", "access_log_enabled")


def native_access(config: Config, logger: Logger) -> str | None:
    """The path (or `-`) the core writes the access log to; None if there is none or Python must write it."""
    log = logger.access_log
    native = (
        not configured.is_configured(config)
        and not _makes_lines(type(logger))
        and not any(name in vars(logger) for name in MAKERS)
        and log.handlers == logger.access_handlers
        and not log.filters
        and not log.disabled
        and log.isEnabledFor(logging.INFO)
        and all(map(_is_as_the_core, log.handlers))
    )
    return config.accesslog if native else None


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


def _makes_lines(kind: type[Logger]) -> bool:
    return any(getattr(kind, name) is not getattr(Logger, name) for name in MAKERS)


def _is_as_the_core(handler: logging.Handler) -> bool:
    formatted = getattr(handler.formatter, "as_the_core", False)
    return formatted and not handler.filters and handler.level <= logging.INFO
