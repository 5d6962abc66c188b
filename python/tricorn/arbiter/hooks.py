"""Calling the operator's hooks: at the start a failing hook is an error, later it must not end the service."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tricorn.errors import ConfigError

if TYPE_CHECKING:
    from tricorn.arbiter.generation import Generation


def must(generation: Generation, name: str, *arguments: object) -> None:
    """Raises ConfigError if the hook fails; its traceback goes to the log."""
    try:
        getattr(generation.config, name)(*arguments)
    except Exception as error:
        generation.log.exception("Exception in the hook %s", name)
        raise ConfigError(f"The hook {name} failed: {type(error).__name__}: {error}") from None
    finally:
        take_signals_back()


def may(generation: Generation, name: str, *arguments: object) -> bool:
    """Whether the hook went well; if not, its traceback is in the log."""
    try:
        getattr(generation.config, name)(*arguments)
    except Exception:
        generation.log.exception("Exception in the hook %s", name)
        return False
    finally:
        take_signals_back()
    return True


def take_signals_back() -> None:
    """If code of the user's has used gevent's hub in the arbiter: the arbiter hears of its children again."""
    patching = sys.modules.get("tricorn_green.patching")  # a process that has not imported it is not patched
    if patching is not None:
        patching.take_signals_back()
