"""Values of settings as people are shown them: as gunicorn prints them, without secrets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tricorn.config import foreign
from tricorn.config.config import DEFAULT, Config
from tricorn.config.lookups import Hook
from tricorn.config.registry import SETTINGS
from tricorn.config.setting import Setting

HIDDEN = "***"

_SECRET = re.compile(r"pass|secret|token|key|dsn|credential|auth", re.IGNORECASE)


def page(config: Config, files: Sequence[str] = ()) -> str:
    """Returns the page of `--print-config`: gunicorn's `name = value` and the origin of each value, given ones first.

    `files` are those that were read. Lines without a setting begin with `#`.
    """
    width = max(len(setting.name) for setting in SETTINGS)
    given: list[str] = []
    default: list[str] = []
    for setting in sorted(SETTINGS, key=lambda each: each.name):
        value, origin = shown(setting, config.value(setting.name)), config.origin(setting.name)
        if setting.name == "config" and not files:
            value = "-"
        why = f", {config.sizing.reasons}" if setting.name == "workers" and config.sizing else ""
        line = f"{setting.name:{width}} = {value}  ({origin}{why})"
        (default if origin == DEFAULT else given).append(line)
    read = f"# Files that were read: {', '.join(files) or '-'}"
    return "\n".join([read, "", "# Set", *(given or ["# nothing"]), "", "# Defaults", *default])


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
