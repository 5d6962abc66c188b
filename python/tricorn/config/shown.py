"""Values of settings as people are shown them: as gunicorn prints them, without secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tricorn.config import foreign
from tricorn.config.lookups import Hook
from tricorn.config.setting import Setting

HIDDEN = "***"

_SECRET = re.compile(r"pass|secret|token|key|dsn|credential|auth", re.IGNORECASE)


def shown(setting: Setting[object], value: object) -> object:
    """The value as gunicorn prints it, without what must not stand in the log of a build."""
    if isinstance(setting.kind, Hook):
        name = setting.name if value is setting.default else getattr(value, "__qualname__", type(value).__qualname__)
        return f"<{name}()>"
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}"
    if setting.name == "raw_env":
        # People keep passwords here; the names tell what is set.
        return [f"{text.partition('=')[0]}={HIDDEN}" for text in foreign.as_gunicorn(setting.name, value)]
    if isinstance(value, Mapping):
        return _without_secrets(value)
    return foreign.as_gunicorn(setting.name, value)


def _without_secrets(value: object, name: object = "") -> object:
    if isinstance(value, Mapping):
        return {key: _without_secrets(part, key) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_without_secrets(part) for part in value]
    return HIDDEN if isinstance(name, str) and isinstance(value, str) and _SECRET.search(name) else value
