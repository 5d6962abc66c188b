"""`logger_class`: from a name or a class to the class."""

from __future__ import annotations

from typing import Any

from tricorn.config.lookups import import_class
from tricorn.errors import ConfigError
from tricorn.log.logger import Logger
from tricorn.log.statsd import Statsd

OURS = ("", "simple", "tricorn.log.Logger", "gunicorn.glogging.Logger")
STATSD = "gunicorn.instrument.statsd.Statsd"


def load(named: Any, *, with_statsd: bool = False) -> type[Logger]:
    """Raises ConfigError for a name that leads nowhere and for what is no logger.

    `with_statsd`: metrics are wanted, and a default that is named becomes the class that sends them.
    """
    found: Any = named
    if named == STATSD or (isinstance(named, str) and named in OURS):
        found = Statsd if with_statsd or named == STATSD else Logger
    if isinstance(found, str):
        found = import_class(f"The logger class {named!r} (logger_class)", found)
    if not isinstance(found, type) or not issubclass(found, Logger):
        raise ConfigError(
            f"The logger class {named!r} (logger_class) cannot be used: expected a subclass of tricorn.log.Logger "
            f"(which is gunicorn.glogging.Logger here), found {found!r}."
        )
    install = getattr(found, "install", None)
    if install is not None:  # gunicorn's way of letting a class prepare the process
        try:
            install()
        except Exception as error:
            sentence = (
                f"The logger class {named!r} (logger_class) failed in install(): {type(error).__name__}: {error}."
            )
            raise ConfigError(sentence) from error
    return found
