"""Calling the operator's hooks: at the start a failing hook is an error, later it must not end the service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tricorn.errors import ConfigError
from tricorn.green import patching

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
        patching.take_signals_back()


def may(generation: Generation, name: str, *arguments: object) -> bool:
    """Whether the hook went well; if not, its traceback is in the log."""
    try:
        getattr(generation.config, name)(*arguments)
    except Exception:
        generation.log.exception("Exception in the hook %s", name)
        return False
    finally:
        patching.take_signals_back()
    return True
