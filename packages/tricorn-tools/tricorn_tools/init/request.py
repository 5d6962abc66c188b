"""Parser from the words of a command line to the renderers' input."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping

from tricorn.config.config import Config
from tricorn.config.load import Loaded
from tricorn.config.registry import SETTINGS
from tricorn.config.resolve import Raw, override
from tricorn.record import Record, replace
from tricorn_tools.init.additions import Addition, additions
from tricorn_tools.init.service import Service

SECRET = "raw_env"
"""The setting whose values are not for files that others read."""


class Request(Record):
    """Input of one kind's renderer."""

    service: Service
    additions: tuple[Addition, ...]
    notes: tuple[str, ...]


def read(kind: str, loaded: Loaded, words: tuple[str, ...], environ: Mapping[str, str], directory: str) -> Request:
    """`words` are those of the server: without `init` and its own flags. Raises ConfigError."""
    config = loaded.config
    service = Service(
        config=config,
        words=words,
        variables=tuple((name, environ[name]) for name in variables(config, environ)),
        directory=directory,
        python=os.path.abspath(sys.executable),
        version=f"{sys.version_info[0]}.{sys.version_info[1]}",
    )
    needed = tuple(additions(kind, service))
    return Request(_with(service, needed), needed, (*loaded.warnings, *_secrets(config, environ)))


def _with(service: Service, needed: Iterable[Addition]) -> Service:
    """The service as its command line has it with these flags."""
    for addition in needed:
        flag, value = addition.flags
        (name,) = [setting.name for setting in SETTINGS if flag in setting.flags]
        config = override(service.config, {name: Raw([value] if name.endswith("bind") else value, flag)})
        service = replace(service, config=config, words=(*addition.flags, *service.words))
    return service


def variables(config: Config, environ: Mapping[str, str]) -> list[str]:
    """The variables of `environ` that a value in force comes from, but for secrets."""
    origins = {config.origin(setting.name) for setting in SETTINGS if setting.name != SECRET}
    named = {origin.rpartition(" in ")[2] for origin in origins}
    return sorted(name for name in named if name in environ)


def _secrets(config: Config, environ: Mapping[str, str]) -> list[str]:
    origin = config.origin(SECRET)
    if origin in environ:
        return [f"{origin} is not in the files, since it may have secrets: set it where the server runs."]
    if origin.startswith("-") and " in " not in origin:
        return [f"The values of {origin} stand in the files as they are. A secret belongs elsewhere."]
    return []
