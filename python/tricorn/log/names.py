"""The two loggers, under gunicorn's names. Their other names are in `aliases`."""

from __future__ import annotations

import logging

ERROR, ACCESS = "gunicorn.error", "gunicorn.access"


def get(name: str) -> logging.Logger:
    """One of the two, which has no parent for its records."""
    logger = logging.getLogger(name)
    logger.propagate = False
    return logger


def all_loggers() -> list[logging.Logger]:
    """Every logger of the process, the root first."""
    existing = logging.root.manager.loggerDict.values()
    return [logging.root, *(logger for logger in existing if isinstance(logger, logging.Logger))]


def handlers() -> set[logging.Handler]:
    """Those of all loggers."""
    return {handler for logger in all_loggers() for handler in logger.handlers}
