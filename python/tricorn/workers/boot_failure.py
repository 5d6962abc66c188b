"""Why a worker cannot boot, for the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tricorn.errors import AppImportError, TricornError, of_the_application, shown
from tricorn.unpatched import os

if TYPE_CHECKING:
    from tricorn.workers.base import Worker

NO_MODULE = "Could not import %r: %s in %s, nor elsewhere on sys.path. Check the name, chdir and pythonpath."
EXIT = "The application called sys.exit(%r) while it was loaded"


def sentence(error: BaseException, uri: str) -> str:
    """What says it all about an application that cannot be loaded; empty: its traceback is needed."""
    match error:
        case SystemExit():
            return EXIT % (error.code,)
        case TricornError():
            return "\n".join(filter(None, (str(error), error.details)))
        case ModuleNotFoundError() if of_the_application(error.__traceback__) is None:
            missing = str(error)[:1].lower() + str(error)[1:]
            return NO_MODULE % (uri, missing, os.getcwd())
        case _:
            return ""


def write(worker: Worker, error: Exception | SystemExit) -> None:
    """In an exception handler."""
    log = worker.log
    if text := sentence(error, worker.app.app_uri):
        log.error("%s", text)
        if isinstance(error, AppImportError):
            log.debug("Error while loading the application", exc_info=True)
    else:
        log.error("Exception in worker process", exc_info=shown(error))
