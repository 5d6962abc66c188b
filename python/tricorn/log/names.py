"""The two loggers. They have gunicorn's names, which existing logging configurations use, and ours."""

from __future__ import annotations

import logging

ERROR, ACCESS = "gunicorn.error", "gunicorn.access"
SECOND_NAMES = {"tricorn.error": ERROR, "tricorn.access": ACCESS}


def get(name: str) -> logging.Logger:
    """One of the two, which has no parent for its records. What is logged under its second name goes to it."""
    logging.getLogger("tricorn")  # made later, it would become the parent of the second names
    logger = logging.getLogger(name)
    logger.propagate = False
    for second, first in SECOND_NAMES.items():
        if first == name:
            logging.getLogger(second).parent = logger
    return logger


def all_loggers() -> list[logging.Logger]:
    """Every logger of the process, the root first."""
    existing = logging.root.manager.loggerDict.values()
    return [logging.root, *(logger for logger in existing if isinstance(logger, logging.Logger))]


def handlers() -> set[logging.Handler]:
    """Those of all loggers."""
    return {handler for logger in all_loggers() for handler in logger.handlers}
