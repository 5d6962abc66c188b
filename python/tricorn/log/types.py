"""The logger as the server's own code sees it."""

from __future__ import annotations

from typing import Protocol


class Log(Protocol):
    """The methods of the error log that the server calls, with the arguments of `logging`'s."""

    def debug(self, message: str, /, *arguments: object) -> object: ...
    def info(self, message: str, /, *arguments: object) -> object: ...
    def warning(self, message: str, /, *arguments: object) -> object: ...
    def error(self, message: str, /, *arguments: object) -> object: ...
