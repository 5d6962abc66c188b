"""Who tells of requests: the native core, or Python because a logger class has a say in it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from tricorn.log import aliases, configured, names
from tricorn.log.logger import Logger
from tricorn.log.statsd import Statsd

if TYPE_CHECKING:
    from tricorn.config.config import Config
    from tricorn.log.syslog import Syslog

# What a line depends on. A subclass that has one of its own is asked for each line.
MAKERS = (
    "access",
    "atoms",
    "now",
    "atoms_wrapper_class",
    "access_fmt",
    "syslog_fmt",
    "_get_user",
    "access_log_enabled",
)
# What metrics of a request depend on.
METERS = ("access", "timer", "increment", "_sock_send")

PACKED, PACKED_LOCALLY = 1432, 8192
"""Bytes of a datagram to statsd that passes an Ethernet network in one piece, and a unix socket's."""


def native_access(config: Config, logger: Logger) -> str | None:
    """The path (or `-`) the core writes the access log to; None if there is none or Python must write it."""
    return config.accesslog if is_native(config, logger) else None


def native_syslog(config: Config, logger: Logger) -> tuple[object, ...] | None:
    """The core's option; None if no access lines go there, or Python must make them."""
    handler = _syslog_handler(logger) if is_native(config, logger) else None
    return None if handler is None else (handler.outlet.native, *handler.head_and_tail())


def native_statsd(config: Config, logger: Logger) -> tuple[object, ...] | None:
    """The core's option; None if no metrics are sent, or a subclass has a say in them."""
    if not isinstance(logger, Statsd) or not _measures_natively(logger):
        return None
    outlet = logger.outlet
    if outlet is None or outlet.address is None:
        return None
    most = config.statsd_datagram
    if most == "auto":
        most = PACKED if outlet.collector.transport == "udp" else PACKED_LOCALLY
    return outlet.native, logger.prefix, logger.dogstatsd_tags, most, config.statsd_extended


def _syslog_handler(logger: Logger) -> Syslog | None:
    """The one of the access log, if it has an address."""
    if not logger.cfg.syslog:
        return None
    from tricorn.log.syslog import Syslog

    found = (handler for handler in logger.access_handlers if isinstance(handler, Syslog))
    return next((handler for handler in found if handler.outlet.address is not None), None)


def is_native(config: Config, logger: Logger) -> bool:
    """Whether the core can make the lines: nothing is attached to the log that only Python knows."""
    log = logger.access_log
    return (
        not configured.is_configured(config)
        and aliases.route(log) is log
        and not _makes_lines(type(logger))
        and not any(name in vars(logger) for name in MAKERS)
        and log.handlers == logger.access_handlers
        and not log.filters
        and not log.disabled
        and log.isEnabledFor(logging.INFO)
        and all(map(_is_as_the_core, log.handlers))
    )


def _measures_natively(logger: Statsd) -> bool:
    return all(getattr(type(logger), name) is getattr(Statsd, name) for name in METERS) and not any(
        name in vars(logger) for name in METERS
    )


def may_be_native(config: Config) -> bool:
    """Whether the core is given `access_log_format`, as far as a configuration tells before its logger is made.

    A format with atoms that only a logger class knows is none of the core's business. Imports nothing: a class that
    is named is taken to have some.
    """
    named = config.logger_class
    to_syslog = config.syslog and not config.disable_redirect_access_to_syslog
    if not (config.accesslog or to_syslog) or configured.is_configured(config):
        return False
    return named in names.PLAIN if isinstance(named, str) else not _makes_lines(named)


def python_access(config: Config, logger: Logger) -> bool:
    """Whether `access_of(logger)` must be called for every request.

    A subclass with an `access` of its own is called even without an access log: it may count, not write.
    """
    if type(logger).access not in (Logger.access, Statsd.access):
        return True
    if isinstance(logger, Statsd) and logger.outlet is not None and not _measures_natively(logger):
        return True
    return logger.access_log_enabled and not is_native(config, logger)


def access_of(logger: Logger) -> Any:
    """`logger.access`, but for the metrics that the core sends."""
    is_native = isinstance(logger, Statsd) and _measures_natively(logger)
    return Logger.access.__get__(logger) if is_native else logger.access


def _makes_lines(kind: type[Logger]) -> bool:
    return any(getattr(kind, name) not in (getattr(Logger, name), getattr(Statsd, name)) for name in MAKERS)


def _is_as_the_core(handler: logging.Handler) -> bool:
    formatted = getattr(handler.formatter, "as_the_core", False)
    return formatted and not handler.filters and handler.level <= logging.INFO
