"""Why a worker cannot boot, for the log."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tricorn.errors import AppImportError, TricornError, of_the_application, shown
from tricorn.unpatched import os

if TYPE_CHECKING:
    from tricorn.workers.base import Worker

NO_MODULE = "Could not import %r: %s in %s, nor elsewhere on sys.path. Check the name, chdir and pythonpath."


def write(worker: Worker, error: Exception | SystemExit) -> None:
    """In an exception handler."""
    log = worker.log
    match error:
        case SystemExit():
            log.error("The application called sys.exit(%r) while it was loaded", error.code)
        case AppImportError():
            log.debug("Error while loading the application", exc_info=True)
            if worker.cfg.log_format != "json":  # there the arbiter's record says it, and nothing else may
                print(error, file=sys.stderr, flush=True)
        case TricornError():
            log.error("%s", "\n".join(filter(None, (str(error), error.details))))
        case ModuleNotFoundError() if of_the_application(error.__traceback__) is None:
            missing = str(error)[:1].lower() + str(error)[1:]
            log.error(NO_MODULE, worker.app.app_uri, missing, os.getcwd())
        case _:
            log.error("Exception in worker process", exc_info=shown(error))
