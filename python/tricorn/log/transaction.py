"""All or nothing: a log configuration that fails leaves the log as it was.

with transaction():
    ...                 an exception puts every logger, stdout and stderr back, and closes what was opened;
                        otherwise the handlers that no logger has any more are closed

A logging configuration may change any logger of the process before it fails, so all of them are put back.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from tricorn.log.names import all_loggers, handlers
from tricorn.log.targets import is_managed

_running = False


@contextmanager
def transaction(*objects: object) -> Iterator[None]:
    """The attributes of `objects` are put back too. A transaction inside of another one is a part of it."""
    global _running
    if _running:
        yield
        return
    before, streams = handlers(), (sys.stdout, sys.stderr)
    attributes = [(each, dict(vars(each))) for each in objects]
    for logger in all_loggers():
        lists = {"handlers": logger.handlers[:], "filters": logger.filters[:], "_cache": {}}
        attributes.append((logger, {**vars(logger), **lists}))
    copies = _copies()
    _running, gone = True, set(before)
    try:
        yield
        gone = {handler for handler in before - handlers() if is_managed(handler)}
    except BaseException:
        gone = handlers() - before
        for logger in all_loggers():
            logger.handlers[:] = [handler for handler in logger.handlers if handler in before]
        for each, saved in attributes:
            vars(each).update(saved)
        sys.stdout, sys.stderr = streams
        for number, copy in copies.items():
            os.dup2(copy, number)
        raise
    finally:
        _running = False
        for copy in copies.values():
            os.close(copy)
        for handler in gone:
            with suppress(Exception):  # a foreign handler's; the log has other handlers now
                handler.close()


def _copies() -> dict[int, int]:
    copies = {}
    for number in (1, 2):
        with suppress(OSError):  # closed
            copies[number] = os.dup(number)
    return copies
