"""The error log, and the access log where Python has a say in it. gunicorn's names, formats and API.

    make(config)                      the logger: an instance of the class `logger_class`
    native_access(config, logger)     where the core writes the access log itself
    native_syslog(config, logger)     how the core sends lines of the access log to syslog
    native_statsd(config, logger)     how the core sends metrics of requests to statsd
    may_be_native(config)             whether it will, as far as one can tell before there is a logger
    is_native(config, logger)         whether nothing is attached to the access log that only Python knows
    enable(logger, may_say)           undoes what `disable_existing_loggers` of the application's has done
    python_access(config, logger)     whether `logger.access` is to be called for every request
    settle_after_patching()           what monkey-patching must not change, and what it must

The standard library's loggers belong to the process. So `make` at a reload changes the running log: completely, or
not at all if the configuration is bad.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tricorn.config.lookups import import_class
from tricorn.errors import ConfigError, TricornError
from tricorn.log import aliases, names, raw_text, targets
from tricorn.log.access import (
    access_of,
    is_native,
    may_be_native,
    native_access,
    native_statsd,
    native_syslog,
    python_access,
)
from tricorn.log.logger import Logger
from tricorn.log.statsd import Statsd
from tricorn.log.transaction import transaction
from tricorn.unpatched import _thread

if TYPE_CHECKING:
    from tricorn.config.config import Config

__all__ = [
    "Logger",
    "access_of",
    "enable",
    "is_native",
    "load_class",
    "make",
    "may_be_native",
    "native_access",
    "native_statsd",
    "native_syslog",
    "python_access",
    "settle_after_patching",
]


def make(config: Config) -> Logger:
    """The logger `config` asks for. Raises ConfigError, and then the log that was running still is."""
    kind = load_class(config.logger_class, with_statsd=config.statsd_host is not None)
    with transaction():
        try:
            logger = kind(config)
            for log in (logger.error_log, logger.access_log):
                aliases.follow(log)  # its `setup` may have changed what ours has made
            return logger
        except TricornError:
            raise
        except Exception as error:
            if kind is Logger:
                raise
            name = f"{kind.__module__}.{kind.__qualname__} (logger_class)"
            raise ConfigError(f"The logger class {name} failed: {type(error).__name__}: {error}.") from error


def load_class(named: Any, *, with_statsd: bool = False) -> type[Logger]:
    """Finds the class of a `logger_class`. Raises ConfigError for a name that leads nowhere, and for other objects.

    `with_statsd`: metrics are wanted, and a default that is named becomes the class that sends them.
    """
    found: Any = named
    if named == names.STATSD or (isinstance(named, str) and named in names.PLAIN):
        found = Statsd if with_statsd or named == names.STATSD else Logger
    if isinstance(found, str):
        found = import_class(f"The logger class {named!r} (logger_class)", found)
    if not isinstance(found, type) or not issubclass(found, Logger):
        raise ConfigError(
            f"Invalid logger_class {named!r}: expected a subclass of tricorn.log.Logger (gunicorn.glogging.Logger is "
            f"the same class here), got {found!r}."
        )
    install = getattr(found, "install", None)
    if install is not None:  # gunicorn's way of letting a class prepare the process
        try:
            install()
        except Exception as error:
            sentence = (
                f"The logger class {named!r} (logger_class) failed in install(): {type(error).__name__}: {error}."
            )
            raise ConfigError(sentence) from error
    return found


def enable(logger: Logger, may_say: Callable[[str], bool] = lambda topic: True) -> None:
    """Enables the logs again if a logging configuration of the application's has disabled them by leaving them out.

    `may_say` is asked whether this process is to say so.
    """
    if aliases.enable() and may_say("disable_existing_loggers"):
        logger.warning(
            "The application's logging configuration disabled the server's loggers; they are enabled again. "
            'Set "disable_existing_loggers": False in it (the default is True).'
        )


def settle_after_patching() -> None:
    """Undoes for the server what patching has done to logging: it gives `logging` locks that only greenlets know.

    The package's own lock becomes a real one again: it is held across each fork, and threads and signal handlers of
    the server's take it when they log.
    """
    setattr(logging, "_lock", _thread.RLock())  # noqa: B010  (not an attribute a type checker knows)
    for handler in names.handlers():
        if isinstance(handler, targets.RealLock):
            handler.createLock()
    raw_text.settle_after_patching()
