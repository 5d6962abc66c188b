"""Calls of the operator's hooks: at the start a failing hook is an error, later it must not end the service."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tricorn.errors import ConfigError

if TYPE_CHECKING:
    from tricorn.config.config import Config
    from tricorn.log import Logger


def must(config: Config, log: Logger, name: str, *arguments: object) -> None:
    """Raises ConfigError if the hook fails; its traceback goes to the log."""
    try:
        getattr(config, name)(*arguments)
    except Exception as error:
        log.exception("Exception in the hook %s", name)
        raise ConfigError(f"The hook {name} failed: {type(error).__name__}: {error}") from None
    finally:
        take_signals_back()


def may(config: Config, log: Logger, name: str, *arguments: object) -> bool:
    """Returns whether the hook succeeded; if not, its traceback is in the log."""
    try:
        getattr(config, name)(*arguments)
    except Exception:
        log.exception("Exception in the hook %s", name)
        return False
    finally:
        take_signals_back()
    return True


def ask(config: Config, log: Logger, name: str, *arguments: object) -> bool | None:
    """Returns the hook's answer; None if it has none, or fails, and then its traceback is in the log."""
    try:
        answer = getattr(config, name)(*arguments)
        return None if answer is None else bool(answer)
    except Exception:
        log.exception("Exception in the hook %s", name)
        return None
    finally:
        take_signals_back()


def take_signals_back() -> None:
    """Restores SIGCHLD for the arbiter if a hook has used gevent's hub, which takes it."""
    patching = sys.modules.get("tricorn_green.patching")  # a process that has not imported it is not patched
    if patching is not None:
        patching.take_signals_back()
