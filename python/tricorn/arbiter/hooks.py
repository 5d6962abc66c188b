"""Calling the operator's hooks: at the start a failing hook is an error, later it must not end the service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from tricorn.errors import ConfigError
from tricorn.green import patching


class Log(Protocol):
    def exception(self, message: str, /, *args: object) -> object: ...


def must(log: Log, name: str, hook: Callable[..., Any], *arguments: object) -> None:
    """Raises ConfigError if the hook fails; its traceback goes to the log."""
    try:
        hook(*arguments)
    except Exception as error:
        log.exception("Exception in the hook %s", name)
        raise ConfigError(f"The hook {name} failed: {type(error).__name__}: {error}") from None
    finally:
        patching.take_signals_back()


def may(log: Log, name: str, hook: Callable[..., Any], *arguments: object) -> bool:
    """Whether the hook went well; if not, its traceback is in the log."""
    try:
        hook(*arguments)
    except Exception:
        log.exception("Exception in the hook %s", name)
        return False
    finally:
        patching.take_signals_back()
    return True
