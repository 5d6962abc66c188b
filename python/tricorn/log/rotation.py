"""After a rotation (USR1): the same names, new files, and not a line lost."""

from __future__ import annotations

import io
import logging
from typing import Any

from tricorn.log import stream as streams
from tricorn.log import targets
from tricorn.unpatched import os


def file_handlers() -> list[logging.FileHandler]:
    """Every handler of the process that has a file open, also those behind other handlers."""
    references: list[Any] = logging._handlerList[:]  # type: ignore[attr-defined]
    handlers = [reference() for reference in references]
    return [each for each in handlers if isinstance(each, logging.FileHandler) and each.stream is not None]


def reopen(handler: logging.FileHandler) -> None:
    """Raises OSError, and then the old file stays in use."""
    handler.acquire()
    try:
        if _is_plain(handler):
            _exchange_descriptor(handler)
        else:
            previous: Any = handler.stream
            handler.stream = handler._open()
            previous.close()
    finally:
        handler.release()


def _is_plain(handler: logging.FileHandler) -> bool:
    """Whether what the descriptor leads to is all that the stream consists of; not so if it compresses."""
    if isinstance(handler, targets.File):
        return True
    return type(handler)._open is logging.FileHandler._open and type(handler.stream) is io.TextIOWrapper


def _exchange_descriptor(handler: logging.FileHandler) -> None:
    """Puts the new file under the number of the old one, in one step of the kernel's.

    A signal handler runs this in the middle of whatever the main thread does: a line that is being written when the
    stream is exchanged would go to a closed one.
    """
    stream: Any = handler.stream
    stream.flush()
    descriptor = streams.open_descriptor(handler.baseFilename)
    if isinstance(handler, targets.File):
        handler.give_away(descriptor)
    os.dup2(descriptor, stream.fileno(), inheritable=False)
    os.close(descriptor)
