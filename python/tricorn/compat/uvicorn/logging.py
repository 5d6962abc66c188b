"""uvicorn's formatters, which log configurations name. They look as uvicorn's do."""

from __future__ import annotations

import http
import logging
import sys
from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, ClassVar, Literal

from tricorn.compat.absent import refuse

__all__ = ["TRACE_LOG_LEVEL", "AccessFormatter", "ColourizedFormatter", "DefaultFormatter"]

__getattr__ = refuse(__name__)

TRACE_LOG_LEVEL = 5
WIDTH = 8
"""Characters up to the colon behind a level, and the blanks that follow it."""


def _painter(colour: int) -> Callable[[object], str]:
    return lambda text: f"\x1b[{colour}m{text}\x1b[0m"


class ColourizedFormatter(logging.Formatter):
    """Has `%(levelprefix)s`, in colour on a terminal; there `color_message` of `extra` takes the message's place."""

    level_name_colors: ClassVar[Mapping[int, Callable[[str], str]]] = {
        TRACE_LOG_LEVEL: _painter(34),
        logging.DEBUG: _painter(36),
        logging.INFO: _painter(32),
        logging.WARNING: _painter(33),
        logging.ERROR: _painter(31),
        logging.CRITICAL: _painter(91),
    }

    def __init__(
        self,
        fmt: str | None = None,
        datefmt: str | None = None,
        style: Literal["%", "{", "$"] = "%",
        use_colors: bool | None = None,
    ) -> None:
        self.use_colors = self.should_use_colors() if use_colors is None else use_colors
        super().__init__(fmt=fmt, datefmt=datefmt, style=style)

    def color_level_name(self, level_name: str, level_no: int) -> str:
        paint = self.level_name_colors.get(level_no, str)
        return paint(level_name)

    def should_use_colors(self) -> bool:
        return sys.stdout.isatty()

    def formatMessage(self, record: logging.LogRecord) -> str:
        made, name = copy(record), record.levelname
        blanks = " " * (WIDTH - len(name))
        if self.use_colors:
            name = self.color_level_name(name, made.levelno)
            if "color_message" in vars(made):
                made.msg = vars(made)["color_message"]
                made.message = made.getMessage()
        vars(made)["levelprefix"] = f"{name}:{blanks}"
        return super().formatMessage(made)


class DefaultFormatter(ColourizedFormatter):
    """Formatter of the error log."""

    def should_use_colors(self) -> bool:
        return sys.stderr.isatty()


class AccessFormatter(ColourizedFormatter):
    """Formatter of the access log, with `%(client_addr)s`, `%(request_line)s` and `%(status_code)s`."""

    status_code_colours: ClassVar[Mapping[int, Callable[[int | str], str]]] = {
        1: _painter(97),
        2: _painter(32),
        3: _painter(33),
        4: _painter(31),
        5: _painter(91),
    }

    def get_status_code(self, status_code: int) -> str:
        try:
            text = f"{status_code} {http.HTTPStatus(status_code).phrase}"
        except ValueError:
            text = f"{status_code} "
        paint = self.status_code_colours.get(status_code // 100, str) if self.use_colors else str
        return paint(text)

    def formatMessage(self, record: logging.LogRecord) -> str:
        made = copy(record)
        arguments: Any = made.args
        client, method, path, version, status = arguments
        line = f"{method} {path} HTTP/{version}"
        vars(made).update(
            client_addr=client,
            request_line=f"\x1b[1m{line}\x1b[0m" if self.use_colors else line,
            status_code=self.get_status_code(int(status)),
        )
        return super().formatMessage(made)
