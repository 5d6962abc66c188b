"""Handlers: where the records of the two logs go, what happens when they cannot go there, and after a rotation."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from tricorn.errors import ConfigError
from tricorn.log.stream import LogStream, Ownership, open_file
from tricorn.unpatched import _thread, os

STDOUT, STDERR = 1, 2


class RealLock(logging.Handler):
    """A real lock also where `threading` is patched: who has it writes, and does not wait for a greenlet.

    To greenlets it is no lock, since they are of one thread. Nothing is torn for that: a record is written at once.
    """

    def createLock(self) -> None:
        super().createLock()
        self.lock = _thread.RLock()


class Quiet(RealLock, logging.StreamHandler):  # type: ignore[type-arg]
    """A handler whose failures are counted. The server goes on: its log is not worth a request."""

    lost = 0
    """Lines the target did not take. The next one that it takes says so."""
    reason = ""
    _gunicorn = True
    """The name by which gunicorn marks its own handlers: those that the next setup replaces."""

    def emit(self, record: logging.LogRecord) -> None:
        before = self.lost
        super().emit(record)
        if self.lost == before:
            self.lost = 0

    def format(self, record: logging.LogRecord) -> str:
        """Formats a record. After a loss, it starts with the number of lost lines."""
        text = super().format(record)
        if not self.lost:
            return text
        told = f"{self.lost} line(s) of this log were lost: {self.reason}"
        return super().format(logging.LogRecord(record.name, logging.ERROR, "", 0, told, None, None)) + "\n" + text

    def handleError(self, record: logging.LogRecord) -> None:
        self.count(sys.exc_info()[1])

    def count(self, error: BaseException | None) -> None:
        self.lost, self.reason = self.lost + 1, str(error)


class File(Quiet, logging.FileHandler):
    """A file, opened for appending. `logging.FileHandler` because tools look for those."""

    def __init__(self, path: str, wanted: Ownership) -> None:
        self._wanted = wanted
        logging.FileHandler.__init__(self, path)

    def _open(self) -> Any:
        return open_file(self.baseFilename, self._wanted)


def _standard(number: int) -> Any:
    """The stream of a number, without Python's buffers if it is what its name says.

    Under a test or in a notebook `sys.stderr` may be anything; then what it is counts.
    """
    current = sys.stdout if number == STDOUT else sys.stderr
    with suppress(OSError, ValueError, AttributeError):
        if current is None or current.fileno() == number:
            return LogStream(number, owned=False)
    return current


def below_warning(record: logging.LogRecord) -> bool:
    return record.levelno < logging.WARNING


def consoles(number: int, *, split: bool) -> list[logging.Handler]:
    """The handlers of a log named `-`: one; with `split` one for the good news on stdout and one for the bad."""
    if not split:
        return [Quiet(_standard(number))]
    good, bad = Quiet(_standard(STDOUT)), Quiet(_standard(STDERR))
    good.addFilter(below_warning)
    bad.setLevel(logging.WARNING)
    return [good, bad]


@contextmanager
def or_refused(what: str) -> Iterator[None]:
    """An OSError becomes a ConfigError whose sentence begins with `what`."""
    try:
        yield
    except OSError as error:
        remedy = "Name a file in a directory that exists and that this user may write to."
        raise ConfigError(f"{what}: {error.strerror}. {remedy}") from None


def reached(logger: logging.Logger | None) -> Iterator[logging.Handler]:
    """The handlers that records of `logger` get to."""
    while logger is not None:
        yield from logger.handlers
        logger = logger.parent if logger.propagate else None


def is_managed(handler: logging.Handler) -> bool:
    """Whether the next setup replaces it: one of ours, or one of a logging configuration's."""
    return getattr(handler, "_gunicorn", False) or getattr(handler, "_tricorn", False)


def manage(handler: logging.Handler) -> None:
    """Marks a handler as made by a logging configuration."""
    with suppress(AttributeError):
        handler._tricorn = True  # type: ignore[attr-defined]


def quieten(handler: logging.Handler) -> None:
    """Keeps a foreign handler from printing a traceback to stderr for every record that it cannot write."""
    if type(handler).handleError is logging.Handler.handleError:
        handler.handleError = _ignore  # type: ignore[method-assign]


def _ignore(record: logging.LogRecord) -> None:
    pass


def file_handlers() -> list[logging.FileHandler]:
    """Every handler of the process that has a file open, also those behind other handlers."""
    references: list[Any] = logging._handlerList[:]  # type: ignore[attr-defined]
    handlers = [reference() for reference in references]
    return [each for each in handlers if isinstance(each, logging.FileHandler) and each.stream is not None]


def reopen(handler: logging.FileHandler) -> None:
    """Opens a new file of the same name (USR1). Raises OSError, and then the old file stays in use."""
    handler.acquire()
    try:
        stream: Any = handler.stream
        if isinstance(handler, File):
            _exchange(stream, handler._open())
        elif type(handler)._open is logging.FileHandler._open and type(stream) is io.TextIOWrapper:
            stream.flush()
            _exchange(stream, open_file(handler.baseFilename, Ownership()))
        else:  # its descriptor is not all that it consists of: it may compress
            handler.stream = handler._open()
            stream.close()
    finally:
        handler.release()


def _exchange(stream: Any, new: LogStream) -> None:
    """Puts the new file under the number of the old one, in one step of the kernel's.

    A signal handler runs this in the middle of whatever the main thread does: a line that is being written when the
    stream is exchanged would go to a closed one.
    """
    os.dup2(new.fileno(), stream.fileno(), inheritable=False)
    new.close()
