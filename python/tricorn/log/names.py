"""Names of the two loggers, which are gunicorn's (others are in `aliases`), and of the logger classes."""

from __future__ import annotations

import logging

ERROR, ACCESS = "gunicorn.error", "gunicorn.access"

PLAIN = ("", "simple", "tricorn.log.Logger", "gunicorn.glogging.Logger")
STATSD = "gunicorn.instrument.statsd.Statsd"


def get(name: str) -> logging.Logger:
    """Returns one of the two, which has no parent for its records."""
    logger = logging.getLogger(name)
    logger.propagate = False
    return logger


def all_loggers() -> list[logging.Logger]:
    """Returns every logger of the process, the root first."""
    existing = logging.root.manager.loggerDict.values()
    return [logging.root, *(logger for logger in existing if isinstance(logger, logging.Logger))]


def handlers() -> set[logging.Handler]:
    """Returns the handlers of all loggers."""
    return {handler for logger in all_loggers() for handler in logger.handlers}
