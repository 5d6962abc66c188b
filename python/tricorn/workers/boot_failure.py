"""Why a worker cannot boot, for the log."""

from __future__ import annotations

import sys
import traceback
from importlib.util import find_spec
from typing import TYPE_CHECKING

from tricorn.errors import AppImportError, BootError, TricornError, of_the_application, shown
from tricorn.gateway.last_words import last_words
from tricorn.spelling import near
from tricorn.unpatched import os

if TYPE_CHECKING:
    from tricorn.log import Logger

NO_MODULE = "Could not import %r: %s in %s or elsewhere on sys.path. Check the name, chdir and pythonpath."
EXIT = "The application called sys.exit(%r) while loading"


def is_failure(error: BaseException) -> bool:
    """Returns whether the boot failed, and is not interrupted. A `BaseExceptionGroup` is not an `Exception`."""
    return isinstance(error, Exception | SystemExit) or hasattr(error, "exceptions")


def reason(error: BaseException) -> str:
    """Returns one line for the arbiter, for a group with its members."""
    if isinstance(error, TricornError):
        return str(error)
    if hasattr(error, "exceptions"):
        return last_words("".join(traceback.format_exception(error)))
    return last_words(f"{type(error).__name__}: {error}".partition("\n")[0])


def sentence(error: BaseException, uri: str) -> str:
    """Explains in a sentence why an application cannot be loaded. Empty if that takes the traceback."""
    match error:
        case SystemExit():
            return EXIT % (error.code,)
        case TricornError():
            return "\n".join(filter(None, (str(error), error.details)))
        case ModuleNotFoundError() if of_the_application(error.__traceback__) is None:
            missing = str(error)[:1].lower() + str(error)[1:]
            return NO_MODULE % (uri, missing, os.getcwd()) + _command(uri)
        case _:
            return ""


def check_module(uri: str) -> None:
    """Raises BootError if the top-level package of the application does not exist. Imports nothing."""
    name = uri.partition(":")[0].partition(".")[0]
    if not name.isidentifier() or uri.partition(":")[0].endswith(".py"):
        return
    try:
        is_missing = find_spec(name) is None
    except (ImportError, ValueError):  # a finder failed, or sys.modules has no spec: the import says more
        return
    if is_missing:
        raise BootError(sentence(ModuleNotFoundError(f"No module named {name!r}", name=name), uri))


def _command(uri: str) -> str:
    """Adds a hint where a misspelled command of `tricorn` was taken for a module."""
    if uri in ("help", "version"):
        return f" For the {uri}: `tricorn --{uri}`."
    meant = near(uri, COMMANDS)
    return f" Did you mean the command `tricorn {meant[0]}`?" if meant else ""


COMMANDS = ("bench", "ctl", "dev-cert", "doctor", "exec", "init", "load", "top", "tune")
"""Commands of `tricorn`. A module of the same name is an application."""


def write(log: Logger, uri: str, error: BaseException) -> None:
    """Writes the reason to the log or to stderr, as gunicorn does. Called in an exception handler."""
    if text := sentence(error, uri):
        log.error("%s", text)
        if isinstance(error, AppImportError):
            log.debug("Error while loading the application", exc_info=True)
    else:
        log.error("Exception in worker process", exc_info=shown(error))


def report(error: BaseException, uri: str) -> None:
    """Explains why the application cannot be loaded. Called in an exception handler."""
    print("\nError while loading the application:\n", file=sys.stderr)
    if text := sentence(error, uri):
        print(text, file=sys.stderr)
    else:
        traceback.print_exception(*shown(error))
