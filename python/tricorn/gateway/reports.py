"""Writes what the native gateways report to the error log."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tricorn.log import Logger

OnError = Callable[[str, BaseException], None]
OnNotice = Callable[[int, str], None]


def to_log(log: Logger) -> tuple[OnError, OnNotice]:
    """`on_error(message, error)`, logged with its traceback, and `on_notice(level, text)`, of every gateway."""

    def on_error(message: str, error: BaseException) -> None:
        log.error("%s", message, exc_info=error)

    def on_notice(level: int, text: str) -> None:
        log.log(level, "%s", text)

    return on_error, on_notice
