"""What can go wrong around the workers, and whose move it is.

    TricornError
    ├── ConfigError      the operator's: a setting, a flag, a path
    ├── BindError        the operator's: an address that cannot be listened on
    ├── AppImportError   the application's: it cannot be found or is not callable
    └── BootError        the application's: it was found and failed while it was loaded

Every message says what was expected and what came, and where it can what to do. The exit code belongs to the
class, so that nothing else has to know it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar


class ExitCode(IntEnum):
    """The exit statuses supervisors and deployment scripts know from gunicorn."""

    OK = 0
    CONFIG = 1
    USAGE = 2
    WORKER_BOOT = 3
    APP_LOAD = 4


class TricornError(Exception):
    """The base of everything tricorn raises on purpose."""

    exit_code: ClassVar[ExitCode] = ExitCode.CONFIG


class ConfigError(TricornError):
    """A setting has a value that cannot be used."""


class BindError(TricornError):
    """An address cannot be listened on."""


class AppImportError(TricornError):
    """The application named on the command line cannot be found, or is not an application."""

    exit_code: ClassVar[ExitCode] = ExitCode.APP_LOAD


class BootError(TricornError):
    """Loading the application raised an exception of its own."""

    exit_code: ClassVar[ExitCode] = ExitCode.WORKER_BOOT


def nearest(word: str, known: tuple[str, ...]) -> str | None:
    """The known word that was probably meant, or None."""
    from difflib import get_close_matches  # only when there is a mistake to explain

    return next(iter(get_close_matches(word, known, n=1)), None)
