"""`logger_class`: from a name or a class to the class."""

from __future__ import annotations

from typing import Any

from tricorn.config.lookups import import_class
from tricorn.errors import ConfigError
from tricorn.log.logger import Logger

OURS = ("", "simple", "tricorn.log.Logger", "gunicorn.glogging.Logger")
STATSD = "gunicorn.instrument.statsd.Statsd"


def load(named: Any) -> type[Logger]:
    """Raises ConfigError for a name that leads nowhere and for what is no logger."""
    if named == STATSD:
        raise ConfigError("The logger class for statsd (logger_class) is not available in this version.")
    found: Any = Logger if named in OURS else named
    if isinstance(found, str):
        found = import_class(f"The logger class {named!r} (logger_class)", found)
    if not isinstance(found, type) or not issubclass(found, Logger):
        raise ConfigError(
            f"The logger class {named!r} (logger_class) cannot be used: expected a subclass of tricorn.log.Logger "
            f"(which is gunicorn.glogging.Logger here), found {found!r}."
        )
    install = getattr(found, "install", None)
    if install is not None:  # gunicorn's way of letting a class prepare the process
        install()
    return found
