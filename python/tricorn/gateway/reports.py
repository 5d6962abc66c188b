"""Where what the native gateways report goes: the error log."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tricorn.log import Logger

OnError = Callable[[str, BaseException], None]
OnNotice = Callable[[bool, str], None]


def to_log(log: Logger) -> tuple[OnError, OnNotice]:
    """`on_error(message, error)`, logged with its traceback, and `on_notice(is_warning, text)`, of every gateway."""

    def on_error(message: str, error: BaseException) -> None:
        log.error("%s", message, exc_info=error)

    def on_notice(is_warning: bool, text: str) -> None:
        log.warning("%s", text) if is_warning else log.debug("%s", text)

    return on_error, on_notice
