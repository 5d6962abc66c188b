"""The two loggers. They have gunicorn's names, which existing logging configurations use, and ours."""

from __future__ import annotations

import logging

ERROR, ACCESS = "gunicorn.error", "gunicorn.access"
SECOND_NAMES = {"tricorn.error": ERROR, "tricorn.access": ACCESS}


def give_second_names() -> None:
    """Makes `logging.getLogger("tricorn.error")` the logger `gunicorn.error`; once.

    Not by a second entry in the manager's table of loggers: `dictConfig` disables every entry that it was not given
    ("disable_existing_loggers"), so a configuration that names `gunicorn.error` would disable it as `tricorn.error`.
    """
    manager = logging.Logger.manager
    if "getLogger" in vars(manager):
        return
    by_name = manager.getLogger

    def get_logger(name: str) -> logging.Logger:
        return by_name(SECOND_NAMES.get(name, name))

    manager.getLogger = get_logger  # type: ignore[method-assign]


def all_loggers() -> list[logging.Logger]:
    """Every logger of the process, the root first."""
    existing = logging.root.manager.loggerDict.values()
    return [logging.root, *(logger for logger in existing if isinstance(logger, logging.Logger))]
