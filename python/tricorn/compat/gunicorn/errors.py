"""Exceptions that programs and hooks raise and catch."""

from __future__ import annotations

from tricorn.compat.absent import refuse
from tricorn.errors import AppImportError, ConfigError

__all__ = ["AppImportError", "ConfigError", "HaltServer"]


class HaltServer(BaseException):
    """Raised by hooks to end the server. A BaseException, so that no `except Exception` on the way holds it up."""

    def __init__(self, reason: str, exit_status: int = 1) -> None:
        super().__init__(reason, exit_status)
        self.reason = reason
        self.exit_status = exit_status

    def __str__(self) -> str:
        return f"<HaltServer {self.reason!r} {self.exit_status}>"


__getattr__ = refuse(__name__)
