"""The error log: gunicorn's format, under the name `tricorn.error`."""

from __future__ import annotations

import logging
import sys
from typing import Any

from tricorn.errors import ConfigError

FORMAT = "%(asctime)s [%(process)d] [%(levelname)s] %(message)s"
DATE_FORMAT = "[%Y-%m-%d %H:%M:%S %z]"


class ErrorLog(logging.LoggerAdapter):  # type: ignore[type-arg]  # subscriptable only since Python 3.11
    """The logger `tricorn.error` and the one stream it writes to."""

    def __init__(self, path: str, level: str) -> None:
        logger = logging.getLogger("tricorn.error")
        super().__init__(logger, {})
        self._handler = _open(path)
        self._handler.setFormatter(logging.Formatter(FORMAT, DATE_FORMAT))
        logger.handlers[:] = [self._handler]
        logger.setLevel(level.upper())
        logger.propagate = False

    def write(self, text: str) -> None:
        """Puts `text` into the log without a prefix (`wsgi.errors`)."""
        self._handler.acquire()
        try:
            self._handler.stream.write(text)
            self._handler.flush()
        finally:
            self._handler.release()

    def flush(self) -> None:
        self._handler.flush()

    def reopen(self) -> None:
        """Opens the file anew, after a rotation; stderr stays."""
        handler = self._handler
        if not isinstance(handler, logging.FileHandler):
            return
        try:
            stream = open(handler.baseFilename, "a", encoding="utf-8")  # noqa: SIM115
        except OSError as error:
            # The old file is better than none, and no reason to stop serving.
            self.error("The error log cannot be opened anew: %s", error)
            return
        previous = handler.setStream(stream)
        if previous is not None:
            previous.close()


def _open(path: str) -> logging.StreamHandler[Any]:
    if path == "-":
        return logging.StreamHandler(sys.stderr)
    try:
        return logging.FileHandler(path, encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"The error log {path!r} cannot be written: {error.strerror}.") from None
