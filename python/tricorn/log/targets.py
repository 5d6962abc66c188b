"""Handlers: where the records of the two logs go, and what happens when they cannot go there."""

from __future__ import annotations

import logging
import sys
from typing import Any

from tricorn.errors import ConfigError
from tricorn.log import stream as streams
from tricorn.unpatched import _thread

STDOUT, STDERR = 1, 2


class Lost:
    """Counts the lines a target did not take, and lets the next one that it takes say so."""

    def __init__(self) -> None:
        self.lines = 0
        self.reason = ""

    def note(self, error: BaseException) -> None:
        self.lines += 1
        self.reason = str(error)

    def __str__(self) -> str:
        return f"{self.lines} line(s) of this log were lost: {self.reason}"


class Quiet(logging.Handler):
    """A handler whose failures are counted. The server goes on: its log is not worth a request."""

    stream: Any
    _gunicorn = True
    """What gunicorn calls its own handlers: those that the next setup replaces."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.lost = Lost()

    def createLock(self) -> None:
        """A real lock also where `threading` is patched: who has it writes, and does not wait for a greenlet.

        To greenlets it is no lock, since they are of one thread. Nothing is torn for that: a record is written at once.
        """
        super().createLock()
        self.lock = _thread.RLock()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.put(self.format(record) + "\n", record.name)
        except RecursionError:
            raise
        except Exception as error:
            self.lost.note(error)

    def put(self, text: str, name: str) -> None:
        """Writes `text` whole; raises OSError. After a loss it says first what was lost."""
        if self.lost.lines:
            told = logging.LogRecord(name, logging.ERROR, "", 0, str(self.lost), None, None)
            text = self.format(told) + "\n" + text
        if self.stream is None:  # closed by a shutdown of the logging package, which whoever logs on undoes
            self.stream = self._open()
        self.stream.write(text)
        self.stream.flush()
        self.lost.lines = 0

    def _open(self) -> Any:
        raise OSError("the stream is closed")

    def handleError(self, record: logging.LogRecord) -> None:
        """Called by handlers of the standard library only; ours do not get there."""


class Console(Quiet, logging.StreamHandler):  # type: ignore[type-arg]
    """stdout or stderr."""

    def __init__(self, number: int) -> None:
        super().__init__(_standard(number))
        self.number = number


class File(Quiet, logging.FileHandler):
    """A file, opened for appending. `logging.FileHandler` because tools look for those."""

    def __init__(self, path: str, user: int, group: int) -> None:
        self._user, self._group = user, group
        super().__init__(path)

    def _open(self) -> Any:
        opened = streams.open_file(self.baseFilename)
        self.give_away(opened.fileno())
        return opened

    def give_away(self, descriptor: int) -> None:
        streams.give_away(descriptor, self._user, self._group)


def _standard(number: int) -> Any:
    """The stream of a number, without Python's buffers if it is what its name says.

    Under a test or in a notebook `sys.stderr` may be anything; then what it is counts.
    """
    current = sys.stdout if number == STDOUT else sys.stderr
    try:
        if current is not None and current.fileno() != number:
            return current
    except (OSError, ValueError, AttributeError):
        return current
    return streams.LogStream(number, owned=False)


def number_of(stream: object) -> int:
    """Which of the two consoles a subclass means by `stream`."""
    return STDOUT if stream is sys.stdout else STDERR


def below_warning(record: logging.LogRecord) -> bool:
    return record.levelno < logging.WARNING


def consoles(number: int, *, split: bool) -> list[Quiet]:
    """The handlers of a log named `-`: one; with `split` one for the good news on stdout and one for the bad."""
    if not split:
        return [Console(number)]
    good, bad = Console(STDOUT), Console(STDERR)
    good.addFilter(below_warning)
    bad.setLevel(logging.WARNING)
    return [good, bad]


def file(path: str, setting: str, user: int, group: int) -> Quiet:
    """Raises ConfigError with a sentence that names the setting."""
    try:
        return File(path, user, group)
    except OSError as error:
        what = {"errorlog": "error", "accesslog": "access"}.get(setting, setting)
        raise ConfigError(
            f"The {what} log {path!r} ({setting}) cannot be written: {error.strerror}. "
            "Name a file in a directory that exists and that this user may write to."
        ) from None


def quieten(handler: logging.Handler) -> None:
    """Keeps a foreign handler from printing a traceback to stderr for every record that it cannot write."""
    if type(handler).handleError is logging.Handler.handleError:
        setattr(handler, "handleError", _ignore)  # noqa: B010  (not an attribute a type checker lets one assign)


def _ignore(_: logging.LogRecord) -> None:
    pass
