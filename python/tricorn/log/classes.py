"""`logger_class`: from a name or a class to the class."""

from __future__ import annotations

import importlib
from typing import Any

from tricorn.errors import ConfigError, nearest
from tricorn.log.logger import Logger

OURS = ("", "simple", "tricorn.log.Logger", "gunicorn.glogging.Logger")
STATSD = "gunicorn.instrument.statsd.Statsd"


def load(named: Any) -> type[Logger]:
    """Raises ConfigError for a name that leads nowhere and for what is no logger."""
    found = _import(named) if isinstance(named, str) else named
    if not isinstance(found, type) or not issubclass(found, Logger):
        raise ConfigError(
            f"The logger class {named!r} (logger_class) cannot be used: expected a subclass of tricorn.log.Logger "
            f"(which is gunicorn.glogging.Logger here), found {found!r}."
        )
    install = getattr(found, "install", None)
    if install is not None:  # gunicorn's way of letting a class prepare the process
        install()
    return found


def _import(name: str) -> object:
    if name in OURS:
        return Logger
    if name == STATSD:
        raise ConfigError("The logger class for statsd (logger_class) is not available in this version.")
    module_name, dot, attribute = name.rpartition(".")
    if not dot or name.startswith("egg:"):
        raise ConfigError(f"The logger class {name!r} (logger_class) must be a dotted name: module.Class.")
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise ConfigError(
            f"The logger class {name!r} (logger_class) cannot be imported: {type(error).__name__}: {error}."
        ) from error
    try:
        return getattr(module, attribute)
    except AttributeError:
        meant = nearest(attribute, tuple(vars(module)))
        hint = f" Did you mean {module_name}.{meant}?" if meant else ""
        raise ConfigError(f"The logger class {name!r} (logger_class) is not in its module.{hint}") from None
