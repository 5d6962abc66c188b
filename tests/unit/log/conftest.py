"""Each test gets the process's loggers back as it found them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from tricorn.config.config import Config
from tricorn.config.resolve import Layer, Raw, resolve
from tricorn.log.names import all_loggers

Configure = Callable[..., Config]


@pytest.fixture
def configure() -> Configure:
    """`configure(errorlog="-", loglevel="info")`: a configuration, as a file with these names would make it."""

    def make(**settings: Any) -> Config:
        return resolve([Layer({name: Raw(value, "test") for name, value in settings.items()})])

    return make


@pytest.fixture(autouse=True)
def _same_loggers() -> Iterator[None]:
    streams, before = (sys.stdout, sys.stderr), {each: _state(each) for each in all_loggers()}
    handlers_before = logging._handlerList[:]  # type: ignore[attr-defined]
    raising = logging.raiseExceptions
    kept = [(logger, logger.handlers[:]) for logger in map(logging.getLogger, ("gunicorn.error", "gunicorn.access"))]
    for logger, _ in kept:
        logger.handlers[:] = []
        logger.propagate = True  # or pytest puts handlers of its own on it
    yield
    for logger in all_loggers():
        vars(logger).update(before.get(logger, {"handlers": []}))
    sys.stdout, sys.stderr = streams
    _close([reference() for reference in logging._handlerList[:] if reference not in handlers_before])  # type: ignore[attr-defined]
    for logger, handlers in kept:
        logger.handlers[:] = handlers
    logging.raiseExceptions = raising
    assert not [name for name in sys.modules if name.startswith("log_probe")]


def _state(logger: logging.Logger) -> dict[str, Any]:
    return {**vars(logger), "handlers": logger.handlers[:], "filters": logger.filters[:], "_cache": {}}


def _close(handlers: list[logging.Handler | None]) -> None:
    """One that is not collected yet would be among those that a later test opens anew."""
    for handler in handlers:
        if handler is not None:
            with suppress(OSError, ValueError):  # a full disk, a stream that the test has closed
                handler.close()
